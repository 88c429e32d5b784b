/**
 * The folder that `gatehouse add` writes to: one manifest and one Secret per server, the group, and `registry.lock`.
 * Keeps the values that the user entered into a Secret.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type Fields, fieldsOf, invalidConfig } from '../../../schemas/index.ts'
import { readTextFile, readYaml } from '../../config/index.ts'
import { writeYaml } from '../../../schemas/yaml/index.ts'
import { saveFolder } from '../../toolkit/client-files/save.ts'
import { type Manifest, readManifests } from '../../toolkit/manifests/read.ts'
import { textDiff } from '../../toolkit/terminal/text-diff.ts'
import { type LockRow, lockName, lockText, readLock, type RegistryLock } from './lock-file.ts'
import type { ServerManifests } from './manifest.ts'

export interface PlannedFile {
  readonly name: string
  readonly text: string
  readonly secret: boolean
  readonly change: 'new' | 'changed' | 'unchanged'
  /** Empty for a file with secrets. */
  readonly diff: string
}

export interface FolderPlan {
  readonly files: readonly PlannedFile[]
  /** `Secret/key` of each secret that has no value yet. */
  readonly emptySecrets: readonly string[]
  /** Files that have been edited since Gatehouse wrote them, or that it did not write. */
  readonly conflicts: readonly string[]
  readonly manifestSha256: string
  readonly notes: readonly string[]
}

/** Returns the manifests in a folder; none when the folder does not exist. Throws INVALID_CONFIG. */
export function manifestsIn(folder: string): readonly Manifest[] {
  const hasManifest =
    existsSync(folder) &&
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).some((name) => /\.(?:ya?ml|json)$/.test(name))
  return hasManifest ? readManifests([folder], () => '') : []
}

/** Returns the group for a server. Throws INVALID_CONFIG when the folder has several groups. */
export function groupFor(
  typed: string | undefined,
  locked: LockRow | undefined,
  existing: readonly Manifest[],
): string {
  if (typed !== undefined) return typed
  if (locked) return locked.group
  const groups = existing.filter(({ doc }) => doc['kind'] === 'MCPGroup').map(({ doc }) => nameOf(doc))
  if (groups.length > 1) throw invalidConfig(`--group: the folder has several groups: ${groups.join(', ')}`)
  return groups[0] ?? 'servers'
}

function nameOf(doc: Fields): string {
  return String(fieldsOf(doc['metadata'])['name'])
}

export interface FolderInput {
  readonly folder: string
  readonly manifests: ServerManifests
  readonly existing: readonly Manifest[]
  readonly locked: LockRow | undefined
  /** True when an unedited manifest of the locked server can be replaced. */
  readonly isUpdate: boolean
}

export function planFolder({ folder, manifests, existing, locked, isUpdate }: FolderInput): FolderPlan {
  const { member, secret, openKeys, entrance } = manifests
  const object = member.metadata.name
  const file = `${object}.yaml`
  refuseTaken(object, folder, existing)
  const text = writeYaml(member)
  const before = textOf(join(folder, file))
  const isOurs = isUpdate && before !== undefined && sha256Of(before) === locked?.manifestSha256
  const conflicts = before !== undefined && before !== text && !isOurs ? [file] : []
  const files = [planned(folder, { name: file, text, secret: false })]
  const emptySecrets: string[] = []
  if (secret) {
    const name = `${object}-secrets.yaml`
    const known = secretValues(join(folder, name))
    const stringData = Object.fromEntries(
      Object.entries(secret.stringData ?? {}).map(([key, value]) => [
        key,
        openKeys.has(key) ? (known[key] ?? value) : value,
      ]),
    )
    for (const key of openKeys)
      if (stringData[key] === secret.stringData?.[key]) emptySecrets.push(`${secret.metadata.name}/${key}`)
    const head = '# Secrets of this server. Git ignores this file: keep it on this machine.\n'
    files.push(planned(folder, { name, text: head + writeYaml({ ...secret, stringData }), secret: true }))
  }
  const hasGroup = existing.some(
    ({ doc }) => doc['kind'] === 'MCPGroup' && nameOf(doc) === entrance[0]?.metadata.name,
  )
  if (!hasGroup) {
    const group = planned(folder, {
      name: 'group.yaml',
      text: entrance.map((one) => writeYaml(one)).join('---\n'),
      secret: false,
    })
    files.push(group)
    if (group.change === 'changed') conflicts.push(group.name)
  }
  return {
    files,
    emptySecrets,
    conflicts,
    manifestSha256: sha256Of(text),
    notes: [...manifests.notes, ...kustomizationNotes(folder, files)],
  }
}

