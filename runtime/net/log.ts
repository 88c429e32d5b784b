/**
 * The interface of the log that every module writes to. runtime/observe contains the implementation (pino, redaction).
 * Modules below runtime/observe use this interface instead.
 *
 * Rule for callers: the log redacts credential fields by name, but prints the message unchanged, so use a fixed string.
 * Put variable data in fields.
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

const intervalMs = 60_000

/** Rate-limits log messages that untrusted clients can trigger arbitrarily often. */
export function limitToOncePerMinute<Args extends unknown[]>(
  report: (...args: Args) => void,
): (...args: Args) => void {
  let reportedAt = Number.NEGATIVE_INFINITY

  return function reportRarely(...args) {
    const now = performance.now()
    if (now - reportedAt < intervalMs) return
    reportedAt = now
    report(...args)
  }
}
