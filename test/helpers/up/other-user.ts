/** Another user of the machine, by user id. No account is created. */
import { spawnSync } from 'node:child_process'
import { chmodSync, lstatSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'

const id = 54_321

/** Reason to skip tests that need a second user. */
export const missingUser: string | false =
  process.getuid?.() !== 0
    ? 'needs root, to run programs as another user'
    : runAsOther(process.execPath, ['--eval', '']).status !== 0 &&
      'another user cannot run this Node.js: its folder is not readable'

/** Runs a program as the other user to its end. Inherits no variables. */
export function runAsOther(
  command: string,
  args: readonly string[],
  { input = '', env = {} }: { readonly input?: string; readonly env?: NodeJS.ProcessEnv } = {},
) {
  return spawnSync(command, args, { uid: id, gid: id, encoding: 'utf8', input, env, timeout: 60_000 })
}

/** Makes a home folder readable for all users, as on machines without private home folders. Skips private files. */
export function publishHome(folder: string, isPrivate: (path: string) => boolean): void {
  // The folder for temporary files may be private.
  for (let above = dirname(folder); above !== dirname(above); above = dirname(above))
    chmodSync(above, lstatSync(above).mode | 0o011)
  publish(folder, isPrivate)
}

function publish(folder: string, isPrivate: (path: string) => boolean): void {
  chmodSync(folder, 0o755)
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    if (isPrivate(path)) continue
    const stats = lstatSync(path)
    if (stats.isDirectory()) publish(path, isPrivate)
    else if (stats.isFile()) chmodSync(path, 0o644)
  }
}
