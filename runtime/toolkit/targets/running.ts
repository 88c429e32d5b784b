/**
 * Names and URLs of the servers that `gatehouse dev` and `gatehouse run` run on this machine. Each session writes them
 * to a file in its temporary folder. Ignores other users' folders, because they can create folders with the same names.
 */
import { lstatSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isFields } from '../../../schemas/index.ts'
import type { LocalObject } from '../manifests/objects.ts'

export interface RunningServer {
  readonly name: string
  readonly url: string
}

interface Session {
  readonly folder: string
  readonly startedAt: number
}

const fileName = 'servers.json'
const prefixes = ['gatehouse-dev-', 'gatehouse-run-'] as const
/** The servers of `gatehouse up` require a token, so they are not listed. */
const allPrefixes = [...prefixes, 'gatehouse-up-'] as const

/** A workload's state in a session. */
interface Workload {
  readonly parent: LocalObject
  readonly phase: string
  readonly port?: number
}

/** Writes the file for one session, with the names and addresses of its ready servers. */
export class RunningNames {
  readonly #folder: string
  #written = ''

  constructor(folder: string) {
    this.#folder = folder
  }

  update(workloads: readonly Workload[]): void {
    const servers = workloads.flatMap(({ parent, phase, port }) =>
      phase === 'ready' && port !== undefined
        ? [{ name: parent.metadata.name, url: `http://127.0.0.1:${port}${pathOf(parent)}` }]
        : [],
    )
    const text = JSON.stringify({ pid: process.pid, servers })
    if (text === this.#written) return
    this.#written = text
    const path = join(this.#folder, fileName)
    try {
      writeFileSync(`${path}.new`, text, { mode: 0o600 })
      renameSync(`${path}.new`, path)
    } catch {
      // The session itself reports a folder that is not writable. Without the file, only the names are unavailable.
    }
  }
}

/** Returns the endpoint's path, taken from the status. */
function pathOf({ status }: LocalObject): string {
  const url = status?.['url']
  return typeof url === 'string' && URL.canParse(url) ? new URL(url).pathname : '/mcp'
}

/** Returns all running servers, starting with those in the newest session. */
export function runningServers(): readonly RunningServer[] {
  return sessionFolders(prefixes).flatMap(({ folder }) => serversIn(folder))
}

/** Returns this user's session folders, newest first. */
export function sessionFolders(names: readonly string[]): readonly Session[] {
  const own = process.getuid?.()
  return readdirSync(tmpdir())
    .filter((entry) => names.some((name) => entry.startsWith(name)))
    .map((entry) => join(tmpdir(), entry))
    .flatMap((folder) => {
      const stat = lstatSync(folder, { throwIfNoEntry: false })
      const isOurs = stat?.isDirectory() === true && (own === undefined || stat.uid === own)
      return stat && isOurs ? [{ folder, startedAt: stat.birthtimeMs }] : []
    })
    .toSorted((a, b) => b.startedAt - a.startedAt)
}

function serversIn(folder: string): readonly RunningServer[] {
  try {
    const content: unknown = JSON.parse(readFileSync(join(folder, fileName), 'utf8'))
    if (!isFields(content) || !Array.isArray(content['servers']) || !isRunning(content['pid'])) return []
    return content['servers'].filter(
      (one: unknown): one is RunningServer =>
        isFields(one) && typeof one['name'] === 'string' && typeof one['url'] === 'string',
    )
  } catch {
    return []
  }
}

/**
 * Removes the folders left behind by killed sessions, including their output and their rendered files, which contain
 * Secrets.
 */
export function removeAbandoned(): void {
  for (const { folder } of sessionFolders(allPrefixes)) {
    try {
      const content: unknown = JSON.parse(readFileSync(join(folder, fileName), 'utf8'))
      if (isFields(content) && !isRunning(content['pid'])) rmSync(folder, { recursive: true, force: true })
    } catch {
      // Keep a folder that does not have the file, because its session may be starting.
    }
  }
}

function isRunning(pid: unknown): boolean {
  if (typeof pid !== 'number') return false
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