export interface LockChange {
  readonly before: RegistryLock
  readonly after: RegistryLock
}

/**
 * Adds `registry.lock` and writes all files, or none. Throws INVALID_CONFIG when another program has changed the lock
 * since it was read.
 */
export function writePlan(
  folder: string,
  plan: FolderPlan,
  { before, after }: LockChange,
): readonly string[] {
  if (lockText(readLock(folder)) !== lockText(before))
    throw invalidConfig(`${join(folder, lockName)}: was changed by another program; run the command again`)
  const lockFile = { name: lockName, text: lockText(after), secret: false }
  const { written } = saveFolder(folder, [...plan.files, lockFile], { force: true })
  return written
}

function planned(folder: string, file: Pick<PlannedFile, 'name' | 'text' | 'secret'>): PlannedFile {
  const before = textOf(join(folder, file.name))
  const change = before === undefined ? 'new' : before === file.text ? 'unchanged' : 'changed'
  return { ...file, change, diff: file.secret ? '' : textDiff(file.name, before, file.text) }
}

/** Throws INVALID_CONFIG when another file defines a member with the same name. */
function refuseTaken(object: string, folder: string, existing: readonly Manifest[]): void {
  const own = join(folder, `${object}.yaml`)
  const members = /^MCP(?:Server|ServerEntry|RemoteProxy|OpenAPIServer)$/
  const other = existing.find(
    ({ doc, file }) => members.test(String(doc['kind'])) && nameOf(doc) === object && file !== own,
  )
  if (other) throw invalidConfig(`${other.file} already defines ${object}; use --name to choose another name`)
}

/** Returns the values in an existing Secret file. Throws INVALID_CONFIG when it is not a Secret. */
function secretValues(path: string): Readonly<Record<string, string>> {
  const text = textOf(path)
  if (text === undefined) return {}
  const { documents, violations } = readYaml(text)
  const doc = fieldsOf(documents[0]?.value)
  if (violations.length > 0 || documents.length !== 1 || doc['kind'] !== 'Secret')
    throw invalidConfig(`${path}: is not a Secret and was not changed`)
  const values: Record<string, string> = {}
  for (const [key, value] of Object.entries(fieldsOf(doc['data'])))
    if (typeof value === 'string') values[key] = Buffer.from(value, 'base64').toString()
  for (const [key, value] of Object.entries(fieldsOf(doc['stringData'])))
    if (typeof value === 'string') values[key] = value
  return values
}

function kustomizationNotes(folder: string, files: readonly PlannedFile[]): readonly string[] {
  const path = ['kustomization.yaml', 'kustomization.yml', 'Kustomization']
    .map((name) => join(folder, name))
    .find((candidate) => existsSync(candidate))
  if (path === undefined) return []
  const resources = fieldsOf(readYaml(readTextFile(path, path)).documents[0]?.value)['resources']
  const listed = new Set(Array.isArray(resources) ? resources : [])
  const absent = files.map(({ name }) => name).filter((name) => !listed.has(name))
  return absent.length > 0 ? [`add ${absent.join(', ')} to the resources in ${basename(path)}`] : []
}

function textOf(path: string): string | undefined {
  return existsSync(path) ? readTextFile(path, path) : undefined
}

function sha256Of(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
