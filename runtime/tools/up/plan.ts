/** Finds the servers in clients' files, and decides which of them run and which files change. */
import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { invalidConfig, nearest } from '../../../schemas/index.ts'
import { canStart } from '../../config/index.ts'
import {
  type ClientEntry,
  type ClientId,
  clientIds,
  clientRow,
  type Conversion,
  convertEntries,
  type Host,
  isClientId,
  printableName,
  readEntries,
} from '../../toolkit/clients/index.ts'
import { clientNamed, existingLocations, locationFor } from '../../toolkit/client-files/choose.ts'
import { shortPath } from '../../toolkit/client-files/host.ts'
import { readOriginal } from '../../toolkit/client-files/park.ts'
import { type ReferenceLookup, unresolvedNames } from '../../toolkit/client-files/references.ts'
import { readSources } from '../../toolkit/client-files/sources.ts'
import { localEnvironment } from '../../toolkit/local/environment.ts'
import { defaultPort } from '../../toolkit/local/processes/ports.ts'
import { localHooks } from '../../toolkit/local/cluster/cluster.ts'
import type { SkippedServer, UpFile, UpState } from './state.ts'

/** Name of the virtual server. */
export const entranceName = 'gatehouse'

export interface PlanOptions {
  readonly from: readonly string[]
  readonly only: readonly string[]
  readonly except: readonly string[]
  readonly connect: readonly string[]
  readonly port?: number
}

/** A file, and the servers that it would contain without the gateway. */
export interface FoundFile extends UpFile {
  readonly entries: readonly ClientEntry[]
  /** Names of the servers that the gateway's entry currently replaces. */
  readonly parkedNames: readonly string[]
  readonly error: string | undefined
}

export interface UpPlan {
  readonly files: readonly FoundFile[]
  readonly chosen: readonly ClientEntry[]
  readonly skipped: readonly SkippedServer[]
  readonly conversion: Conversion
  readonly targets: readonly UpFile[]
}

/** Reads the files of every client, or the files specified with `--from`. */
export async function findFiles(
  { from }: Pick<PlanOptions, 'from'>,
  host: Host,
  state: UpState,
): Promise<readonly FoundFile[]> {
  const words = from.length > 0 ? from : clientIds.filter((client) => clientRow(client).program)
  const found = await Promise.all(
    words.map(async (word) => {
      if (isClientId(word)) return userFilesOf(word, host).map((file) => readClientFile(file, state))
      const path = resolve(host.cwd, word)
      const known = clientIds.flatMap((client) => userFilesOf(client, host)).find(({ file }) => file === path)
      return known ? [readClientFile(known, state)] : readOtherFile(word, host)
    }),
  )
  return found.flat()
}

/** Returns the files that belong to the user. A project's file may be committed, so it is never changed. */
function userFilesOf(client: ClientId, host: Host): readonly (UpFile & { readonly client: ClientId })[] {
  return existingLocations(client, host).filter(({ scope }) => scope === 'user' || scope === 'profile')
}

export function readClientFile(
  { client, scope, profile, file, key }: UpFile & { readonly client: ClientId },
  state: UpState,
): FoundFile {
  const base = { client, scope, profile, file, key }
  try {
    const { text, parked } = readOriginal({ client, file }, state.journal)
    const { entries } = readEntries({ file, text: text.text, client, scope, profile })
    return {
      ...base,
      // Claude Code's file also contains the servers of individual projects.
      entries: entries.filter(({ source }) => source.scope !== 'local'),
      parkedNames: parked?.entries.map(({ path }) => path.at(-1) ?? '') ?? [],
      error: undefined,
    }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { ...base, entries: [], parkedNames: [], error: message }
  }
}

async function readOtherFile(word: string, host: Host): Promise<readonly FoundFile[]> {
  return (await readSources([word], host, undefined)).map(({ client = 'plain', file, entries, error }) => {
    if (error !== undefined) throw invalidConfig(`--from ${word}: ${error}`)
    return { client, scope: 'file', file, key: [], entries, parkedNames: [], error }
  })
}

/**
 * Returns the files to which the gateway's entry is added: the files of clients whose servers were chosen, and the
 * files of clients in `--connect`.
 */
function targetsOf(
  files: readonly FoundFile[],
  chosen: readonly ClientEntry[],
  { connect }: PlanOptions,
  host: Host,
): readonly UpFile[] {
  const used = files.filter(
    ({ scope, entries }) => scope !== 'file' && entries.some((entry) => chosen.includes(entry)),
  )
  const named = connect.map((word) => {
    const { client, scope, profile, file, key } = locationFor(clientNamed(word), { scope: 'user' }, host)
    if (!existsSync(dirname(file)))
      throw invalidConfig(
        `--connect: folder ${shortPath(dirname(file), host)} does not exist; is ${clientRow(client).title} installed?`,
      )
    return { client, scope, profile, file, key }
  })
  const all: readonly UpFile[] = [...used, ...named]
  return all
    .filter(({ file }, index) => all.findIndex((other) => other.file === file) === index)
    .map(({ client, scope, profile, file, key }) => ({ client, scope, profile, file, key }))
}

