/** Names, labels and small builders that several manifests share. */
import { apiGroup } from '../../schemas/index.ts'
import { groupOf, type WatchedResource } from './kinds.ts'
import type { Defaults } from './defaults.ts'

/** The component of an installation that an object belongs to. */
export type Component = 'hooks' | 'certificates' | 'metacontroller' | 'admission' | 'controllers'

/** Labels for selectors, which must never change. */
export function selector(component: Component): Record<string, string> {
  return { 'app.kubernetes.io/name': `gatehouse-${component}`, 'app.kubernetes.io/component': component }
}

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
  /** Name of the hooks server's Deployment, Service, ServiceAccount and webhook configuration. */
  hooks: 'gatehouse-hooks',
  tls: 'gatehouse-hooks-tls',
  certificates: 'gatehouse-certificates',
  metacontroller: 'gatehouse-metacontroller',
} as const

/**
 * The hooks server's ports: one for the API server, which no NetworkPolicy can select, and one for Metacontroller. The
 * Service listens on the first port in each pair. The API server uses the older port, so an upgrade causes no gap in
 * admission. Metacontroller retries automatically.
 */
export const servicePorts = {
  admission: { name: 'https', port: 443, containerPort: 8743 },
  hooks: { name: 'hooks', port: 8443, containerPort: 8744 },
} as const

/** Selects the CompositeControllers for a private Metacontroller. */
export const instanceLabel = { 'gatehouse.dev/instance': 'default' } as const

export function labels(defaults: Defaults, component: Component): Record<string, string> {
  return {
    ...selector(component),
    'app.kubernetes.io/part-of': 'gatehouse',
    'app.kubernetes.io/version': defaults.version,
  }
}

/** Does not mount a token. A pod that needs a token mounts the token itself. */
export function serviceAccount(
  defaults: Defaults,
  component: Component,
  name = `gatehouse-${component}`,
): GeneratedManifest {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: {
      name,
      namespace: defaults.namespace,
      labels: labels(defaults, component),
    },
    automountServiceAccountToken: false,
  }
}

export function controllerName(plural: string): string {
  return `${plural}.${apiGroup}`
}

/**
 * Follows the restricted Pod Security Standard. Omits the user ID, because the image sets a user ID and OpenShift
 * assigns its own.
 */
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

/** Builds one rule per API group. */
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
