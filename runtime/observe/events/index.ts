/** The event stream and its views. */
export type { AttachmentEnd } from './attach-fields.ts'
export type { Deviation } from './deviations.ts'
export { logEvents } from './log-view.ts'
export { backendLabel, countEvents } from './metrics-view.ts'
export type { OpenProblem } from './problems.ts'
export type { RecentFailure } from './recent.ts'
export { type Events, makeEvents } from './stream.ts'
export { failureText, withDetail } from './words.ts'
