/**
 * Adds `gatehouse client`, which manages the gateway's entry in the files of MCP clients, and `gatehouse import`, which
 * converts the servers in those files to manifests.
 */
import { type Command, Option } from 'commander'
import type { AddOptions, EntryOptions } from '../../toolkit/client-files/connect.ts'
import { runningNames } from '../../toolkit/targets/running.ts'
import { NamedArgument } from '../../toolkit/terminal/command.ts'
import { collect, refuseIdle } from '../../toolkit/terminal/options.ts'
import type { StatusOptions } from './client.ts'
import type { ImportOptions } from './import.ts'
import type { ClientLinkOptions } from './link.ts'

export function addClientCommand(program: Command): void {
  const client = program
    .command('client')
    .summary('add the gateway to MCP clients, or remove it')
    .description(
      'Manages the gateway’s entry in MCP clients’ configuration files. Everything else in a file stays\n' +
        'unchanged, byte for byte, including comments, order and line endings. Each change is atomic, has a backup, and can be undone.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  gatehouse client list                         list clients on this machine and their servers\n' +
        '  gatehouse client add cursor --dry-run         show the change\n' +
        '  gatehouse client add claude-desktop --server files    add the server files of a running gatehouse dev\n' +
        '  gatehouse client add cursor codex             add the entry for http://127.0.0.1:4483/mcp\n' +
        '  gatehouse client add vscode --print           print the entry, command and link to add it manually\n' +
        '  gatehouse client link files                   print links that add the server files with one click\n' +
        '  gatehouse client remove cursor',
    )
  addList(client)
  addStatus(client)
  addAdd(client)
  addRemove(client)
  addUndo(client)
  addLink(client)
}

const exitCodes =
  '\nExit codes: 0 done, 1 failed for at least one client, 2 invalid usage or an unreadable file.'

function withPlace(command: Command): Command {
  return command
    .argument('[CLIENT...]', 'client names; see gatehouse client list --all')
    .option('--name <name>', 'name of the entry', 'gatehouse')
    .addOption(
      new Option(
        '--scope <scope>',
        'user: all folders; project: this folder; local: this folder, stored in the user’s file',
      )
        .choices(['user', 'project', 'local'])
        .default('user'),
    )
    .addOption(new Option('--profile <id>', 'a VS Code profile, instead of --scope').conflicts('scope'))
    .option('--replace', 'also change an entry with this name that Gatehouse did not write', false)
    .option('--dry-run', 'show the change without writing it; values of other entries stay hidden', false)
    .option('--while-running', 'write even if the client is running and may overwrite the change', false)
    .addHelpText('after', exitCodes)
}

function addAdd(client: Command): void {
  withPlace(
    client.command('add').summary('add the entry').description('Adds the gateway’s entry, or updates it.'),
  )
    .option('--url <url>', 'address of the gateway (default: http://127.0.0.1:4483/mcp)')
    .option(
      '--server <name>',
      'connect to a server on this machine, or to a server in the current cluster (through gatehouse proxy stdio)',
    )
    .option(
      '--bearer-env <variable>',
      'variable that contains a token; the entry contains a reference, never the token',
    )
    .option('--bearer-file <path>', 'file that contains a token, for gatehouse proxy stdio')
    .option('--stdio', 'always use gatehouse proxy stdio, even if the client supports HTTP', false)
    .option('--create', 'create the client’s folder if it does not exist', false)
    .option(
      '--print',
      'print the entry, and the client’s command and link for adding it, instead of writing the file',
      false,
    )
    .action(async (words: string[], options: AddOptions) => {
      const { addClients } = await import('./client.ts')
      process.exitCode = await addClients(words, options)
    })
}

function addRemove(client: Command): void {
  withPlace(
    client
      .command('remove')
      .summary('remove the entry')
      .description('Removes the entry that gatehouse client add wrote.'),
  ).action(async (words: string[], options: EntryOptions) => {
    const { removeClients } = await import('./client.ts')
    process.exitCode = await removeClients(words, options)
  })
}

function addUndo(client: Command): void {
  withPlace(
    client
      .command('undo')
      .summary('undo the last change')
      .description(
        'Restores the file to its state before the last add or remove. If the file has changed since, restores only the entry.',
      ),
  ).action(async (words: string[], options: EntryOptions) => {
    const { undoClients } = await import('./client.ts')
    process.exitCode = await undoClients(words, options)
  })
}

function addLink(client: Command): void {
  client
    .command('link')
    .summary('print links that add a server to clients with one click')
    .description(
      'Prints links for VS Code, Cursor, Goose and LM Studio. A link contains only a name and a URL, so you can share it. Every user logs in with their own client.',
    )
    .addArgument(
      new NamedArgument(
        '<NAME>',
        'server on this machine, resource in the current cluster, or URL',
        runningNames,
      ),
    )
    .option('--name <name>', 'name in the client (default: NAME, or gatehouse for a URL)')
    .option('-n, --namespace <namespace>', 'namespace of the resource')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .addHelpText('after', '\nExit codes: 0 done, 1 the cluster does not respond, 2 invalid usage.')
    .action(async (target: string, options: ClientLinkOptions) => {
      const { printLinks } = await import('./link.ts')
      process.exitCode = await printLinks(target, options)
    })
}

