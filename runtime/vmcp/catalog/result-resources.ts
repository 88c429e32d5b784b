/**
 * Changes the resources in results: links, embedded resources and contents. Features use this module to replace the
 * addresses that backends use with the addresses that clients use. All other bytes stay unchanged.
 */
import { joined, JsonObject, readAhead, type TurnWork, visitElementsInTurns } from '../../mcp/index.ts'

const maxPieces = 2_000

export interface ResultChanges {
  /** Changes the result itself, such as its `_meta`. */
  readonly result?: (result: JsonObject) => Buffer
  /** Changes a content of a read, a resource link or an embedded resource. */
  readonly resource: (item: JsonObject) => Buffer
}

/**
 * Returns a result of a tool call, a prompt or a resource read with changed resources. Yields between items. Throws
 * JsonError for duplicate members.
 */
export function* withChangedResources(
  method: string,
  bytes: Buffer,
  { result: changeResult, resource }: ResultChanges,
): TurnWork<Buffer> {
  yield* readAhead(bytes)
  const result = new JsonObject(changeResult?.(new JsonObject(bytes)) ?? bytes)
  yield* readAhead(result.bytes)
  if (method === 'resources/read') return yield* mapMember(result, 'contents', resource)
  if (method === 'prompts/get')
    return yield* mapMember(result, 'messages', (message) => inMessage(message, resource))
  return yield* mapMember(result, 'content', (item) => block(item, resource))
}

/** Returns a message of a prompt. Its content is one block, or a list of blocks in some implementations. */
function inMessage(message: JsonObject, resource: ResultChanges['resource']): TurnWork<Buffer> {
  return mapMember(message, 'content', (item) => block(item, resource))
}

/** Returns a content block. A link and an embedded resource contain an address. */
function block(item: JsonObject, change: ResultChanges['resource']): Buffer {
  const type = item.text('type')
  if (type === 'resource_link') return change(item)
  const resource = type === 'resource' ? item.object('resource') : undefined
  return resource ? item.with({ resource: change(resource) }) : item.bytes
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
