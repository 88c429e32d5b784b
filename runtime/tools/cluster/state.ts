/**
 * How one object of gatehouse.dev is doing, from its status alone: ready or not, why, and whether a rollout is in progress.
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
  /** `stalled`: nothing that is on its way will help; pods of the version before may serve. */
  readonly rollout: 'none' | 'in progress' | 'stalled'
}

/** They sum up the others. */
const progress: ReadonlySet<string> = new Set(['Ready', 'Reconciling', 'Stalled'])
/** Reasons of conditions that may only sum up the others. */
const summaries: ReadonlySet<string> = new Set(['ConfigInvalid', 'ReferencesNotReady'])

/** What is wrong, the causes before what only sums them up, warnings last; each reason with its message once. */
export function problemsOf(object: Fields): readonly ResourceCondition[] {
  const found = conditionsOf(object).filter(isProblem)
  const own = found.filter(({ type }) => !progress.has(type))
  const ready = conditionsOf(object).find(({ type }) => type === 'Ready')
  const rank = (one: ResourceCondition): number =>
    Number(isWarning(one)) * 8 +
    Number(progress.has(one.type)) * 4 +
    Number(isBeside(one, ready)) * 2 +
    Number(summaries.has(one.reason))
  const sorted = [...own, ...found.filter(({ type }) => progress.has(type))].toSorted(
    (a, b) => rank(a) - rank(b),
  )
  return sorted.filter(
    (one, index) =>
      sorted.findIndex((other) => other.reason === one.reason) === index || !progress.has(one.type),
  )
}

/** Ready repeats what keeps the object from it, and does not wait for everything: a route, say. */
function isBeside({ reason, message }: ResourceCondition, ready: ResourceCondition | undefined): boolean {
  if (ready?.status !== 'False') return false
  return ready.reason !== reason && (message === '' || !ready.message.includes(message))
}

export function stateOf(object: Fields, now = Date.now()): ObjectState {
  if (textAt(object, 'metadata', 'deletionTimestamp') !== undefined) {
    return { ready: 'False', reason: 'Terminating', message: 'it is being deleted', rollout: 'none' }
  }
  if (isBehind(object)) return unobserved(object, now)
  const conditions = conditionsOf(object)
  const named = (type: string): ResourceCondition | undefined => conditions.find((one) => one.type === type)
  const holds = (type: string): ResourceCondition | undefined => {
    const found = named(type)
    return found?.status === 'True' ? found : undefined
  }
  const summary = named('Ready') ?? named('Valid')
  const [stalled, reconciling] = [holds('Stalled'), holds('Reconciling')]
  const [problem] = problemsOf(object)
  const ready = summary === undefined ? (stalled ? 'False' : 'True') : statusOf(summary)
  const cause = problem && !isWarning(problem) ? problem : undefined
  const told = cause ?? stalled ?? reconciling ?? problem ?? (ready === 'True' ? undefined : summary)
  return {
    ready,
    reason: told?.reason ?? summary?.reason ?? textAt(object, 'status', 'phase') ?? '',
    message: told?.message ?? textAt(object, 'status', 'message') ?? summary?.message ?? '',
    rollout: stalled ? 'stalled' : reconciling?.reason === 'RolloutInProgress' ? 'in progress' : 'none',
  }
}

function unobserved(object: Fields, now: number): ObjectState {
  const stale = isStale(object, now)
  return {
    ready: 'Unknown',
    reason: stale ? 'NotReconciled' : 'NotObserved',
    message: stale
      ? 'the hooks have not seen its present generation for more than a minute'
      : 'the hooks have not seen its present generation yet',
    rollout: 'none',
  }
}

function statusOf({ status }: ResourceCondition): ObjectState['ready'] {
  return status === 'True' || status === 'False' ? status : 'Unknown'
}
