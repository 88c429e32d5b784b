/**
 * Metacontroller v2's related rules: an apiVersion and a plural resource, and either a namespace and names, or labels.
 */
import { GatehouseError, kinds } from '../../../../schemas/index.ts'
import type { LocalObject } from '../../manifests/objects.ts'

export interface LocalRelatedRule {
  readonly apiVersion: string
  readonly resource: string
  readonly namespace?: string
  readonly names?: readonly string[]
  readonly labelSelector?: { readonly matchLabels?: Readonly<Record<string, string>> }
}

const coreKinds: Readonly<Record<string, string>> = {
  configmaps: 'ConfigMap',
  secrets: 'Secret',
  services: 'Service',
  serviceaccounts: 'ServiceAccount',
  pods: 'Pod',
  deployments: 'Deployment',
  statefulsets: 'StatefulSet',
  roles: 'Role',
  rolebindings: 'RoleBinding',
  networkpolicies: 'NetworkPolicy',
  poddisruptionbudgets: 'PodDisruptionBudget',
  horizontalpodautoscalers: 'HorizontalPodAutoscaler',
  ingresses: 'Ingress',
  httproutes: 'HTTPRoute',
}

/**
 * True when a parent's rule selects the object. A hook receives only objects in the parent's namespace. Throws INTERNAL
 * for a rule that Metacontroller rejects.
 */
export function matchesRule(
  object: LocalObject,
  rule: LocalRelatedRule,
  parentNamespace: string | undefined,
): boolean {
  if (rule.labelSelector && (rule.namespace !== undefined || rule.names))
    throw new GatehouseError('INTERNAL', {
      detail: `related rule for ${rule.resource} has both labelSelector and namespace or names`,
    })
  if (object.apiVersion !== rule.apiVersion || object.kind !== kindOfResource(rule.resource)) return false
  if (object.metadata.namespace !== (rule.namespace ?? parentNamespace)) return false
  if (rule.names && !rule.names.includes(object.metadata.name)) return false
  const wanted = Object.entries(rule.labelSelector?.matchLabels ?? {})
  return wanted.every(([label, value]) => object.metadata.labels?.[label] === value)
}

function kindOfResource(resource: string): string | undefined {
  return coreKinds[resource] ?? kinds.find((kind) => kind.plural === resource)?.kind
}
