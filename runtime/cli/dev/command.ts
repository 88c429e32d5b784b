/**
 * `gatehouse dev -f` runs a cluster's manifests on this machine.
 *
 * The command validates the manifests with the webhook's code, runs the same hooks in process, and starts the rendered
 * servers as local processes. Changes to the files take effect immediately.
 */
import type { Command } from 'commander'
import type { DevOptions } from './dev.ts'
import { addProcessLogFlags, processLogs } from '../../toolkit/local/screen/process-logs.ts'
import { parsePort, parseSeconds, collect } from '../../toolkit/terminal/options.ts'

export function addDevCommand(program: Command): void {
  addProcessLogFlags(program.command('dev'))
    .summary('run manifests on this machine, without a cluster')
    .description(
      'Runs a cluster’s manifests on this machine. Validates them with the webhook’s code, runs the same hooks,\n' +
        'and starts the rendered servers as local processes. Edits take effect immediately.\n' +
        'A server runs the command in its gatehouse.dev/local-command annotation instead of its image. Gatehouse\n' +
        'replaces {port} in the command with the assigned port and sets the variable PORT.',
    )
    .requiredOption(
      '-f, --filename <path>',
      'manifest file, folder, or - for standard input; repeatable (required)',
      collect,
    )
    .option('-p, --port <number>', 'port of the first VirtualMCPServer', parsePort, 4483)
    .option(
      '--start-timeout <seconds>',
      'time after which a server that is not ready is reported',
      parseSeconds,
      30,
    )
    .option(
      '--pin-first <folder>',
      'trust on first use: approve each backend’s initial definitions, write its lock to this folder, and enforce it',
    )
    .addHelpText(
      'after',
      '\nExample:\n  gatehouse dev -f manifests/examples/quickstart\n' +
        '\nExit codes: 0 stopped by a signal, 1 invalid manifests, 2 invalid usage, unreadable input, or an\n' +
        'unusable port or folder.\n\n"gatehouse logs NAME" prints the output of one server.',
    )
    .action(async (options: DevOptions, command: Command) => {
      const { runDev } = await import('./dev.ts')
      process.exitCode = await runDev({ ...options, ...processLogs(command) })
    })
}
