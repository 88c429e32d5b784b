/**
 * Keys of `_meta` that belong to the protocol itself: they describe one hop, so what a server says by them ends at the
 * gateway. Those that mean the same at both ends pass.
 * Source: MCP 2025-11-25 and 2026-07-28, basic, "General fields" (`_meta`).
 */
import { type Changes, JsonObject } from '../json/object.ts'
import { readMembers, visitElementsInTurns } from '../json/read.ts'
import { JsonError } from '../json/errors.ts'
import { atOnce, indexIn, joined, type TurnWork } from '../json/turns.ts'

const prefix = 'io.modelcontextprotocol/'
const endToEnd: ReadonlySet<string> = new Set([`${prefix}related-task`, `${prefix}model-immediate-response`])
/** Members in which objects with `_meta` of their own lie. */
export const containers: ReadonlySet<string> = new Set(['content', 'contents', 'messages', 'resource'])

/** What every reserved key contains, but for the characters that may be escaped. */
const reservedMark = 'io.modelcontextprotocol'
const unicodeEscape = '\\u'
/** Objects within each other, the result included: the content of a message is the deepest, and the resource in it. */
export const maxObjects = 4
const maxElements = 100_000

/**
 * A result or params object without reserved keys; the same buffer when it has none. Throws JsonError when a member that
 * matters stands there twice, or when more elements have reserved names than any result has.
 */
export function withoutReservedMeta(object: Buffer): Buffer {
  return atOnce(withoutReservedMetaInTurns(object))
}

/** As withoutReservedMeta. */
export function* withoutReservedMetaInTurns(object: Buffer): TurnWork<Buffer> {
  const has = object[0] === 0x7b && (yield* new Marks(object).from(0)) < object.length
  return has ? yield* cleaned(object, 1) : object
}

function* cleaned(raw: Buffer, depth: number): TurnWork<Buffer> {
  if (depth > maxObjects) return raw
  yield* readMembers(raw)
  const object = new JsonObject(raw)
  const changes: Record<string, Buffer | undefined> = {}
  for (const [name, value] of object.entries()) {
    const instead =
      name === '_meta'
        ? cleanedMeta(value)
        : containers.has(name)
          ? yield* cleanedContainer(value, depth + 1)
          : value
    if (instead !== value) changes[name] = instead
  }
  return Object.keys(changes).length === 0 ? raw : yield* joined(object.parts(changes))
}

/** A `_meta` without reserved keys; undefined when nothing is left of it. */
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
  const marks = new Marks(raw)
  const pieces: Buffer[] = []
  let done = 0
  let looked = 0
  function* clean(from: number, to: number): TurnWork<void> {
    if ((yield* marks.from(from)) >= to) return
    if (++looked > maxElements) throw new JsonError('too many elements with reserved names', from)
    const element = raw.subarray(from, to)
    const own = yield* cleaned(element, depth)
    if (own === element) return
    pieces.push(raw.subarray(done, from), own)
    done = to
  }
  yield* visitElementsInTurns(raw, (from, to) =>
    raw[from] === 0x7b && marks.mayBeBefore(from, to) ? clean(from, to) : undefined,
  )
  return pieces.length === 0 ? raw : yield* joined([...pieces, raw.subarray(done)])
}

/** Where the next thing stands that may be a reserved key; each byte is looked at once. */
class Marks {
  readonly #text: Buffer
  #mark = -1
  #escape = -1

  constructor(text: Buffer) {
    this.#text = text
  }

  /** Offset of the first one at or after `at`; Infinity: there is none. Offsets must not go back. */
  *from(at: number): TurnWork<number> {
    if (this.#mark < at) this.#mark = yield* this.#next(reservedMark, at)
    if (this.#escape < at) this.#escape = yield* this.#next(unicodeEscape, at)
    return Math.min(this.#mark, this.#escape)
  }

  /** False when `from` would tell nothing before `to`, as far as is known. */
  mayBeBefore(from: number, to: number): boolean {
    return this.#mark < from || this.#escape < from || Math.min(this.#mark, this.#escape) < to
  }

  *#next(what: string, at: number): TurnWork<number> {
    const found = yield* indexIn(this.#text, what, at)
    return found < 0 ? Number.POSITIVE_INFINITY : found
  }
}
