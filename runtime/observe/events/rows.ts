/** Looks up rows of the event table for any type. */
import type { EventFields, EventType } from './fields.ts'
import type { EventLevel, EventRow } from './row.ts'
import { eventTable } from './table.ts'

type Fields = EventFields[EventType]

/** Returns the row for a type. The type and the fields must belong to the same event. */
export function rowOf(type: EventType): EventRow<Fields> {
  return eventTable[type] as EventRow<Fields>
}

/** Returns a key that is the same for all repetitions of an event. */
export function keyOf(type: EventType, fields: Fields): string {
  const { repeats } = rowOf(type)
  if (repeats) return `${type} ${repeats(fields)}`
  return 'backend' in fields ? `${type} ${fields.backend}` : type
}

export function messageOf(type: EventType, fields: Fields): string {
  return pick(rowOf(type).message, fields)
}

export function levelOf(type: EventType, fields: Fields): EventLevel {
  return pick(rowOf(type).level, fields)
}

function pick<V extends string>(value: V | ((fields: Fields) => V), fields: Fields): V {
  return typeof value === 'function' ? value(fields) : value
}
