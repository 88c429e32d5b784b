/**
 * `gatehouse dev -f`: the manifests that run in a cluster, run here, without a cluster.
 *
 * Reads and validates them with the webhook's code, runs the same hooks in process, starts what they render as local
 * processes, and follows every edit of the files.
 */
import type { Command } from 'commander'
import type { DevOptions } from './dev.ts'
import { addProcessLogFlags, processLogs } from '../../toolkit/local/screen/process-logs.ts'
import { parsePort, parseSeconds, collect } from '../../toolkit/terminal/options.ts'

export function addDevCommand(program: Command): void {
  addProcessLogFlags(program.command('dev'))
    .summary('run manifests here, without a cluster')
    .description(
      'Runs the manifests of a cluster on this machine: validates them with the webhook’s code, runs the same\n' +
        'hooks, and starts what they render as local processes. A server runs the command in its annotation\n' +
        'gatehouse.dev/local-command in place of its image ({port} is replaced; PORT is set).',
    )
    .requiredOption('-f, --filename <path>', 'file, folder or - for standard input; repeatable', collect)
    .option('-p, --port <number>', 'port of the first VirtualMCPServer', parsePort, 4483)
    .option(
      '--start-timeout <seconds>',
      'time after which a server that is not ready is told',
      parseSeconds,
      30,
    )
    .option(
      '--pin-first <folder>',
      'trust on first use: what a backend is first seen to offer is approved, its lock written to this folder, and enforced',
    )
    .addHelpText(
      'after',
      '\nExample:\n  gatehouse dev -f manifests/examples/quickstart\n' +
        '\nExit codes: 0 stopped by a signal, 1 the manifests are invalid, 2 wrong usage, unreadable input or a\n' +
        'port or folder that cannot be used. "gatehouse logs NAME" shows the output of one server.',
    )
    .action(async (options: DevOptions, command: Command) => {
      const { runDev } = await import('./dev.ts')
      process.exitCode = await runDev({ ...options, ...processLogs(command) })
    })
}
