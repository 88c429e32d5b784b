/** `gatehouse add`: finds a server in a registry, shows what it runs, and writes its manifest and `registry.lock`. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { invalidConfig } from '../../../schemas/index.ts'
import { objectName } from '../../toolkit/clients/index.ts'
import { exitCode, print, printError, printJson } from '../../toolkit/terminal/output.ts'
import { forTerminal, oneLine } from '../../toolkit/terminal/plain-text.ts'
import { readToken } from '../../toolkit/terminal/token-file.ts'
import { type RegistryEntry, serverName, serverVersion } from './entry.ts'
import { EntryRejected } from './errors.ts'
import { type FolderPlan, groupFor, manifestsIn, planFolder, writePlan } from './folder.ts'
import type { InputValues } from './inputs.ts'
import { boundRegistry, type LockRow, namespaceOf, readLock, type RegistryLock } from './lock-file.ts'
import { serverManifests } from './manifest.ts'
import { planObject, planText, type PreparedServer } from './report.ts'
import { RegistryClient, officialRegistry, registryUrl } from './registry-client.ts'
import { imageDigest } from './image-digest.ts'
import { chooseTarget, type ChosenTarget, type SourceName } from './target.ts'
import { isNewer } from './version.ts'

export interface RegistryOptions {
  readonly registry?: string
  readonly registryFile?: string
  readonly bearerTokenFile?: string
  readonly offline: boolean
  readonly output?: string
  readonly name?: string
  readonly group?: string
  readonly source?: SourceName
  readonly set: InputValues
  readonly allowPrivate: boolean
  readonly force: boolean
  readonly dryRun: boolean
  readonly format: 'text' | 'json'
}

export interface ServerRequest {
  readonly name: string
  /** Undefined for the locked version, or for the latest version when there is none. */
  readonly version: string | undefined
}

/** Throws INVALID_CONFIG unless the text is NAME or NAME@VERSION. */
export function parseRequest(text: string): ServerRequest {
  const [, name = '', version] = /^([^@]*)(?:@(.*))?$/s.exec(text) ?? []
  if (name.length < 3 || name.length > 200 || !serverName.test(name))
    throw invalidConfig('NAME: must be a namespace and a name, such as io.github.user/weather')
  if (version !== undefined && !serverVersion.test(version))
    throw invalidConfig('VERSION: must be an exact version, such as 1.2.3')
  return { name, version: version === 'latest' ? undefined : version }
}

export function registryClient(options: RegistryOptions): RegistryClient {
  const { registryFile, offline, bearerTokenFile } = options
  const token = bearerTokenFile === undefined ? undefined : readToken('--bearer-token-file', bearerTokenFile)
  return new RegistryClient({ registryFile, offline, token })
}

/** Returns the exit code. */
export async function addServer(text: string, options: RegistryOptions): Promise<number> {
  const request = parseRequest(text)
  const folder = options.output
  const lock: RegistryLock = folder === undefined ? { namespaces: {}, servers: {} } : readLock(folder)
  const locked = lock.servers[request.name]
  const isLatest = text.endsWith('@latest')
  const version = request.version ?? (isLatest ? undefined : locked?.version)
  const registry = registryFor(request.name, options.registry, lock)
  const entry = await registryClient(options).find(request.name, version, registry)
  refuseChanged(entry, locked)
  if (version === undefined) refuseRollback(entry, locked)
  const prepared = await prepare({ entry, registry, locked, folder, options, isUpdate: false })
  const isWritten = folder !== undefined && !options.dryRun
  if (options.format === 'text') print(forTerminal(planText(prepared)))
  if (isWritten) refuseConflicts(folder, prepared.plan, options)
  const written = isWritten
    ? writePlan(folder, prepared.plan, { before: lock, after: withServer(lock, prepared) })
    : []
  if (options.format === 'json') printJson(planObject(prepared, written))
  else showNext(prepared.plan, { folder, written, isWritten })
  return exitCode.ok
}

/** Returns the registry bound to the namespace, or the given one. Throws INVALID_CONFIG when they differ. */
export function registryFor(name: string, typed: string | undefined, lock: RegistryLock): string {
  const bound = boundRegistry(lock, name) ?? lock.servers[name]?.registry
  const given = typed === undefined ? undefined : registryUrl(typed)
  if (bound !== undefined && given !== undefined && registryUrl(bound) !== given)
    throw invalidConfig(
      `--registry: ${namespaceOf(name)} is bound to ${bound} in registry.lock; edit "namespaces" there to change it`,
    )
  return registryUrl(bound ?? given ?? officialRegistry)
}

/** Throws EntryRejected for a deleted entry, and for one that changed under the locked version. */
export function refuseChanged({ server, status, sha256 }: RegistryEntry, locked: LockRow | undefined): void {
  const name = `${server.name}@${server.version}`
  if (status === 'deleted') throw new EntryRejected(`${name}: the registry marks this version as deleted`)
  if (locked?.version === server.version && locked.entrySha256 !== sha256)
    throw new EntryRejected(
      `${name}: the entry has changed since it was locked, but its version has not; review it, and remove the server from registry.lock to accept it`,
    )
}

/**
 * Throws EntryRejected unless the registry's latest version is the locked one or newer. A registry could otherwise
 * bring back a version with a known vulnerability.
 */
export function refuseRollback({ server }: RegistryEntry, locked: LockRow | undefined): void {
  const { name, version } = server
  if (!locked || locked.version === version || isNewer(version, locked.version)) return
  throw new EntryRejected(
    `${name}: the registry's latest version, ${version}, is not newer than the locked version, ${locked.version}; to accept it, use --update ${name}@${version}`,
  )
}

