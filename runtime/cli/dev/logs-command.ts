/** `gatehouse logs NAME`: the output of one server of a running `gatehouse dev`. */
import type { Command } from 'commander'
import { stopSignal } from '../../toolkit/terminal/stop.ts'

export function addLogsCommand(program: Command): void {
  program
    .command('logs')
    .summary('print the output of a server that "gatehouse dev" runs')
    .description(
      'Prints what the processes of one resource have written while "gatehouse dev" runs it. Lines are as the programs\n' +
        'wrote them, with secrets if they print secrets; on a terminal without control characters.',
    )
    .argument('<name>', 'name of the resource, such as an MCPServer')
    .option('-f, --follow', 'go on with what is written from now on', false)
    .addHelpText(
      'after',
      '\nExample:\n  gatehouse logs everything -f\n' +
        '\nExit codes: 0 printed, or stopped by a signal, 2 nothing of that name runs.',
    )
    .action(async (name: string, { follow }: { follow: boolean }) => {
      const { showLogs } = await import('./logs.ts')
      const stop = new AbortController()
      if (follow) void stopSignal(stop)
      process.exitCode = await showLogs(name, { follow, stop: stop.signal })
    })
}
