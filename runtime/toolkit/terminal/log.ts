/**
 * The flags of every command that writes a log, and the log that they ask for: `--log-format`, `--log-level`, `--debug`.
 */
import { type Command, Option } from 'commander'
import {
  isColoured,
  logFormats,
  logLevels,
  type LogFormat,
  logFormatFor,
  type LogLevelName,
} from '../../../schemas/index.ts'
import { environment } from '../../config/index.ts'
import { makeLog, type RootLog } from '../../observe/index.ts'

export interface LogFlags {
  readonly logFormat?: LogFormat
  readonly logLevel?: LogLevelName
  readonly debug?: boolean
}

/** What the command that runs was given. */
let given: LogFlags = {}

/** Adds the flags to a command. */
export function addLogFlags(command: Command): Command {
  return command
    .addOption(
      new Option('--log-format <format>', 'text for people or JSON; default: text on a terminal').choices(
        logFormats,
      ),
    )
    .addOption(new Option('--log-level <level>', 'least level that is written').choices(logLevels))
    .hook('preAction', (_command, action) => {
      given = { ...action.opts<LogFlags>(), debug: isDebugGiven(action) }
    })
}

/** Among the command's own options, or in front of it. */
function isDebugGiven(action: Command): boolean {
  for (let at: Command | null = action; at; at = at.parent)
    if (at.opts<LogFlags>().debug === true) return true
  return false
}

/** Of the command that runs: `--debug` was given. */
export function isDebugging(): boolean {
  return given.debug === true
}

export interface CommandLogOptions {
  /** Which program writes. */
  readonly name: string
  /** Level without `--log-level`. */
  readonly level: LogLevelName
}

/** The log of the command that runs, on standard error. */
export function commandLog({ name, level }: CommandLogOptions): RootLog {
  return makeLog({
    name,
    level: given.logLevel ?? (given.debug ? 'debug' : level),
    format: logFormatFor(given.logFormat, process.stderr),
    colour: isColoured(process.stderr, environment()),
  })
}
