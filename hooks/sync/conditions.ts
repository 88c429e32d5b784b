/**
 * The conditions of one status: set by type, stable from sync to sync.
 *
 * `lastTransitionTime` is copied from the parent's status while the condition's status is unchanged, so that a second
 * sync over the same facts writes nothing. A condition that is not set again is dropped, for the response replaces the
 * whole status. Limits of type, reason and message: docs/reference/specification/external-auth.md#status, "status".
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

  /** `observedTime` is called only when a condition changes, for looking through a large request costs. */
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
      message: cut(message),
      lastTransitionTime: isTimestamp(since) ? since : this.#observedTime(),
      ...(this.#generation !== undefined && { observedGeneration: this.#generation }),
    })
  }

  /** Sets True with the given reason, or False with the error's. Returns whether it is True. */
  check(type: string, failure: SyncFailure | undefined, reason: string, message: string): boolean {
    if (failure) this.set(type, 'False', failure.reason, failure.message)
    else this.set(type, 'True', reason, message)
    return failure === undefined
  }

  /**
   * What the condition says was not found for the present generation. It keeps the generation that it was last said of; what holds
   * only now is of an earlier one, so that nobody who waits for the present one goes on.
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

  /** All conditions, ordered by type. */
  list(): readonly StatusCondition[] {
    return [...this.#current.values()].sort((a, b) => byText(a.type, b.type))
  }
}

/** Why something does not hold: a machine-readable reason and one sentence. */
export interface SyncFailure {
  readonly reason: string
  readonly message: string
}

/** One part of a runtime configuration: its value, or why it cannot be made. */
export type ConfigPart<T> =
  | { readonly value: T; readonly failure?: undefined }
  | { readonly value?: undefined; readonly failure: SyncFailure }

export function failed(reason: string, message: string): { readonly failure: SyncFailure } {
  return { failure: { reason, message } }
}

/** Cuts what is too long, never through a character. */
function cut(message: string): string {
  if (message.length <= maxMessage) return message
  // A lone half of a surrogate pair would not be valid in JSON for everybody.
  return `${message.slice(0, maxMessage - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

/** The named condition of another object, or undefined. */
export function conditionOf(object: KubeObject, type: string): Readonly<Record<string, unknown>> | undefined {
  return listOf(fieldsOf(object['status'])['conditions'])
    .filter(isFields)
    .find((condition) => condition['type'] === type)
}
