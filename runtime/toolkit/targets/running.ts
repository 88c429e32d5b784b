/**
 * Names and URLs of the servers that `gatehouse up`, `run` and `dev` run on this machine. Each session writes this
 * information to a file in its temporary folder. Ignores other users' folders, because they can create folders with the
 * same names.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isFields, nearest } from '../../../schemas/index.ts'
import { type Cause, causeFix, causeText, Secret } from '../../observe/index.ts'
import type { LocalObject } from '../manifests/objects.ts'
import { oneLine, withSuggestion } from '../terminal/plain-text.ts'
import { isRunning, sessionFolders, sessionPrefixes } from './sessions.ts'
import { skippedServer } from './skipped.ts'
import type { ProxySettings } from '../../config/index.ts'

export interface RunningServer {
  readonly name: string
  readonly kind: string
  readonly url: string
  /** URL of a virtual server's console, with its launch token. */
  readonly consoleUrl?: string
  /** Reason why the server does not respond, with the next step. */
  readonly failure?: { readonly text: string; readonly fix: string }
  /** Process of the session that runs the server. */
  readonly session: number
  /**
   * Key that lets the user start logins at the server's backends. Undefined in a session that an older version started.
   */
  readonly signInKey?: string | undefined
  /** Token that the server requires from local programs. Undefined if the server requires no token. */
  readonly token?: string | undefined
}

/** The secrets that this user's programs need to use a session. */
interface SessionSecrets {
  readonly signInKey: string
  readonly token: string | undefined
}

const fileName = 'servers.json'

/** A workload's state in a session. */
interface Workload {
  readonly parent: LocalObject
  readonly phase: string
  readonly port?: number
  readonly consoleUrl?: string | undefined
  readonly cause?: Cause | undefined
}

/** Writes the file for one session, with the names and addresses of its servers. Ready servers come first. */
export class RunningNames {
  readonly #folder: string
  readonly #secrets: SessionSecrets
  #written = ''

  constructor(folder: string, secrets: SessionSecrets) {
    this.#folder = folder
    this.#secrets = secrets
  }

  update(workloads: readonly Workload[]): void {
    const open = workloads.flatMap((workload) =>
      workload.port === undefined ? [] : [serverOf(workload, workloads)],
    )
    const servers = open.toSorted((a, b) => Number(b.ready) - Number(a.ready))
    const text = JSON.stringify({ pid: process.pid, ...this.#secrets, servers })
    if (text === this.#written) return
    this.#written = text
    const path = join(this.#folder, fileName)
    try {
      writeFileSync(`${path}.new`, text, { mode: 0o600 })
      renameSync(`${path}.new`, path)
    } catch {
      // The session itself reports a folder that is not writable. Without the file, other commands cannot find the
      // servers by name.
    }
  }
}

function serverOf({ parent, phase, port = 0, consoleUrl }: Workload, workloads: readonly Workload[]) {
  const { kind, metadata } = parent
  const cause = workloads.find((other) => other.parent.metadata.uid === metadata.uid && other.cause)?.cause
  return {
    name: metadata.name,
    kind,
    url: `http://127.0.0.1:${port}${pathOf(parent)}`,
    ready: phase === 'ready',
    ...(consoleUrl !== undefined && { consoleUrl }),
    ...(cause && { failure: { text: causeText(cause), fix: causeFix(cause, metadata.name) } }),
  }
}

/** Returns the endpoint's path, taken from the status. */
function pathOf({ status }: LocalObject): string {
  const url = status?.['url']
  return typeof url === 'string' && URL.canParse(url) ? new URL(url).pathname : '/mcp'
}

/** Returns all running servers, starting with those in the newest session. */
export function runningServers(): readonly RunningServer[] {
  return sessionFolders(sessionPrefixes).flatMap(({ folder }) => serversIn(folder))
}

/** Returns the running server with this name in the newest session. */
export function runningServer(name: string): RunningServer | undefined {
  return runningServers().find((server) => server.name === name)
}

/** Returns the running server with this address. */
export function runningServerAt(address: URL): RunningServer | undefined {
  return runningServers().find(({ url }) => new URL(url).origin === address.origin)
}

/** Returns the headers for requests to a running server. */
export function headersFor({ token }: Pick<RunningServer, 'token'>): Readonly<Record<string, string>> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` }
}

/** Returns the names of all running servers, without duplicates. */
export function runningNames(kind?: string): readonly string[] {
  const servers = runningServers().filter((server) => kind === undefined || server.kind === kind)
  return [...new Set(servers.map(({ name }) => name))]
}

/** Returns the end of an error message about a missing or unknown name: the closest name, and all available names. */
export function runningHint({
  kind,
  wanted,
}: {
  readonly kind?: string
  readonly wanted?: string
} = {}): string {
  const names = runningNames(kind)
  const skipped = wanted === undefined ? undefined : skippedServer(wanted)
  if (skipped && names.length > 0)
    return `gatehouse up skipped ${wanted}: ${oneLine(skipped.why)}; running on this machine: ${names.join(', ')}`
  if (names.length === 0)
    return 'no server is running on this machine; start one with gatehouse up, gatehouse run or gatehouse dev'
  const close = wanted === undefined ? undefined : nearest(wanted, names)
  return withSuggestion(close, `running on this machine: ${names.join(', ')}`)
}

function serversIn(folder: string): readonly RunningServer[] {
  try {
    const content: unknown = JSON.parse(readFileSync(join(folder, fileName), 'utf8'))
    if (!isFields(content) || !Array.isArray(content['servers']) || !isRunning(content['pid'])) return []
    const { pid } = content
    const signInKey = textIn(content['signInKey'])
    const token = textIn(content['token'])
    return content['servers'].flatMap((one: unknown) =>
      isFields(one) && typeof one['name'] === 'string' && typeof one['url'] === 'string'
        ? [{ ...(one as unknown as RunningServer), session: pid as number, signInKey, token }]
        : [],
    )
  } catch {
    return []
  }
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/**
 * Removes the folders left behind by killed sessions, including their output and their rendered files, which contain
 * Secrets.
 */
export function removeAbandoned(): void {
  for (const { folder } of sessionFolders(sessionPrefixes)) {
    try {
      const content: unknown = JSON.parse(readFileSync(join(folder, fileName), 'utf8'))
      if (isFields(content) && !isRunning(content['pid'])) rmSync(folder, { recursive: true, force: true })
    } catch {
      // Keep a folder that does not contain the file, because its session may be starting.
    }
  }
}

/**
 * Returns the settings of a proxy in front of `url`, with the token of the session that runs this server. Returns the
 * settings unchanged if the server requires no token, or if the user has chosen a credential. Each request reads the
 * token again, because every start of `gatehouse up` replaces it.
 */
export function withLocalToken(config: ProxySettings, url: URL): ProxySettings {
  const first = runningServerAt(url)?.token
  if (first === undefined || config.remote.kind !== 'none') return config
  const token = () => new Secret(runningServerAt(url)?.token ?? first)
  return { ...config, remote: { kind: 'bearer', token } }
}
