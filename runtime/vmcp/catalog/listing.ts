/**
 * Reads everything that one backend offers: tools, resources, resource templates, prompts, all pages.
 *
 * Well-formed items stay the bytes that the backend sent; what is wrong with others is in `violations`. Whatever is too much
 * (pages, items, a cursor that comes again) is refused, so that no backend can fill the memory.
 */
import { setImmediate } from 'node:timers/promises'
import { type Fields, isFields } from '../../../schemas/index.ts'
import {
  emptyObject,
  inTurns,
  JsonError,
  JsonObject,
  protocolError,
  rpcCode,
  visitElementsInTurns,
} from '../../mcp/index.ts'
import type { Sender } from '../backends/session-era/channel.ts'
import type { BackendConnection, Request, ServerInfo } from '../backends/connection.ts'
import { withinLimit } from '../backends/transport/send.ts'
import type { Outcome } from '../pipeline/operation.ts'
import { checkItem, plainItem, type UnusableItem, type UsableItem } from './items/check.ts'
import { ErrorCollector, type ListErrors } from './items/errors.ts'
import { callableTool } from './items/mirrored.ts'
import { plainValue } from './items/plain.ts'
import { digestsOf } from './pinning/digest.ts'
import type { PinDigests, PinRules } from './pinning/parts.ts'
import type { CatalogItem, ItemKind, ToolItem } from './types.ts'

export interface Listing {
  readonly backend: string
  /** Different for every listing ever read in this process. */
  readonly serial: number
  readonly server: ServerInfo
  readonly tools: readonly ToolItem[]
  readonly resources: readonly CatalogItem[]
  readonly templates: readonly CatalogItem[]
  readonly prompts: readonly CatalogItem[]
  readonly violations: ListErrors
  /** Digests of the server's instructions, where pinning is on and there are any. */
  readonly instructionsPin?: PinDigests
}

/** What is larger is read in turns. */
const maxPlainPage = 256 * 1024
/** After so long other work has a turn. */
const turnMs = 5
const maxPages = 1_000
const maxItems = 10_000
const maxCursor = 64 * 1024

let serial = 0

export interface ListOptions {
  readonly backend: string
  readonly connection: BackendConnection
  readonly server: ServerInfo
  readonly capabilities: Buffer
  readonly sender: Sender
  readonly signal: AbortSignal
  readonly timeoutMs: number
  /** How items are digested for pinning; undefined: they are not. */
  readonly pins?: PinRules | undefined
  /** Stands around each request. */
  readonly measured: (request: Request, work: (request: Request) => Promise<Outcome>) => Promise<Outcome>
}

interface List {
  readonly kind: ItemKind
  readonly method: string
  /** Member of the result. */
  readonly member: string
}

const toolList: List = { kind: 'tools', method: 'tools/list', member: 'tools' }
const resourceList: List = { kind: 'resources', method: 'resources/list', member: 'resources' }
const promptList: List = { kind: 'prompts', method: 'prompts/list', member: 'prompts' }
const templateList: List = {
  kind: 'templates',
  method: 'resources/templates/list',
  member: 'resourceTemplates',
}

/** Rejects with BACKEND_* errors, or BACKEND_PROTOCOL when the lists break the protocol. */
export async function readListing(options: ListOptions): Promise<Listing> {
  const { capabilities } = options.server
  const violations = new ErrorCollector(options.backend)
  const instructions = options.pins && options.server.instructions
  const [tools, resources, templates, prompts] = await Promise.all([
    capabilities.tools ? readAll(options, toolList, violations) : [],
    capabilities.resources ? readAll(options, resourceList, violations) : [],
    capabilities.resources ? readAll(options, templateList, violations) : [],
    capabilities.prompts ? readAll(options, promptList, violations) : [],
  ])
  return {
    backend: options.backend,
    serial: ++serial,
    server: options.server,
    tools: tools.flatMap((item) => callable(item, violations)),
    resources,
    templates,
    prompts,
    violations: violations.all,
    ...(instructions === undefined
      ? {}
      : {
          instructionsPin: await digestsOf('instructions', Buffer.from(JSON.stringify(instructions))),
        }),
  }
}

/** None when it marks its arguments wrongly. */
function callable(item: CatalogItem, violations: ErrorCollector): ToolItem[] {
  const tool = callableTool(item)
  if (typeof tool !== 'string') return [tool]
  violations.leftOut('tools', item.key, tool)
  return []
}

