/** Conditions of a resource in a cluster, and whether its status is up to date. */
import type { JsonRecord } from '../../oauth/index.ts'
import { reasonRow } from '../../../schemas/reasons/index.ts'
import { at, listAt, textAt } from './objects.ts'

const settledMs = 60_000

/** Nobody reconciles it: what the status is of is behind, and has been for a while. */
export function isStale(object: JsonRecord, now = Date.now()): boolean {
  return isBehind(object) && now - changedAt(object) > settledMs
}

/** The status is not of the present generation. */
export function isBehind(object: JsonRecord): boolean {
  const generation = at(object, 'metadata', 'generation')
  const observed = at(object, 'status', 'observedGeneration')
  return typeof generation === 'number' && (typeof observed !== 'number' || observed < generation)
}

/** When anything but the status was written last. */
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

/** A condition tells of a problem when the table of reasons has its reason: some are good while they are False. */
export function isProblem({ type, status, reason }: ResourceCondition): boolean {
  if (type === 'Reconciling' || type === 'Stalled')
    return status === 'True' && reasonRow(reason) !== undefined
  if (reasonRow(reason) !== undefined) return true
  return type === 'Valid' && status === 'False'
}

/** Nothing is broken, but who wrote the manifest should know. */
export function isWarning({ status, reason, type }: ResourceCondition): boolean {
  return reasonRow(reason)?.isWarning === true || (type === 'Ready' && status === 'True')
}
