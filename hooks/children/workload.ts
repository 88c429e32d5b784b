/**
 * Builders for Deployments and StatefulSets, and the rule for their replica count.
 *
 * An unset replica count leaves scaling to an autoscaler. But if a field was applied once and is later omitted, the API
 * server resets it to 1. Therefore, once a count has been applied, the hooks return the observed count.
 */
import { lastApplied } from '../sync/last-applied.ts'
import { type Fields, fieldsOf, type KubeObject, type StringMap } from '../base/kube.ts'
import type { DesiredReplicas } from './serving/availability.ts'
import type { ChildMeta } from './objects.ts'
import { childMeta } from './objects.ts'

export interface WorkloadOptions {
  readonly selector: StringMap
  readonly template: Fields
  /** Number of replicas. When undefined, the object omits the field. */
  readonly replicas: number | undefined
}

export function deployment(
  meta: ChildMeta,
  { selector, template, replicas, strategy }: WorkloadOptions & { readonly strategy?: Fields },
): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: childMeta(meta),
    spec: {
      ...(replicas !== undefined && { replicas }),
      selector: { matchLabels: selector },
      ...(strategy && { strategy }),
      template,
    },
  }
}

export function statefulSet(
  meta: ChildMeta,
  options: WorkloadOptions & {
    readonly serviceName: string
    readonly volumeClaimTemplates?: readonly Fields[]
  },
): KubeObject {
  const { selector, template, replicas, serviceName, volumeClaimTemplates } = options
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: childMeta(meta),
    spec: {
      ...(replicas !== undefined && { replicas }),
      serviceName,
      selector: { matchLabels: selector },
      template,
      ...(volumeClaimTemplates && volumeClaimTemplates.length > 0 && { volumeClaimTemplates }),
    },
  }
}

/**
 * Returns the replica count to apply, or undefined to leave it unmanaged. An autoscaled workload starts with the
 * minimum count.
 */
export function replicasToApply(
  { replicas, autoscaling }: DesiredReplicas,
  observed: KubeObject | undefined,
): number | undefined {
  const wanted = autoscaling ? (observed ? undefined : autoscaling.minReplicas) : replicas
  if (wanted !== undefined || !observed) return wanted
  const applied = fieldsOf(lastApplied(observed)?.['spec'])['replicas']
  const present = fieldsOf(observed['spec'])['replicas']
  return applied !== undefined && typeof present === 'number' ? present : undefined
}
