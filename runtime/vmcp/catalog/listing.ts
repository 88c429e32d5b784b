/**
 * Reads everything that one backend offers: tools, resources, resource templates, prompts, all pages.
 *
 * Items stay the bytes that the backend sent. Whatever is too much (pages, items, a cursor that comes again) or has no
 * name is dropped with a warning or refused, so that no backend can fill the memory.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { JsonObject, type MirroredArgument, mirroredArguments, RPC, scanElements } from '../../mcp/index.ts'
import type { Log } from '../../net/index.ts'
import type { Sender } from '../backends/channel.ts'
import type { Connection, Request, ServerInfo } from '../backends/connection.ts'
import type { Outcome } from '../operation.ts'

export interface Item {
  /** Name of a tool or prompt, URI of a resource, template of a resource template. */
  readonly key: string
  /** The whole item as the backend sent it. */
  readonly json: Buffer
}

export interface ToolItem extends Item {
  readonly mirrored: readonly MirroredArgument[]
}

export interface Listing {
  readonly backend: string
  /** Different for every listing ever read in this process. */
  readonly serial: number
  readonly server: ServerInfo
  readonly tools: readonly ToolItem[]
  readonly resources: readonly Item[]
  readonly templates: readonly Item[]
  readonly prompts: readonly Item[]
}

const MAX_PAGES = 1_000
const MAX_ITEMS = 10_000
const EMPTY: JsonObject = new JsonObject(Buffer.from('{}'))

let serial = 0

export interface ListOptions {
  readonly backend: string
  readonly connection: Connection
  readonly server: ServerInfo
  readonly capabilities: Buffer
  readonly sender: Sender
  readonly signal: AbortSignal
  readonly timeoutMs: number
  readonly log: Log
  /** Stands around each request. */
  readonly measured: (request: Request, work: (request: Request) => Promise<Outcome>) => Promise<Outcome>
}

/** Rejects with BACKEND_* errors, or BACKEND_PROTOCOL when the lists break the protocol. */
export async function readListing(options: ListOptions): Promise<Listing> {
  const { capabilities } = options.server
  const [tools, resources, templates, prompts] = await Promise.all([
    capabilities.tools ? readAll(options, 'tools/list', 'tools', 'name') : [],
    capabilities.resources ? readAll(options, 'resources/list', 'resources', 'uri') : [],
    capabilities.resources
      ? readAll(options, 'resources/templates/list', 'resourceTemplates', 'uriTemplate')
      : [],
    capabilities.prompts ? readAll(options, 'prompts/list', 'prompts', 'name') : [],
  ])
  return {
    backend: options.backend,
    serial: ++serial,
    server: options.server,
    tools: tools.flatMap((item) => usable(item, options)),
    resources,
    templates,
    prompts,
  }
}

/** A tool that can be offered; none when its schema can be read in two ways, or marks headers wrongly. */
function usable(item: Item, { backend, log }: ListOptions): ToolItem[] {
  try {
    const tool = new JsonObject(item.json)
    tool.object('inputSchema')
    tool.object('annotations')
    const marked = item.json.includes('x-mcp-header')
    return [{ ...item, mirrored: marked ? mirroredArguments(tool.value('inputSchema')) : [] }]
  } catch (error) {
    log.warn('a tool is left out because of its schema', { backend, tool: item.key, err: error })
    return []
  }
}

async function readAll(options: ListOptions, method: string, member: string, key: string): Promise<Item[]> {
  const items = new Map<string, Item>()
  const cursors = new Set<string>()
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES; page++) {
    const result = await readPage(options, method, cursor)
    if (!result) return []
    collect(result, member, key, items, options)
    cursor = result.text('nextCursor')
    if (cursor === undefined) return [...items.values()]
    if (cursors.has(cursor)) throw protocol(`${method} repeats a cursor`)
    cursors.add(cursor)
  }
  throw protocol(`${method} has more than ${MAX_PAGES} pages`)
}

/** One page; undefined when the backend does not know the method after all. */
async function readPage(
  options: ListOptions,
  method: string,
  cursor: string | undefined,
): Promise<JsonObject | undefined> {
  const { connection, sender, signal, timeoutMs, capabilities } = options
  const request = {
    method,
    params: EMPTY,
    changes: cursor === undefined ? {} : { cursor: JSON.stringify(cursor) },
    sender,
    capabilities,
    signal,
    timeoutMs,
  }
  const outcome = await options.measured(request, (traced) => connection.request(traced))
  if (outcome.kind === 'result') return new JsonObject(outcome.result)
  if (outcome.kind === 'error' && new JsonObject(outcome.error).value('code') === RPC.methodNotFound)
    return undefined
  throw protocol(`${method} was refused`)
}

function collect(
  result: JsonObject,
  member: string,
  key: string,
  items: Map<string, Item>,
  options: ListOptions,
): void {
  const list = result.raw(member)
  if (list?.[0] !== 0x5b) throw protocol(`${member} is no list`)
  let nameless = 0
  let repeated = 0
  for (const json of scanElements(list)) {
    const name = json[0] === 0x7b ? readKey(json, key) : undefined
    if (name === undefined) nameless++
    else if (items.has(name)) repeated++
    // A copy, so that one small item does not keep a large answer in memory.
    else items.set(name, { key: name, json: Buffer.from(json) })
    if (items.size > MAX_ITEMS) throw protocol(`more than ${MAX_ITEMS} ${member}`)
  }
  if (nameless + repeated === 0) return
  options.log.warn('items are left out that have no name, or one that occurs twice', {
    backend: options.backend,
    member,
    nameless,
    repeated,
  })
}

function readKey(json: Buffer, key: string): string | undefined {
  try {
    const name = new JsonObject(json).text(key)
    return name === '' ? undefined : name
  } catch {
    return undefined
  }
}

function protocol(what: string): GatehouseError {
  return new GatehouseError('BACKEND_PROTOCOL', { cause: new Error(what) })
}
