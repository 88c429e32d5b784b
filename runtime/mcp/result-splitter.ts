/**
 * Takes a response apart while it arrives: large members of its result go on to the client at once, the rest is held, and with
 * it the result is completed as any other. So a large result is never held whole.
 *
 * Nothing goes on before a member is seen to be large; until then, whatever is not a plain result is left to those who read
 * whole messages (`isGivenUp`). What comes out wrong after that is thrown, and the client's answer must break off: it is
 * never completed. Metadata of content that ends at the gateway is taken out for clients with sessions.
 * Source: JSON-RPC 2.0; MCP 2025-11-25 and 2026-07-28, basic; runtime/mcp/eras/results.ts for whole results.
 */
import { Pieces } from '../net/index.ts'
import type { Era } from './era.ts'
import { containers, maxObjects, metaWithoutReserved } from './eras/reserved-meta.ts'
import {
  arrayEnd,
  arrayStart,
  comma,
  emptyObjectBytes,
  nullByte,
  objectEnd,
  objectStart,
  openArray,
  openObject,
} from './json/bytes.ts'
import { DuplicateMember, JsonError, maxMembers, tooManyMembers } from './json/errors.ts'
import { JsonScanner } from './json/scanner.ts'
import { Utf8Parts } from './json/utf8-parts.ts'
import { invalid, type Message } from './message.ts'

/** From here on a member, or a response, is large. */
export const largeMemberBytes: number = 64 * 1024
const maxMetaBytes = 1024 * 1024
/** Of a member that stays, once others have gone on. */
const maxHeldBytes = 8 * 1024 * 1024

/** The way of large members to a client that waits for the result. */
export interface ResultPassage {
  /** Of the client. */
  readonly era: Era
  /** Reserves the response; the first `write` sends its head. Returns false when the client needs it whole. */
  begin(): boolean
  /** Text of members without the braces around them. The promise is settled when the client takes more. */
  write(parts: readonly Buffer[]): Promise<void> | undefined
}

/** Containers that are looked into; one for each that is open. */
type Frame =
  | { readonly kind: 'message' }
  | { readonly kind: 'result' }
  /** `objects`: which object within each other this is, or its elements are; the result is the first. */
  | { readonly kind: 'array'; readonly objects: number }
  | ObjectFrame

interface ObjectFrame {
  readonly kind: 'object'
  readonly objects: number
  isEmpty: boolean
}

interface Member {
  readonly name: string
  /** Name and value as far as they have arrived; undefined once they go on. */
  held: Pieces | undefined
  passes: boolean
  /** Stands for it among those that are held. */
  readonly standIn: Buffer
}

/** They say what kind of a result it is, or are put in by the client's codec. */
const ofProtocol: ReadonlySet<string> = new Set([
  '_meta',
  'resultType',
  'ttlMs',
  'cacheScope',
  'isError',
  'task',
])
const colon = Buffer.from(':')

export interface SplitterOptions {
  /** Of the request, raw JSON. */
  readonly id: string
  readonly passage: ResultPassage
  /** What is not UTF-8 is replaced, as in event streams, and not refused. */
  readonly replaces: boolean
  /** Members with more go on. */
  readonly largeBytes?: number
}

export class ResultSplitter {
  readonly #id: string
  readonly #largeBytes: number
  readonly #passage: ResultPassage
  readonly #isForSession: boolean
  readonly #utf8: Utf8Parts
  readonly #scanner = new JsonScanner()
  readonly #frames: Frame[] = []
  /** Names of the message, in lower case, and of the result. */
  readonly #ofMessage = new Set<string>()
  readonly #ofResult = new Set<string>()
  readonly #held: Buffer[] = []
  readonly #passed: string[] = []
  #jsonrpc: string | undefined
  #responseId: string | undefined
  #member: Member | undefined
  /** Takes the value that is being read in place of the member. */
  #aside: Pieces | undefined
  #asideName: Buffer = emptyObjectBytes
  /** The value that is being read is taken, from here on. */
  #takes = false
  #from = 0
  #out: Buffer[] = []
  #bytes = 0
  #isPassing = false
  #isGivenUp = false

  constructor({ id, passage, replaces, largeBytes = largeMemberBytes }: SplitterOptions) {
    this.#id = id
    this.#largeBytes = largeBytes
    this.#passage = passage
    this.#isForSession = passage.era === 'session'
    this.#utf8 = new Utf8Parts(replaces)
  }

  /** True once the response has to be read whole. Nothing has gone on. */
  get isGivenUp(): boolean {
    return this.#isGivenUp
  }

