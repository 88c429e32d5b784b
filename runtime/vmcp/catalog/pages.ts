/**
 * Pages of a list: 1000 items each, with a cursor that says after which item the next page begins.
 *
 * Items are put together from their bytes. A cursor is opaque to clients, bound to its list, and short.
 * Source: MCP 2025-11-25, utilities/pagination.
 */
import { hash } from 'node:crypto'
import { GatehouseError } from '../../../schemas/index.ts'
import type { Entry, Kind } from './types.ts'

export const PAGE_SIZE = 1_000
const MAX_CURSOR = 512
const MAX_PLAIN_KEY = 256
const COMMA = Buffer.from(',')

/** Name of the list's member in a result. */
export const MEMBER: Readonly<Record<Kind, string>> = {
  tools: 'tools',
  resources: 'resources',
  templates: 'resourceTemplates',
  prompts: 'prompts',
}

/** First pages without a cursor, by list: most requests ask for nothing else. */
const firstPages = new WeakMap<readonly Entry[], Buffer>()

/** The raw result object of a list request. Throws INVALID_PARAMS for a cursor that is none of ours. */
export function renderPage(kind: Kind, entries: readonly Entry[], cursor: string | undefined): Buffer {
  if (cursor !== undefined && cursor !== '')
    return render(kind, entries, positionAfter(kind, entries, cursor))
  const known = firstPages.get(entries)
  if (known) return known
  const page = render(kind, entries, 0)
  firstPages.set(entries, page)
  return page
}

function render(kind: Kind, entries: readonly Entry[], from: number): Buffer {
  const page = entries.slice(from, from + PAGE_SIZE)
  const parts: Buffer[] = [Buffer.from(`{"${MEMBER[kind]}":[`)]
  page.forEach(({ json }, i) => {
    if (i > 0) parts.push(COMMA)
    parts.push(json)
  })
  const last = page.at(-1)
  const more = last !== undefined && from + PAGE_SIZE < entries.length
  parts.push(Buffer.from(more ? `],"nextCursor":"${writeCursor(kind, last.key)}"}` : ']}'))
  return Buffer.concat(parts)
}

function shorten(key: string): string {
  return key.length <= MAX_PLAIN_KEY ? `=${key}` : `#${hash('sha256', key, 'base64url')}`
}

function writeCursor(kind: Kind, key: string): string {
  return Buffer.from(JSON.stringify([kind, shorten(key)])).toString('base64url')
}

function positionAfter(kind: Kind, entries: readonly Entry[], cursor: string): number {
  const last = readCursor(kind, cursor)
  if (last.startsWith('=')) {
    // The item itself may be gone by now: go on with what comes after its place.
    const at = entries.findIndex(({ key }) => key > last.slice(1))
    return at < 0 ? entries.length : at
  }
  const at = entries.findIndex(({ key }) => shorten(key) === last)
  if (at < 0) throw invalidCursor()
  return at + 1
}

function readCursor(kind: Kind, cursor: string): string {
  if (cursor.length > MAX_CURSOR || !/^[\w-]+$/.test(cursor)) throw invalidCursor()
  let read: unknown
  try {
    read = JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch {
    throw invalidCursor()
  }
  if (!Array.isArray(read) || read.length !== 2 || read[0] !== kind || typeof read[1] !== 'string')
    throw invalidCursor()
  return read[1]
}

function invalidCursor(): GatehouseError {
  return new GatehouseError('INVALID_PARAMS', { detail: 'invalid cursor' })
}
