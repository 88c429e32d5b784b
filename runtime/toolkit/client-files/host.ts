/** This machine, as the paths of clients depend on it; and where our own records of their files are. */
import { readdirSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { join, resolve } from 'node:path'
import type { Host, Platform } from '../clients/index.ts'
import { environment, readVariable, variables } from '../../config/index.ts'

export function thisHost(cwd = process.cwd()): Host {
  const env = environment()
  return {
    platform: platformOf(process.platform),
    // The variable wins, as it does for every client; an empty one hides the account's own folder from homedir().
    home: env['HOME'] || homedir() || userInfo().homedir,
    cwd: resolve(cwd),
    env,
    list: (folder) => {
      try {
        return readdirSync(folder)
      } catch {
        return []
      }
    },
  }
}

function platformOf(platform: string): Platform {
  if (platform === 'darwin' || platform === 'win32') return platform
  // Other systems follow the same conventions.
  return 'linux'
}

/** The folder of records and backups; only its owner may look into it. */
export function recordsFolder({ home, env }: Host): string {
  const base = readVariable(env, variables.stateHome) ?? join(home, '.local/state')
  return join(readVariable(env, variables.stateDir) ?? join(base, 'gatehouse'), 'clients')
}

/** A path as people write it: with `~` for the home folder. */
export function shortPath(path: string, { home }: Host): string {
  return path === home || path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path
}
