/** Adds the commands `gatehouse up`, `down`, `status` and `restart`. */
import { type Command, Option } from 'commander'
import { invalidConfig } from '../../../schemas/index.ts'
import { variables } from '../../config/index.ts'
import { runningServers } from '../../toolkit/targets/running.ts'
import { NamedArgument } from '../../toolkit/terminal/command.ts'
import { collect, parsePort, parseSeconds, refuseIdle } from '../../toolkit/terminal/options.ts'
import type { DownOptions } from './down.ts'
import type { UpOptions } from './up.ts'
import { addUserCommand } from './identity/user-command.ts'

/** Collects the names in a comma-separated list. The option is repeatable. */
function collectNames(value: string, previous: readonly string[]): string[] {
  const names = value.split(',').map((name) => name.trim())
  return [...previous, ...names.filter((name) => name !== '')]
}

export function addUpCommand(program: Command): void {
  const up = program
    .command('up')
    .summary('put the servers configured in all MCP clients behind one address')
    .description(
      'Finds the servers in the files of Claude Desktop, Claude Code, Cursor, VS Code and other clients, and runs them\n' +
        'behind one address on this machine. Each client’s file then contains one entry instead of its servers. The files\n' +
        'of projects stay unchanged. Ctrl-C or "gatehouse down" restores every file.',
    )
    .option('--only <names>', 'run only these servers; comma-separated, repeatable', collectNames, [])
    .option(
      '--except <names>',
      'leave these servers in their clients; comma-separated, repeatable',
      collectNames,
      [],
    )
    .option(
      '--from <client|file>',
      'use only the servers of this client or file; repeatable (default: all clients on this machine)',
      collect,
      [],
    )
    .option('--connect <client>', 'also connect a client without servers; repeatable', collect, [])
    .option('-y, --yes', 'do not ask for confirmation before changing files', false)
    .option('--dry-run', 'show the changes without making them; values in the files stay hidden', false)
    .option('--background', 'run in the background until "gatehouse down"', false)
    .option(
      '--at-login',
      'run in the background, and start again at each login (alpha on macOS and Windows)',
      false,
    )
    .option(
      '-p, --port <number>',
      'port to listen on (default: 4483, or a free port if it is in use)',
      parsePort,
    )
    .option(
      '--start-timeout <seconds>',
      'skip a server that has not responded after this time',
      parseSeconds,
      120,
    )
    .option(
      '--while-running',
      'change a client’s file even if the client is running and may overwrite it',
      false,
    )
    .option(
      '--login [issuer]',
      'require a login, at the built-in identity provider or at this issuer, from all programs except this user’s clients',
    )
    .option('--login-client-id <id>', 'OAuth client id registered with the issuer')
    .option(
      '--login-client-secret-file <file>',
      `file with the OAuth client secret, instead of the variable ${variables.loginClientSecret.name}`,
    )
    .option(
      '--login-allow <account>',
      'email address that may sign in at the issuer, @ followed by a domain, or * for every account; repeatable',
      collect,
      [],
    )
    .option('--public-url <url>', 'https URL at which a tunnel publishes the address; requires --login')
    .option('--share', 'print how a colleague can connect; requires --login', false)
    .option('-v, --verbose', 'print the output of the servers', false)
    .option('--json', 'print the result as JSON', false)
    .addOption(new Option('--resume', 'repeat the confirmed choices').hideHelp().default(false))
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  gatehouse up --dry-run                 show which servers run and which files change\n' +
        '  gatehouse up                           run until Ctrl-C\n' +
        '  gatehouse up --background --yes        run until gatehouse down\n' +
        '  gatehouse up --from cursor --except github\n' +
        '  gatehouse up --login --share           let a colleague sign in\n' +
        '\nExit codes: 0 all servers run (or the foreground run was stopped), 1 a server or a client was skipped,\n' +
        '2 invalid usage, or another instance is running.',
    )
    .action(async (options: UpOptions, command: Command) => {
      refuseIdle(command, [
        ['yes', !options.dryRun, 'has no effect with --dry-run'],
        ['background', !options.dryRun, 'has no effect with --dry-run'],
        ['atLogin', !options.dryRun, 'has no effect with --dry-run'],
        ['startTimeout', !options.dryRun, 'has no effect with --dry-run'],
        ['whileRunning', !options.dryRun, 'has no effect with --dry-run'],
        ['background', !options.atLogin, 'has no effect with --at-login'],
        [
          'verbose',
          !options.background && !options.atLogin,
          'has no effect in the background; see gatehouse logs',
        ],
      ])
      if (options.json && !options.yes && !options.dryRun && !options.resume)
        throw invalidConfig('--json: requires --yes or --dry-run')
      const { runUp } = await import('./up.ts')
      process.exitCode = await runUp(options)
    })
  addUserCommand(up)
}

export function addDownCommand(program: Command): void {
  program
    .command('down')
    .summary('stop "gatehouse up" and restore the clients’ files')
    .description(
      'Stops "gatehouse up", restores every client’s file byte for byte, and removes the autostart at login. In a file\n' +
        'that has changed since, only the gateway’s entry is removed and missing servers are added back.',
    )
    .option(
      '--while-running',
      'restore a client’s file even if the client is running and may overwrite it',
      false,
    )
    .option('--json', 'print the result as JSON', false)
    .addHelpText('after', '\nExit codes: 0 done, 1 a file could not be restored.')
    .action(async (options: DownOptions) => {
      const { runDown } = await import('./down.ts')
      process.exitCode = await runDown(options)
    })
}

export function addStatusCommand(program: Command): void {
  program
    .command('status')
    .summary('show the servers that "gatehouse up" runs')
    .description(
      'Shows the state of each server behind "gatehouse up", its address, its console, and servers that were added to\n' +
        'clients since. For a cluster, see "gatehouse cluster status".',
    )
    .option('--json', 'print the result as JSON', false)
    .addHelpText(
      'after',
      '\nExit codes: 0 every server is ready, 1 a server is not ready, or "gatehouse up" is not running.',
    )
    .action(async (options: { json: boolean }) => {
      const { showStatus } = await import('./status.ts')
      process.exitCode = await showStatus(options)
    })
}

/** Returns the names of the servers that `gatehouse up` runs. Only these servers require a token. */
function restartableNames(): readonly string[] {
  const guarded = runningServers().filter(({ token }) => token !== undefined)
  return [...new Set(guarded.map(({ name }) => name))]
}

export function addRestartCommand(program: Command): void {
  program
    .command('restart')
    .summary('restart a server that "gatehouse up" runs')
    .description('Stops and starts one server behind "gatehouse up". The other servers keep running.')
    .addArgument(
      new NamedArgument('[NAME]', 'name of the server (required); see gatehouse status', restartableNames),
    )
    .addHelpText(
      'after',
      '\nExample:\n  gatehouse restart github\n\nExit codes: 0 restarted, 2 no server has this name.',
    )
    .action(async (name: string | undefined) => {
      const { restartServer } = await import('./status.ts')
      process.exitCode = await restartServer(name)
    })
}
