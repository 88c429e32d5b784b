/**
 * Log lines of local processes, as `--verbose` shows them. Output that is not a line of our log is shown as it is, but for
 * what a terminal would act on.
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

/** First step of `roundSecondsSince`, in seconds. */
const firstStep = 5

/** What was asked for of the output of the processes. */
export interface ProcessLogs {
  readonly verbose: boolean
  readonly logFormat?: LogFormat
  /** Least level that the processes write, and that is shown. */
  readonly logLevel?: LogLevelName
}

/** What `--verbose` does with a line. */
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
  /** Least level that is shown. */
  readonly level: LogLevelName
}

/** The response of the function: the line to show, undefined for none. */
function lineWriter({ format, colour, level }: LineOptions): (line: string) => string | undefined {
  return (line) => {
    const own = levelOf(line)
    if (own === undefined) return forTerminal(line)
    if (!isLogged(own, level)) return undefined
    return format === 'text' ? textLine(line, { colour }).trimEnd() : line
  }
}

/** The level of a line of our log; undefined for every other line. */
function levelOf(line: string): LogLevelName | undefined {
  const found = /^\{"level":"([a-z]+)","time":"/.exec(line)?.[1]
  return logLevels.find((level) => level === found)
}

/** Full seconds since `since`, never negative. */
export function secondsSince(since: number, now: number = Date.now()): number {
  return Math.max(0, Math.floor((now - since) / 1000))
}

/** Rounds down to 5, 10, 20, 40 and so on, so that each step prints only one line. Returns 0 before the first step. */
export function roundSecondsSince(since: number, now: number = Date.now()): number {
  const seconds = secondsSince(since, now)
  if (seconds < firstStep) return 0
  return firstStep * 2 ** Math.floor(Math.log2(seconds / firstStep))
}
