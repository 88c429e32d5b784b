/** A row of the event table. */
import type { EventFields, EventType } from './fields.ts'

export type EventLevel = 'debug' | 'info' | 'warn' | 'error'

/** An event's effect on a lasting condition. */
export interface EventCondition {
  /** The same for all events about one condition. */
  readonly id: string
  readonly backend?: string | undefined
  /** Undefined when the condition is over. Contains no addresses. Text from a backend is short and masked. */
  readonly open: { readonly message: string; readonly fix: string } | undefined
}

export interface EventRow<F> {
  /** Fixed text. */
  readonly message: string | ((fields: F) => string)
  readonly level: EventLevel | ((fields: F) => EventLevel)
  /** Groups repeated events. There are only a few values. Default: the backend of the event, if any. */
  readonly repeats?: (fields: F) => string
  readonly condition?: (fields: F) => EventCondition | undefined
  /** Logged even when the condition does not change. */
  readonly isNews?: true
}

export type EventTable = { readonly [T in EventType]: EventRow<EventFields[T]> }
