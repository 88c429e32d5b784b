/**
 * The log: one JSON object per line on stderr, RFC 3339 time, everything redacted (redact.ts) before it is written.
 *
 * The message must be a fixed text; what varies goes into fields. Stack traces appear at debug level only.
 */
import { openSync } from 'node:fs'
import { pino } from 'pino'
import type { Log, LogFields } from '../net/index.ts'
import { makeLineFile } from './line-file.ts'
import { redactFields, redactText } from './redact.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

export interface LogOptions {
  /** Default info. */
  readonly level?: LogLevel | undefined
  /** File path, file descriptor, or a stream. Default: stderr. */
  readonly destination?: string | number | LineStream | undefined
  /** Which program or part writes; field `name` of every line. */
  readonly name?: string | undefined
}

/** Where lines go: anything with a `write`. */
export interface LineStream {
  write(line: string): void
  flushSync?(): void
}

export interface RootLog extends Log {
  /** Writes out what is buffered; call before the process ends. */
  flush(): void
}

/** Makes the log of a process. Throws the system's error when a file destination cannot be opened. */
export function makeLog(options: LogOptions = {}): RootLog {
  const to = options.destination ?? 2
  const stream: LineStream =
    typeof to === 'object' ? to : makeLineFile(typeof to === 'number' ? to : openSync(to, 'a'))
  const logger = pino(
    {
      level: options.level ?? 'info',
      base: options.name === undefined ? {} : { name: options.name },
      messageKey: 'message',
      timestamp: makeTimestamp(),
      // Errors arrive here redacted already; pino's own serialiser would add stacks.
      serializers: { err: (value: unknown) => value },
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  )
  return Object.assign(wrap(logger), {
    flush: () => ('flushSync' in stream ? stream.flushSync() : undefined),
  })
}

/** RFC 3339 time; the text is made once per millisecond. */
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

type Method = 'debug' | 'info' | 'warn' | 'error'

function wrap(logger: pino.Logger): Log {
  const debugEnabled = logger.isLevelEnabled('debug')

  function write(method: Method): (message: string, fields?: LogFields) => void {
    // A disabled level costs one empty call and no redaction.
    if (!logger.isLevelEnabled(method)) return () => {}
    return (message, fields) => {
      if (fields === undefined) logger[method](message)
      else logger[method](withStack(redactFields(fields), fields, debugEnabled), message)
    }
  }

  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    debugEnabled,
    infoEnabled: logger.isLevelEnabled('info'),
    child: (fields) => wrap(logger.child(redactFields(fields))),
  }
}

function withStack(
  safe: Record<string, unknown>,
  fields: LogFields,
  debug: boolean,
): Record<string, unknown> {
  const { err } = fields
  if (debug && err instanceof Error && err.stack !== undefined) safe['stack'] = redactText(err.stack)
  return safe
}
