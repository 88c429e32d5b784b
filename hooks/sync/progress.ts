/**
 * Sets the conditions Reconciling and Stalled, each present only while it is True. kubectl, Flux and other tools that
 * wait for an object also read observedGeneration. From these conditions, the tools detect whether the object is ready,
 * in progress, or in need of manual action.
 *
 * Stalled means that the resource will not recover on its own: the manifest or the cause of the stuck rollout must be
 * fixed. A resource that waits for other objects is Reconciling, because one apply may create a reference before its
 * target.
 * Source: Kubernetes cli-utils, kstatus, "Conditions".
 */
import type { WorkloadState } from './workload-state.ts'
import { type Fields, isFields, isTerminating, type KubeObject, listOf } from '../base/kube.ts'
import type { HookEvent } from './protocol.ts'
import type { SyncFailure } from './conditions.ts'
import { conflictReason } from './conflicts.ts'
import type { AnyContext } from './context.ts'

const rolloutInProgress = 'RolloutInProgress'

/** Failure reasons that require a change to the manifest, although the manifest passes all checks. */
const ownReasons: ReadonlySet<string> = new Set([
  'AttachDisabled',
  'ConfigInvalid',
  'ConfigTooLarge',
  'DocumentInvalid',
  'EnterpriseRequired',
  'InvalidConfig',
  'InvalidPodTemplateSpec',
  'LocalCommandMissing',
  conflictReason,
])

export interface SyncProgress {
  /** Failures that prevent applying the children; empty when the children are applied. */
  readonly failures: readonly SyncFailure[]
  /** One entry for each of the resource's workloads; undefined while the workload does not exist. */
  readonly workloads?: readonly (WorkloadState | undefined)[]
  /** A rollout failure that the status of the workloads does not show. */
  readonly broken?: SyncFailure | undefined
}

/** Reasons for Reconciling that resolve on their own. */
const transientReasons: ReadonlySet<string> = new Set([
  rolloutInProgress,
  'EmbeddingServerNotReady',
  'GroupRefNotReady',
])

/**
 * Sets both conditions. Call this function after Ready is set: during a rollout, Ready keeps the previous generation.
 */
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

/** Returns the reason for a stuck rollout; undefined when no rollout is stuck. */
export function stuckRollout(workloads: readonly (WorkloadState | undefined)[]): string | undefined {
  return workloads.find((state) => state?.failure !== undefined)?.failure
}

/** Returns the message for a resource whose previous pods are still serving. */
export function stuckMessage(why: string): string {
  return `The rollout is stuck; pods of the previous version are still serving: ${why}`
}

/**
 * Returns Warning events for problems that need manual action: the reason for a stall, and missing objects that the
 * user must create. Returns no events while pods are still starting.
 */
export function progressEvents(parent: KubeObject, status: Fields): readonly HookEvent[] {
  if (isTerminating(parent)) return []
  const conditions = listOf(status['conditions']).filter(isFields)
  return conditions.flatMap(({ type, reason, message }) => {
    const needsEvent = type === 'Stalled' || (type === 'Reconciling' && !transientReasons.has(String(reason)))
    return needsEvent ? [{ parent, type: 'Warning', reason: String(reason), message: String(message) }] : []
  })
}
