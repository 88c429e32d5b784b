/**
 * A status's conditions, set by type and stable between syncs.
 *
 * `lastTransitionTime` is copied from the parent's status while the condition's status is unchanged, so a second sync
 * with the same input writes nothing. A condition that is not set again is dropped, because the response replaces the
 * whole status. Limits on type, reason and message: docs/reference/specification/external-auth.md#status, "status".
 */
import { byText } from '../../schemas/index.ts'
import { fieldsOf, isFields, type KubeObject, listOf } from '../base/kube.ts'
import { isTimestamp } from './observed-time.ts'

export type ConditionStatus = 'True' | 'False' | 'Unknown'

export function statusOf(holds: boolean): ConditionStatus {
  return holds ? 'True' : 'False'
}

export interface StatusCondition {
  readonly type: string
  readonly status: ConditionStatus
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
  readonly observedGeneration?: number
}

const maxMessage = 32_768
const maxType = 316

export class Conditions {
  readonly #previous: ReadonlyMap<unknown, Readonly<Record<string, unknown>>>
  readonly #generation: number | undefined
  readonly #observedTime: () => string
  readonly #current = new Map<string, StatusCondition>()

  /** Calls `observedTime` only when a condition changes, because `observedTime` scans the whole request. */
  constructor(parent: KubeObject, observedTime: () => string) {
    const previous = listOf(fieldsOf(parent['status'])['conditions']).filter(isFields)
    this.#previous = new Map(previous.map((condition) => [condition['type'], condition]))
    this.#generation = parent.metadata.generation
    this.#observedTime = observedTime
  }

  set(type: string, status: ConditionStatus, reason: string, message: string): void {
    if (type.length > maxType) return
    const before = this.#previous.get(type)
    const since = before?.['status'] === status ? before['lastTransitionTime'] : undefined
    this.#current.set(type, {
      type,
      status,
      reason,
      message: truncate(message),
      lastTransitionTime: isTimestamp(since) ? since : this.#observedTime(),
      ...(this.#generation !== undefined && { observedGeneration: this.#generation }),
    })
  }

  /**
   * Sets the condition to True with the given reason, or to False with the failure's reason. Returns true if the
   * condition is True.
   */
  check(type: string, failure: SyncFailure | undefined, reason: string, message: string): boolean {
    if (failure) this.set(type, 'False', failure.reason, failure.message)
    else this.set(type, 'True', reason, message)
    return failure === undefined
  }

  /**
   * Preserves the `observedGeneration` of a condition that was not evaluated for the current generation. A condition
   * that has just become True gets the previous generation, so that tools keep waiting if they wait for the current
   * generation.
   */
  keepGeneration(type: string): void {
    const condition = this.#current.get(type)
    if (!condition || this.#generation === undefined) return
    const before = this.#previous.get(type)
    const generation = before?.['observedGeneration']
    const isAsBefore = before?.['status'] === condition.status && typeof generation === 'number'
    if (!isAsBefore && condition.status !== 'True') return
    const observedGeneration = isAsBefore ? generation : Math.max(this.#generation - 1, 0)
    this.#current.set(type, { ...condition, observedGeneration })
  }

  get(type: string): StatusCondition | undefined {
    return this.#current.get(type)
  }

  /** Returns all conditions, ordered by type. */
  list(): readonly StatusCondition[] {
    return [...this.#current.values()].sort((a, b) => byText(a.type, b.type))
  }
}

/** A machine-readable reason and a one-sentence message. */
export interface SyncFailure {
  readonly reason: string
  readonly message: string
}

/** One part of a runtime configuration: its value or the failure that prevents it. */
export type ConfigPart<T> =
  | { readonly value: T; readonly failure?: undefined }
  | { readonly value?: undefined; readonly failure: SyncFailure }

export function failed(reason: string, message: string): { readonly failure: SyncFailure } {
  return { failure: { reason, message } }
}

/** Truncates a long message, but never within a character. */
function truncate(message: string): string {
  if (message.length <= maxMessage) return message
  // Not every JSON parser accepts half of a surrogate pair.
  return `${message.slice(0, maxMessage - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

/** Returns a condition of another object, or undefined. */
export function conditionOf(object: KubeObject, type: string): Readonly<Record<string, unknown>> | undefined {
  return listOf(fieldsOf(object['status'])['conditions'])
    .filter(isFields)
    .find((condition) => condition['type'] === type)
}
