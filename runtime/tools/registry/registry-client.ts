/**
 * Finds the entry for a server in a mirror file, and then in one registry. Never contacts a second registry.
 *
 * Source: MCP registry API v0.1.
 */
import { statSync } from 'node:fs'
import { type Fields, fieldsOf, invalidConfig, isFields } from '../../../schemas/index.ts'
import { readTextFile, systemReason } from '../../config/index.ts'
import { makeFetch } from '../../net/index.ts'
import { readEntry, type RegistryEntry } from './entry.ts'
import { EntryRejected, requestFailure } from './errors.ts'

export const officialRegistry = 'https://registry.modelcontextprotocol.io'

const timeoutMs = 30_000
const maxResponseBytes = 1_048_576
/** Limit for a mirror file, which can contain a whole registry. */
const maxFileBytes = 268_435_456

export interface SourceOptions {
  readonly registryFile: string | undefined
  readonly offline: boolean
  readonly token: string | undefined
}

export class RegistryClient {
  readonly #options: SourceOptions
  readonly #mirror: ReadonlyMap<string, readonly Fields[]>

  /** Throws INVALID_CONFIG when the mirror file cannot be read. */
  constructor(options: SourceOptions) {
    this.#options = options
    this.#mirror = options.registryFile === undefined ? new Map() : mirrorOf(options.registryFile)
  }

  /** Returns an entry; the latest one when `version` is undefined. Throws EntryRejected when there is none. */
  async find(name: string, version: string | undefined, registry: string): Promise<RegistryEntry> {
    const mirrored = this.#fromMirror(name, version)
    if (mirrored) return readEntry(mirrored, { name, version })
    if (this.#options.offline)
      throw new EntryRejected(
        `${named(name, version)}: not in ${this.#options.registryFile ?? 'any --registry-file'}, and --offline is set`,
      )
    return readEntry(await this.#fetch(name, version, registry), { name, version })
  }

  #fromMirror(name: string, version: string | undefined): Fields | undefined {
    const entries = this.#mirror.get(name) ?? []
    const serverOf = (entry: Fields) => fieldsOf(entry['server'])
    if (version !== undefined) return entries.find((entry) => serverOf(entry)['version'] === version)
    const latest = entries.filter(isLatest)
    if (latest.length === 1) return latest[0]
    if (entries.length > 1)
      throw new EntryRejected(
        `${name}: ${this.#options.registryFile} contains ${entries.length} versions and does not mark exactly one as the latest; use ${name}@VERSION`,
      )
    return entries[0]
  }

  async #fetch(name: string, version: string | undefined, registry: string): Promise<unknown> {
    const url = `${registryUrl(registry)}/v0.1/servers/${encodeURIComponent(name)}/versions/${encodeURIComponent(version ?? 'latest')}`
    const { token } = this.#options
    const fetch = makeFetch({ guard: 'operator', timeoutMs, maxBytes: maxResponseBytes })
    try {
      const response = await fetch(url, {
        headers: {
          accept: 'application/json',
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
      }).catch((error: unknown) => {
        throw invalidConfig(`${registry}: ${requestFailure(error)}`, error)
      })
      if (response.status === 404)
        throw new EntryRejected(`${named(name, version)}: not found in ${registry}`)
      if (response.status === 401 || response.status === 403)
        throw invalidConfig(
          `${registry}: responded with ${response.status}; use --bearer-token-file with a token for this registry`,
        )
      if (response.status !== 200) throw invalidConfig(`${registry}: responded with ${response.status}`)
      return await response.json().catch((error: unknown) => {
        throw invalidConfig(`${registry}: the response is not JSON`, error)
      })
    } finally {
      await fetch.close()
    }
  }
}

function named(name: string, version: string | undefined): string {
  return version === undefined ? name : `${name}@${version}`
}

function isLatest(entry: Fields): boolean {
  return fieldsOf(fieldsOf(entry['_meta'])['io.modelcontextprotocol.registry/official'])['isLatest'] === true
}

/** Returns the base URL without a trailing slash. Throws INVALID_CONFIG. */
export function registryUrl(text: string): string {
  const url = URL.parse(text)
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw invalidConfig('--registry: must be an http or https URL')
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw invalidConfig('--registry: must not contain credentials, a query or a fragment')
  return url.href.replace(/\/+$/, '')
}

/** Reads `{"servers": […]}`, as the registry lists them, or a list of entries or of server.json documents. */
function mirrorOf(path: string): ReadonlyMap<string, readonly Fields[]> {
  const subject = `--registry-file: ${path}`
  let value: unknown
  try {
    if (statSync(path).size > maxFileBytes) throw invalidConfig(`${subject}: is larger than 256 MiB`)
    value = JSON.parse(readTextFile(path, subject))
  } catch (error) {
    if (error instanceof SyntaxError) throw invalidConfig(`${subject}: is not JSON`, error)
    throw error instanceof Error && 'syscall' in error
      ? invalidConfig(`${subject}: cannot be read: ${systemReason(error)}`, error)
      : error
  }
  const items: unknown = Array.isArray(value) ? value : fieldsOf(value)['servers']
  if (!Array.isArray(items)) throw invalidConfig(`${subject}: must contain a list of servers`)
  const entries = items.filter(isFields).map((item) => (isFields(item['server']) ? item : { server: item }))
  return Map.groupBy(entries, ({ server }) => String(fieldsOf(server)['name']))
}
