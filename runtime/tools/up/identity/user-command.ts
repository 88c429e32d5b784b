/** Adds `gatehouse up user`, which manages the users of the built-in identity provider. */
import type { Command } from 'commander'

export function addUserCommand(up: Command): void {
  const user = up
    .command('user')
    .summary('manage the users of "gatehouse up --login"')
    .description(
      'Manages the users of the running "gatehouse up --login". "gatehouse down" does not remove the users.',
    )
  user
    .command('add')
    .summary('print a one-time link for a new user, or for a user without access')
    .description(
      'Prints a link to a page where the user sets up a passkey or a password. The link works once, within 24 hours. The user’s earlier\n' +
        'passkey or password works until the link is used.',
    )
    .argument('<name>', 'name of the user')
    .addHelpText(
      'after',
      '\nExample:\n  gatehouse up user add alice\n\nExit codes: 0 added, 2 invalid usage.',
    )
    .action(async (name: string) => (await import('./user-requests.ts')).addUser(name))
  user
    .command('list')
    .summary('list the users')
    .description('Lists the users, and whether they have a passkey or a password.')
    .option('--json', 'print the result as JSON', false)
    .addHelpText('after', '\nExit codes: 0 done, 2 gatehouse up --login is not running.')
    .action(async ({ json }: { readonly json: boolean }) =>
      (await import('./user-requests.ts')).listUsers({ json }),
    )
  user
    .command('remove')
    .summary('remove a user and end the logins of all users')
    .description(
      'Removes a user. The logins of all users end at once, and the other users must sign in again.',
    )
    .argument('<name>', 'name of the user')
    .addHelpText('after', '\nExit codes: 0 removed, 2 no user has this name.')
    .action(async (name: string) => (await import('./user-requests.ts')).removeUser(name))
}