interface PrepareInput {
  readonly entry: RegistryEntry
  readonly registry: string
  readonly locked: LockRow | undefined
  readonly folder: string | undefined
  readonly options: RegistryOptions
  readonly isUpdate: boolean
}

/** Names whose manifest would replace group.yaml or kustomization.yaml. */
const reservedObjects: ReadonlySet<string> = new Set(['group', 'kustomization'])

export async function prepare(input: PrepareInput): Promise<PreparedServer> {
  const { entry, registry, locked, folder, options, isUpdate } = input
  const { server } = entry
  const existing = folder === undefined ? [] : manifestsIn(folder)
  const object = options.name ?? locked?.object ?? objectName(server.name.slice(server.name.indexOf('/') + 1))
  for (const [flag, value] of [
    ['--name', options.name],
    ['--group', options.group],
  ] as const) {
    if (value !== undefined && value !== objectName(value))
      throw invalidConfig(`${flag}: must be a name of lower-case letters, digits and "-"`)
  }
  if (
    folder !== undefined &&
    locked &&
    locked.object !== object &&
    existsSync(join(folder, `${locked.object}.yaml`))
  )
    throw invalidConfig(
      `--name: ${server.name} already has the name ${locked.object}; remove ${locked.object}.yaml before you rename it`,
    )
  if (reservedObjects.has(object))
    throw invalidConfig(`${object}.yaml: is reserved for another file; use --name to choose another name`)
  const values: InputValues = new Map([...Object.entries(locked?.set ?? {}), ...options.set])
  const allowPrivate = options.allowPrivate || locked?.allowPrivate === true
  // A tag can move, so a locked version keeps its first digest.
  const isPinned = locked?.version === server.version && locked.source === 'oci'
  const pinned = isPinned ? locked.digest : undefined
  const group = groupFor(options.group, locked, existing)
  const chosen = await chooseTarget(server, {
    source: options.source ?? locked?.source,
    values,
    allowPrivate,
    digestOf: async (image) => pinned ?? (await imageDigest(image, { offline: options.offline })),
  })
  refuseInputs(chosen, options.set, server.name)
  const manifests = serverManifests(server, chosen, { object, group })
  const plan = planFolder({ folder: folder ?? '.', manifests, existing, locked, isUpdate })
  return { entry, registry, chosen, plan, object, group, kind: manifests.member.kind, values, allowPrivate }
}

/** Throws INVALID_CONFIG, which lists every missing, invalid and unknown input. */
function refuseInputs({ inputs }: ChosenTarget, typed: InputValues, name: string): void {
  const { missing, problems, known } = inputs
  // A locked input that a later version no longer has is dropped.
  const unknown = [...typed.keys()].filter((input) => !known.has(input))
  const lines = [
    ...missing.map(({ name: input, description }) => {
      const about = description === undefined ? '' : ` (${oneLine(description, 200)})`
      return `${oneLine(input, 256)}: is required; use --set ${oneLine(input, 256)}=VALUE${about}`
    }),
    ...problems.map((problem) => oneLine(problem)),
    ...unknown.map((input) => {
      const names = [...known.keys()].map((one) => oneLine(one, 64)).join(', ')
      const offered =
        names === '' ? `${name} has no inputs` : `${name} has no such input; its inputs are: ${names}`
      return `${oneLine(input, 256)}: ${offered}`
    }),
  ]
  if (lines.length > 0) throw invalidConfig(`--set:\n${lines.join('\n')}`)
}

export function refuseConflicts(folder: string, { conflicts }: FolderPlan, { force }: RegistryOptions): void {
  if (conflicts.length === 0 || force) return
  throw invalidConfig(
    `${folder}: would replace ${conflicts.join(', ')} with different contents; use --force to allow this`,
  )
}

export function withServer(lock: RegistryLock, prepared: PreparedServer): RegistryLock {
  const { entry, registry, chosen, plan, object, values, allowPrivate } = prepared
  const { name, version } = entry.server
  const namespaces =
    boundRegistry(lock, name) === undefined
      ? { ...lock.namespaces, [namespaceOf(name)]: registry }
      : lock.namespaces
  const server: LockRow = {
    version,
    registry,
    entrySha256: entry.sha256,
    source: chosen.source,
    ...(chosen.digest !== undefined && { digest: chosen.digest }),
    object,
    group: prepared.group,
    set: Object.fromEntries([...values].filter(([input]) => chosen.inputs.known.has(input))),
    ...(allowPrivate && { allowPrivate: true }),
    manifestSha256: plan.manifestSha256,
  }
  return { namespaces, servers: { ...lock.servers, [name]: server } }
}

interface Outcome {
  readonly folder: string | undefined
  readonly written: readonly string[]
  readonly isWritten: boolean
}

function showNext({ emptySecrets }: FolderPlan, { folder, written, isWritten }: Outcome): void {
  if (!isWritten || folder === undefined) {
    print('\nNothing was written. To write the files, use -o FOLDER without --dry-run.')
    return
  }
  print(written.length > 0 ? `\nWritten to ${folder}: ${written.join(', ')}` : `\n${folder} is up to date`)
  showEmptySecrets(emptySecrets)
  print(
    `Next: gatehouse validate -f ${folder}, and gatehouse dev -f ${folder}\n` +
      `To pin the tools while the server runs: gatehouse lock -f ${folder} -o ${folder}`,
  )
}

export function showEmptySecrets(emptySecrets: readonly string[]): void {
  if (emptySecrets.length > 0) printError(`Secrets without a value: ${emptySecrets.join(', ')}`)
}
