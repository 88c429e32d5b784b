/**
 * Builders of Deployment and StatefulSet, and the rule for their replica count.
 *
 * An unset replica count leaves the number to an autoscaler. But a field that was applied once and is then left out is
 * removed and defaulted to 1 by the API server, so after a count has been applied the observed one is given back.
 */
import { canonicalJson } from '../../schemas/index.ts'
import { conditionOf } from '../sync/conditions.ts'
import { appliedByAnnotation, lastApplied } from '../sync/last-applied.ts'
import { type Fields, fieldsOf, type KubeObject, type StringMap } from '../kube.ts'
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

/** How a workload is doing, from its status: never from its pods. */
export interface WorkloadState {
  /** Desired count as observed; 1 when the workload does not say. */
  readonly replicas: number
  readonly readyReplicas: number
  readonly availableReplicas: number
  /** Set when Kubernetes gave up or cannot create pods, and says so about the present template. */
  readonly failure: string | undefined
  /** True when the status is of the present template and every pod is available and made from it. */
  readonly isComplete: boolean
  /** What a person has to do when this state lasts. */
  readonly hint: string | undefined
  /** Of a StatefulSet: the revision that its controller has made of the present template. */
  readonly revision: string | undefined
}

/**
 * Returns the state of a Deployment or StatefulSet; undefined while it does not exist. `desired` is the object to
 * apply: if another object was applied last, the status belongs to an older template. While the controller has not
 * observed the current generation, the pods in the status keep `parent` ready but do not make it ready. Without
 * `parent` they always count.
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
 * A StatefulSet waits for a pod of an earlier version to become ready before it replaces it, even when that can never be
 * (Kubernetes, StatefulSets, "Forced rollback"). It looks the same for the moment in which a good pod is being replaced.
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
      : `kubectl delete pod, the pods of StatefulSet ${metadata.name} that are not ready`
  return `Kubernetes does not replace a pod of an earlier version that does not become ready: if this lasts, delete it (${pods})`
}

/** Of several workloads of one resource, as the response will have them. */
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

/** Whether the workload's own controller has seen its present spec. */
function isObserved({ metadata, status }: KubeObject): boolean {
  const seen = count(fieldsOf(status)['observedGeneration'], 0)
  return metadata.generation === undefined || seen >= metadata.generation
}

/** Whether the template to apply is the one that was applied last. Where nothing tells, it is taken to be. */
function isApplied(object: KubeObject, desired: KubeObject): boolean {
  const applied = appliedByAnnotation(object)
  return !applied || canonicalJson(templateOf(applied)) === canonicalJson(templateOf(desired))
}

function templateOf(object: KubeObject): unknown {
  return fieldsOf(object['spec'])['template'] ?? null
}

/** All pods are made from the present template and available, and none of an older one is left. */
function isRolledOut(status: Fields, replicas: number): boolean {
  const total = count(status['replicas'], 0)
  // The revisions of a StatefulSet become equal only when it has replaced all of its pods.
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
