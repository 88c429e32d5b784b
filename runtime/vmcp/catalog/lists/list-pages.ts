/**
 * Reads all pages of one of a backend's lists.
 *
 * Well-formed items keep the bytes that the backend sent. If a list does not end properly, the items read so far are
 * kept. This happens if a cursor repeats, is not a string or is rejected, or if the list has too many pages or items.
 * Source: MCP 2025-11-25, utilities/pagination.
 */
import { setImmediate } from 'node:timers/promises'
import { type Fields, GatehouseError, isFields } from '../../../../schemas/index.ts'
import {
  emptyObject,
  inTurns,
  JsonError,
  JsonObject,
  protocolError,
  rpcCode,
  visitElementsInTurns,
} from '../../../mcp/index.ts'
import type { BackendConnection, Request } from '../../backends/connection.ts'
import type { Sender } from '../../backends/transport/target.ts'
import { explainRpcError, type SentHeaders } from '../../backends/transport/backend-answer.ts'
import { withinLimit } from '../../backends/transport/send.ts'
import type { Outcome } from '../../model/outcome.ts'
import { checkItem, plainItem, type UnusableItem, type UsableItem } from '../items/check.ts'
import type { ErrorCollector } from '../items/errors.ts'
import { plainValue } from '../items/plain.ts'
import { listMethod } from './list-defects.ts'
import { digestsOf } from '../pinning/digest.ts'
import type { PinRules } from '../../model/catalog/pinning.ts'
import type { CatalogItem, ItemKind } from '../../model/catalog/entries.ts'

/** Pages above this size are read in several turns of the event loop. */
const maxPlainPage = 256 * 1024
/** Time after which the read yields to other work. */
const turnMs = 5
const maxPages = 1_000
/** Maximum number of consecutive pages without a new item. */
const maxIdlePages = 20
const maxItems = 10_000
const maxCursor = 64 * 1024

export interface ListReadOptions {
  readonly connection: BackendConnection
  readonly capabilities: Buffer
  readonly sender: Sender
  readonly signal: AbortSignal
  readonly timeoutMs: number
  /** Headers of recent requests to the backend. */
  readonly sentHeaders?: SentHeaders | undefined
  /** Pinning's digest rules. Undefined if items are not hashed. */
  readonly pins?: PinRules | undefined
  /** Wraps each request to the backend. */
  readonly observeRequest: (
    request: Request,
    work: (request: Request) => Promise<Outcome>,
  ) => Promise<Outcome>
}

export interface ListRead {
  readonly items: readonly CatalogItem[]
  /** False if the backend does not support the method. */
  readonly isKnown: boolean
  /** Reason why pages may be missing. Undefined if the list is complete. */
  readonly end?: EarlyEnd | undefined
}

interface EarlyEnd {
  readonly reason: string
  /** Error from a failed request. Undefined for other reasons. */
  readonly error?: Error | undefined
}

/** Reads a list. Rejects if the first page fails. An error on a later page ends the list early. */
export async function readList(
  options: ListReadOptions,
  kind: ItemKind,
  violations: ErrorCollector,
): Promise<ListRead> {
  const items = new Map<string, CatalogItem>()
  const cursors = new Set<string>()
  let cursor: string | undefined
  let idlePages = 0
  const endAfter = (pages: number, reason: string, error?: Error): ListRead => ({
    items: [...items.values()],
    isKnown: true,
    end: { reason: `${reason} (after page ${pages})`, error },
  })
  for (let page = 1; page <= maxPages; page++) {
    const before = items.size
    let next: unknown
    try {
      const result = await readPage(options, kind, cursor)
      if (!result && page === 1) return { items: [], isKnown: false }
      if (!result) throw protocolError('the backend no longer supports the method')
      const { elements, nextCursor } = plainPage(result, kind) ?? (await pageOf(result, kind))
      await collectItems(elements, kind, items, violations, options.pins)
      next = nextCursor
    } catch (error) {
      if (page === 1) throw error
      const failure = error instanceof Error ? error : new Error('unknown', { cause: error })
      return endAfter(page - 1, 'reading the next page failed', failure)
    }
    if (items.size >= maxItems && next !== undefined)
      return endAfter(page, `the list has more than ${maxItems} items`)
    if (next === undefined || next === null) return { items: [...items.values()], isKnown: true }
    const wrong = cursorProblem(next, cursors)
    if (wrong !== undefined || typeof next !== 'string') return endAfter(page, wrong ?? '')
    idlePages = items.size > before ? 0 : idlePages + 1
    if (idlePages >= maxIdlePages)
      return endAfter(page, `${maxIdlePages} consecutive pages contained no new items`)
    cursors.add(next)
    cursor = next
  }
  return endAfter(maxPages, `the list has more than ${maxPages} pages`)
}

/** Returns the reason why a cursor cannot be followed, or undefined if the cursor is valid. */
function cursorProblem(cursor: unknown, seen: ReadonlySet<string>): string | undefined {
  if (typeof cursor !== 'string')
    return `nextCursor must be a string, but is ${Array.isArray(cursor) ? 'an array' : `of type ${typeof cursor}`}`
  if (cursor === '') return 'nextCursor is empty, which is treated as the end of the list'
  if (cursor.length > maxCursor) return `nextCursor has more than ${maxCursor} characters`
  return seen.has(cursor) ? 'nextCursor repeats an earlier cursor' : undefined
}

