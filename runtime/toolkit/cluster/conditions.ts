/** Conditions of a resource in a cluster, and whether its status is up to date. */
import type { JsonRecord } from '../../oauth/index.ts'
import { reasonRow } from '../../../schemas/reasons/index.ts'
import { at, listAt, textAt } from './objects.ts'

const settledMs = 60_000

/** Returns true when the status has been behind the generation for over a minute: no controller seems to reconcile it. */
export function isStale(object: JsonRecord, now = Date.now()): boolean {
  return isBehind(object) && now - changedAt(object) > settledMs
}

/** Returns true when the status does not reflect the current generation. */
export function isBehind(object: JsonRecord): boolean {
  const generation = at(object, 'metadata', 'generation')
  const observed = at(object, 'status', 'observedGeneration')
  return typeof generation === 'number' && (typeof observed !== 'number' || observed < generation)
}

/** Returns the time of the last write outside of the status. */
function changedAt(object: JsonRecord): number {
  const times = listAt(object, 'metadata', 'managedFields')
    .filter((entry) => entry['subresource'] !== 'status')
    .map((entry) => Date.parse(textAt(entry, 'time') ?? ''))
  const created = Date.parse(textAt(object, 'metadata', 'creationTimestamp') ?? '')
  return Math.max(...[created, ...times].filter((time) => !Number.isNaN(time)), 0)
}

export interface ResourceCondition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
}

export function conditionsOf(object: JsonRecord): readonly ResourceCondition[] {
  return listAt(object, 'status', 'conditions').map((one) => ({
    type: textAt(one, 'type') ?? '',
    status: textAt(one, 'status') ?? 'Unknown',
    reason: textAt(one, 'reason') ?? '',
    message: textAt(one, 'message') ?? '',
  }))
}

/** Returns true when the table of reasons lists the reason: some conditions are healthy while they are False. */
export function isProblem({ type, status, reason }: ResourceCondition): boolean {
  if (type === 'Reconciling' || type === 'Stalled')
    return status === 'True' && reasonRow(reason) !== undefined
  if (reasonRow(reason) !== undefined) return true
  return type === 'Valid' && status === 'False'
}

/** Returns true when nothing is broken, but the author of the manifest should know. */
export function isWarning({ status, reason, type }: ResourceCondition): boolean {
  return reasonRow(reason)?.isWarning === true || (type === 'Ready' && status === 'True')
}
