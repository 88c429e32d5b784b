/**
 * Derives the state of a gatehouse.dev object from its status: whether it is ready and, if not, why, and the progress
 * of a rollout.
 */
import type { Fields } from '../../../schemas/index.ts'
import {
  conditionsOf,
  isBehind,
  isProblem,
  isStale,
  isWarning,
  type ResourceCondition,
} from '../../toolkit/cluster/conditions.ts'
import { textAt } from '../../toolkit/cluster/objects.ts'

export interface ObjectState {
  readonly ready: 'True' | 'False' | 'Unknown'
  /** CamelCase. */
  readonly reason: string
  readonly message: string
  /** `stalled` means that waiting will not help. Pods of the previous version may still be serving. */
  readonly rollout: 'none' | 'in progress' | 'stalled'
}

/** Conditions that summarize other conditions. */
const progress: ReadonlySet<string> = new Set(['Ready', 'Reconciling', 'Stalled'])
/** Reasons that may merely summarize other conditions. */
const summaries: ReadonlySet<string> = new Set(['ConfigInvalid', 'ReferencesNotReady'])

/** Returns the problems without duplicates: causes first, then summaries, then warnings. */
export function problemsOf(object: Fields): readonly ResourceCondition[] {
  const found = conditionsOf(object).filter(isProblem)
  const own = found.filter(({ type }) => !progress.has(type))
  const ready = conditionsOf(object).find(({ type }) => type === 'Ready')
  const rank = (condition: ResourceCondition): number =>
    Number(isWarning(condition)) * 8 +
    Number(progress.has(condition.type)) * 4 +
    Number(isUnrelated(condition, ready)) * 2 +
    Number(summaries.has(condition.reason))
  const sorted = [...own, ...found.filter(({ type }) => progress.has(type))].toSorted(
    (a, b) => rank(a) - rank(b),
  )
  return sorted.filter(
    (condition, index) =>
      sorted.findIndex((other) => other.reason === condition.reason) === index ||
      !progress.has(condition.type),
  )
}

/**
 * True when a condition is not the cause of Ready=False. Ready ignores some conditions, for example a route's
 * condition.
 */
function isUnrelated({ reason, message }: ResourceCondition, ready: ResourceCondition | undefined): boolean {
  if (ready?.status !== 'False') return false
  return ready.reason !== reason && (message === '' || !ready.message.includes(message))
}

export function stateOf(object: Fields, now = Date.now()): ObjectState {
  if (textAt(object, 'metadata', 'deletionTimestamp') !== undefined) {
    return { ready: 'False', reason: 'Terminating', message: 'it is being deleted', rollout: 'none' }
  }
  if (isBehind(object)) return unobserved(object, now)
  const conditions = conditionsOf(object)
  const named = (type: string): ResourceCondition | undefined =>
    conditions.find((condition) => condition.type === type)
  const ifTrue = (type: string): ResourceCondition | undefined => {
    const found = named(type)
    return found?.status === 'True' ? found : undefined
  }
  const summary = named('Ready') ?? named('Valid')
  const [stalled, reconciling] = [ifTrue('Stalled'), ifTrue('Reconciling')]
  const [problem] = problemsOf(object)
  const ready = summary === undefined ? (stalled ? 'False' : 'True') : statusOf(summary)
  const cause = problem && !isWarning(problem) ? problem : undefined
  const shown = cause ?? stalled ?? reconciling ?? problem ?? (ready === 'True' ? undefined : summary)
  return {
    ready,
    reason: shown?.reason ?? summary?.reason ?? textAt(object, 'status', 'phase') ?? '',
    message: shown?.message ?? textAt(object, 'status', 'message') ?? summary?.message ?? '',
    rollout: stalled ? 'stalled' : reconciling?.reason === 'RolloutInProgress' ? 'in progress' : 'none',
  }
}

function unobserved(object: Fields, now: number): ObjectState {
  const stale = isStale(object, now)
  return {
    ready: 'Unknown',
    reason: stale ? 'NotReconciled' : 'NotObserved',
    message: stale
      ? 'the hooks have not processed the current generation for more than a minute'
      : 'the hooks have not processed the current generation yet',
    rollout: 'none',
  }
}

function statusOf({ status }: ResourceCondition): ObjectState['ready'] {
  return status === 'True' || status === 'False' ? status : 'Unknown'
}
