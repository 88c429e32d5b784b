/**
 * `gatehouse import [CLIENT|FILE]…`: what MCP clients have, as manifests.
 */
import { type Command, Option } from 'commander'
import type { ImportOptions } from '../clients/import.ts'
import { refuseIdle } from '../given.ts'
import { addImportToolhiveCommand } from './import-toolhive.ts'
import { collect } from './validate.ts'

export function addImportCommand(program: Command): void {
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
      const { importServers } = await import('../clients/import.ts')
      process.exitCode = await importServers(words, options)
    })
  addImportToolhiveCommand(command)
}
