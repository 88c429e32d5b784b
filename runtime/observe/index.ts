/** The door of the observe room. */
export type { Log, LogFields } from '../net/index.ts'
export { type LogLevel, type LogOptions, makeLog, type RootLog } from './log.ts'
export { isSecretName, redactFields, redactText } from './redact.ts'
export { Secret } from './secret.ts'
