/** Resolves the locations of a client's files. Pure: the caller describes the machine and lists folders. */
import { posix, win32 } from 'node:path'
import type { ClientRow, FileRow, Platform, FileScope } from './client-row.ts'
import { type ClientId, clientRow } from './clients.ts'

/** The facts about a machine that paths depend on. */
export interface Host {
  readonly platform: Platform
  readonly home: string
  /** Absolute path of the project's folder. */
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** Returns the names of the entries in a folder. Empty when the folder does not exist. */
  readonly list: (folder: string) => readonly string[]
}

/** A location of a client's server map. */
export interface Location {
  readonly client: ClientId
  readonly scope: FileScope
  /** Profile id for the `profile` scope. */
  readonly profile: string | undefined
  readonly file: string
  /** Keys on the path from the document's root to the server map. */
  readonly key: readonly string[]
  readonly row: FileRow
}

/** Returns all of a client's locations, with the preferred location for each scope first. */
export function locationsOf(id: ClientId, host: Host): readonly Location[] {
  const client: ClientRow = clientRow(id)
  return client.files
    .filter(({ on }) => !on || on.includes(host.platform))
    .flatMap((row) =>
      expand(row.path, host).map(({ file, star }) => ({
        client: id,
        scope: row.scope,
        profile: row.scope === 'profile' ? star : undefined,
        file,
        key: (row.key ?? client.key).map((name) => (name === '{cwd}' ? host.cwd : name)),
        row,
      })),
    )
}

function expand(template: string, host: Host): readonly { file: string; star: string | undefined }[] {
  const path = host.platform === 'win32' ? win32 : posix
  const filled = fill(template, host)
  const at = filled.indexOf('*')
  if (at < 0) return [{ file: path.normalize(filled), star: undefined }]
  const slash = filled.lastIndexOf('/', at)
  const next = filled.indexOf('/', at)
  const [before = '', after = ''] = filled.slice(slash + 1, next).split('*')
  return host
    .list(path.normalize(filled.slice(0, slash)))
    .filter(
      (name) =>
        name.startsWith(before) && name.endsWith(after) && name.length > before.length + after.length - 1,
    )
    .toSorted((a, b) => (a < b ? -1 : 1))
    .map((name) => ({
      file: path.normalize(`${filled.slice(0, slash + 1)}${name}${filled.slice(next)}`),
      star: name,
    }))
}

/** Replaces placeholders in braces only once, because a value can contain braces. */
function fill(template: string, host: Host): string {
  return template.replaceAll(/\{([^{}]+)\}/g, (_all, name: string) => {
    const [, variable, below = ''] = /^\$(\w+):(.*)$/.exec(name) ?? []
    return variable === undefined ? folder(name, host) : (set(host.env, variable) ?? `${host.home}/${below}`)
  })
}

function folder(name: string, host: Host): string {
  const { platform, home, cwd, env } = host
  const appData = set(env, 'APPDATA') ?? `${home}/AppData/Roaming`
  const config = set(env, 'XDG_CONFIG_HOME') ?? `${home}/.config`
  const appSupport = `${home}/Library/Application Support`
  const programs = { darwin: appSupport, linux: config, win32: appData }[platform]
  const folders: Readonly<Record<string, string>> = {
    home,
    cwd,
    config,
    appSupport,
    appData,
    localAppData: set(env, 'LOCALAPPDATA') ?? `${home}/AppData/Local`,
    vscodeUser: `${programs}/Code/User`,
    vscodeInsidersUser: `${programs}/Code - Insiders/User`,
  }
  const found = folders[name]
  if (found === undefined) throw new RangeError(`a path contains the unknown folder ${name}`)
  return found
}

/**
 * An empty variable is treated as unset. A relative value is also treated as unset, because it would depend on the
 * working folder.
 */
function set(env: Host['env'], name: string): string | undefined {
  const value = env[name]
  return value !== undefined && /^([/\\]|[A-Za-z]:)/.test(value) ? value : undefined
}
