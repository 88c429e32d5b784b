/**
 * A JSON object in its original bytes. Reads individual members, and returns changed copies in which all other bytes
 * stay the same.
 *
 * An object with a duplicate member is rejected, because two readers could use different values. A policy decision
 * could then apply to a value other than the one that the backend uses.
 */
import {
  closeArray,
  closeObject,
  colonByte,
  comma,
  commaByte,
  emptyObjectBytes,
  objectEnd,
  objectStart,
  openArray,
  openObject,
  plainBytes,
  quoteByte,
  readString,
  scalarStart,
  scalarSteps,
  skipText,
  zero,
} from './bytes.ts'
import { DuplicateMember, JsonError, maxDepth, maxMembers, maxNameBytes, maxNumberBytes } from './errors.ts'
import { type JsonMember, readMembers, scannedMembers, storeMembers } from './read.ts'
import { largeBytes, type TurnWork } from './turns.ts'

/** New values of members as JSON text. Undefined removes a member. */
export type Changes = Readonly<Record<string, Buffer | string | undefined>>

export class JsonObject {
  readonly bytes: Buffer
  readonly #members = new Map<string, JsonMember>()
  /** The last member that `object` returned. The member is cached because a message's metadata is read repeatedly. */
  #object: { readonly name: string; readonly value: JsonObject } | undefined

  /** Reads an object. Throws JsonError unless `bytes` is one complete object with distinct member names. */
  constructor(
    bytes: Buffer,
    { ignoreCase, maxValues }: { ignoreCase?: boolean; maxValues?: number | undefined } = {},
  ) {
    this.bytes = bytes
    const members = smallMembers(bytes, maxValues) ?? scannedMembers(bytes, maxValues)
    const names = new Set<string>()
    for (const member of members) {
      this.#members.set(member.name, member)
      names.add(ignoreCase ? member.name.toLowerCase() : member.name)
    }
    if (names.size < members.length) throw new DuplicateMember()
  }

  /** Returns the raw JSON text of a member. */
  raw(name: string): Buffer | undefined {
    const member = this.#members.get(name)
    if (!member) return undefined
    const { from, to } = member
    if (to - from < largeBytes) return this.bytes.subarray(from, to)
    member.raw ??= this.bytes.subarray(from, to)
    return member.raw
  }

  /** Returns the decoded value of a member, or undefined if the member is absent. */
  value(name: string): unknown {
    const raw = this.raw(name)
    return raw === undefined ? undefined : JSON.parse(raw.toString())
  }

  /** Returns the decoded text of a string member, or undefined for other types. */
  text(name: string): string | undefined {
    const member = this.#members.get(name)
    if (!member || this.bytes[member.from] !== quoteByte) return undefined
    const text = this.bytes.toString('utf8', member.from + 1, member.to - 1)
    return text.includes('\\') ? readString(this.bytes, member.from, member.to) : text
  }

  /** Returns an object member, or undefined for other types. */
  object(name: string): JsonObject | undefined {
    if (this.#object?.name === name) return this.#object.value
    const raw = this.raw(name)
    if (raw?.[0] !== openObject) return undefined
    const value = new JsonObject(raw)
    this.#object = { name, value }
    return value
  }

