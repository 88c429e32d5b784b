/**
 * `gatehouse run`: MCP servers behind one address, without manifests.
 */
import type { Command } from 'commander'
import type { RunCommandOptions } from './run.ts'
import { addProcessLogFlags, processLogs } from '../../toolkit/local/screen/process-logs.ts'
import { refuseIdle, parsePort, parseSeconds, collect } from '../../toolkit/terminal/options.ts'

export function addRunCommand(program: Command): void {
  addProcessLogFlags(program.command('run'))
    .summary('run MCP servers behind one address, without manifests')
    .description(
      'Starts a command that speaks MCP, or takes servers by their URL, and puts them behind one address on this\n' +
        'machine. Prints the address to standard output. No shell reads the command.',
    )
    .argument('[command...]', 'the command after --, or one URL')
    .option('--name <name>', 'name of the server (default: after its package or host)')
    .option(
      '-e, --env <name[=value]>',
      'a variable of the commands; without a value, as it is here; repeatable',
      collect,
      [],
    )
    .option('--url <[name=]url>', 'a server that runs already; repeatable', collect, [])
    .option(
      '--header <name=variable>',
      'a header for these servers, from a variable; repeatable',
      collect,
      [],
    )
    .option('--server <name=command>', 'a further command; repeatable', collect, [])
    .option('--from <client|file>', 'the servers of a client’s configuration; repeatable', collect, [])
    .option(
      '--env-file <file>',
      'file with variables for --from, -e and --header; the environment takes precedence; repeatable',
      collect,
      [],
    )
    .option('--http', 'the commands listen by themselves, on {port} in their arguments or PORT', false)
    .option('-p, --port <number>', 'port of the address (default: 4483, or a free one)', parsePort)
    .option('--connect <client>', 'put the address into a client while this runs; repeatable', collect, [])
    .option('--save <folder>', 'also write the manifests that a cluster takes')
    .option('--force', 'with --save: replace files that are there', false)
    .option('--group <name>', 'name of the virtual server', 'gatehouse')
    .option('--start-timeout <seconds>', 'how long servers may take to answer', parseSeconds, 120)
    .passThroughOptions()
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  gatehouse run -- npx -y @modelcontextprotocol/server-everything\n' +
        '  gatehouse run --url http://localhost:8000/mcp\n' +
        '  gatehouse run -e GITHUB_TOKEN --server files="npx -y @modelcontextprotocol/server-filesystem ." -- my-server\n' +
        '  gatehouse run --from cursor --connect claude-code\n' +
        '  gatehouse run --save mcp/ -- uvx mcp-server-git      and later: kubectl apply -k mcp/\n' +
        '\nExit codes: 0 stopped by a signal, 1 no server answers, 2 wrong usage; that of the command when it ends at once.',
    )
    .action(async (words: string[], options: RunCommandOptions, command: Command) => {
      const { from, env, header } = options
      refuseIdle(command, [
        ['force', options.save !== undefined, 'is for --save'],
        ['envFile', [...from, ...env, ...header].length > 0, 'is for --from, -e and --header'],
      ])
      const { runServers } = await import('./run.ts')
      process.exitCode = await runServers(words, { ...options, ...processLogs(command) })
    })
}
