/**
 * A JSON object held as bytes: reads single members and makes a changed copy in which every untouched byte stays.
 *
 * An object with the same member twice is refused: two readers could take different ones, and a policy decision on
 * the one would be carried out on the other.
 */
import { comma, emptyObjectBytes, objectEnd, objectStart, readString } from './bytes.ts'
import { type JsonMember, membersOf } from './read.ts'
import { DuplicateMember } from './errors.ts'

/** New value of a member as JSON text; undefined removes the member. */
export type Changes = Readonly<Record<string, Buffer | string | undefined>>

export class JsonObject {
  readonly bytes: Buffer
  readonly #members: readonly JsonMember[]
  /** The last one that `object` has read: the metadata of a message is asked for again and again. */
  #object: { readonly name: string; readonly value: JsonObject } | undefined

  /** Throws JsonError when `bytes` is not one complete object with distinct member names. */
  constructor(bytes: Buffer, options: { ignoreCase?: boolean; maxValues?: number } = {}) {
    const members = membersOf(bytes, options.maxValues)
    refuseDuplicates(members, options.ignoreCase ?? false)
    this.bytes = bytes
    this.#members = members
  }

  #member(name: string): JsonMember | undefined {
    for (const member of this.#members) if (member.name === name) return member
    return undefined
  }

  /** Raw JSON text of a member. */
  raw(name: string): Buffer | undefined {
    const member = this.#member(name)
    return member && this.bytes.subarray(member.from, member.to)
  }

  /** Decoded value of a member; undefined when absent. */
  value(name: string): unknown {
    const raw = this.raw(name)
    return raw === undefined ? undefined : JSON.parse(raw.toString())
  }

  /** The member when it is a string. */
  text(name: string): string | undefined {
    const member = this.#member(name)
    if (!member || this.bytes[member.from] !== 0x22) return undefined
    return readString(this.bytes, member.from, member.to)
  }

  /** The member when it is an object. */
  object(name: string): JsonObject | undefined {
    if (this.#object?.name === name) return this.#object.value
    const member = this.#member(name)
    if (!member || this.bytes[member.from] !== 0x7b) return undefined
    const value = new JsonObject(this.bytes.subarray(member.from, member.to))
    this.#object = { name, value }
    return value
  }

  names(): string[] {
    return this.#members.map((member) => member.name)
  }

  /** Name and raw value of each member, in order. */
  entries(): [string, Buffer][] {
    return this.#members.map((member) => [member.name, this.bytes.subarray(member.from, member.to)])
  }

  /** The object with some members replaced in place, removed, or added at the end. */
  with(changes: Changes): Buffer {
    return Buffer.concat(this.parts(changes))
  }

  /** As `with`, in pieces: a large object is not copied. */
  parts(changes: Changes): Buffer[] {
    const parts: Buffer[] = [objectStart]
    const pending = new Set(Object.keys(changes).filter((name) => changes[name] !== undefined))
    for (const member of this.#members) {
      const changed = Object.hasOwn(changes, member.name)
      if (changed && changes[member.name] === undefined) continue
      if (parts.length > 1) parts.push(comma)
      if (!changed) parts.push(this.bytes.subarray(member.nameAt, member.to))
      else {
        parts.push(this.bytes.subarray(member.nameAt, member.from), toBuffer(changes[member.name]))
        pending.delete(member.name)
      }
    }
    for (const name of pending) {
      if (parts.length > 1) parts.push(comma)
      parts.push(Buffer.from(`${JSON.stringify(name)}:`), toBuffer(changes[name]))
    }
    parts.push(objectEnd)
    return parts
  }
}

function toBuffer(value: Buffer | string | undefined): Buffer {
  return typeof value === 'string' ? Buffer.from(value) : (value ?? Buffer.alloc(0))
}

/** Up to this many members, comparing each with each is cheaper than a set. */
const few = 8

function refuseDuplicates(members: readonly JsonMember[], ignoreCase: boolean): void {
  if (members.length < 2) return
  const names = ignoreCase ? members.map(({ name }) => name.toLowerCase()) : members.map(({ name }) => name)
  if (names.length > few) {
    if (new Set(names).size !== names.length) throw new DuplicateMember()
    return
  }
  for (let i = 1; i < names.length; i++) {
    if (names.indexOf(names[i] ?? '') < i) throw new DuplicateMember()
  }
}

/** `{}` */
export const emptyObject: JsonObject = new JsonObject(emptyObjectBytes)
