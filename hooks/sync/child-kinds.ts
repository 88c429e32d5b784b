/**
 * The kinds of children with the way Metacontroller updates them. Without a strategy it would never update any; in place
 * is right for all of ours, for Deployments and StatefulSets roll their own pods.
 */
export interface ChildKind {
  readonly apiVersion: string
  readonly kind: string
  /** Plural resource name. */
  readonly resource: string
  readonly updateStrategy: 'InPlace' | 'OnDelete'
  /** Of an API that a cluster may lack: managed only where the installation says that it is there. */
  readonly integration?: 'gatewayAPI'
}

export const childKinds = {
  ConfigMap: { apiVersion: 'v1', kind: 'ConfigMap', resource: 'configmaps', updateStrategy: 'InPlace' },
  Deployment: {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    resource: 'deployments',
    updateStrategy: 'InPlace',
  },
  HorizontalPodAutoscaler: {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    resource: 'horizontalpodautoscalers',
    updateStrategy: 'InPlace',
  },
  HTTPRoute: {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    resource: 'httproutes',
    updateStrategy: 'InPlace',
    integration: 'gatewayAPI',
  },
  Ingress: {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    resource: 'ingresses',
    updateStrategy: 'InPlace',
  },
  NetworkPolicy: {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    resource: 'networkpolicies',
    updateStrategy: 'InPlace',
  },
  PodDisruptionBudget: {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    resource: 'poddisruptionbudgets',
    updateStrategy: 'InPlace',
  },
  Role: {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    resource: 'roles',
    updateStrategy: 'InPlace',
  },
  RoleBinding: {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    resource: 'rolebindings',
    updateStrategy: 'InPlace',
  },
  Service: { apiVersion: 'v1', kind: 'Service', resource: 'services', updateStrategy: 'InPlace' },
  ServiceAccount: {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    resource: 'serviceaccounts',
    updateStrategy: 'InPlace',
  },
  StatefulSet: {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    resource: 'statefulsets',
    updateStrategy: 'InPlace',
  },
} as const satisfies Record<string, ChildKind>

export type ChildName = keyof typeof childKinds

/**
 * Names that children of one parent can have, by kind: an entry for each kind that the parent's hooks make, so that the
 * compiler asks for those of a new one.
 */
export type ChildNames<Kind extends ChildName = ChildName> = Readonly<
  Record<Kind, readonly (string | undefined)[]>
>

/** Beside every workload of a server that clients reach. */
export const servedKinds = [
  'PodDisruptionBudget',
  'HorizontalPodAutoscaler',
  'HTTPRoute',
  'Ingress',
] as const satisfies readonly ChildName[]

export function childKindsOf(names: readonly ChildName[]): readonly ChildKind[] {
  return names.map((name) => childKinds[name])
}
