/**
 * Formats the output of local processes for `--verbose`. Lines in our log format are filtered by level; other lines are
 * printed without control characters.
 */
import {
  isColoured,
  isLogged,
  logLevels,
  type LogFormat,
  logFormatFor,
  type LogLevelName,
  textLine,
} from '../../../../schemas/index.ts'
import { environment } from '../../../config/index.ts'
import { printError } from '../../terminal/output.ts'
import { forTerminal } from '../../terminal/plain-text.ts'

/** Flags that control process output. */
export interface ProcessLogs {
  readonly verbose: boolean
  readonly logFormat?: LogFormat
  /** Minimum level that the processes write and that this command displays. */
  readonly logLevel?: LogLevelName
}

/** Returns the function that prints a line of process output if `--verbose` is set. */
export function verboseLine(options: ProcessLogs): (name: string, line: string) => void {
  const shown = lineWriter({
    format: logFormatFor(options.logFormat, process.stderr),
    colour: isColoured(process.stderr, environment()),
    level: options.logLevel ?? 'debug',
  })
  return (name, line) => {
    const text = options.verbose ? shown(line) : undefined
    if (text !== undefined) printError(`[${name}] ${text}`)
  }
}

interface LineOptions {
  readonly format: LogFormat
  readonly colour: boolean
  /** Minimum level to display. */
  readonly level: LogLevelName
}

/** Returns a function that returns the text to display, or undefined. */
function lineWriter({ format, colour, level }: LineOptions): (line: string) => string | undefined {
  return (line) => {
    const own = levelOf(line)
    if (own === undefined) return forTerminal(line)
    if (!isLogged(own, level)) return undefined
    return format === 'text' ? textLine(line, { colour }).trimEnd() : line
  }
}

/** Returns the level of a line in our log format, or undefined for other lines. */
function levelOf(line: string): LogLevelName | undefined {
  const found = /^\{"level":"([a-z]+)","time":"/.exec(line)?.[1]
  return logLevels.find((level) => level === found)
}

const firstStep = 5

export function secondsSince(since: number, now: number = Date.now()): number {
  return Math.max(0, Math.floor((now - since) / 1000))
}

/** Rounds down to 5, 10, 20, 40 and so on, so that one line is printed per step. Returns 0 below the first step. */
export function roundSecondsSince(since: number, now: number = Date.now()): number {
  const seconds = secondsSince(since, now)
  if (seconds < firstStep) return 0
  return firstStep * 2 ** Math.floor(Math.log2(seconds / firstStep))
}