function addList(client: Command): void {
  withOutput(
    client
      .command('list')
      .summary('list clients on this machine')
      .description('Lists the configuration files of MCP clients.'),
  )
    .option('--all', 'include clients without a file', false)
    .action(async (options: StatusOptions) => {
      const { clientStatus } = await import('./client.ts')
      process.exitCode = await clientStatus([], { ...options, check: false })
    })
}

function addStatus(client: Command): void {
  withOutput(
    client
      .command('status')
      .summary('show the state of the gateway’s entry in each client')
      .description(
        'Shows the state of the gateway’s entry in each client.\n' +
          'States: absent (no entry), connected (the entry from add or from gatehouse up), differs (an entry with this name but different contents),\n' +
          'shadowed (another of the client’s files takes precedence), unreadable (the file cannot be parsed).',
      ),
  )
    .argument('[CLIENT...]', 'client names (default: all clients with a file)')
    .option('--check', 'also check that the gateway responds', false)
    .action(async (words: string[], options: StatusOptions) => {
      const { clientStatus } = await import('./client.ts')
      process.exitCode = await clientStatus(words, { ...options, all: false })
    })
}

function withOutput(command: Command): Command {
  return command
    .option('--name <name>', 'name of the entry', 'gatehouse')
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .addHelpText('after', exitCodes)
}

/** `addSubcommands` adds importers for other products below `import`. */
export function addImportCommand(program: Command, addSubcommands: (parent: Command) => void): void {
  const command = program
    .command('import')
    .summary('convert server definitions from MCP clients or ToolHive to manifests')
    .description(
      'Reads the configuration of Claude Desktop, Claude Code, Cursor, VS Code, Windsurf, Codex, Gemini CLI, Zed,\n' +
        'Cline, Goose and other clients, and reports how it converts each server. --save writes the manifests, with\n' +
        'secrets in a separate Secret. Does not change any client’s file, and does not start or download anything.',
    )
    .argument(
      '[CLIENT|FILE...]',
      'client names, files, or - for standard input (default: all clients on this machine)',
    )
    .option('--save <folder>', 'write the manifests to this folder')
    .option('--force', 'with --save: replace existing files', false)
    .addOption(new Option('-o, --output <format>', 'output format').choices(['text', 'json']).default('text'))
    .option('--as <client>', 'format of the files, if it cannot be detected')
    .option('--group <name>', 'name of the group and the virtual server', 'imported')
    .addOption(
      new Option('--target <target>', 'dev: for this machine, without a login; cluster: with a login')
        .choices(['dev', 'cluster'])
        .default('dev'),
    )
    .option(
      '--oidc-config <name>',
      'MCPOIDCConfig that validates the clients’ tokens; required with --target cluster',
    )
    .option('--audience <audience>', 'audience that the tokens must contain; required with --oidc-config')
    .addOption(
      new Option('--secrets <form>', 'write secrets to a Secret manifest, or to a variables file')
        .choices(['manifest', 'env'])
        .default('manifest'),
    )
    .option('--plain <variable>', 'variable that is not a secret; repeatable', collect, [])
    .option('--image <server=image>', 'container image for a server in a cluster; repeatable', collect, [])
    .option(
      '--keep-secret-args',
      'keep secrets in arguments and URLs, where every reader of the manifests can see them',
      false,
    )
    .option(
      '--resolve-env',
      'replace variables with values from the environment, or prompt for them on the terminal',
      false,
    )
    .option('--include-disabled', 'include disabled servers', false)
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  gatehouse import                                     show all servers and how they convert\n' +
        '  gatehouse import cursor claude-desktop --save mcp/   write manifests, then: gatehouse dev -f mcp/\n' +
        '  gatehouse import .mcp.json --save mcp/ --resolve-env\n' +
        '  gatehouse import vscode --save mcp/ --target cluster --oidc-config company --audience tools\n' +
        '\nExit codes: 0 all converted, 1 at least one was not, 2 invalid usage or an unreadable file.',
    )
    .action(async (words: string[], options: ImportOptions, command: Command) => {
      refuseIdle(command, [
        ['force', options.save !== undefined, 'has no effect without --save'],
        [
          'oidcConfig',
          options.audience !== undefined,
          'requires --audience: without both options, the server is open to anyone',
        ],
        [
          'audience',
          options.oidcConfig !== undefined,
          'requires --oidc-config: without both options, the server is open to anyone',
        ],
        ['as', words.length > 0, 'requires a FILE argument'],
      ])
      const { importServers } = await import('./import.ts')
      process.exitCode = await importServers(words, options)
    })
  addSubcommands(command)
}
