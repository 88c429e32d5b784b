/** What the table says of each type of event. */
import type { EventFields, EventType } from './fields.ts'

export type EventLevel = 'debug' | 'info' | 'warn' | 'error'

/** What an event says about a lasting condition. */
export interface EventCondition {
  /** Equal for everything that is about the same condition. */
  readonly id: string
  readonly backend?: string | undefined
  /** Undefined: the condition is over. Contains no address. Texts of backends are short and masked. */
  readonly open: { readonly message: string; readonly fix: string } | undefined
}

export interface EventRow<F> {
  /** Fixed text. */
  readonly message: string | ((fields: F) => string)
  readonly level: EventLevel | ((fields: F) => EventLevel)
  /** Equal for events that repeat one another; one of few. Default: the backend, if the event names one. */
  readonly repeats?: (fields: F) => string
  readonly condition?: (fields: F) => EventCondition | undefined
  /** Written to the log also when it leaves the condition as it was: it is news in itself. */
  readonly isNews?: true
}

export type EventTable = { readonly [T in EventType]: EventRow<EventFields[T]> }
