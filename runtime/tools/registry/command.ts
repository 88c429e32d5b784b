/** Adds `gatehouse add`, which turns a registry's entry for a server into manifests. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { invalidConfig } from '../../../schemas/index.ts'
import { refuseIdle } from '../../toolkit/terminal/options.ts'
import { exitCode, printError } from '../../toolkit/terminal/output.ts'
import { forTerminal } from '../../toolkit/terminal/plain-text.ts'
import type { RegistryOptions } from './add.ts'
import { EntryRejected } from './errors.ts'
import type { InputValues } from './inputs.ts'
import { sources } from './target.ts'

interface CommandOptions extends RegistryOptions {
  readonly update: boolean
  readonly check: boolean
}

export function addAddCommand(program: Command): void {
  program
    .command('add')
    .summary('add an MCP server from a registry to manifests')
    .description(
      'Finds a server in an MCP registry and shows what it runs or connects to, the secrets that it needs, and a diff. With\n' +
        '-o, writes its manifest and registry.lock. Does not start or download the server.',
    )
    .argument(
      '[NAME[@VERSION]]',
      'server, such as io.github.user/weather (default: the locked or the latest version)',
    )
    .option(
      '--registry <url>',
      'MCP registry to search (default: the registry in registry.lock, or https://registry.modelcontextprotocol.io)',
    )
    .option('--registry-file <file>', 'JSON file that mirrors a registry; searched before the registry')
    .option('--bearer-token-file <file>', 'file that contains a bearer token for --registry')
    .option('--offline', 'use only --registry-file', false)
    .option(
      '-o, --output <folder>',
      'folder for the manifests and registry.lock (default: show the plan only)',
    )
    .option('--name <name>', 'name of the object and its file (default: derived from NAME)')
    .option('--group <name>', 'group of the server (default: the group in the folder, or servers)')
    .addOption(
      new Option(
        '--source <source>',
        'remote or package type to use (default: the remote, or the first usable package)',
      ).choices(sources),
    )
    .option(
      '--set <input=value>',
      'value of an input; its name alone selects a flag, or puts the value in the Secret; repeatable',
      collectInput,
      new Map(),
    )
    .option('--allow-private', 'allow a remote with a private address, or without https', false)
    .option(
      '--update',
      'move the servers in registry.lock, or NAME, to the latest or the named version',
      false,
    )
    .option(
      '--check',
      'report servers in registry.lock whose entry was changed or deleted, or is missing; write nothing',
      false,
    )
    .option('--dry-run', 'show the plan and the diff without writing', false)
    .option('--force', 'replace manifests that exist with different contents', false)
    .addOption(new Option('--format <format>', 'output format').choices(['text', 'json']).default('text'))
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  gatehouse add io.github.user/weather                     show what the server runs and needs\n' +
        '  gatehouse add io.github.user/weather@1.2.0 -o mcp/       write mcp/weather.yaml and mcp/registry.lock\n' +
        '  gatehouse add com.acme/crm -o mcp/ --registry https://registry.acme.example --set region=eu\n' +
        '  gatehouse add --update -o mcp/                           move all servers to their latest version\n' +
        '  gatehouse add --update io.github.user/weather@1.1.0 -o mcp/\n' +
        '  gatehouse add --check -o mcp/ --offline --registry-file mirror.json\n' +
        '\nExit codes: 0 done; 1 the entry is missing, deleted, changed or rejected; 2 invalid usage, missing inputs, or an\n' +
        'unreadable file or registry.',
    )
    .action(async (name: string | undefined, options: CommandOptions, command: Command) => {
      refuseUnusable(name, options, command)
      try {
        process.exitCode = await run(name, options)
      } catch (error) {
        if (!(error instanceof EntryRejected)) throw error
        printError(`Error: ${forTerminal(error.message)}`)
        process.exitCode = exitCode.failed
      }
    })
}

function refuseUnusable(name: string | undefined, options: CommandOptions, command: Command): void {
  const { update, check, output, offline, registryFile } = options
  if (update && check) throw invalidConfig('--check: cannot be combined with --update')
  if (name === undefined && !update && !check) throw invalidConfig('NAME is missing')
  if ((update || check) && output === undefined)
    throw invalidConfig(`${update ? '--update' : '--check'}: requires -o with the folder of registry.lock`)
  if (offline && registryFile === undefined) throw invalidConfig('--offline: requires --registry-file')
  if (options.bearerTokenFile !== undefined && options.registry === undefined)
    throw invalidConfig('--bearer-token-file: requires --registry with the registry that accepts the token')
  const isAdd = !update && !check
  refuseIdle(command, [
    ['name', isAdd, 'has no effect with --update or --check'],
    ['group', isAdd, 'has no effect with --update or --check'],
    ['source', isAdd, 'has no effect with --update or --check'],
    ['set', isAdd || (update && name !== undefined), 'requires NAME, and has no effect with --check'],
    ['allowPrivate', isAdd, 'has no effect with --update or --check'],
    ['force', output !== undefined && !check, 'has no effect without -o, or with --check'],
    ['dryRun', !check, 'has no effect with --check, which writes nothing'],
  ])
}

async function run(name: string | undefined, options: CommandOptions): Promise<number> {
  const { output } = options
  if (output !== undefined && (options.update || options.check)) {
    const { updateServers, checkServers } = await import('./maintain.ts')
    return (options.update ? updateServers : checkServers)(name, { ...options, output })
  }
  const { addServer } = await import('./add.ts')
  return addServer(name ?? '', options)
}

function collectInput(text: string, before: InputValues): InputValues {
  // An argument's name can begin with dashes, but contains no equals sign.
  const [, name = '', value] = /^([^=]+)(?:=(.*))?$/s.exec(text) ?? []
  if (name === '') throw new InvalidArgumentError('Must be INPUT=VALUE.')
  const values = value === undefined ? [] : [value]
  return new Map([...before, [name, [...(before.get(name) ?? []), ...values]]])
}
