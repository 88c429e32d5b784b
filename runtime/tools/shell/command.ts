/**
 * `gatehouse tools`, `resources` and `prompts` form a small MCP client for the shell.
 *
 * Standard output contains only the result; progress, prompts and errors go to standard error. Exit codes: 0 done, 1
 * the server or the tool failed, 2 invalid usage, 3 the login failed, or a login is required.
 */
import { type Command, Option } from 'commander'
import { refuseIdle, parseSeconds, collect } from '../../toolkit/terminal/options.ts'
import { addLogFlags, isDebugging } from '../../toolkit/terminal/log.ts'
import type { Operands, ShellOperation, ShellFlags } from './run.ts'
import { NamedArgument } from '../../toolkit/terminal/command.ts'
import { runningNames } from '../../toolkit/targets/running.ts'
import { capitalized } from '../../toolkit/terminal/plain-text.ts'
import { addProxyFlags, isUrl } from '../../toolkit/targets/proxy-flags.ts'

const target =
  'URL, the name of a server started by "gatehouse up", "run" or "dev", or a resource in the current cluster'
const exitCodes =
  '\nExit codes: 0 done, 1 the server or the tool failed, 2 invalid usage, 3 the login failed, or a login is required.'

export function addToolsCommand(program: Command): void {
  const tools = group(program, 'tools', 'list and call an MCP server’s tools')
  operation(tools, {
    name: 'list',
    summary: 'list a server’s tools',
    arguments: '[TARGET]',
    examples: ['tools list https://mcp.example.com/mcp', 'tools list -o json -- npx -y some-server'],
    needed: [],
    run: (flags) => async (client) => (await operations()).printList(client, 'tools', flags.output),
  })
  operation(tools, {
    name: 'call',
    summary: 'call a tool',
    arguments: '[TARGET] <TOOL> [name=value...]',
    examples: [
      'tools call http://127.0.0.1:4483/mcp echo message=hello',
      'tools call quickstart everything_get-sum a=1 b=2',
      'tools call quickstart search --args-file query.json',
      'tools call search --args \'{"limit": 5}\' tags:=\'["a"]\' -- npx -y some-server',
    ],
    needed: ['TOOL'],
    pairsHelp:
      'name=value passes an argument, converted to the type that the tool expects; name:=JSON passes JSON.',
    run:
      (flags) =>
      async (client, [tool = '', ...pairs]) =>
        (await operations()).callTool(client, tool, pairs, flags),
  })
}

export function addResourcesCommand(program: Command): void {
  const resources = group(program, 'resources', 'list and read an MCP server’s resources')
  operation(resources, {
    name: 'list',
    summary: 'list a server’s resources and resource templates',
    arguments: '[TARGET]',
    examples: ['resources list quickstart'],
    needed: [],
    run: (flags) => async (client) => (await operations()).printList(client, 'resources', flags.output),
  })
  operation(resources, {
    name: 'read',
    summary: 'read a resource; binary content is written unchanged to a file or pipe',
    arguments: '[TARGET] <URI>',
    examples: ['resources read quickstart file:///notes.md', 'resources read quickstart img://1 > 1.png'],
    needed: ['URI'],
    run:
      (flags) =>
      async (client, [uri = '']) =>
        (await operations()).readResource(client, uri, flags.output),
  })
}

export function addPromptsCommand(program: Command): void {
  const prompts = group(program, 'prompts', 'list and get an MCP server’s prompts')
  operation(prompts, {
    name: 'list',
    summary: 'list a server’s prompts',
    arguments: '[TARGET]',
    examples: ['prompts list quickstart'],
    needed: [],
    run: (flags) => async (client) => (await operations()).printList(client, 'prompts', flags.output),
  })
  operation(prompts, {
    name: 'get',
    summary: 'get a prompt',
    arguments: '[TARGET] <PROMPT> [name=value...]',
    examples: ['prompts get quickstart review language=go'],
    needed: ['PROMPT'],
    pairsHelp: 'name=value passes an argument.',
    run:
      (flags) =>
      async (client, [prompt = '', ...pairs]) =>
        (await operations()).getPrompt(client, prompt, pairs, flags),
  })
}

function operations(): Promise<typeof import('./operations.ts')> {
  return import('./operations.ts')
}

function group(program: Command, name: string, summary: string): Command {
  return program
    .command(name)
    .summary(summary)
    .description(`${capitalized(summary)}.`)
}

/** Rejects server connection options when a command is started instead. */
function refuseWithout(action: Command, words: readonly string[]): void {
  const hasCommand = process.argv.includes('--')
  const ofServers = action.options.filter(({ helpGroupHeading }) => helpGroupHeading !== undefined)
  refuseIdle(action, [
    [
      'namespace',
      !hasCommand && !isUrl(words[0] ?? ''),
      'applies only to the name of a resource in the cluster',
    ],
    ...ofServers.map(
      (option) =>
        [option.attributeName(), !hasCommand, 'applies to a TARGET, not to a command after --'] as const,
    ),
  ])
}

interface OperationRow extends Omit<Operands, 'words' | 'pairs'> {
  readonly name: string
  readonly summary: string
  readonly arguments: string
  readonly examples: readonly string[]
  /**
   * Help for name=value pairs. Absent when the operation accepts neither pairs nor the options --args and --args-file.
   */
  readonly pairsHelp?: string
  readonly run: (flags: ShellFlags) => ShellOperation
}

function operation(parent: Command, row: OperationRow): void {
  const { pairsHelp } = row
  const acceptsArguments = pairsHelp !== undefined
  const command = parent
    .command(row.name)
    .summary(row.summary)
    .description(
      [
        `${capitalized(row.summary)}. Instead of naming a TARGET, you can start a server with a command after --.`,
        ...(acceptsArguments ? [pairsHelp] : []),
      ].join('\n'),
    )
    .usage(`${row.arguments} [options] [-- command...]`)
    .addArgument(new NamedArgument('[TARGET...]', target, runningNames))
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .option('-n, --namespace <name>', 'namespace of the resource in the current cluster')
    .option(
      '-e, --env <name[=value]>',
      'variable for the command; without a value, its current value is used; repeatable',
      collect,
      [],
    )
    .option('--timeout <seconds>', 'fail if the server sends no message for this long', parseSeconds, 60)
    .option('-v, --verbose', 'print the server’s log messages and the command’s standard error', false)
  if (acceptsArguments) {
    command
      .option('--args <json>', 'arguments as a JSON object; - reads standard input')
      .option(
        '--args-file <path>',
        'file that contains the arguments as a JSON object; - reads standard input',
      )
  }
  addLogFlags(command)
  addProxyFlags(command, ({ group: of }) => of.startsWith('Outgoing') || of === 'Token exchange')
  command
    .addHelpText(
      'after',
      `\nExamples:\n${row.examples.map((line) => `  gatehouse ${line}`).join('\n')}\n${exitCodes}`,
    )
    .action(async (words: string[], typed: ShellFlags, action: Command) => {
      refuseWithout(action, words)
      const flags = { ...typed, verbose: typed.verbose || isDebugging() }
      const { runOperation } = await import('./run.ts')
      const operands = { words, needed: row.needed, pairs: acceptsArguments }
      process.exitCode = await runOperation(operands, flags, row.run(flags))
    })
}
