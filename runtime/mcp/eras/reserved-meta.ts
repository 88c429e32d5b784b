/**
 * Removes `_meta` keys that are reserved for the protocol. Reserved keys describe one hop, so the gateway does not
 * forward a server's keys. Keys with an end-to-end meaning are kept.
 * Source: MCP 2025-11-25 and 2026-07-28, basic, "General fields" (`_meta`).
 */
import { type Changes, JsonObject } from '../json/object.ts'
import { readMembers, visitElementsInTurns } from '../json/read.ts'
import { JsonError } from '../json/errors.ts'
import { atOnce, indexIn, joined, type TurnWork } from '../json/turns.ts'

const prefix = 'io.modelcontextprotocol/'
const endToEnd: ReadonlySet<string> = new Set([`${prefix}related-task`, `${prefix}model-immediate-response`])
/** Members whose objects each have their own `_meta`. */
export const containers: ReadonlySet<string> = new Set(['content', 'contents', 'messages', 'resource'])

/** Text that every reserved key contains, unless some of the key's characters are escaped. */
const reservedMark = 'io.modelcontextprotocol'
const unicodeEscape = '\\u'
/**
 * Maximum nesting depth of objects, including the result. The deepest object is the resource in a message's content.
 */
export const maxObjects = 4
const maxElements = 100_000

/**
 * Returns a result or params object without reserved keys. Returns the same buffer if there are no reserved keys.
 * Throws JsonError if a relevant member occurs twice, or if too many elements contain reserved names.
 */
export function withoutReservedMeta(object: Buffer): Buffer {
  return atOnce(withoutReservedMetaInTurns(object))
}

/** Like `withoutReservedMeta`, but works in slices. */
export function* withoutReservedMetaInTurns(object: Buffer): TurnWork<Buffer> {
  const has = object[0] === 0x7b && (yield* new ReservedKeyFinder(object).from(0)) < object.length
  return has ? yield* cleaned(object, 1) : object
}

function* cleaned(raw: Buffer, depth: number): TurnWork<Buffer> {
  if (depth > maxObjects) return raw
  yield* readMembers(raw)
  const object = new JsonObject(raw)
  const changes: Record<string, Buffer | undefined> = {}
  for (const [name, value] of object.entries()) {
    const cleanedValue =
      name === '_meta'
        ? cleanedMeta(value)
        : containers.has(name)
          ? yield* cleanedContainer(value, depth + 1)
          : value
    if (cleanedValue !== value) changes[name] = cleanedValue
  }
  return Object.keys(changes).length === 0 ? raw : yield* joined(object.parts(changes))
}

/** Returns a `_meta` object without its reserved keys. Returns undefined if no other keys remain. */
export function metaWithoutReserved(meta: Buffer): Buffer | undefined {
  return meta.includes(reservedMark) || meta.includes(unicodeEscape) ? cleanedMeta(meta) : meta
}

function cleanedMeta(raw: Buffer): Buffer | undefined {
  if (raw[0] !== 0x7b) return raw
  const meta = new JsonObject(raw)
  const reserved = meta.names().filter((name) => name.startsWith(prefix) && !endToEnd.has(name))
  if (reserved.length === 0) return raw
  if (reserved.length === meta.names().length) return undefined
  const changes: Changes = Object.fromEntries(reserved.map((name) => [name, undefined]))
  return meta.with(changes)
}

function* cleanedContainer(raw: Buffer, depth: number): TurnWork<Buffer> {
  if (raw[0] === 0x7b) return yield* cleaned(raw, depth)
  if (raw[0] !== 0x5b) return raw
  const finder = new ReservedKeyFinder(raw)
  const pieces: Buffer[] = []
  let done = 0
  let cleanedElements = 0
  function* clean(from: number, to: number): TurnWork<void> {
    if ((yield* finder.from(from)) >= to) return
    if (++cleanedElements > maxElements) throw new JsonError('too many elements with reserved names', from)
    const element = raw.subarray(from, to)
    const own = yield* cleaned(element, depth)
    if (own === element) return
    pieces.push(raw.subarray(done, from), own)
    done = to
  }
  yield* visitElementsInTurns(raw, (from, to) =>
    raw[from] === 0x7b && finder.mayBeBefore(from, to) ? clean(from, to) : undefined,
  )
  return pieces.length === 0 ? raw : yield* joined([...pieces, raw.subarray(done)])
}

/** Finds the next text that may be a reserved key. Scans each byte only once. */
class ReservedKeyFinder {
  readonly #text: Buffer
  #mark = -1
  #escape = -1

  constructor(text: Buffer) {
    this.#text = text
  }

  /**
   * Returns the offset of the first match at or after `at`. Returns Infinity if there is no match. Offsets must not
   * decrease.
   */
  *from(at: number): TurnWork<number> {
    if (this.#mark < at) this.#mark = yield* this.#next(reservedMark, at)
    if (this.#escape < at) this.#escape = yield* this.#next(unicodeEscape, at)
    return Math.min(this.#mark, this.#escape)
  }

  /** False if the known offsets rule out a match between `from` and `to`. */
  mayBeBefore(from: number, to: number): boolean {
    return this.#mark < from || this.#escape < from || Math.min(this.#mark, this.#escape) < to
  }

  *#next(needle: string, at: number): TurnWork<number> {
    const found = yield* indexIn(this.#text, needle, at)
    return found < 0 ? Number.POSITIVE_INFINITY : found
  }
}
