/**
 * The entries of the registry API, and the pages of their list.
 *
 * An entry contains the published name, texts and address of one server. It never contains a backend, an image or a
 * value of a secret.
 * Source: MCP registry API v0.1 and server.json, schema 2025-12-11.
 */
import type { CatalogueServer } from '../../schemas/index.ts'
import { byText, GatehouseError } from '../../schemas/index.ts'

const defaultLimit = 30
const maxLimit = 100
/** Maximum length of a query parameter; longer than any server name. */
const maxParameter = 512

/** Returns the entry of a server, as the registry API returns it. */
export function entryOf({ name, title, description, version, url, publishedAt }: CatalogueServer) {
  return {
    server: {
      $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
      name,
      title,
      description,
      version,
      remotes: [{ type: 'streamable-http', url }],
    },
    _meta: {
      'io.modelcontextprotocol.registry/official': { status: 'active', publishedAt, isLatest: true },
    },
  }
}

/** The query of a list. The list has one version of each server. */
export interface ListQuery {
  readonly limit: number
  /** Name of the last server on the previous page; '' for the first page. */
  readonly after: string
  /** Lowercase part of the name; '' for all names. */
  readonly search: string
  /** Version to list; undefined for the current version. */
  readonly version: string | undefined
}

/**
 * Reads a query. Ignores unknown parameters, and `include_deleted` and `updated_since`, because no entry is deleted and
 * the time of a change is unknown. Throws BAD_REQUEST, which names the parameter.
 */
export function readQuery(text: string): ListQuery {
  const parameters = new URLSearchParams(text)
  const value = (name: string): string => {
    const found = parameters.get(name) ?? ''
    if (found.length > maxParameter) throw invalid(name, `must have at most ${maxParameter} characters`)
    return found
  }
  const limit = value('limit') === '' ? defaultLimit : Number(value('limit'))
  if (!/^\d*$/.test(value('limit')) || limit < 1 || limit > maxLimit)
    throw invalid('limit', `must be a whole number from 1 to ${maxLimit}`)
  const version = value('version')
  return {
    limit,
    after: readCursor(value('cursor')),
    search: value('search').toLowerCase(),
    version: version === '' || version === 'latest' ? undefined : version,
  }
}

function readCursor(cursor: string): string {
  const name = Buffer.from(cursor, 'base64url').toString()
  if (cursorOf(name) !== cursor) throw invalid('cursor', 'is not a cursor of this catalogue')
  return name
}

function cursorOf(name: string): string {
  return Buffer.from(name).toString('base64url')
}

function invalid(name: string, rule: string): GatehouseError {
  return new GatehouseError('BAD_REQUEST', { detail: `Invalid ${name}: ${rule}` })
}

/** Returns one page of a list that is sorted by name. `servers` contains only servers that the caller may see. */
export function pageOf(servers: readonly CatalogueServer[], { limit, after, search, version }: ListQuery) {
  const found = servers.filter(
    (server) =>
      byText(server.name, after) > 0 &&
      server.name.toLowerCase().includes(search) &&
      (version === undefined || server.version === version),
  )
  const page = found.slice(0, limit)
  const last = page.at(-1)
  return {
    servers: page.map(entryOf),
    metadata: {
      count: page.length,
      ...(last && found.length > limit && { nextCursor: cursorOf(last.name) }),
    },
  }
}
