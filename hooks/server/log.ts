/**
 * The server's log: one JSON line per event on standard error. Never a request body, for bodies carry Secrets.
 */
export type LogLevel = 'info' | 'warn' | 'error'
export type Log = (
  level: LogLevel,
  message: string,
  fields?: Readonly<Record<string, string | number>>,
) => void

/** A log that writes to `stream`, stamped by `now`. */
export function jsonLog(stream: { write(text: string): unknown }, now: () => Date): Log {
  return (level, message, fields = {}) => {
    stream.write(`${JSON.stringify({ level, time: now().toISOString(), msg: message, ...fields })}\n`)
  }
}
