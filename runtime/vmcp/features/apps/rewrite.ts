/**
 * Rewrites the addresses of pages in definitions and results. All other bytes stay unchanged, and HTML is never
 * changed. An address from a backend always becomes an address of the same backend, so no backend can refer to another
 * backend's pages.
 */
import {
  type Changes,
  joined,
  JsonObject,
  readAhead,
  type TurnWork,
  visitElementsInTurns,
} from '../../../mcp/index.ts'
import { isUiAddress } from '../../catalog/names/ui-addresses.ts'
import { otherPageMembers } from '../../model/catalog/tool-ui.ts'
import { narrowedMeta, type PageLimits } from './page-meta.ts'

const maxPieces = 2_000

export interface RewriteRules extends PageLimits {
  /** Returns the address that clients see, for a URI that the backend uses. */
  readonly addressOf: (uri: string) => string
  /** Receives the backend's URI of a page, and the lists from which origins or permissions were removed. */
  readonly onNarrowed: (uri: string, affected: readonly string[]) => void
}

/**
 * Returns an object with rewritten page addresses in its `_meta`. Removes addresses that do not begin with `ui://`,
 * because clients could resolve them outside the backend.
 */
export function withPageAddress(object: JsonObject, rules: RewriteRules): Buffer {
  const meta = object.object('_meta')
  if (!meta) return object.bytes
  const ui = meta.object('ui')
  const changes: Record<string, Buffer | string | undefined> = {}
  if (ui?.raw('resourceUri')) changes['ui'] = ui.with({ resourceUri: pageAddress(ui, 'resourceUri', rules) })
  for (const member of otherPageMembers)
    if (meta.raw(member)) changes[member] = pageAddress(meta, member, rules)
  return Object.keys(changes).length === 0 ? object.bytes : object.with({ _meta: meta.with(changes) })
}

function pageAddress(object: JsonObject, member: string, { addressOf }: RewriteRules): string | undefined {
  const uri = object.text(member)
  return uri !== undefined && isUiAddress(uri) ? JSON.stringify(addressOf(uri)) : undefined
}

/** Returns a resource, template or content with its address rewritten and its permissions narrowed. */
export function withResourceAddress(
  item: JsonObject,
  member: 'uri' | 'uriTemplate',
  rules: RewriteRules,
): Buffer {
  const uri = item.text(member)
  if (uri === undefined) return item.bytes
  const address = rules.addressOf(uri)
  const meta = narrowedMeta(item, rules)
  if (meta && meta.affected.length > 0 && isUiAddress(uri)) rules.onNarrowed(uri, meta.affected)
  const changes: Changes = {
    ...(address !== uri && { [member]: JSON.stringify(address) }),
    ...(meta && { _meta: meta.json }),
  }
  return Object.keys(changes).length === 0 ? item.bytes : item.with(changes)
}

/**
 * Returns a result of a tool call, a prompt or a resource read with rewritten addresses. Yields between items. Throws
 * JsonError for duplicate members.
 */
export function* withResultAddresses(method: string, bytes: Buffer, rules: RewriteRules): TurnWork<Buffer> {
  yield* readAhead(bytes)
  const result = new JsonObject(withPageAddress(new JsonObject(bytes), rules))
  yield* readAhead(result.bytes)
  if (method === 'resources/read')
    return yield* mapMember(result, 'contents', (item) => withResourceAddress(item, 'uri', rules))
  if (method === 'prompts/get')
    return yield* mapMember(result, 'messages', (message) => inMessage(message, rules))
  return yield* mapMember(result, 'content', (item) => block(item, rules))
}

/** Returns a message of a prompt. Its content is one block, or a list of blocks in some implementations. */
function inMessage(message: JsonObject, rules: RewriteRules): TurnWork<Buffer> {
  return mapMember(message, 'content', (item) => block(item, rules))
}

/** Returns a content block. A link and an embedded resource contain an address. */
function block(item: JsonObject, rules: RewriteRules): Buffer {
  const type = item.text('type')
  if (type === 'resource_link') return withResourceAddress(item, 'uri', rules)
  const resource = type === 'resource' ? item.object('resource') : undefined
  return resource ? item.with({ resource: withResourceAddress(resource, 'uri', rules) }) : item.bytes
}

/** Changes a member that is an object or a list of objects. Other values stay unchanged. */
function* mapMember(
  object: JsonObject,
  member: string,
  change: (item: JsonObject) => Buffer | TurnWork<Buffer>,
): TurnWork<Buffer> {
  const raw = object.raw(member)
  if (raw?.[0] === 0x7b) {
    const after = yield* changed(raw, change)
    return after === raw ? object.bytes : object.with({ [member]: after })
  }
  if (raw?.[0] !== 0x5b) return object.bytes
  const chunks: Buffer[] = []
  const pieces: Buffer[] = []
  let end = 0
  yield* visitElementsInTurns(raw, function* visit(from, to) {
    const item = raw.subarray(from, to)
    const after = item[0] === 0x7b ? yield* changed(item, change) : item
    if (after === item) return
    pieces.push(raw.subarray(end, from), after)
    end = to
    // Millions of small buffers would slow down garbage collection.
    if (pieces.length >= maxPieces) chunks.push(yield* joined(pieces.splice(0)))
  })
  if (end === 0) return object.bytes
  return object.with({ [member]: yield* joined([...chunks, ...pieces, raw.subarray(end)]) })
}

function* changed(item: Buffer, change: (item: JsonObject) => Buffer | TurnWork<Buffer>): TurnWork<Buffer> {
  yield* readAhead(item)
  const after = change(new JsonObject(item))
  return Buffer.isBuffer(after) ? after : yield* after
}
