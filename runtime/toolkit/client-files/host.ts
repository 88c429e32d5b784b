/** Describes the host that client paths depend on, and the folder that contains our records. */
import { readdirSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { join, resolve } from 'node:path'
import type { Host, Platform } from '../clients/index.ts'
import { environment, readVariable, variables } from '../../config/index.ts'

export function thisHost(cwd = process.cwd()): Host {
  const env = environment()
  return {
    platform: platformOf(process.platform),
    // HOME takes precedence, as in every client. homedir() returns '' for an empty HOME.
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
  // All other systems use the same conventions.
  return 'linux'
}

/** Returns the folder for records and backups. Only the folder's owner can read it. */
export function recordsFolder(host: Host): string {
  return join(stateFolder(host), 'clients')
}

/** Returns the folder for everything that `gatehouse up` stores. Only the folder's owner can read it. */
export function upFolder(host: Host): string {
  return join(stateFolder(host), 'up')
}

function stateFolder({ home, env }: Host): string {
  const base = readVariable(env, variables.stateHome) ?? join(home, '.local/state')
  return readVariable(env, variables.stateDir) ?? join(base, 'gatehouse')
}

/** Abbreviates the home folder to `~`. */
export function shortPath(path: string, { home }: Host): string {
  return path === home || path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path
}