/** Reads one page. Returns undefined if the backend does not support the method. */
async function readPage(
  options: ListReadOptions,
  kind: ItemKind,
  cursor: string | undefined,
): Promise<Buffer | undefined> {
  const { connection, sender, signal, timeoutMs, capabilities } = options
  const method = listMethod[kind]
  const request = {
    method,
    params: emptyObject,
    changes: cursor === undefined ? {} : { cursor: JSON.stringify(cursor) },
    sender,
    capabilities,
    signal,
    timeoutMs,
  }
  const outcome = await options.observeRequest(request, async (traced) =>
    withinLimit({}, method, await connection.request(traced)),
  )
  if (outcome.kind === 'result') return outcome.result
  const code = outcome.kind === 'error' ? new JsonObject(outcome.error).value('code') : undefined
  if (code === rpcCode.methodNotFound) return undefined
  const error = outcome.kind === 'error' ? outcome.error : undefined
  const what = `the backend rejected the request${typeof code === 'number' ? ` with error ${code}` : ''}`
  const cause = explainRpcError(error, { sentHeaders: options.sentHeaders, isQuoted: true })
  throw new GatehouseError('BACKEND_PROTOCOL', { cause: new Error(what, { cause }) })
}

interface Page {
  readonly elements: readonly ListElement[]
  readonly nextCursor: unknown
}

/** An item on a page. The item is a value if plainValue has parsed the page, and bytes otherwise. */
type ListElement = Buffer | Fields

/** Returns the name of the result member that contains the list. */
function memberOf(kind: ItemKind): string {
  return kind === 'templates' ? 'resourceTemplates' : kind
}

/** Parses a page with plainValue. Returns undefined if plainValue cannot parse the page. */
function plainPage(result: Buffer, kind: ItemKind): Page | undefined {
  const value = plainValue(result, maxPlainPage)
  if (!isFields(value)) return undefined
  const { [memberOf(kind)]: list, nextCursor } = value
  if (!Array.isArray(list) || list.length > maxItems || !list.every(isFields)) return undefined
  return { elements: list, nextCursor }
}

async function pageOf(bytes: Buffer, kind: ItemKind): Promise<Page> {
  const result = new JsonObject(bytes)
  const list = result.raw(memberOf(kind))
  if (list?.[0] !== 0x5b) throw protocolError(`${memberOf(kind)} is not an array`)
  return { elements: await elementsOf(list, kind), nextCursor: result.value('nextCursor') }
}

/** Adds a page's items to the list, up to `maxItems` in total. */
async function collectItems(
  elements: readonly ListElement[],
  kind: ItemKind,
  items: Map<string, CatalogItem>,
  violations: ErrorCollector,
  pins: PinRules | undefined,
): Promise<void> {
  let began = performance.now()
  for (const element of elements) {
    if (items.size >= maxItems) return
    const item = addItem(kind, checkElement(kind, element), items, violations)
    if (item && pins && kind !== 'resources') await addPin(kind, item, items, violations, pins)
    if (performance.now() - began < turnMs) continue
    await setImmediate()
    began = performance.now()
  }
}

/** Check a copy of the item. Otherwise, a small item would keep a large response in memory. */
function checkElement(kind: ItemKind, element: ListElement): UsableItem | UnusableItem {
  const own = Buffer.from(element instanceof Buffer ? element : JSON.stringify(element))
  return (element instanceof Buffer ? undefined : plainItem(kind, own, element)) ?? checkItem(kind, own)
}

/**
 * Splits a list into at most `maxItems` elements. The number is limited because each element needs more memory than its
 * text.
 */
async function elementsOf(list: Buffer, kind: ItemKind): Promise<Buffer[]> {
  const elements: Buffer[] = []
  const take = (from: number, to: number): undefined => {
    if (elements.length >= maxItems) throw protocolError(`more than ${maxItems} ${memberOf(kind)}`)
    elements.push(list.subarray(from, to))
  }
  await inTurns(visitElementsInTurns(list, take))
  return elements
}

/** Adds an item and returns it if the item is new. Identical duplicates count as one item. */
function addItem(
  kind: ItemKind,
  checked: UsableItem | UnusableItem,
  items: Map<string, CatalogItem>,
  violations: ErrorCollector,
): CatalogItem | undefined {
  if ('failure' in checked) {
    violations.leftOut(kind, checked.key, checked.failure)
    return undefined
  }
  const { key, json, sessionJson, repaired } = checked
  const known = items.get(key)
  if (known) {
    if (!known.json.equals(json)) violations.leftOut(kind, key, 'another item has the same name')
    return undefined
  }
  if (repaired.length > 0) violations.repaired(kind, key, repaired)
  const item = sessionJson ? { key, json, sessionJson } : { key, json }
  items.set(key, item)
  return item
}

/** Adds an item's pinning digest. An item that cannot be hashed cannot be compared, so it is not offered. */
async function addPin(
  kind: Exclude<ItemKind, 'resources'>,
  item: CatalogItem,
  items: Map<string, CatalogItem>,
  violations: ErrorCollector,
  { ignore }: PinRules,
): Promise<void> {
  try {
    items.set(item.key, { ...item, pin: await digestsOf(pinKinds[kind], item.json, ignore) })
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    items.delete(item.key)
    violations.leftOut(kind, item.key, error.message)
  }
}

const pinKinds = { tools: 'tool', prompts: 'prompt', templates: 'resourceTemplate' } as const
