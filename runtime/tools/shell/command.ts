/**
 * `gatehouse tools`, `resources` and `prompts`: a small MCP client for the shell.
 *
 * Standard output has the result and nothing else; progress, questions and errors go to standard error. Exit codes: 0 done, 1
 * the server or the tool failed, 2 wrong usage, 3 the login failed or is missing.
 */
import { type Command, Option } from 'commander'
import { refuseIdle, parseSeconds, collect } from '../../toolkit/terminal/options.ts'
import { addLogFlags, isDebugging } from '../../toolkit/terminal/log.ts'
import type { Operands, ShellOperation, ShellFlags } from './run.ts'
import { NamedArgument } from '../../toolkit/terminal/command.ts'
import { runningServers } from '../../toolkit/targets/running.ts'
import { addProxyFlags, isUrl } from '../../toolkit/targets/proxy-flags.ts'

const target = 'URL, name of a server that "gatehouse dev" or "run" runs, or resource of the current cluster'
const exitCodes =
  '\nExit codes: 0 done, 1 the server or the tool failed, 2 wrong usage, 3 the login failed or is missing.'

export function addToolsCommand(program: Command): void {
  const tools = group(program, 'tools', 'list and call the tools of an MCP server')
  operation(tools, {
    name: 'list',
    summary: 'list the tools of a server',
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
    takesArguments: true,
    run:
      (flags) =>
      async (client, [tool = '', ...pairs]) =>
        (await operations()).callTool(client, tool, pairs, flags),
  })
}

export function addResourcesCommand(program: Command): void {
  const resources = group(program, 'resources', 'list and read the resources of an MCP server')
  operation(resources, {
    name: 'list',
    summary: 'list the resources of a server, and its templates',
    arguments: '[TARGET]',
    examples: ['resources list quickstart'],
    needed: [],
    run: (flags) => async (client) => (await operations()).printList(client, 'resources', flags.output),
  })
  operation(resources, {
    name: 'read',
    summary: 'read a resource; binary content goes to a file or pipe as it is',
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
  const prompts = group(program, 'prompts', 'list and get the prompts of an MCP server')
  operation(prompts, {
    name: 'list',
    summary: 'list the prompts of a server',
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
    takesArguments: true,
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
    .description(`${capital(summary)}.`)
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** Options about the way to a server say nothing of a command that is started. */
function refuseWithout(action: Command, given: readonly string[]): void {
  const hasCommand = process.argv.includes('--')
  const ofServers = action.options.filter(({ helpGroupHeading }) => helpGroupHeading !== undefined)
  refuseIdle(action, [
    ['namespace', !hasCommand && !isUrl(given[0] ?? ''), 'is for the name of a resource of the cluster'],
    ...ofServers.map(
      (option) =>
        [option.attributeName(), !hasCommand, 'is for a server, and not for a command after --'] as const,
    ),
  ])
}

interface OperationRow extends Omit<Operands, 'given' | 'pairs'> {
  readonly name: string
  readonly summary: string
  readonly arguments: string
  readonly examples: readonly string[]
  /** Takes pairs, --args and --args-file. */
  readonly takesArguments?: true
  readonly run: (flags: ShellFlags) => ShellOperation
}

function operation(parent: Command, row: OperationRow): void {
  const { takesArguments = false } = row
  const command = parent
    .command(row.name)
    .summary(row.summary)
    .description(
      `${capital(row.summary)}. In place of TARGET stands a command after --, which is started for it.`,
    )
    .usage(`${row.arguments} [options] [-- command...]`)
    .addArgument(new NamedArgument('[words...]', target, () => runningServers().map(({ name }) => name)))
    .addOption(new Option('-o, --output <format>', 'how to print').choices(['text', 'json']).default('text'))
    .option('-n, --namespace <name>', 'namespace of a resource of the current cluster')
    .option(
      '-e, --env <name[=value]>',
      'a variable of the command; without a value, as it is here',
      collect,
      [],
    )
    .option('--timeout <seconds>', 'silence after which the server is given up', parseSeconds, 60)
    .option(
      '-v, --verbose',
      'print what the server logs, and what the command writes to standard error',
      false,
    )
  if (takesArguments) {
    command
      .option('--args <json>', 'arguments as a JSON object; - reads standard input')
      .option('--args-file <path>', 'file with the arguments as a JSON object; - reads standard input')
  }
  addLogFlags(command)
  addProxyFlags(command, ({ group: of }) => of.startsWith('Outgoing') || of === 'Token exchange')
  command
    .addHelpText(
      'after',
      `\nExamples:\n${row.examples.map((line) => `  gatehouse ${line}`).join('\n')}\n${exitCodes}`,
    )
    .action(async (given: string[], typed: ShellFlags, action: Command) => {
      refuseWithout(action, given)
      const flags = { ...typed, verbose: typed.verbose || isDebugging() }
      const { runOperation } = await import('./run.ts')
      const operands = { given, needed: row.needed, pairs: takesArguments }
      process.exitCode = await runOperation(operands, flags, row.run(flags))
    })
}
