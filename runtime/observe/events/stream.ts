/**
 * The event stream of a server. Every component emits its events here. The log, `/status`, the metrics and the cluster
 * report are views of this stream, so they agree.
 *
 * Successful calls emit nothing. The number of open problems is limited. Listeners are called in registration order,
 * and an exception in one listener does not affect the rest.
 */
import type { EventFields, EventType } from './fields.ts'
import { nextSteps, type NextStep } from './next-steps.ts'
import { type ProblemChange, OpenProblems, type OpenProblem } from './problems.ts'
import { type RecentFailure, RecentFailures } from './recent.ts'
import { keyOf, messageOf, rowOf } from './rows.ts'
import type { EventCondition } from './row.ts'

export interface ObservedEvent<T extends EventType = EventType> {
  readonly type: T
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly fields: EventFields[T]
  /** Effect on the event's problem; undefined when the event is not about a problem. */
  readonly change: ProblemChange | undefined
  /** Next step; undefined when nothing is wrong. */
  readonly fix: string | undefined
}

export type EventListener = (event: ObservedEvent) => void

export interface Events {
  emit<T extends EventType>(type: T, fields: EventFields[T]): void
  /** Calls `listener` for every event from now on. Returns a function that removes the listener. */
  listen(listener: EventListener): () => void
  /** Returns the current problems, oldest first. */
  problems(): readonly OpenProblem[]
  /** Returns the individual failures in the last hour, most recent first. */
  recent(): readonly RecentFailure[]
}

const maxReason = 128

export function makeEvents(now: () => number = Date.now): Events {
  const listeners: EventListener[] = []
  const open = new OpenProblems()
  const recent = new RecentFailures()

  function changeOf(
    condition: EventCondition | undefined,
    type: EventType,
    at: number,
  ): ProblemChange | undefined {
    return condition && open.apply(type, condition, at)
  }

  /** Records an individual failure and returns its fix. */
  function failureOf(type: EventType, fields: EventFields[EventType], at: number): string | undefined {
    const step = nextSteps[type] as NextStep<typeof fields> | undefined
    const fix = step?.fix(fields)
    if (step === undefined || fix === undefined) return undefined
    const { backend, reason, detail } = fields as {
      readonly backend?: string
      readonly reason?: string
      readonly detail?: string
    }
    const cause = step.cause ? step.cause(fields) : reason
    recent.note(
      keyOf(type, fields),
      { type, backend, reason: cause?.slice(0, maxReason), message: messageOf(type, fields), detail, fix },
      at,
    )
    return fix
  }

  return {
    emit(type, fields) {
      const at = now()
      const condition = rowOf(type).condition?.(fields)
      const change = changeOf(condition, type, at)
      const fix = condition ? condition.open?.fix : failureOf(type, fields, at)
      if (type === 'backends_changed') {
        const { removed } = fields as EventFields['backends_changed']
        open.forget(removed)
        recent.forget(removed)
      }
      for (const listener of listeners) {
        try {
          listener({ type, at, fields, change, fix })
        } catch {
          // Ignores errors, because a failing view must not affect the observed operation.
        }
      }
    },
    listen(listener) {
      listeners.push(listener)
      return () => {
        const index = listeners.indexOf(listener)
        if (index >= 0) listeners.splice(index, 1)
      }
    },
    problems: () => open.all(),
    recent: () => recent.all(now()),
  }
}
