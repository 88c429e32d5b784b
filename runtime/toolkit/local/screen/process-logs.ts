/** Flags about the output of the processes that `dev` and `run` start: `--verbose`, `--log-format`, `--log-level`, `--debug`. */
import type { Command } from 'commander'
import type { ProcessLogs } from './lines.ts'
import { refuseIdle } from '../../terminal/options.ts'
import { addLogFlags, isDebugging } from '../../terminal/log.ts'

export function addProcessLogFlags(command: Command): Command {
  return addLogFlags(command.option('-v, --verbose', 'print the output of every process', false))
}

/** `gatehouse --debug …` is verbose, at debug level. Throws INVALID_CONFIG for a format of lines that nobody sees. */
export function processLogs(command: Command): ProcessLogs {
  const { verbose, logFormat, logLevel } = command.opts<ProcessLogs>()
  const debug = isDebugging()
  refuseIdle(command, [['logFormat', verbose || debug, 'is for the lines that --verbose prints']])
  const level = logLevel ?? (debug ? 'debug' : undefined)
  return {
    verbose: verbose || debug,
    ...(logFormat !== undefined && { logFormat }),
    ...(level !== undefined && { logLevel: level }),
  }
}
