/** Public API of the hooks server. */
export { type EventSink, eventSink, type HookEvent } from './events.ts'
export { makeLog, type HookLog } from './log.ts'
export { HookMetrics } from './metrics.ts'
export { hooksApp, type ServerOptions } from './server.ts'
