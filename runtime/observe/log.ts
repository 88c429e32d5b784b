/**
 * The log: one JSON object per line on stderr, or text for a terminal, with RFC 3339 timestamps. redact.ts redacts each
 * line before it is written.
 *
 * The message must be fixed text, and fields contain the variable parts. Stack traces appear only at debug level. Lines
 * have no duplicate keys: the fields of a child logger and of the call are merged before writing, and the later value
 * is used. A field must not have the name of a standard member.
 */
import { openSync } from 'node:fs'
import { pino } from 'pino'
import { type LogFormat, textLine, visibleJson } from '../../schemas/index.ts'
import type { Log, LogFields } from '../net/index.ts'
import { makeLineFile, standardErrorLines } from './line-file.ts'
import { redactFields, redactText } from './redact.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

export interface LogOptions {
  /** Minimum level. Defaults to info. */
  readonly level?: LogLevel | undefined
  /** Destination: a file path, a file descriptor, or a stream. Defaults to stderr. */
  readonly destination?: string | number | LineStream | undefined
  /** Name of the program or component; the `name` field of every line. */
  readonly name?: string | undefined
  /** Format of the log. Defaults to json. */
  readonly format?: LogFormat | undefined
  /** True to color the text. Default: not colored. */
  readonly colour?: boolean | undefined
}

/** The destination for lines: any object with a `write` method. */
export interface LineStream {
  write(line: string): void
  flushSync?(): void
}

export interface RootLog extends Log {
  /** Writes buffered lines. Call this method before the process ends. */
  flush(): void
}

/** Creates the log of a process. Throws the system error when a file destination cannot be opened. */
export function makeLog(options: LogOptions = {}): RootLog {
  const lines = linesOf(options.destination ?? 2)
  const { format, colour = false } = options
  const stream = withFormat(lines, format === 'text' ? (line) => textLine(line, { colour }) : visibleJson)
  const logger = pino(
    {
      level: options.level ?? 'info',
      base: options.name === undefined ? {} : { name: options.name },
      messageKey: 'message',
      timestamp: makeTimestamp(),
      // Replaces pino's serializer, which would add stacks. Errors are already redacted.
      serializers: { err: (value: unknown) => value },
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  )
  return Object.assign(wrap(logger, {}), {
    flush: () => stream.flushSync?.(),
  })
}

function linesOf(to: string | number | LineStream): LineStream {
  if (typeof to === 'object') return to
  if (to === 2) return standardErrorLines()
  return makeLineFile(typeof to === 'number' ? to : openSync(to, 'a'))
}

function withFormat(lines: LineStream, form: (line: string) => string): LineStream {
  return {
    write: (line) => lines.write(form(line)),
    flushSync: () => lines.flushSync?.(),
  }
}

/** Returns the RFC 3339 time, formatted at most once per millisecond. */
function makeTimestamp(): () => string {
  let at = 0
  let text = ''
  return () => {
    const now = Date.now()
    if (now !== at) {
      at = now
      text = `,"time":"${new Date(now).toISOString()}"`
    }
    return text
  }
}

/**
 * The standard members of every line, and the member that errors add. A field with one of these names is written as
 * `field_<name>`.
 */
const ownMembers: ReadonlySet<string> = new Set(['level', 'time', 'name', 'message', 'stack'])

type Safe = Readonly<Record<string, unknown>>
type Method = 'debug' | 'info' | 'warn' | 'error'

function wrap(logger: pino.Logger, bound: Safe): Log {
  const debugEnabled = logger.isLevelEnabled('debug')

  function write(method: Method): (message: string, fields?: LogFields) => void {
    // A disabled level costs only an empty call, without redaction.
    if (!logger.isLevelEnabled(method)) return () => {}
    return (message, fields) => {
      if (fields === undefined) logger[method](bound, message)
      else logger[method]({ ...bound, ...safe(fields), ...stackOf(fields, debugEnabled) }, message)
    }
  }

  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    debugEnabled,
    infoEnabled: logger.isLevelEnabled('info'),
    child: (fields) => wrap(logger, { ...bound, ...safe(fields) }),
  }
}

/** Returns the redacted fields, with standard member names replaced. */
function safe(fields: LogFields): Record<string, unknown> {
  const redacted = redactFields(fields)
  for (const name of ownMembers) {
    if (!Object.hasOwn(redacted, name)) continue
    redacted[`field_${name}`] = redacted[name]
    delete redacted[name]
  }
  return redacted
}

function stackOf({ err }: LogFields, debug: boolean): Safe {
  return debug && err instanceof Error && err.stack !== undefined ? { stack: redactText(err.stack) } : {}
}
