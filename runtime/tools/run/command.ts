import type { Command } from 'commander'
import type { RunCommandOptions } from './run.ts'
import { addProcessLogFlags, processLogs } from '../../toolkit/local/screen/process-logs.ts'
import { refuseIdle, parsePort, parseSeconds, collect } from '../../toolkit/terminal/options.ts'

export function addRunCommand(program: Command): void {
  addProcessLogFlags(program.command('run'))
    .summary('run MCP servers behind one address, without manifests')
    .description(
      'Runs MCP servers behind one address on this machine. Servers are commands, URLs, or entries in a client’s\n' +
        'configuration. Prints the address to standard output. Commands run without a shell. If a remote server\n' +
        'requires a login, Gatehouse prints the address to open in a browser.',
    )
    .argument('[command...]', 'command after --, or a URL')
    .option('--name <name>', 'name of the server (default: from its package or host)')
    .option(
      '-e, --env <name[=value]>',
      'variable for the commands; without a value, its current value is used; repeatable',
      collect,
      [],
    )
    .option('--url <[name=]url>', 'URL of a running server; repeatable', collect, [])
    .option(
      '--header <name=variable>',
      'header for the --url servers and the REST service, with a value from a variable; repeatable',
      collect,
      [],
    )
    .option('--openapi <file>', 'OpenAPI document of a REST service, whose operations become tools')
    .option('--base-url <[name=]url>', 'with --openapi: address of the REST service')
    .option(
      '--operation <operation-id>',
      'with --openapi: also offer this operation, whose method is not GET or HEAD; repeatable',
      collect,
      [],
    )
    .option('--server <name=command>', 'additional command; repeatable', collect, [])
    .option('--from <client|file>', 'run the servers in a client’s configuration; repeatable', collect, [])
    .option(
      '--env-file <file>',
      'file with variables for --from, -e and --header; the environment takes precedence; repeatable',
      collect,
      [],
    )
    .option(
      '--http',
      'the commands serve HTTP on the port that replaces {port} in their arguments, or on the port in the variable PORT',
      false,
    )
    .option(
      '-p, --port <number>',
      'port to listen on (default: 4483, or a free port if it is in use)',
      parsePort,
    )
    .option(
      '--connect <client>',
      'add the address to a client until this command stops; repeatable',
      collect,
      [],
    )
    .option('--save <folder>', 'also write manifests for a cluster to this folder')
    .option('--force', 'with --save: replace existing files', false)
    .option('--group <name>', 'name of the virtual server', 'gatehouse')
    .option('--start-timeout <seconds>', 'stop if no server has responded after this time', parseSeconds, 120)
    .passThroughOptions()
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  gatehouse run -- npx -y @modelcontextprotocol/server-everything\n' +
        '  gatehouse run --url http://localhost:8000/mcp\n' +
        '  gatehouse run -e GITHUB_TOKEN --server files="npx -y @modelcontextprotocol/server-filesystem ." -- my-server\n' +
        '  gatehouse run --openapi openapi.yaml --base-url https://api.example.com/v1\n' +
        '  gatehouse run --from cursor --connect claude-code\n' +
        '  gatehouse run --save mcp/ -- uvx mcp-server-git      and later: kubectl apply -k mcp/\n' +
        '\nExit codes: 0 stopped by a signal, 1 no server responds, 2 invalid usage.\nWhen the only command exits during startup, its exit code is used.',
    )
    .action(async (words: string[], options: RunCommandOptions, command: Command) => {
      const { from, env, header } = options
      refuseIdle(command, [
        ['force', options.save !== undefined, 'has no effect without --save'],
        ['operation', options.openapi !== undefined, 'has no effect without --openapi'],
        ['envFile', [...from, ...env, ...header].length > 0, 'has no effect without --from, -e or --header'],
      ])
      const { runServers } = await import('./run.ts')
      process.exitCode = await runServers(words, { ...options, ...processLogs(command) })
    })
}
