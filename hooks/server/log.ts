/**
 * The server's log: one JSON line per event on standard error, or text for a terminal. Never a request body, for bodies
 * carry Secrets. Members are named as in the log of the runtime.
 */
import { isLogged, type LogFormat, type LogLevelName, textLine, visibleJson } from '../../schemas/index.ts'

export type HookLog = (
  level: LogLevelName,
  message: string,
  fields?: Readonly<Record<string, string | number>>,
) => void

export interface HookLogOptions {
  readonly now: () => Date
  /** Default info. */
  readonly level?: LogLevelName | undefined
  /** Default json. */
  readonly format?: LogFormat | undefined
  readonly colour?: boolean | undefined
}

/** A log that writes to `stream`. */
export function makeLog(
  stream: { write(text: string): unknown },
  { now, level: least = 'info', format, colour = false }: HookLogOptions,
): HookLog {
  return (level, message, fields = {}) => {
    if (!isLogged(level, least)) return
    const line = `${JSON.stringify({ level, time: now().toISOString(), name: 'hooks', ...fields, message })}\n`
    stream.write(format === 'text' ? textLine(line, { colour }) : visibleJson(line))
  }
}

/** The place in our code where an unexpected error arose; its message could repeat request data and is left out. */
export function placeOf(error: unknown): string {
  const line =
    error instanceof Error ? error.stack?.split('\n').find((text) => /^\s+at /.test(text)) : undefined
  return line?.trim().slice(0, 200) ?? ''
}
