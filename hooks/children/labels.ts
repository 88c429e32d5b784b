/**
 * Labels of generated objects. A label value has at most 63 characters, so the hooks truncate longer resource names and
 * append a hash.
 */
import { shortName } from '../../schemas/index.ts'

export interface ObjectLabels {
  readonly [label: string]: string
}

/** Returns the labels that all of a resource's objects have. `app` is the kind in lowercase. */
export function ownLabels(app: string, name: string, component?: string): ObjectLabels {
  return { ...selectorLabels(app, name, component), 'app.kubernetes.io/managed-by': 'gatehouse' }
}

/** Returns the subset that selects pods. Never add a label here, because a Deployment's selector is immutable. */
export function selectorLabels(app: string, name: string, component?: string): ObjectLabels {
  const instance = shortName(name, 63)
  return {
    app,
    'app.kubernetes.io/name': app,
    'app.kubernetes.io/instance': instance,
    'gatehouse.dev/managed': 'true',
    'gatehouse.dev/name': instance,
    ...(component !== undefined && { 'app.kubernetes.io/component': component }),
  }
}

/** Formats a label selector for the scale subresource. */
export function labelSelectorText(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',')
}

/** Labels of the ConfigMaps that running virtual servers write their reports to. */
export const reportLabels = { 'app.kubernetes.io/component': 'vmcp-report' }

/** Labels of the ConfigMaps that proxies attached to a server write their reports to. */
export const attachReportLabels = { 'app.kubernetes.io/component': 'attach-report' }
