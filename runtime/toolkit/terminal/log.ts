/** The log flags that commands share (`--log-format`, `--log-level`, `--debug`), and the log that they configure. */
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

/** The running command's flags. */
let currentFlags: LogFlags = {}

/** Adds the flags to a command. */
export function addLogFlags(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--log-format <format>',
        'text or JSON (default: text on a terminal, otherwise JSON)',
      ).choices(logFormats),
    )
    .addOption(new Option('--log-level <level>', 'minimum level to write').choices(logLevels))
    .hook('preAction', (_command, action) => {
      currentFlags = { ...action.opts<LogFlags>(), debug: isDebugGiven(action) }
    })
}

/** True when the command or one of its parents has the option `--debug`. */
function isDebugGiven(action: Command): boolean {
  for (let at: Command | null = action; at; at = at.parent)
    if (at.opts<LogFlags>().debug === true) return true
  return false
}

/** True when the running command has `--debug`. */
export function isDebugging(): boolean {
  return currentFlags.debug === true
}

export interface CommandLogOptions {
  /** Name of the program that writes the log. */
  readonly name: string
  /** Level used if `--log-level` is not set. */
  readonly level: LogLevelName
}

/** Returns the log of the running command, which writes to standard error. */
export function commandLog({ name, level }: CommandLogOptions): RootLog {
  return makeLog({
    name,
    level: currentFlags.logLevel ?? (currentFlags.debug ? 'debug' : level),
    format: logFormatFor(currentFlags.logFormat, process.stderr),
    colour: isColoured(process.stderr, environment()),
  })
}
