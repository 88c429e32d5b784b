/**
 * Determines a pod's problem from its status. Omits containers' termination messages, because they can contain
 * arbitrary output.
 *
 * Source: Kubernetes core/v1, PodStatus and ContainerStatus.
 */
import { type Fields, fieldsOf } from '../../../schemas/index.ts'
import { reasonRow } from '../../../schemas/reasons/index.ts'
import { at, listAt, textAt } from '../../toolkit/cluster/objects.ts'
import { quantity } from '../../toolkit/terminal/plain-text.ts'

export interface PodProblem {
  /** CamelCase. */
  readonly reason: string
  readonly message: string
  /** Container whose logs contain more details. */
  readonly container?: string
  /** True when the problem may resolve on its own. */
  readonly isPassing?: boolean
}

/** Returns undefined when the pod is ready or has completed. */
export function podProblem(pod: Fields): PodProblem | undefined {
  const phase = textAt(pod, 'status', 'phase')
  if (phase === 'Succeeded') return undefined
  if (at(pod, 'metadata', 'deletionTimestamp') !== undefined)
    return { reason: 'Terminating', message: 'the pod is terminating', isPassing: true }
  const reason = textAt(pod, 'status', 'reason')
  if (phase === 'Failed' && reason !== undefined)
    return { reason, message: textAt(pod, 'status', 'message') ?? 'the pod has failed' }
  const scheduled = conditionOf(pod, 'PodScheduled')
  if (scheduled?.['status'] === 'False')
    return { reason: 'Unschedulable', message: textAt(scheduled, 'message') ?? 'no node fits the pod' }
  for (const list of ['initContainerStatuses', 'containerStatuses']) {
    const problems = listAt(pod, 'status', list).flatMap((status) => containerProblem(status, list) ?? [])
    const [first] = problems.toSorted((a, b) => Number(a.isPassing ?? false) - Number(b.isPassing ?? false))
    if (first) return first
  }
  if (conditionOf(pod, 'Ready')?.['status'] === 'True') return undefined
  return { reason: 'PodPending', message: 'the pod is starting', isPassing: true }
}

function conditionOf(pod: Fields, type: string): Fields | undefined {
  return listAt(pod, 'status', 'conditions').find((condition) => condition['type'] === type)
}

function containerProblem(status: Fields, list: string): PodProblem | undefined {
  const container = textAt(status, 'name') ?? ''
  const { waiting, running, terminated } = fieldsOf(status['state'])
  const restarts = typeof status['restartCount'] === 'number' ? status['restartCount'] : 0
  if (waiting !== undefined) return waitingProblem(container, status, restarts)
  if (terminated !== undefined) {
    const { exitCode } = fieldsOf(terminated)
    if (list === 'initContainerStatuses' && exitCode === 0) return undefined
    return terminationProblem(container, terminated, `container ${container} has terminated`)
  }
  if (running === undefined || status['ready'] === true || list === 'initContainerStatuses') return undefined
  const before = restarts > 0 ? `; ${restartsText(status, restarts)}` : ''
  return {
    reason: 'ContainersNotReady',
    message: `container ${container} is running but not ready${before}`,
    container,
  }
}

function waitingProblem(container: string, status: Fields, restarts: number): PodProblem {
  const reason = textAt(status, 'state', 'waiting', 'reason') ?? 'ContainerWaiting'
  const message = textAt(status, 'state', 'waiting', 'message')
  if (reason === 'ContainerCreating' || reason === 'PodInitializing')
    return { reason: 'PodPending', message: `container ${container} is starting`, isPassing: true }
  if (reason === 'CrashLoopBackOff') {
    const last = at(status, 'lastState', 'terminated')
    return terminationProblem(
      container,
      last,
      `container ${container} keeps exiting: ${restartsText(status, restarts)}`,
      reason,
    )
  }
  return { reason, message: `container ${container}${message === undefined ? '' : `: ${message}`}` }
}

/** Prefers the termination reason if the table of reasons contains it, because it is more specific. */
function terminationProblem(
  container: string,
  terminated: unknown,
  message: string,
  reason?: string,
): PodProblem {
  const why = textAt(terminated, 'reason') ?? 'Error'
  const known = reasonRow(why) ? why : (reason ?? why)
  const code = at(terminated, 'exitCode')
  const hasCode = message.includes('exit code')
  return {
    reason: known,
    message: hasCode || typeof code !== 'number' ? message : `${message}, exit code ${code} (${why})`,
    container,
  }
}

function restartsText(status: Fields, restarts: number): string {
  const code = at(status, 'lastState', 'terminated', 'exitCode')
  const why = textAt(status, 'lastState', 'terminated', 'reason') ?? 'Error'
  const last = typeof code === 'number' ? `, the last one after exit code ${code} (${why})` : ''
  return quantity(restarts, 'restart') + last
}
