/** A row of the event table. */
import type { EventFields, EventType } from './fields.ts'

export type EventLevel = 'debug' | 'info' | 'warn' | 'error'

/** An event's effect on a lasting condition. */
export interface EventCondition {
  /** Key that all events about one condition share. */
  readonly id: string
  readonly backend?: string | undefined
  /**
   * Description of the problem; undefined when the problem has ended. Contains no addresses. Text from a backend is
   * short and masked.
   */
  readonly open: { readonly message: string; readonly fix: string } | undefined
}

export interface EventRow<F> {
  /** Log message, as fixed text. */
  readonly message: string | ((fields: F) => string)
  readonly level: EventLevel | ((fields: F) => EventLevel)
  /** Key for grouping repeated events; it has only a few distinct values. Default: the event's backend. */
  readonly repeats?: (fields: F) => string
  readonly condition?: (fields: F) => EventCondition | undefined
  /** True for events that are logged even when the condition does not change. */
  readonly isNews?: true
}

export type EventTable = { readonly [T in EventType]: EventRow<EventFields[T]> }
