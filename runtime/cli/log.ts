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
} from '../../schemas/index.ts'
import { environment } from '../config/index.ts'
import { makeLog, type RootLog } from '../observe/index.ts'

export interface LogFlags {
  readonly logFormat?: LogFormat
  readonly logLevel?: LogLevelName
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
      given = action.opts<LogFlags>()
    })
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
    level: given.logLevel ?? level,
    format: logFormatFor(given.logFormat, process.stderr),
    colour: isColoured(process.stderr, environment()),
  })
}
