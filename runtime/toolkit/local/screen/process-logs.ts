/**
 * Flags for the output of the processes that `dev` and `run` start: `--verbose`, `--log-format`, `--log-level`,
 * `--debug`.
 */
import type { Command } from 'commander'
import type { ProcessLogs } from './lines.ts'
import { refuseIdle } from '../../terminal/options.ts'
import { addLogFlags, isDebugging } from '../../terminal/log.ts'

export function addProcessLogFlags(command: Command): Command {
  return addLogFlags(command.option('-v, --verbose', 'print the output of every process', false))
}

/**
 * Returns the flags. `gatehouse --debug …` implies `--verbose` at debug level. Throws INVALID_CONFIG when
 * `--log-format` has no effect.
 */
export function processLogs(command: Command): ProcessLogs {
  const { verbose, logFormat, logLevel } = command.opts<ProcessLogs>()
  const debug = isDebugging()
  refuseIdle(command, [['logFormat', verbose || debug, 'has no effect without --verbose']])
  const level = logLevel ?? (debug ? 'debug' : undefined)
  return {
    verbose: verbose || debug,
    ...(logFormat !== undefined && { logFormat }),
    ...(level !== undefined && { logLevel: level }),
  }
}
