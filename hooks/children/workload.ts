/**
 * Builders of Deployment and StatefulSet, and the rule for their replica count.
 *
 * An unset replica count leaves the number to an autoscaler. But a field that was applied once and is then left out is
 * removed and defaulted to 1 by the API server, so after a count has been applied the observed one is given back.
 */
import { lastApplied } from '../sync/last-applied.ts'
import { type Fields, fieldsOf, type KubeObject, type StringMap } from '../base/kube.ts'
import type { Count } from './serving/availability.ts'
import type { ChildMeta } from './objects.ts'
import { childMeta } from './objects.ts'

export interface WorkloadOptions {
  readonly selector: StringMap
  readonly template: Fields
  /** Left out of the object when undefined. */
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

/** The replica count to apply; undefined leaves it to others. An autoscaler starts from its least number. */
export function replicasToApply(
  { replicas, autoscaling }: Count,
  observed: KubeObject | undefined,
): number | undefined {
  const wanted = autoscaling ? (observed ? undefined : autoscaling.minReplicas) : replicas
  if (wanted !== undefined || !observed) return wanted
  const applied = fieldsOf(lastApplied(observed)?.['spec'])['replicas']
  const present = fieldsOf(observed['spec'])['replicas']
  return applied !== undefined && typeof present === 'number' ? present : undefined
}
