/**
 * The one stream of what happens to a server. Whoever notices something emits it here; log, `/status`, metrics and the
 * report to the cluster are views of it, so that none tells what another hides.
 *
 * Nothing is emitted for what goes well call by call. Open problems are bounded; listeners are called in the order in
 * which they came, and one that throws does not keep the others from hearing.
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
  /** What became of the problem that the event is about; undefined when it is about none. */
  readonly change: ProblemChange | undefined
  /** What to do about it; undefined when nothing is wrong. */
  readonly fix: string | undefined
}

export type EventListener = (event: ObservedEvent) => void

export interface Events {
  emit<T extends EventType>(type: T, fields: EventFields[T]): void
  /** Hears every event from now on; the returned function ends that. */
  listen(listener: EventListener): () => void
  /** What is wrong now, the oldest first. */
  problems(): readonly OpenProblem[]
  /** What failed call by call within the last hour, the latest first. */
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

  /** Notes a failure that does not last. Answers what to do about it. */
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
          // A view that fails must not fail what it looks at.
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
