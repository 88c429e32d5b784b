/**
 * Logs one JSON line per event to standard error, or text on a terminal. Never logs request bodies, because they
 * contain Secrets. Field names match the runtime's log.
 */
import { isLogged, type LogFormat, type LogLevelName, textLine, visibleJson } from '../../schemas/index.ts'

export type HookLog = (
  level: LogLevelName,
  message: string,
  fields?: Readonly<Record<string, string | number>>,
) => void

export interface HookLogOptions {
  readonly now: () => Date
  /** Minimum level. Defaults to info. */
  readonly level?: LogLevelName | undefined
  /** Format of the log. Defaults to json. */
  readonly format?: LogFormat | undefined
  readonly colour?: boolean | undefined
}

/** Returns a log that writes to `stream`. */
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

/** Returns the source location of an unexpected error. Omits the error's message, which could repeat request data. */
export function placeOf(error: unknown): string {
  const line =
    error instanceof Error ? error.stack?.split('\n').find((text) => /^\s+at /.test(text)) : undefined
  return line?.trim().slice(0, 200) ?? ''
}
