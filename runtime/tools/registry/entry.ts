/**
 * Reads a registry's entry for one version of a server, and reports every violation at once.
 *
 * Source: MCP registry API v0.1, and the server.json schema 2025-12-11.
 */
import { fieldsOf, formatViolations, hashOf, isFields } from '../../../schemas/index.ts'
import { EntryRejected } from './errors.ts'
import { type ObjectShape, type Shape, ShapeCheck } from './shape.ts'

export interface EntryInput {
  readonly description?: string
  readonly isRequired?: boolean
  readonly isSecret?: boolean
  readonly format?: 'string' | 'number' | 'boolean' | 'filepath'
  readonly value?: string
  readonly default?: string
  readonly placeholder?: string
  readonly choices?: readonly string[]
  readonly variables?: Readonly<Record<string, EntryInput>>
}

export interface NamedInput extends EntryInput {
  readonly name: string
}

export interface EntryArgument extends EntryInput {
  readonly type: 'positional' | 'named'
  readonly name?: string
  readonly valueHint?: string
  readonly isRepeated?: boolean
}

export interface RegistryPackage {
  readonly registryType: string
  readonly registryBaseUrl?: string
  readonly identifier: string
  readonly version?: string
  readonly transport: { readonly type: string; readonly url?: string }
  readonly runtimeArguments?: readonly EntryArgument[]
  readonly packageArguments?: readonly EntryArgument[]
  readonly environmentVariables?: readonly NamedInput[]
}

export interface RegistryRemote {
  readonly type: 'streamable-http' | 'sse'
  readonly url: string
  readonly headers?: readonly NamedInput[]
  readonly variables?: Readonly<Record<string, EntryInput>>
}

export interface ServerDocument {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly version: string
  readonly packages?: readonly RegistryPackage[]
  readonly remotes?: readonly RegistryRemote[]
}

export type EntryStatus = 'active' | 'deprecated' | 'deleted'

export interface RegistryEntry {
  readonly server: ServerDocument
  readonly status: EntryStatus
  /** SHA-256 of the canonical JSON of the whole `server` object. */
  readonly sha256: string
  /** Members that Gatehouse does not recognize. They have no effect. */
  readonly ignored: readonly string[]
}

const officialMeta = 'io.modelcontextprotocol.registry/official'
/** Maximum nesting depth of an entry. */
const maxDepth = 32

export const serverName = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/
/** A version that is safe in a path and a message. */
export const serverVersion = /^[0-9A-Za-z][0-9A-Za-z.+_-]{0,254}$/

const text = (max: number, min = 0): Shape => ({ kind: 'text', max, min })
const inputMembers: Readonly<Record<string, Shape>> = {
  description: text(4096),
  isRequired: { kind: 'boolean' },
  isSecret: { kind: 'boolean' },
  format: { kind: 'word', words: ['string', 'number', 'boolean', 'filepath'] },
  value: text(4096),
  default: text(4096),
  placeholder: text(4096),
  choices: { kind: 'list', of: text(1024), max: 200 },
}
const variables: Shape = {
  kind: 'map',
  of: { kind: 'object', required: [], members: inputMembers },
  max: 50,
}
const namedInput: ObjectShape = {
  kind: 'object',
  required: ['name'],
  members: { ...inputMembers, variables, name: text(256, 1) },
}
const argument: ObjectShape = {
  kind: 'object',
  required: ['type'],
  members: {
    ...inputMembers,
    variables,
    type: { kind: 'word', words: ['positional', 'named'] },
    name: text(256, 1),
    valueHint: text(256, 1),
    isRepeated: { kind: 'boolean' },
  },
}
const headers: Shape = { kind: 'list', of: namedInput, max: 50 }
const url = text(2048, 1)
const packageShape: ObjectShape = {
  kind: 'object',
  required: ['registryType', 'identifier', 'transport'],
  members: {
    registryType: text(64, 1),
    registryBaseUrl: url,
    identifier: text(512, 1),
    version: text(255, 1),
    fileSha256: {
      kind: 'text',
      max: 64,
      pattern: { test: /^[a-f0-9]{64}$/, rule: 'must be 64 lower-case hexadecimal digits' },
    },
    runtimeHint: text(64),
    transport: {
      kind: 'object',
      required: ['type'],
      members: {
        type: { kind: 'word', words: ['stdio', 'streamable-http', 'sse'] },
        url,
        headers,
        variables,
      },
    },
    runtimeArguments: { kind: 'list', of: argument, max: 100 },
    packageArguments: { kind: 'list', of: argument, max: 100 },
    environmentVariables: { kind: 'list', of: namedInput, max: 100 },
  },
}
const remoteShape: ObjectShape = {
  kind: 'object',
  required: ['type', 'url'],
  members: { type: { kind: 'word', words: ['streamable-http', 'sse'] }, url, headers, variables },
}
const ignoredMember: Shape = { kind: 'any' }
const serverShape: ObjectShape = {
  kind: 'object',
  required: ['name', 'description', 'version'],
  members: {
    name: {
      kind: 'text',
      min: 3,
      max: 200,
      pattern: { test: serverName, rule: 'must be a namespace, "/" and a name' },
    },
    title: text(100),
    description: text(100),
    version: {
      kind: 'text',
      min: 1,
      max: 255,
      pattern: { test: serverVersion, rule: 'must be an exact version of letters, digits and .+_-' },
    },
    packages: { kind: 'list', of: packageShape, max: 20 },
    remotes: { kind: 'list', of: remoteShape, max: 20 },
    $schema: ignoredMember,
    _meta: ignoredMember,
    icons: ignoredMember,
    repository: ignoredMember,
    websiteUrl: ignoredMember,
  },
}