  /** True once something has gone on: nobody needs what has arrived. */
  get isPassing(): boolean {
    return this.#isPassing
  }

  /** Settled when the client takes more. Throws JsonError. */
  push(chunk: Buffer): Promise<void> | undefined {
    if (this.#isGivenUp) return undefined
    try {
      for (const part of this.#utf8.take(chunk)) this.#read(part)
    } catch (error) {
      if (this.#isPassing || !(error instanceof JsonError)) throw error
      this.#isGivenUp = true
    }
    if (!this.#isPassing || this.#out.length === 0) return undefined
    const out = this.#out
    this.#out = []
    return this.#passage.write(out)
  }

  /** The response, all of which has arrived: what was held of its result, and what has gone on. Throws JsonError, MessageError. */
  end(): Message | undefined {
    if (!this.#isPassing) return undefined
    if (!this.#scanner.isDone || !this.#utf8.isWhole) throw new JsonError('unfinished value', this.#bytes)
    if (this.#jsonrpc !== '"2.0"') throw invalid(this.#id, 'jsonrpc must be "2.0"')
    if (!this.#isOwn(this.#responseId)) throw invalid(this.#id, 'the response belongs to no request')
    const result = Buffer.concat([objectStart, ...this.#held, objectEnd])
    return {
      kind: 'result',
      bytes: result,
      id: this.#id,
      method: '',
      params: undefined,
      result,
      error: undefined,
      passed: { names: this.#passed, bytes: this.#bytes },
    }
  }

  #read(chunk: Buffer): void {
    const scanner = this.#scanner
    scanner.feed(chunk)
    this.#from = 0
    for (let stop = scanner.advance(); stop !== 'chunk'; stop = scanner.advance()) {
      if (stop === 'name') this.#named()
      else if (stop === 'value') this.#begun(chunk)
      else this.#ended(chunk)
      if (this.#isGivenUp) return
    }
    if (this.#takes) this.#take(chunk, this.#from, chunk.length)
  }

  #named(): void {
    const { name, depth } = this.#scanner
    if (depth > 2) return
    const names = depth === 1 ? this.#ofMessage : this.#ofResult
    const own = depth === 1 ? name.toLowerCase() : name
    if (names.has(own)) throw new DuplicateMember()
    if (names.size === maxMembers) throw tooManyMembers(0)
    names.add(own)
  }

  /** A value begins in the innermost container that is looked into. */
  #begun(chunk: Buffer): void {
    const c = chunk[this.#scanner.at] ?? 0
    const frame = this.#frames.at(-1)
    if (!frame) {
      if (c !== openObject) throw new JsonError('object expected', 0)
      this.#open({ kind: 'message' })
    } else if (frame.kind === 'message') this.#beginOfMessage(c)
    else if (frame.kind === 'result') this.#beginMember(chunk, c)
    else if (frame.kind === 'array') this.#lookInto(chunk, c === openObject ? c : 0, frame.objects)
    else this.#beginInObject(chunk, c, frame)
  }

  #open(frame: Frame): void {
    this.#frames.push(frame)
    this.#scanner.watched = this.#frames.length
  }

  #beginOfMessage(c: number): void {
    const { name } = this.#scanner
    if (name === 'result' && c === openObject) this.#open({ kind: 'result' })
    else if (name === 'id' || name === 'jsonrpc') this.#capture()
    // Treat a null member as absent; only null begins with n.
    else if (
      c !== nullByte &&
      (name === 'result' || name === 'error' || name === 'method' || name === 'params')
    )
      throw new JsonError('no result', this.#scanner.at)
  }

  #beginMember(chunk: Buffer, c: number): void {
    const { name, rawName, at } = this.#scanner
    const held = new Pieces()
    for (const piece of [rawName, colon]) held.add(piece)
    const standIn = c === openArray ? arrayOfObject : emptyObjectBytes
    this.#member = { name, held, passes: this.#mayPass(name, c), standIn }
    this.#takes = true
    this.#from = at
    if (this.#isForSession && containers.has(name)) this.#lookInto(chunk, c, 2)
  }

  /**
   * For a session, structured content has to be an object. Whatever else it is becomes a text when there is no other content, so
   * that this must be known to be some.
   */
  #mayPass(name: string, c: number): boolean {
    if (ofProtocol.has(name)) return false
    return !this.#isForSession || (name === 'structuredContent' ? c === openObject : name !== 'content')
  }

  /** Looks into the content that begins, when it can have metadata of its own. `objects` is what its objects count as. */
  #lookInto(chunk: Buffer, c: number, objects: number): void {
    if (objects > maxObjects) return
    if (c === openArray) this.#open({ kind: 'array', objects })
    if (c !== openObject) return
    if (this.#frames.at(-1)?.kind === 'array' && this.#member?.name === 'content') this.#member.passes = true
    const { at } = this.#scanner
    this.#take(chunk, this.#from, at + 1)
    this.#takes = false
    this.#open({ kind: 'object', objects, isEmpty: true })
  }

  #beginInObject(chunk: Buffer, c: number, frame: ObjectFrame): void {
    const { name, rawName, at } = this.#scanner
    if (name === '_meta' && c === openObject) {
      this.#asideName = rawName
      this.#capture()
      return
    }
    this.#writeName(frame, rawName)
    this.#takes = true
    this.#from = at
    if (containers.has(name)) this.#lookInto(chunk, c, frame.objects + 1)
  }

  #writeName(frame: ObjectFrame, rawName: Buffer): void {
    for (const piece of frame.isEmpty ? [rawName, colon] : [comma, rawName, colon])
      this.#take(piece, 0, piece.length)
    frame.isEmpty = false
  }

  #capture(): void {
    this.#aside = new Pieces()
    this.#takes = true
    this.#from = this.#scanner.at
  }

  /** A value has ended: one of the innermost container, or that itself. */
  #ended(chunk: Buffer): void {
    const { at, depth } = this.#scanner
    if (depth < this.#frames.length) {
      const closed = this.#frames.pop()
      this.#scanner.watched = this.#frames.length
      if (closed?.kind === 'object') {
        this.#takes = true
        this.#from = at - 1
      }
    }
    const frame = this.#frames.at(-1)
    if (!frame || frame.kind === 'array') return
    if (this.#takes) this.#take(chunk, this.#from, at)
    this.#takes = false
    if (frame.kind === 'message') this.#endOfMessage()
    else if (frame.kind === 'result') this.#endMember()
    else if (this.#aside) this.#endMeta(frame, this.#aside.whole())
  }

  #endOfMessage(): void {
    if (!this.#aside) return
    const value = this.#aside.whole().toString()
    this.#aside = undefined
    if (this.#scanner.name === 'id') this.#responseId = value
    else if (this.#scanner.name === 'jsonrpc') this.#jsonrpc = value
  }

  #endMember(): void {
    const member = this.#member
    if (!member) return
    if (this.#held.length > 0) this.#held.push(comma)
    if (member.held) this.#held.push(member.held.whole())
    else {
      this.#passed.push(member.name)
      this.#held.push(Buffer.from(`${JSON.stringify(member.name)}:`), member.standIn)
    }
    this.#member = undefined
  }

  #endMeta(frame: ObjectFrame, raw: Buffer): void {
    this.#aside = undefined
    const own = metaWithoutReserved(raw)
    if (!own) return
    this.#writeName(frame, this.#asideName)
    this.#take(own, 0, own.length)
  }

  #take(chunk: Buffer, from: number, to: number): void {
    if (from === to) return
    const held = this.#aside ?? this.#member?.held
    if (!held) {
      this.#out.push(chunk.subarray(from, to))
      this.#bytes += to - from
      return
    }
    held.add(chunk, from, to)
    if (this.#aside) {
      if (held.size > maxMetaBytes) throw new JsonError('too large', from)
    } else if (this.#member && held.size > this.#largeBytes) this.#grown(this.#member, held)
  }

  #grown(member: Member, held: Pieces): void {
    if (!member.passes) {
      const max = member.name === '_meta' || !this.#isPassing ? maxMetaBytes : maxHeldBytes
      if (held.size > max) throw new JsonError('too large', held.size)
      return
    }
    if (!this.#isPassing && !this.#begin()) {
      this.#isGivenUp = true
      return
    }
    if (this.#passed.length > 0) this.#out.push(comma)
    this.#out.push(...held.take())
    this.#bytes += held.size
    member.held = undefined
  }

  /** True for the id of the request. A server may return a numeric id as a string. */
  #isOwn(id: string | undefined): boolean {
    return id === this.#id || id === JSON.stringify(this.#id)
  }

  /** False when it is not, or may not be, what the client waits for, as far as it has arrived. */
  #begin(): boolean {
    if (this.#responseId !== undefined && !this.#isOwn(this.#responseId)) return false
    if ((this.#jsonrpc ?? '"2.0"') !== '"2.0"') return false
    const type = this.#held.find((piece) => piece.includes('"resultType"'))
    if (type && !type.includes('"complete"')) return false
    this.#isPassing = this.#passage.begin()
    return this.#isPassing
  }
}

const arrayOfObject = Buffer.concat([arrayStart, emptyObjectBytes, arrayEnd])
