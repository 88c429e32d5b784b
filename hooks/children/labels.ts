/**
 * Labels of generated objects. Label values are limited to 63 characters, names of resources are not: a longer name is
 * cut and gets a hash.
 */
import { shortName } from '../../schemas/index.ts'

export interface ObjectLabels {
  readonly [label: string]: string
}

/** Labels of everything that belongs to one resource; `app` is the kind in lower case. */
export function ownLabels(app: string, name: string, component?: string): ObjectLabels {
  return { ...selectorLabels(app, name, component), 'app.kubernetes.io/managed-by': 'gatehouse' }
}

/** The subset that selects pods. Immutable in a Deployment: never add to it. */
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

/** Of the ConfigMaps that running virtual servers write their reports into. */
export const reportLabels = { 'app.kubernetes.io/component': 'vmcp-report' }

/** Of the ConfigMaps in which proxies that are attached to a server keep their reports. */
export const attachReportLabels = { 'app.kubernetes.io/component': 'attach-report' }
