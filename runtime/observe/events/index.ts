/** The event stream and its views. */
export type { EventFields, EventType } from './fields.ts'
export { logEvents, REPEAT_WINDOW_MS } from './log-view.ts'
export { countEvents } from './metrics-view.ts'
export type { Problem } from './problems.ts'
export { type EventListener, type Events, makeEvents, type ServerEvent } from './stream.ts'
export { EVENT_TYPES, EVENTS } from './table.ts'
export { failureText } from './words.ts'
