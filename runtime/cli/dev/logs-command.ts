/** `gatehouse logs NAME` prints the output of one server that runs on this machine. */
import type { Command } from 'commander'
import { loggedNames } from '../../toolkit/targets/logs.ts'
import { NamedArgument } from '../../toolkit/terminal/command.ts'
import { stopSignal } from '../../toolkit/terminal/stop.ts'

export function addLogsCommand(program: Command): void {
  program
    .command('logs')
    .summary('print the output of a server that runs on this machine')
    .description(
      'Prints the output of one server started by "gatehouse up", "run" or "dev": every line that its processes\n' +
        'wrote. The output can contain secrets. On a terminal, control characters are removed.',
    )
    .addArgument(
      new NamedArgument(
        '[NAME]',
        'name of the resource, such as an MCPServer (required; without it, the error lists the names)',
        loggedNames,
      ),
    )
    .option('-f, --follow', 'keep printing new lines until interrupted', false)
    .addHelpText(
      'after',
      '\nExample:\n  gatehouse logs everything -f\n' +
        '\nExit codes: 0 printed, or stopped by a signal, 2 no running resource has this name.',
    )
    .action(async (name: string | undefined, { follow }: { follow: boolean }) => {
      const { showLogs } = await import('./logs.ts')
      const stop = new AbortController()
      if (follow) void stopSignal(stop)
      process.exitCode = await showLogs(name, { follow, stop: stop.signal })
    })
}
