/** Public API of the web console. */
export { CallRecorder } from './calls/recorder.ts'
export type { AnonymousOptions, OidcOptions } from './start.ts'
export { type ConsoleOptions, startConsole } from './start.ts'
export type { RunningConsole } from './server.ts'
export type { ApprovalWay } from './api.ts'
export type { Approver, ReviewedDrift } from './view.ts'
