/** A cluster resource's conditions, and whether its status is current. */
import type { JsonRecord } from '../../oauth/index.ts'
import { reasonRow } from '../../../schemas/reasons/index.ts'
import { at, listAt, textAt } from './objects.ts'

const settledMs = 60_000

/** True when the status has been outdated for a while, so the resource is not being reconciled. */
export function isStale(object: JsonRecord, now = Date.now()): boolean {
  return isBehind(object) && now - changedAt(object) > settledMs
}

/** True when the status does not describe the current generation. */
export function isBehind(object: JsonRecord): boolean {
  const generation = at(object, 'metadata', 'generation')
  const observed = at(object, 'status', 'observedGeneration')
  return typeof generation === 'number' && (typeof observed !== 'number' || observed < generation)
}

/** Returns the time of the last write to any part except the status. */
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
  return listAt(object, 'status', 'conditions').map((condition) => ({
    type: textAt(condition, 'type') ?? '',
    status: textAt(condition, 'status') ?? 'Unknown',
    reason: textAt(condition, 'reason') ?? '',
    message: textAt(condition, 'message') ?? '',
  }))
}

/** True when the table of reasons contains the reason. Some conditions are healthy while they are False. */
export function isProblem({ type, status, reason }: ResourceCondition): boolean {
  if (type === 'Reconciling' || type === 'Stalled')
    return status === 'True' && reasonRow(reason) !== undefined
  if (reasonRow(reason) !== undefined) return true
  return type === 'Valid' && status === 'False'
}

/** True when nothing is broken, but the manifest's author should be informed. */
export function isWarning({ status, reason, type }: ResourceCondition): boolean {
  return reasonRow(reason)?.isWarning === true || (type === 'Ready' && status === 'True')
}
