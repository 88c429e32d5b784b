import { canonicalJson } from '../../schemas/index.ts'
import { type Fields, fieldsOf, type KubeObject } from '../base/kube.ts'
import { conditionOf } from './conditions.ts'
import { appliedByAnnotation } from './last-applied.ts'

/** The state of a workload, derived from its status and never from its pods. */
export interface WorkloadState {
  /** Observed desired replica count; 1 when the workload does not set a count. */
  readonly replicas: number
  readonly readyReplicas: number
  readonly availableReplicas: number
  /** Failure that Kubernetes reports for the current template: pods cannot be created, or the rollout has timed out. */
  readonly failure: string | undefined
  /** True when the status is for the current template and every pod is available and up to date. */
  readonly isComplete: boolean
  /** Manual action for the user if this state persists. */
  readonly hint: string | undefined
  /** Revision of the current template; set for a StatefulSet. */
  readonly revision: string | undefined
}

/**
 * Returns the state of a Deployment or StatefulSet; undefined while it does not exist. `desired` is the object to
 * apply: if a different object was applied last, the status belongs to an older template. While the controller has not
 * observed the current generation, the pods in the status keep `parent` ready but do not make it ready. Without
 * `parent`, these pods always count.
 */
export function workloadState(
  object: KubeObject | undefined,
  desired: KubeObject | undefined,
  parent?: KubeObject,
): WorkloadState | undefined {
  if (!object) return undefined
  const status = fieldsOf(object['status'])
  const wasReady = parent === undefined || conditionOf(parent, 'Ready')?.['status'] === 'True'
  const areCounted = wasReady || isObserved(object) || status['observedGeneration'] === undefined
  const replicas = count(fieldsOf(object['spec'])['replicas'], 1)
  const isCurrent = isObserved(object) && (desired === undefined || isApplied(object, desired))
  return {
    replicas,
    readyReplicas: areCounted ? count(status['readyReplicas'], 0) : 0,
    availableReplicas: areCounted ? count(status['availableReplicas'], 0) : 0,
    failure: isCurrent ? failureOf(status['conditions']) : undefined,
    isComplete: isCurrent && isRolledOut(status, replicas),
    hint: isCurrent && object.kind === 'StatefulSet' ? hintOf(object, replicas) : undefined,
    revision:
      isCurrent && typeof status['updateRevision'] === 'string' ? status['updateRevision'] : undefined,
  }
}

/**
 * Detects a known StatefulSet limitation: the controller waits until an old pod becomes ready before it replaces the
 * pod, even if the pod never becomes ready (Kubernetes, StatefulSets, "Forced rollback"). During a normal replacement,
 * the status briefly looks the same.
 */
function hintOf({ metadata, status }: KubeObject, replicas: number): string | undefined {
  const state = fieldsOf(status)
  const updated = count(state['updatedReplicas'], 0)
  const isHeldUp =
    updated < replicas &&
    count(state['replicas'], 0) > updated &&
    count(state['readyReplicas'], 0) < Math.min(count(state['replicas'], 0), replicas)
  if (!isHeldUp) return undefined
  const pods =
    replicas === 1
      ? `kubectl delete pod ${metadata.name}-0`
      : `kubectl delete pod, for each pod of StatefulSet ${metadata.name} that is not ready`
  return `Kubernetes does not replace an old pod that never becomes ready. If this state lasts, delete the pod: ${pods}`
}

/** Returns the workload with this kind and name from a sync response's children. */
export function desiredWorkload(
  children: readonly KubeObject[] | undefined,
  kind: 'Deployment' | 'StatefulSet',
  name: string,
): KubeObject | undefined {
  return children?.find((child) => child.kind === kind && child.metadata.name === name)
}

function count(value: unknown, absent: number): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : absent
}

/** True when the workload's controller has observed its current spec. */
function isObserved({ metadata, status }: KubeObject): boolean {
  const seen = count(fieldsOf(status)['observedGeneration'], 0)
  return metadata.generation === undefined || seen >= metadata.generation
}

/** True when the template to apply equals the last applied template, or when the last applied template is unknown. */
function isApplied(object: KubeObject, desired: KubeObject): boolean {
  const applied = appliedByAnnotation(object)
  return !applied || canonicalJson(templateOf(applied)) === canonicalJson(templateOf(desired))
}

function templateOf(object: KubeObject): unknown {
  return fieldsOf(object['spec'])['template'] ?? null
}

/** True when all pods are available and run the current template, and no older pod is left. */
function isRolledOut(status: Fields, replicas: number): boolean {
  const total = count(status['replicas'], 0)
  // The revisions of a StatefulSet only become equal after it has replaced all of its pods.
  return (
    count(status['updatedReplicas'], 0) >= replicas &&
    count(status['availableReplicas'], 0) >= replicas &&
    total <= replicas &&
    status['currentRevision'] === status['updateRevision']
  )
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
