/**
 * The servers that `gatehouse dev` and `gatehouse run` run on this machine, by name: each session has a file of them in its
 * folder for temporary files. Only folders of this user count: others may make some of the same name there.
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

/** What a session says of a workload. */
interface Workload {
  readonly parent: LocalObject
  readonly phase: string
  readonly port?: number
}

/** The file of one session: the names and addresses of what is ready. */
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
      // A folder that cannot be written is told where it matters; here only the names are missing.
    }
  }
}

/** The path of its endpoint, as its status has it for clients in a cluster. */
function pathOf({ status }: LocalObject): string {
  const url = status?.['url']
  return typeof url === 'string' && URL.canParse(url) ? new URL(url).pathname : '/mcp'
}

/** Those of the newest session first. */
export function runningServers(): readonly RunningServer[] {
  return sessionFolders(prefixes).flatMap(({ folder }) => serversIn(folder))
}

/** Folders of sessions of this user, newest first. */
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

/** Removes what sessions have left that were killed: rendered files, with the Secrets in them, and output. */
export function removeAbandoned(): void {
  for (const { folder } of sessionFolders(prefixes)) {
    try {
      const content: unknown = JSON.parse(readFileSync(join(folder, fileName), 'utf8'))
      if (isFields(content) && !isRunning(content['pid'])) rmSync(folder, { recursive: true, force: true })
    } catch {
      // Without the file nobody knows whose it is: it may be starting.
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