async function readAll(options: ListOptions, list: List, violations: ErrorCollector): Promise<CatalogItem[]> {
  const { method } = list
  const items = new Map<string, CatalogItem>()
  const cursors = new Set<string>()
  let cursor: string | undefined
  for (let page = 0; page < maxPages; page++) {
    const result = await readPage(options, method, cursor)
    if (!result) return []
    const { elements, nextCursor } = plainPage(result, list) ?? (await pageOf(result, list))
    await collect(elements, list, items, violations, options.pins)
    cursor = nextCursor
    if (cursor === undefined) return [...items.values()]
    if (cursor.length > maxCursor)
      throw protocolError(`${method} has a cursor of more than ${maxCursor} characters`)
    if (cursors.has(cursor)) throw protocolError(`${method} repeats a cursor`)
    cursors.add(cursor)
  }
  throw protocolError(`${method} has more than ${maxPages} pages`)
}

/** One page; undefined when the backend does not know the method after all. */
async function readPage(
  options: ListOptions,
  method: string,
  cursor: string | undefined,
): Promise<Buffer | undefined> {
  const { connection, sender, signal, timeoutMs, capabilities } = options
  const request = {
    method,
    params: emptyObject,
    changes: cursor === undefined ? {} : { cursor: JSON.stringify(cursor) },
    sender,
    capabilities,
    signal,
    timeoutMs,
  }
  const outcome = await options.measured(request, async (traced) =>
    withinLimit({}, method, await connection.request(traced)),
  )
  if (outcome.kind === 'result') return outcome.result
  if (outcome.kind === 'error' && new JsonObject(outcome.error).value('code') === rpcCode.methodNotFound)
    return undefined
  throw protocolError(`${method} was refused`)
}

interface Page {
  readonly elements: readonly ListElement[]
  readonly nextCursor: string | undefined
}

/** An item of a page: its bytes, or its value where plainValue has read the page. */
type ListElement = Buffer | Fields

/** A page that plainValue reads; undefined for any other. */
function plainPage(result: Buffer, { member }: List): Page | undefined {
  const value = plainValue(result, maxPlainPage)
  if (!isFields(value)) return undefined
  const { [member]: list, nextCursor } = value
  if (!Array.isArray(list) || list.length > maxItems || !list.every(isFields)) return undefined
  return { elements: list, nextCursor: typeof nextCursor === 'string' ? nextCursor : undefined }
}

async function pageOf(bytes: Buffer, { member }: List): Promise<Page> {
  const result = new JsonObject(bytes)
  const list = result.raw(member)
  if (list?.[0] !== 0x5b) throw protocolError(`${member} is no list`)
  return { elements: await elementsOf(list, member), nextCursor: result.text('nextCursor') }
}

async function collect(
  elements: readonly ListElement[],
  { kind, member }: List,
  items: Map<string, CatalogItem>,
  violations: ErrorCollector,
  pins: PinRules | undefined,
): Promise<void> {
  let began = performance.now()
  for (const element of elements) {
    const item = add(kind, checked(kind, element), items, violations)
    if (item && pins && kind !== 'resources') await addPin(kind, item, items, violations, pins)
    if (items.size > maxItems) throw protocolError(`more than ${maxItems} ${member}`)
    if (performance.now() - began < turnMs) continue
    await setImmediate()
    began = performance.now()
  }
}

/** An item that was checked, in bytes of its own: a small one does not keep a large response in memory. */
function checked(kind: ItemKind, element: ListElement): UsableItem | UnusableItem {
  const own = Buffer.from(element instanceof Buffer ? element : JSON.stringify(element))
  return (element instanceof Buffer ? undefined : plainItem(kind, own, element)) ?? checkItem(kind, own)
}

/** At most as many as a list may have: each costs more memory than text. */
async function elementsOf(list: Buffer, member: string): Promise<Buffer[]> {
  const elements: Buffer[] = []
  const take = (from: number, to: number): undefined => {
    if (elements.length >= maxItems) throw protocolError(`more than ${maxItems} ${member}`)
    elements.push(list.subarray(from, to))
  }
  await inTurns(visitElementsInTurns(list, take))
  return elements
}

/** The item, when it is one more. */
function add(
  kind: ItemKind,
  checked: UsableItem | UnusableItem,
  items: Map<string, CatalogItem>,
  violations: ErrorCollector,
): CatalogItem | undefined {
  const { key } = checked
  if ('failure' in checked) violations.leftOut(kind, key, checked.failure)
  else if (items.has(checked.key)) violations.leftOut(kind, key, 'another one has the same name')
  else {
    if (checked.repaired.length > 0) violations.repaired(kind, checked.key, checked.repaired)
    const { json, sessionJson } = checked
    const item = sessionJson ? { key: checked.key, json, sessionJson } : { key: checked.key, json }
    items.set(checked.key, item)
    return item
  }
  return undefined
}

/** What cannot be digested cannot be compared, and is not offered. */
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
