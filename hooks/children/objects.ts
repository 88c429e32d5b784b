/**
 * Builders for small child objects: ConfigMap, ServiceAccount, Role, RoleBinding and Service.
 *
 * Builders omit nulls and empty collections. Otherwise, fields that the API server drops or defaults would differ from
 * the stored object and cause a write at every sync.
 */
import type { KubeObject, StringMap } from '../base/kube.ts'
import { unlessEmpty } from './pod.ts'

export interface ChildMeta {
  readonly name: string
  readonly namespace: string
  readonly labels: StringMap
  readonly annotations?: StringMap
}

/** Drops an empty annotations map. */
export function childMeta(meta: ChildMeta): ChildMeta {
  const { annotations, ...rest } = meta
  return annotations && Object.keys(annotations).length > 0 ? meta : rest
}

/** Omit `data` for a ConfigMap that a running pod fills; the hooks then never change its content. */
export function configMap(meta: ChildMeta, data?: StringMap): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: childMeta(meta), ...(data && { data }) }
}

export function serviceAccount(meta: ChildMeta, imagePullSecrets: readonly string[] = []): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: childMeta(meta),
    ...unlessEmpty(
      'imagePullSecrets',
      imagePullSecrets.map((name) => ({ name })),
    ),
  }
}

export interface PolicyRule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

export function role(meta: ChildMeta, rules: readonly PolicyRule[]): KubeObject {
  return { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', metadata: childMeta(meta), rules }
}

/** Binds the Role of the same name to one service account in the namespace. */
export function roleBinding(meta: ChildMeta, serviceAccountName: string): KubeObject {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: childMeta(meta),
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: meta.name },
    subjects: [{ kind: 'ServiceAccount', name: serviceAccountName, namespace: meta.namespace }],
  }
}

export interface ServiceOptions {
  readonly selector: StringMap
  readonly port: number
  readonly targetPort: string | number
  /** Additional ports. Each port targets the container port with the same name. */
  readonly ports?: readonly { readonly name: string; readonly port: number }[]
  readonly type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer'
  readonly sessionAffinity?: 'ClientIP' | 'None'
  readonly headless?: boolean
  /** True when the ports serve HTTPS. */
  readonly secure?: boolean
}

export function service(meta: ChildMeta, options: ServiceOptions): KubeObject {
  const rest = { protocol: 'TCP', ...(options.secure && { appProtocol: 'https' }) }
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: childMeta(meta),
    spec: {
      type: options.type ?? 'ClusterIP',
      ...(options.headless && { clusterIP: 'None' }),
      ...(options.sessionAffinity && { sessionAffinity: options.sessionAffinity }),
      ports: [
        { name: 'http', port: options.port, targetPort: options.targetPort, ...rest },
        ...(options.ports ?? []).map(({ name, port }) => ({ name, port, targetPort: name, ...rest })),
      ],
      selector: options.selector,
    },
  }
}
