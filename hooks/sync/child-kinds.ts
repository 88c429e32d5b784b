/** A kind of child object. Metacontroller never updates a kind without an update strategy. */
export interface ChildKind {
  readonly apiVersion: string
  readonly kind: string
  /** Plural resource name. */
  readonly resource: string
  readonly updateStrategy: 'InPlace' | 'OnDelete'
  /** Optional cluster API. Metacontroller manages the kind only when the installation enables the API. */
  readonly integration?: 'gatewayAPI'
}

/** Updates in place are correct for all kinds, because Deployments and StatefulSets replace their own pods. */
function inPlace(apiVersion: string, kind: string, resource: string): ChildKind {
  return { apiVersion, kind, resource, updateStrategy: 'InPlace' }
}

export const childKinds = {
  ConfigMap: inPlace('v1', 'ConfigMap', 'configmaps'),
  Deployment: inPlace('apps/v1', 'Deployment', 'deployments'),
  HorizontalPodAutoscaler: inPlace('autoscaling/v2', 'HorizontalPodAutoscaler', 'horizontalpodautoscalers'),
  HTTPRoute: {
    ...inPlace('gateway.networking.k8s.io/v1', 'HTTPRoute', 'httproutes'),
    integration: 'gatewayAPI',
  },
  Ingress: inPlace('networking.k8s.io/v1', 'Ingress', 'ingresses'),
  NetworkPolicy: inPlace('networking.k8s.io/v1', 'NetworkPolicy', 'networkpolicies'),
  PodDisruptionBudget: inPlace('policy/v1', 'PodDisruptionBudget', 'poddisruptionbudgets'),
  Role: inPlace('rbac.authorization.k8s.io/v1', 'Role', 'roles'),
  RoleBinding: inPlace('rbac.authorization.k8s.io/v1', 'RoleBinding', 'rolebindings'),
  Service: inPlace('v1', 'Service', 'services'),
  ServiceAccount: inPlace('v1', 'ServiceAccount', 'serviceaccounts'),
  StatefulSet: inPlace('apps/v1', 'StatefulSet', 'statefulsets'),
} as const satisfies Record<string, ChildKind>

export type ChildName = keyof typeof childKinds

/**
 * A parent's possible child names, keyed by kind. Every kind that the parent's hooks create has an entry, and the
 * compiler requires one for each new kind.
 */
export type ChildNames<Kind extends ChildName = ChildName> = Readonly<
  Record<Kind, readonly (string | undefined)[]>
>

/** Kinds that accompany the workload of a client-facing server. */
export const servedKinds = [
  'PodDisruptionBudget',
  'HorizontalPodAutoscaler',
  'HTTPRoute',
  'Ingress',
] as const satisfies readonly ChildName[]

export function childKindsOf(names: readonly ChildName[]): readonly ChildKind[] {
  return names.map((name) => childKinds[name])
}
