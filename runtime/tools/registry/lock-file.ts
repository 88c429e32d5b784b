/**
 * `registry.lock` pins each server that came from a registry: its version, its registry, the hash of the entry, and the
 * settings of its manifest. The file belongs in version control, and contains no secrets.
 *
 * `namespaces` binds a name prefix to one registry, so that a second registry cannot supply a server of the same name.
 */
import { byText, fieldsOf, formatViolations, invalidConfig } from '../../../schemas/index.ts'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readTextFile } from '../../config/index.ts'
import { type ObjectShape, ShapeCheck } from './shape.ts'
import { type SourceName, sources } from './target.ts'

export const lockName = 'registry.lock'

export interface LockRow {
  readonly version: string
  readonly registry: string
  readonly entrySha256: string
  readonly source: SourceName
  /** Digest of an image. */
  readonly digest?: string
  /** Name of the object, and of its file without `.yaml`. */
  readonly object: string
  readonly group: string
  readonly set: Readonly<Record<string, readonly string[]>>
  readonly allowPrivate?: boolean
  /** Hash of the manifest as written, which shows later edits. */
  readonly manifestSha256: string
}

export interface RegistryLock {
  readonly namespaces: Readonly<Record<string, string>>
  readonly servers: Readonly<Record<string, LockRow>>
}

const sha256 = {
  kind: 'text',
  max: 64,
  pattern: { test: /^[a-f0-9]{64}$/, rule: 'must be 64 lower-case hexadecimal digits' },
} as const
const label = {
  kind: 'text',
  max: 63,
  pattern: { test: /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/, rule: 'must be a name of letters, digits and "-"' },
} as const
const registry = { kind: 'text', max: 2048, min: 1 } as const

const shape: ObjectShape = {
  kind: 'object',
  required: ['version', 'namespaces', 'servers'],
  members: {
    version: { kind: 'any' },
    namespaces: { kind: 'map', of: registry, max: 1000 },
    servers: {
      kind: 'map',
      max: 1000,
      of: {
        kind: 'object',
        required: [
          'version',
          'registry',
          'entrySha256',
          'source',
          'object',
          'group',
          'set',
          'manifestSha256',
        ],
        members: {
          version: { kind: 'text', max: 255, min: 1 },
          registry,
          entrySha256: sha256,
          source: { kind: 'word', words: sources },
          digest: {
            kind: 'text',
            max: 71,
            pattern: {
              test: /^sha256:[a-f0-9]{64}$/,
              rule: 'must be sha256: and 64 lower-case hexadecimal digits',
            },
          },
          object: label,
          group: label,
          set: { kind: 'map', of: { kind: 'list', of: { kind: 'text', max: 4096 }, max: 100 }, max: 100 },
          allowPrivate: { kind: 'boolean' },
          manifestSha256: sha256,
        },
      },
    },
  },
}

/** Reads the lock in a folder; empty when there is none. Throws INVALID_CONFIG, which lists every violation. */
export function readLock(folder: string): RegistryLock {
  const path = join(folder, lockName)
  if (!existsSync(path)) return { namespaces: {}, servers: {} }
  let value: unknown
  try {
    value = JSON.parse(readTextFile(path, path))
  } catch (error) {
    throw invalidConfig(`${path}: ${error instanceof SyntaxError ? 'is not JSON' : String(error)}`, error)
  }
  const check = new ShapeCheck()
  const read = check.read(value, shape, '')
  if (fieldsOf(value)['version'] !== 1) check.report('version', 'must be 1')
  for (const ignored of check.ignored) check.report(ignored, 'is unknown')
  if (check.violations.length > 0)
    throw invalidConfig(`${path}: is not a registry lock:\n${formatViolations(check.violations)}`)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the check has read every member
  return read as RegistryLock
}

/** Writes the lock with sorted members, so that version control shows small diffs. */
export function lockText({ namespaces, servers }: RegistryLock): string {
  const lock = { version: 1, namespaces: sorted(namespaces), servers: sorted(servers) }
  return `${JSON.stringify(lock, undefined, 2)}\n`
}

function sorted<T>(table: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(table).toSorted(([a], [b]) => byText(a, b)))
}

/**
 * Returns the registry that a server's namespace is bound to. A namespace also binds the namespaces below it; the
 * longest one applies.
 */
export function boundRegistry({ namespaces }: RegistryLock, name: string): string | undefined {
  const labels = namespaceOf(name).split('.')
  for (let count = labels.length; count > 0; count--) {
    const prefix = labels.slice(0, count).join('.')
    if (Object.hasOwn(namespaces, prefix)) return namespaces[prefix]
  }
  return undefined
}

export function namespaceOf(name: string): string {
  return name.slice(0, name.indexOf('/'))
}
