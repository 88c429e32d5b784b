/** Defines `gatehouse client` (the gateway's entry in MCP clients) and `gatehouse import` (their servers as manifests). */
import { type Command, Option } from 'commander'
import type { AddOptions, PlaceOptions } from '../../toolkit/client-files/connect.ts'
import { collect, refuseIdle } from '../../toolkit/terminal/options.ts'
import type { StatusOptions } from './client.ts'
import type { ImportOptions } from './import.ts'

export function addClientCommand(program: Command): void {
  const client = program
    .command('client')
    .summary('put the gateway into MCP clients, and take it out')
    .description(
      'One entry per client leads to the gateway. Everything else in the client’s file stays as it is, byte for byte:\n' +
        'comments, order, line ends. Each change is atomic, has a backup, and can be taken back.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  gatehouse client list                         which clients are here, and what they have\n' +
        '  gatehouse client add cursor --dry-run         show the change\n' +
        '  gatehouse client add cursor codex             make it, for http://127.0.0.1:4483/mcp\n' +
        '  gatehouse client add vscode --print           the entry, command and link to use by hand\n' +
        '  gatehouse client remove cursor',
    )
  addList(client)
  addStatus(client)
  addAdd(client)
  addRemove(client)
  addUndo(client)
}

const exitCodes =
  '\nExit codes: 0 done, 1 refused or failed for a client, 2 wrong usage or a file that cannot be read.'

function withPlace(command: Command): Command {
  return command
    .argument('<CLIENT...>', 'names as gatehouse client list --all prints them')
    .option('--name <name>', 'name of the entry', 'gatehouse')
    .addOption(
      new Option(
        '--scope <scope>',
        'user: everywhere; project: this folder; local: this folder, in the user’s file',
      )
        .choices(['user', 'project', 'local'])
        .default('user'),
    )
    .addOption(new Option('--profile <id>', 'a profile of VS Code instead').conflicts('scope'))
    .option('--replace', 'also an entry of that name that was not written by gatehouse', false)
    .option('--dry-run', 'show the change and write nothing; values of other entries are not shown', false)
    .option('--while-running', 'write although the client runs and may write its own version over it', false)
    .addHelpText('after', exitCodes)
}

function addAdd(client: Command): void {
  withPlace(
    client.command('add').summary('add the entry').description('Adds the entry, or brings it up to date.'),
  )
    .option('--url <url>', 'address of the gateway (default: http://127.0.0.1:4483/mcp)')
    .option(
      '--server <name>',
      'a server in the cluster of the current kubeconfig, through gatehouse proxy stdio',
    )
    .option(
      '--bearer-env <variable>',
      'variable of the client that holds a token; a reference is written, never a token',
    )
    .option('--bearer-file <path>', 'file with a token, for gatehouse proxy stdio')
    .option(
      '--stdio',
      'through gatehouse proxy stdio, also where the client could call the gateway itself',
      false,
    )
    .option('--create', 'make the client’s folder when it has none here', false)
    .option('--print', 'print the entry, the client’s own command and its link instead of writing', false)
    .action(async (words: string[], options: AddOptions) => {
      const { addClients } = await import('./client.ts')
      process.exitCode = await addClients(words, options)
    })
}

function addRemove(client: Command): void {
  withPlace(
    client.command('remove').summary('remove the entry').description('Removes the entry that add wrote.'),
  ).action(async (words: string[], options: PlaceOptions) => {
    const { removeClients } = await import('./client.ts')
    process.exitCode = await removeClients(words, options)
  })
}

function addUndo(client: Command): void {
  withPlace(
    client
      .command('undo')
      .summary('take the last change back')
      .description(
        'Restores the file as it was before the last add or remove; the entry alone if others changed it since.',
      ),
  ).action(async (words: string[], options: PlaceOptions) => {
    const { undoClients } = await import('./client.ts')
    process.exitCode = await undoClients(words, options)
  })
}

function addList(client: Command): void {
  withOutput(
    client.command('list').summary('clients that are here').description('Lists the files of MCP clients.'),
  )
    .option('--all', 'clients without a file as well', false)
    .action(async (options: StatusOptions) => {
      const { clientStatus } = await import('./client.ts')
      process.exitCode = await clientStatus([], { ...options, check: false })
    })
}

