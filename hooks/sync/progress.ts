/**
 * The conditions Reconciling and Stalled, each present only while it is True. Together with observedGeneration they tell
 * tools that wait for an object (kubectl, Flux) whether it is done, on its way, or needs somebody.
 *
 * Stalled: nothing that is on its way will help; the manifest must be changed, or what hinders its rollout. What waits for
 * other objects is Reconciling: in one apply a reference may be created before what it refers to.
 * Source: Kubernetes cli-utils, kstatus, "Conditions".
 */
import type { WorkloadState } from './workload-state.ts'
import { type Fields, isFields, isTerminating, type KubeObject, listOf } from '../base/kube.ts'
import type { HookEvent } from './protocol.ts'
import type { SyncFailure } from './conditions.ts'
import { conflictReason } from './conflicts.ts'
import type { AnyContext } from './context.ts'

const rolloutInProgress = 'RolloutInProgress'

/** Reasons that are in the manifest itself although its checks passed. */
const ownReasons: ReadonlySet<string> = new Set([
  'AttachDisabled',
  'ConfigInvalid',
  'ConfigTooLarge',
  'EnterpriseRequired',
  'InvalidConfig',
  'InvalidPodTemplateSpec',
  'LocalCommandMissing',
  conflictReason,
])

export interface SyncProgress {
  /** Why the children are not applied; empty when they are. */
  readonly failures: readonly SyncFailure[]
  /** One for each workload that the resource has; undefined while it does not exist. */
  readonly workloads?: readonly (WorkloadState | undefined)[]
  /** Why the rollout cannot go on, from elsewhere than the status of its workloads. */
  readonly broken?: SyncFailure | undefined
}

/** Reasons of Reconciling that pass by themselves. */
const passing: ReadonlySet<string> = new Set([
  rolloutInProgress,
  'EmbeddingServerNotReady',
  'GroupRefNotReady',
])

/** Sets both conditions. Call it after Ready: while a rollout is not done, Ready is of the generation before. */
export function reportProgress(
  context: AnyContext,
  { failures, workloads = [], broken }: SyncProgress,
): void {
  const { conditions, violations } = context
  const [first] = failures
  if (first) {
    const message = failures.map((failure) => failure.message).join('; ')
    const isOwn = violations.length > 0 || failures.some(({ reason }) => ownReasons.has(reason))
    conditions.set(isOwn ? 'Stalled' : 'Reconciling', 'True', first.reason, message)
    return
  }
  const stuck = stuckRollout(workloads)
  if (broken) conditions.set('Stalled', 'True', broken.reason, broken.message)
  else if (stuck !== undefined) conditions.set('Stalled', 'True', 'RolloutStalled', stuck)
  else if (workloads.every((state) => state?.isComplete)) return
  else conditions.set('Reconciling', 'True', rolloutInProgress, progressMessage(workloads))
  conditions.keepGeneration('Ready')
}

function progressMessage(workloads: readonly (WorkloadState | undefined)[]): string {
  const hints = workloads.flatMap((state) => state?.hint ?? [])
  return ['Pods are being created or replaced', ...hints].join('. ')
}

/** Why a rollout cannot go on; undefined when none is stuck. */
export function stuckRollout(workloads: readonly (WorkloadState | undefined)[]): string | undefined {
  return workloads.find((state) => state?.failure !== undefined)?.failure
}

/** For the message of a resource whose pods of the version before still serve. */
export function stuckMessage(why: string): string {
  return `The rollout is stuck, and pods of the version before serve: ${why}`
}

/**
 * Warning Events for what a person must mend: why the resource is stalled, and what it waits for that somebody else has to
 * create. Empty while pods are merely on their way.
 */
export function progressEvents(parent: KubeObject, status: Fields): readonly HookEvent[] {
  if (isTerminating(parent)) return []
  const conditions = listOf(status['conditions']).filter(isFields)
  return conditions.flatMap(({ type, reason, message }) => {
    const isTold = type === 'Stalled' || (type === 'Reconciling' && !passing.has(String(reason)))
    return isTold ? [{ parent, type: 'Warning', reason: String(reason), message: String(message) }] : []
  })
}
