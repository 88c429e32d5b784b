/**
 * The one stream of what happens to a server. Whoever notices something emits it here; log, `/status`, metrics and the
 * report to the cluster are views of it, so that none tells what another hides.
 *
 * Nothing is emitted for what goes well call by call. Open problems are bounded; listeners are called in the order in
 * which they came, and one that throws does not keep the others from hearing.
 */
import type { EventFields, EventType } from './fields.ts'
import { type ProblemChange, OpenProblems, type OpenProblem } from './problems.ts'
import { type EventCondition, eventTable, type EventRow } from './table.ts'

export interface ObservedEvent<T extends EventType = EventType> {
  readonly type: T
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly fields: EventFields[T]
  /** What became of the problem that the event is about; undefined when it is about none. */
  readonly change: ProblemChange | undefined
}

export type EventListener = (event: ObservedEvent) => void

export interface Events {
  emit<T extends EventType>(type: T, fields: EventFields[T]): void
  /** Hears every event from now on; the returned function ends that. */
  listen(listener: EventListener): () => void
  /** What is wrong now, the oldest first. */
  problems(): readonly OpenProblem[]
}

export function makeEvents(now: () => number = Date.now): Events {
  const listeners: EventListener[] = []
  const open = new OpenProblems()

  function changeOf(
    condition: EventCondition | undefined,
    type: EventType,
    at: number,
  ): ProblemChange | undefined {
    return condition && open.apply(type, condition, at)
  }

  return {
    emit(type, fields) {
      const at = now()
      const row: EventRow<typeof fields> = eventTable[type]
      const change = changeOf(row.condition?.(fields), type, at)
      if (type === 'backends_changed') open.forget((fields as EventFields['backends_changed']).removed)
      for (const listener of listeners) {
        try {
          listener({ type, at, fields, change })
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
  }
}