  names(): string[] {
    return [...this.#members.keys()]
  }

  /** Returns the name and raw value of each member, in order. */
  entries(): [string, Buffer][] {
    return Array.from(this.#members, ([name, { from, to }]) => [name, this.bytes.subarray(from, to)])
  }

  /** Returns the object with some members replaced in place, removed, or added at the end. */
  with(changes: Changes): Buffer {
    return Buffer.concat(this.parts(changes))
  }

  /** Like `with`, but returns an object. The members of a large object are not read again. */
  changed(changes: Changes): JsonObject {
    const bytes = this.with(changes)
    if (bytes.length >= largeBytes) storeMembers(bytes, this.#membersAfter(changes))
    return new JsonObject(bytes)
  }

  /** Returns the members of the object that `with` returns. */
  #membersAfter(changes: Changes): JsonMember[] {
    const members: JsonMember[] = []
    let end = 0
    const add = (name: string, head: number, raw: Buffer): void => {
      // The name follows the brace or a comma.
      const nameAt = end + 1
      const from = nameAt + head
      end = from + raw.length
      members.push({ name, nameAt, from, to: end, raw })
    }
    for (const { name, nameAt, from } of this.#members.values()) {
      const value = Object.hasOwn(changes, name) ? changes[name] : this.raw(name)
      if (value !== undefined) add(name, from - nameAt, toBuffer(value))
    }
    for (const [name, value] of Object.entries(changes))
      if (value !== undefined && !this.#members.has(name))
        add(name, Buffer.byteLength(JSON.stringify(name)) + 1, toBuffer(value))
    return members
  }

  /** Like `with`, but returns pieces, so a large object is not copied. */
  parts(changes: Changes): Buffer[] {
    const parts: Buffer[] = []
    const add = (...pieces: Buffer[]): void =>
      void parts.push(parts.length === 0 ? objectStart : comma, ...pieces)
    for (const { name, nameAt, from, to } of this.#members.values()) {
      const value = changes[name]
      if (!Object.hasOwn(changes, name)) add(this.bytes.subarray(nameAt, to))
      else if (value !== undefined) add(this.bytes.subarray(nameAt, from), toBuffer(value))
    }
    for (const [name, value] of Object.entries(changes))
      if (value !== undefined && !this.#members.has(name))
        add(Buffer.from(`${JSON.stringify(name)}:`), toBuffer(value))
    if (parts.length === 0) parts.push(objectStart)
    parts.push(objectEnd)
    return parts
  }
}

function toBuffer(value: Buffer | string): Buffer {
  return typeof value === 'string' ? Buffer.from(value) : value
}

// Bit flags for the tokens that are allowed next.
const aName = 1
const aColon = 2
const aValue = 4
const aComma = 8
const anEnd = 16

/**
 * Maximum length of strings that are skipped one byte at a time. Longer strings are skipped several bytes at a time.
 */
const shortBytes = 64

/**
 * Returns the members of the object in `bytes`. Accepts the same text as the scanner, but in a single pass that cannot
 * be resumed. Returns undefined for large text and for text that the scanner rejects. The scanner then reports the
 * reason.
 */
export function smallMembers(bytes: Buffer, maxValues = Infinity): readonly JsonMember[] | undefined {
  if (bytes.length >= largeBytes) return undefined
  const members: JsonMember[] = []
  /** Kinds of the open containers. True for an object, and false for an array. */
  const nesting: boolean[] = []
  let next = aValue
  let name = ''
  let nameAt = 0
  let from = 0
  let values = 0
  for (let at = 0; at < bytes.length; ) {
    const begin = at
    const c = bytes[at++] ?? 0
    const depth = nesting.length
    if (c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09) continue
    if (c === commaByte || c === colonByte) {
      if ((next & (c === commaByte ? aComma : aColon)) === 0) return undefined
      next = c === commaByte && nesting[depth - 1] === true ? aName : aValue
      continue
    }
    if (c === quoteByte) {
      // A read past the end of a truncated text would make all later calls slower.
      const short = Math.min(begin + shortBytes, bytes.length)
      while (at < short && plainBytes[bytes[at] ?? 0] === 1) at++
      const isPlain = at < short && bytes[at] === quoteByte
      if (!isPlain) at = skipText(bytes, at)
      if (at === bytes.length || bytes[at++] !== quoteByte) return undefined
      if ((next & aName) !== 0) {
        next = aColon
        if (at - begin > maxNameBytes) return undefined
        if (depth > 1) continue
        name = isPlain ? bytes.toString('utf8', begin + 1, at - 1) : readString(bytes, begin, at)
        nameAt = begin
        continue
      }
    }
    if (c === closeObject || c === closeArray) {
      if ((next & anEnd) === 0 || nesting.pop() !== (c === closeObject)) return undefined
    } else {
      if ((next & aValue) === 0 || depth > maxDepth + 1) return undefined
      if (depth === 0 && c !== openObject) return undefined
      if (depth === 1) {
        from = begin
        values = 0
      }
      if (++values > maxValues) return undefined
      if (c === openObject || c === openArray) {
        nesting.push(c === openObject)
        next = anEnd | (c === openObject ? aName : aValue)
        continue
      }
      if (c !== quoteByte) {
        let state = scalarStart
        for (at = begin; at < bytes.length; at++) {
          const after = scalarSteps[state * 256 + (bytes[at] ?? 0)] ?? 0
          if (after === 0) break
          state = after
        }
        if (state < zero || at - begin > maxNumberBytes) return undefined
      }
    }
    // A value has ended.
    if (nesting.length === 1) {
      if (members.length === maxMembers) return undefined
      members.push({ name, nameAt, from, to: at })
    }
    next = nesting.length === 0 ? 0 : aComma | anEnd
  }
  return next === 0 ? members : undefined
}

/** Maximum depth of the objects in a message that are read ahead. The message itself has depth 1. */
const maxReadAhead = 5

/**
 * Reads the members of a large object, and of the large objects in it, in slices. Later reads of these objects are then
 * immediate, and report the errors.
 */
export function* readAhead(bytes: Buffer, maxValues?: number, depth = 1): TurnWork<void> {
  if (bytes.length < largeBytes || depth > maxReadAhead) return
  try {
    yield* readMembers(bytes, maxValues)
    const object = new JsonObject(bytes)
    for (const name of object.names()) {
      const value = object.raw(name)
      if (value?.[0] === openObject) yield* readAhead(value, undefined, depth + 1)
    }
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
  }
}

/** The object `{}`. */
export const emptyObject: JsonObject = new JsonObject(emptyObjectBytes)