/**
 * Reads `{server, _meta}` from a registry. Throws EntryRejected, which lists every violation, and also when the name or
 * version differs from the requested one.
 */
export function readEntry(
  document: unknown,
  wanted: { readonly name: string; readonly version: string | undefined },
): RegistryEntry {
  if (!isFields(document) || !isFields(document['server']))
    throw new EntryRejected(`${wanted.name}: the registry’s response contains no server`)
  if (isTooDeep(document))
    throw new EntryRejected(`${wanted.name}: the entry is nested more than ${maxDepth} levels deep`)
  const check = new ShapeCheck()
  const read = check.read(document['server'], serverShape, '')
  refuseArguments(read, check)
  const official = fieldsOf(fieldsOf(document['_meta'])[officialMeta])
  const status = official['status'] ?? 'active'
  if (status !== 'active' && status !== 'deprecated' && status !== 'deleted')
    check.report('_meta.status', 'must be active, deprecated or deleted')
  if (check.violations.length > 0)
    throw new EntryRejected(`${wanted.name}: invalid entry:\n${formatViolations(check.violations)}`)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the check has read every member
  const server = read as ServerDocument
  if (server.name !== wanted.name)
    throw new EntryRejected(`${wanted.name}: the registry returned another server, ${server.name}`)
  if (wanted.version !== undefined && server.version !== wanted.version)
    throw new EntryRejected(
      `${wanted.name}: the registry returned version ${server.version} instead of ${wanted.version}`,
    )
  return {
    server,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- any other value is a violation
    status: status as EntryStatus,
    sha256: hashOf(document['server']),
    ignored: check.ignored,
  }
}

/** Reports arguments that the schema's unions forbid. */
function refuseArguments(read: unknown, check: ShapeCheck): void {
  for (const [index, item] of lists(read, 'packages')) {
    for (const key of ['runtimeArguments', 'packageArguments']) {
      for (const [at, argument] of lists(item, key)) {
        const path = `packages[${index}].${key}[${at}]`
        if (argument['type'] === 'named' && argument['name'] === undefined)
          check.report(`${path}.name`, 'is required for a named argument')
        if (
          argument['type'] === 'positional' &&
          argument['value'] === undefined &&
          argument['valueHint'] === undefined
        )
          check.report(path, 'a positional argument requires value or valueHint')
      }
    }
  }
}

function lists(parent: unknown, key: string) {
  const items = fieldsOf(parent)[key]
  return Array.isArray(items) ? items.map((item: unknown, index) => [index, fieldsOf(item)] as const) : []
}

function isTooDeep(document: unknown): boolean {
  let level: unknown[] = [document]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth) return true
    level = level.flatMap((value) =>
      typeof value === 'object' && value !== null ? Object.values(value) : [],
    )
  }
  return false
}
