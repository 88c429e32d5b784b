/**
 * Builders of Deployment and StatefulSet, and the rule for their replica count.
 *
 * An unset replica count leaves the number to an autoscaler. But a field that was applied once and is then left out is
 * removed and defaulted to 1 by the API server, so after a count has been applied the observed one is given back.
 */
import { lastApplied } from '../sync/last-applied.ts'
import { type Fields, fieldsOf, type KubeObject, type StringMap } from '../kube.ts'
import type { ChildMeta } from './objects.ts'
import { childMeta } from './objects.ts'

export interface WorkloadOptions {
  readonly selector: StringMap
  readonly template: Fields
  /** Left out of the object when undefined. */
  readonly replicas: number | undefined
}

export function deployment(meta: ChildMeta, { selector, template, replicas }: WorkloadOptions): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: childMeta(meta),
    spec: { ...(replicas !== undefined && { replicas }), selector: { matchLabels: selector }, template },
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

/** The replica count to apply; undefined leaves it to others. */
export function replicasToApply(
  wanted: number | undefined,
  observed: KubeObject | undefined,
): number | undefined {
  if (wanted !== undefined || !observed) return wanted
  const applied = fieldsOf(lastApplied(observed)?.['spec'])['replicas']
  const present = fieldsOf(observed['spec'])['replicas']
  return applied !== undefined && typeof present === 'number' ? present : undefined
}

/** How a workload is doing, from its status: never from its pods. */
export interface WorkloadState {
  /** Desired count as observed; 1 when the workload does not say. */
  readonly replicas: number
  readonly readyReplicas: number
  readonly availableReplicas: number
  /** Set when Kubernetes gave up or cannot create pods. */
  readonly failure: string | undefined
}

/** State of a Deployment or StatefulSet; undefined while it does not exist. */
export function workloadState(object: KubeObject | undefined): WorkloadState | undefined {
  if (!object) return undefined
  const status = fieldsOf(object['status'])
  return {
    replicas: count(fieldsOf(object['spec'])['replicas'], 1),
    readyReplicas: count(status['readyReplicas'], 0),
    availableReplicas: count(status['availableReplicas'], 0),
    failure: failureOf(status['conditions']),
  }
}

function count(value: unknown, absent: number): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : absent
}

function failureOf(conditions: unknown): string | undefined {
  for (const item of Array.isArray(conditions) ? conditions : []) {
    const { type, status, reason, message } = fieldsOf(item)
    const failed =
      (type === 'ReplicaFailure' && status === 'True') ||
      (type === 'Progressing' && status === 'False' && reason === 'ProgressDeadlineExceeded')
    if (failed) return typeof message === 'string' ? message : String(reason)
  }
  return undefined
}