function addStatus(client: Command): void {
  withOutput(
    client
      .command('status')
      .summary('what stands about the gateway')
      .description(
        'absent: no entry. connected: the entry that add wrote. differs: an entry of that name with other contents.\n' +
          'shadowed: another place of the client wins. unreadable: the file cannot be parsed.',
      ),
  )
    .argument('[CLIENT...]', 'clients (default: all that have a file)')
    .option('--check', 'also ask the gateway whether it answers', false)
    .action(async (words: string[], options: StatusOptions) => {
      const { clientStatus } = await import('./client.ts')
      process.exitCode = await clientStatus(words, { ...options, all: false })
    })
}

function withOutput(command: Command): Command {
  return command
    .option('--name <name>', 'name of the entry', 'gatehouse')
    .addOption(new Option('-o, --output <format>', 'how to report').choices(['text', 'json']).default('text'))
    .addHelpText('after', exitCodes)
}

/** `addSubcommands` adds the converters of other products below `import`. */
export function addImportCommand(program: Command, addSubcommands: (parent: Command) => void): void {
  const command = program
    .command('import')
    .summary('turn the servers of MCP clients, or of ToolHive, into manifests')
    .description(
      'Reads the configuration of Claude Desktop, Claude Code, Cursor, VS Code, Windsurf, Codex, Gemini CLI, Zed,\n' +
        'Cline, Goose and others, and says what becomes of each server. With --save it writes the manifests.\n' +
        'Secrets move into a Secret of their own. No client’s file is changed; nothing is started or fetched.',
    )
    .argument(
      '[CLIENT|FILE...]',
      'clients, files, or - for standard input (default: every client that is found)',
    )
    .option('--save <folder>', 'write the manifests there')
    .option('--force', 'replace files that are there', false)
    .addOption(new Option('-o, --output <format>', 'how to report').choices(['text', 'json']).default('text'))
    .option('--as <client>', 'whose form the files have, when it cannot be seen')
    .option('--group <name>', 'name of the group and of the virtual server', 'imported')
    .addOption(
      new Option('--target <target>', 'dev: open to this machine; cluster: with a login')
        .choices(['dev', 'cluster'])
        .default('dev'),
    )
    .option('--oidc-config <name>', 'MCPOIDCConfig that clients of the virtual server sign in with')
    .option('--audience <audience>', 'audience that their tokens must have')
    .addOption(
      new Option('--secrets <form>', 'where secrets go: a Secret manifest, or a file of variables')
        .choices(['manifest', 'env'])
        .default('manifest'),
    )
    .option('--plain <variable>', 'a variable that is no secret; repeatable', collect, [])
    .option('--image <server=image>', 'image that a cluster runs for a server; repeatable', collect, [])
    .option(
      '--keep-secret-args',
      'leave secrets in arguments and URLs, for every reader of the manifests',
      false,
    )
    .option('--resolve-env', 'put variables in place: from the environment, else ask on the terminal', false)
    .option('--include-disabled', 'take servers that are switched off as well', false)
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  gatehouse import                                  what is there, and what would become of it\n' +
        '  gatehouse import cursor claude-desktop --save mcp/   write manifests, then: gatehouse dev -f mcp/\n' +
        '  gatehouse import .mcp.json --save mcp/ --resolve-env\n' +
        '  gatehouse import vscode --save mcp/ --target cluster --oidc-config company --audience tools\n' +
        '\nExit codes: 0 all taken, 1 something is not, 2 wrong usage or a file that cannot be read.',
    )
    .action(async (words: string[], options: ImportOptions, command: Command) => {
      refuseIdle(command, [
        ['force', options.save !== undefined, 'is for --save'],
        ['oidcConfig', options.audience !== undefined, 'needs --audience: without both the server is open'],
        [
          'audience',
          options.oidcConfig !== undefined,
          'needs --oidc-config: without both the server is open',
        ],
        ['as', words.length > 0, 'is for files that are named'],
      ])
      const { importServers } = await import('./import.ts')
      process.exitCode = await importServers(words, options)
    })
  addSubcommands(command)
}
