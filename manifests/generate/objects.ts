/**
 * Names, labels and small shapes that several manifests share.
 */
import { apiGroup } from '../../schemas/index.ts'
import { groupOf, type WatchedResource } from './kinds.ts'
import { type Component, selector } from './selectors.ts'
import type { Json } from './settings/settings.ts'
import type { Values } from './settings/values.ts'

export interface GeneratedManifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly [member: string]: unknown
}

export const names = {
  /** Deployment, Service, ServiceAccount and webhook configuration of the hooks server. */
  hooks: 'gatehouse-hooks',
  tls: 'gatehouse-hooks-tls',
  certificates: 'gatehouse-certificates',
  metacontroller: 'gatehouse-metacontroller',
} as const

/**
 * Ports of the hooks server: the API server's, which no NetworkPolicy can name, and Metacontroller's. The Service listens
 * on the first of each pair. The older one is the API server's: an upgrade leaves no gap in admission, and
 * Metacontroller calls again by itself.
 */
export const servicePorts = {
  admission: { name: 'https', port: 443, containerPort: 8743 },
  hooks: { name: 'hooks', port: 8443, containerPort: 8744 },
} as const

/** Selects the CompositeControllers for a private Metacontroller. */
export const instanceLabel = { 'gatehouse.dev/instance': 'default' } as const

export function labels(values: Values, component: Component): Record<string, string> {
  return { ...ownLabels(values, component), ...values.members('commonLabels') }
}

function ownLabels(values: Values, component: Component): Record<string, string> {
  return {
    ...selector(component),
    'app.kubernetes.io/part-of': 'gatehouse',
    'app.kubernetes.io/version': values.version,
  }
}

export function podLabels(values: Values, component: Component): Record<string, string> {
  return { ...ownLabels(values, component), ...values.members('podLabels', 'commonLabels') }
}

/** Of the template of a pod. */
export function podMetadata(values: Values, component: Component): Record<string, Json> {
  return {
    labels: podLabels(values, component),
    ...filled({ annotations: values.value('podAnnotations') }),
  }
}

/** One without a token: a pod that needs one mounts it itself. */
export function serviceAccount(
  values: Values,
  component: Component,
  name = `gatehouse-${component}`,
): GeneratedManifest {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: {
      name,
      namespace: values.namespace,
      labels: labels(values, component),
      ...filled({ annotations: values.value('serviceAccountAnnotations') }),
    },
    automountServiceAccountToken: false,
  }
}

/** Which nodes a pod may run on. */
export function placement(values: Values, section: 'hooks' | 'metacontroller'): Record<string, Json> {
  return {
    nodeSelector: values.value(`${section}.nodeSelector`),
    tolerations: values.value(`${section}.tolerations`),
    affinity: values.value(`${section}.affinity`),
  }
}

export function controllerName(plural: string): string {
  return `${plural}.${apiGroup}`
}

/** The restricted Pod Security Standard. The user id is the image's: OpenShift assigns its own. */
export const podSecurity = { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } } as const
export const containerSecurity = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  capabilities: { drop: ['ALL'] },
} as const

export interface RbacRule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
  readonly resourceNames?: readonly string[]
}

/** One rule per API group. */
export function rules(
  resources: readonly WatchedResource[],
  verbs: readonly string[],
  subresource = '',
): readonly RbacRule[] {
  const groups = Map.groupBy(resources, groupOf)
  return [...groups].map(([apiGroup, members]) => ({
    apiGroups: [apiGroup],
    resources: [...new Set(members.map((one) => one.resource + subresource))],
    verbs,
  }))
}

/** Drops members that are empty: an empty default is left out of the plain manifests. */
export function filled(members: Readonly<Record<string, Json>>): Record<string, Json> {
  return Object.fromEntries(
    Object.entries(members).filter(([, value]) =>
      typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : value !== '',
    ),
  )
}
