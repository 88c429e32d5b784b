/**
 * The interface of the log that every module writes to. The implementation (pino, redaction) is runtime/observe;
 * modules below it use this interface, so that they do not depend on it.
 *
 * Rule for callers: fields that hold credentials are redacted by name, but the message is printed as is, so use a fixed
 * string. Put variable data in fields.
 */
export type LogFields = Readonly<Record<string, unknown>>

export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  /** Returns a log that adds these fields to every line. */
  child(fields: LogFields): Log
  /** False if callers can skip building expensive fields. */
  readonly debugEnabled: boolean
  readonly infoEnabled: boolean
}

/** A log that writes nothing. */
export const silentLog: Log = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child() {
    return silentLog
  },
  debugEnabled: false,
  infoEnabled: false,
}