/** Applies `--only` and `--except`, and omits servers that cannot run. */
export async function makePlan(
  files: readonly FoundFile[],
  options: PlanOptions,
  host: Host,
  lookup: ReferenceLookup,
): Promise<UpPlan> {
  const { port = defaultPort } = options
  const entries = selectEntries(
    files.flatMap((file) => file.entries.filter(({ target }) => !isOwnAddress(target, port))),
    options,
  )
  const reasons = new Map(
    entries.flatMap((entry) => {
      const why = whyNotRunnable(entry, host, lookup)
      return why === undefined ? [] : [[entry, why] as const]
    }),
  )
  const conversion = await convertServers(
    entries.filter((entry) => !reasons.has(entry)),
    host,
    lookup,
  )
  for (const { entry, outcome, notes } of conversion.entries) {
    if (outcome === 'not taken' || (outcome === 'off' && entry.target.kind !== 'unusable'))
      reasons.set(entry, outcome === 'off' ? 'it is disabled' : notes.join('; '))
  }
  const chosen = conversion.entries.filter(({ object }) => object !== undefined).map(({ entry }) => entry)
  return {
    files,
    chosen,
    skipped: [...reasons]
      // The same server may be in the files of several clients.
      .filter(([{ name, target }], index, all) => {
        const first = all.findIndex(
          ([other]) => other.name === name && isDeepStrictEqual(other.target, target),
        )
        return first === index
      })
      .map(([{ name, source }, why]) => ({ name, file: source.file, why })),
    conversion,
    targets: targetsOf(files, chosen, options, host),
  }
}

/** Converts servers to the manifests that run them. */
export async function convertServers(
  entries: readonly ClientEntry[],
  host: Host,
  lookup: ReferenceLookup,
): Promise<Conversion> {
  const { validate } = await localHooks()
  return convertEntries(entries, {
    group: entranceName,
    description: 'Servers of this user’s MCP clients',
    incoming: { type: 'anonymous' },
    secrets: 'manifest',
    plain: new Set(),
    images: new Map(),
    keepSecretArgs: false,
    includeDisabled: false,
    allowLoopback: true,
    // Names must not change when a second server is added.
    prefixOne: true,
    resolve: lookup,
    home: host.home,
    violationsOf: (manifest) => validate(manifest).violations,
  })
}

function selectEntries(
  entries: readonly ClientEntry[],
  { only, except }: PlanOptions,
): readonly ClientEntry[] {
  const names = [...new Set(entries.map(({ name }) => name))]
  refuseUnknown('--only', only, names)
  refuseUnknown('--except', except, names)
  return entries.filter(({ name }) => (only.length === 0 || only.includes(name)) && !except.includes(name))
}

/** True for an entry that calls the gateway itself, such as an entry that `gatehouse client add` wrote. */
function isOwnAddress(target: ClientEntry['target'], port: number): boolean {
  const [url, ...rest] = target.kind === 'remote' ? target.url : []
  if (typeof url !== 'string' || rest.length > 0 || !URL.canParse(url)) return false
  const { hostname, port: own } = new URL(url)
  return ['localhost', '127.0.0.1', '[::1]'].includes(hostname) && own === String(port)
}

/** Throws INVALID_CONFIG for an unknown name, because its option would have no effect. */
function refuseUnknown(flag: string, given: readonly string[], names: readonly string[]): void {
  const unknown = given.find((name) => !names.includes(name))
  if (unknown === undefined) return
  const close = nearest(unknown, names)
  const meant = close === undefined ? '.' : `; did you mean ${printableName(close)}?`
  throw invalidConfig(
    `${flag}: unknown server ${unknown}${meant} Servers: ${names.map(printableName).join(', ') || 'none'}`,
  )
}

function whyNotRunnable(entry: ClientEntry, host: Host, lookup: ReferenceLookup): string | undefined {
  const { target, enabled } = entry
  if (!enabled || target.kind === 'unusable') return undefined
  const missing = [...new Set(unresolvedNames(entry, lookup))]
  if (missing.length > 0) return `${missing.map(printableName).join(', ')} is not set`
  if (target.kind !== 'program') return undefined
  const [program, ...rest] = target.command
  if (typeof program !== 'string' || rest.length > 0) return undefined
  // A server whose entry sets PATH searches the folders in that variable.
  if (target.env.has('PATH')) return undefined
  const { home, platform } = host
  if (canStart(program, { env: localEnvironment().baseEnv, cwd: home, platform })) return undefined
  return /[/\\]/.test(program) && existsSync(program)
    ? `${program} is not executable`
    : `${printableName(program)} is not installed`
}
