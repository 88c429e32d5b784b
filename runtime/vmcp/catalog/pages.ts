/**
 * The pages of a list. A page has up to 1000 items and a cursor that encodes where the next page starts.
 *
 * Pages are concatenated from the items' bytes. cursors.ts defines the cursor format.
 * Source: MCP 2025-11-25, utilities/pagination.
 */
import { hash } from 'node:crypto'
import { GatehouseError } from '../../../schemas/index.ts'
import type { Era } from '../../mcp/index.ts'
import type { Cursors } from './cursors.ts'
import type { PagedKind } from '../model/catalog/entries.ts'
import type { CatalogEntry } from '../model/catalog/entry.ts'

export const pageSize = 1_000
const maxPlainBytes = 256

/** Name of the result member that contains the list. */
const memberName: Readonly<Record<PagedKind, string>> = {
  tools: 'tools',
  resources: 'resources',
  templates: 'resourceTemplates',
  prompts: 'prompts',
  skills: 'skills',
}

/** Cached first pages, keyed by list and era. First pages are cached because most requests ask for them. */
const firstPages = new WeakMap<readonly CatalogEntry[], Partial<Record<Era, Buffer>>>()

/** The entries of every page in use. The first lookup indexes the entries by name. */
const entriesOfPages = new WeakMap<Buffer, readonly CatalogEntry[] | ReadonlyMap<string, CatalogEntry>>()

/**
 * Returns a function that finds an item's entry on a page by name. Returns undefined for a buffer that is not a page.
 */
export function originsOfPage(page: Buffer): ((key: string) => CatalogEntry | undefined) | undefined {
  const entries = entriesOfPages.get(page)
  if (!entries) return undefined
  const byKey = 'get' in entries ? entries : new Map(entries.map((entry) => [entry.key, entry]))
  entriesOfPages.set(page, byKey)
  return (key) => byKey.get(key)
}

export interface PageOptions {
  /** The client's protocol era. Some items have a separate form for sessions. */
  readonly era: Era
  readonly cursor: string | undefined
  readonly cursors: Cursors
  /** Maximum number of items on a page. Default: 1000. */
  readonly size?: number
  /** Lifetime of the list in milliseconds, for lists whose backends suggest one. */
  readonly ttlMs?: number
}

/** Returns the raw result of a list request. Throws INVALID_PARAMS if the cursor is invalid. */
export function renderPage(kind: PagedKind, entries: readonly CatalogEntry[], options: PageOptions): Buffer {
  const { cursor, cursors } = options
  if (cursor !== undefined && cursor !== '')
    return render(kind, entries, positionAfter(kind, entries, cursor, cursors), options)
  const known = firstPages.get(entries)
  const page = known?.[options.era]
  if (page) return page
  // If no item has two forms, clients of both eras share the page and everything that is cached for it.
  const shared = entries.every(({ sessionJson }) => sessionJson === undefined)
  const made = render(kind, entries, 0, options)
  firstPages.set(entries, shared ? { session: made, stateless: made } : { ...known, [options.era]: made })
  return made
}

function render(
  kind: PagedKind,
  entries: readonly CatalogEntry[],
  from: number,
  { era, cursors, size = pageSize, ttlMs }: PageOptions,
): Buffer {
  const page = entries.slice(from, from + size)
  const last = page.at(-1)
  const next = from + size
  const nextCursor =
    last !== undefined && next < entries.length ? cursors.write(kind, shorten(last.key), next) : undefined
  const made = joinedItems(
    page.map(({ json, sessionJson = json }) => (era === 'session' ? sessionJson : json)),
    {
      before: `{"${memberName[kind]}":[`,
      between: ',',
      after: `]${nextCursor === undefined ? '' : `,"nextCursor":"${nextCursor}"`}${ttlMs === undefined ? '' : `,"ttlMs":${ttlMs}`}}`,
    },
  )
  entriesOfPages.set(made, page)
  return made
}

/** Joins items into one buffer. The texts must be ASCII, and `between` must be a single character. */
export function joinedItems(
  items: readonly Buffer[],
  { before = '', between, after = '' }: { before?: string; between: string; after?: string },
): Buffer {
  const size = items.reduce((sum, { length }) => sum + length, Math.max(0, items.length - 1))
  const separator = between.charCodeAt(0)
  const joined = Buffer.allocUnsafe(before.length + size + after.length)
  let at = joined.write(before, 'latin1')
  for (const [i, item] of items.entries()) {
    if (i > 0) joined[at++] = separator
    joined.set(item, at)
    at += item.length
  }
  joined.write(after, at, 'latin1')
  return joined
}

function shorten(key: string): string {
  return Buffer.byteLength(key) <= maxPlainBytes ? `=${key}` : `#${hash('sha256', key, 'base64url')}`
}

function positionAfter(
  kind: PagedKind,
  entries: readonly CatalogEntry[],
  cursor: string,
  cursors: Cursors,
): number {
  const content = cursors.read(kind, cursor)
  if (!content) throw new GatehouseError('INVALID_PARAMS', { detail: 'invalid cursor' })
  const { after, position } = content
  if (after?.startsWith('=')) {
    // The item may no longer exist, so continue after the item's position.
    return firstAfter(entries, after.slice(1))
  }
  const at = after === undefined ? -1 : entries.findIndex(({ key }) => shorten(key) === after)
  return at < 0 ? Math.min(position, entries.length) : at + 1
}

/** Returns the index of the first entry after a key. The entries must be sorted. */
function firstAfter(entries: readonly CatalogEntry[], key: string): number {
  let [from, to] = [0, entries.length]
  while (from < to) {
    const middle = (from + to) >>> 1
    if ((entries[middle]?.key ?? '') > key) to = middle
    else from = middle + 1
  }
  return from
}
