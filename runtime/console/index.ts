/** Public API of the web console. */
export type { ApprovalWay } from './api.ts'
export { CallRecorder } from './calls/recorder.ts'
export type { RunningConsole } from './server.ts'
export { type AnonymousOptions, type ConsoleOptions, type OidcOptions, startConsole } from './start.ts'
export type { Approver, ReviewedDrift } from './view.ts'
