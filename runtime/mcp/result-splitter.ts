/**
 * Splits a response while it arrives. Sends large members of the result to the client immediately, and keeps the rest
 * to complete the result. A large result is never kept in memory as a whole.
 *
 * No data is sent before a large member is found. Until then, the whole-message reader handles any response that is not
 * a plain result (`isGivenUp`). Later errors are thrown. The caller must then abort the client's response, because this
 * response can never be completed. Reserved metadata in content is removed for session clients.
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

/** Minimum size of a large member or response. */
export const largeMemberBytes: number = 64 * 1024
const maxMetaBytes = 1024 * 1024
/** Maximum size of a member that is kept after other members have been sent. */
const maxKeptBytes = 8 * 1024 * 1024

/** Sends large members to a client that is waiting for the result. */
export interface ResultPassage {
  /** Protocol era of the client. */
  readonly era: Era
  /**
   * Reserves the response. The first `write` sends the response's head. Returns false if the client needs the whole
   * result.
   */
  begin(): boolean
  /** Sends the text of one or more members, without braces. The promise settles when the client can receive more. */
  write(parts: readonly Buffer[]): Promise<void> | undefined
}

/** Open containers whose members are inspected. */
type Frame =
  | { readonly kind: 'message' }
  | { readonly kind: 'result' }
  /** `objects` is the nesting depth of the elements, counted in objects. The result itself has depth 1. */
  | { readonly kind: 'array'; readonly objects: number }
  | ObjectFrame

interface ObjectFrame {
  readonly kind: 'object'
  readonly objects: number
  isEmpty: boolean
}

interface Member {
  readonly name: string
  /** The name and the value received so far. Undefined once the member is being sent. */
  kept: Pieces | undefined
  maySend: boolean
  /** Placeholder for the sent member among the kept members. */
  readonly placeholder: Buffer
}

/** Members that determine the kind of result, or that the client's codec adds. */
const protocolMembers: ReadonlySet<string> = new Set([
  '_meta',
  'resultType',
  'ttlMs',
  'cacheScope',
  'isError',
  'task',
])
const colon = Buffer.from(':')

export interface SplitterOptions {
  /** Raw JSON id of the request. */
  readonly id: string
  readonly passage: ResultPassage
  /** If true, replaces invalid UTF-8, as in event streams. Otherwise, rejects invalid UTF-8. */
  readonly replaces: boolean
  /** Size above which members are sent immediately. */
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
  /** Member names in the message (in lower case) and in the result. */
  readonly #messageNames = new Set<string>()
  readonly #resultNames = new Set<string>()
  readonly #kept: Buffer[] = []
  readonly #sent: string[] = []
  #jsonrpc: string | undefined
  #responseId: string | undefined
  #member: Member | undefined
  /** The bytes of the current value, collected separately from the member's bytes. */
  #captured: Pieces | undefined
  #capturedName: Buffer = emptyObjectBytes
  /** True while the bytes of the current value are being collected. */
  #isCollecting = false
  #from = 0
  #out: Buffer[] = []
  #bytes = 0
  #isSending = false
  #isGivenUp = false

  constructor({ id, passage, replaces, largeBytes = largeMemberBytes }: SplitterOptions) {
    this.#id = id
    this.#largeBytes = largeBytes
    this.#passage = passage
    this.#isForSession = passage.era === 'session'
    this.#utf8 = new Utf8Parts(replaces)
  }

  /** True once the response must be read as a whole. In that case, no part of the response has been sent. */
  get isGivenUp(): boolean {
    return this.#isGivenUp
  }

  /** True once a member has been sent. The received bytes are no longer needed. */
  get isPassing(): boolean {
    return this.#isSending
  }

  /** Adds a chunk. The promise settles when the client can receive more. Throws JsonError. */
  push(chunk: Buffer): Promise<void> | undefined {
    if (this.#isGivenUp) return undefined
    try {
      for (const part of this.#utf8.take(chunk)) this.#read(part)
    } catch (error) {
      if (this.#isSending || !(error instanceof JsonError)) throw error
      this.#isGivenUp = true
    }
    if (!this.#isSending || this.#out.length === 0) return undefined
    const out = this.#out
    this.#out = []
    return this.#passage.write(out)
  }

  /**
   * Returns the complete response. The result contains the kept members and the names of the sent members. Throws
   * JsonError or MessageError.
   */
  end(): Message | undefined {
    if (!this.#isSending) return undefined
    if (!this.#scanner.isDone || !this.#utf8.isWhole) throw new JsonError('unfinished value', this.#bytes)
    if (this.#jsonrpc !== '"2.0"') throw invalid(this.#id, 'jsonrpc must be "2.0"')
    if (!this.#isOwn(this.#responseId)) throw invalid(this.#id, 'the response does not belong to a request')
    const result = Buffer.concat([objectStart, ...this.#kept, objectEnd])
    return {
      kind: 'result',
      bytes: result,
      id: this.#id,
      method: '',
      params: undefined,
      result,
      error: undefined,
      passed: { names: this.#sent, bytes: this.#bytes },
    }
  }

  #read(chunk: Buffer): void {
    const scanner = this.#scanner
    scanner.feed(chunk)
    this.#from = 0
    for (let stop = scanner.advance(); stop !== 'chunk'; stop = scanner.advance()) {
      if (stop === 'name') this.#onName()
      else if (stop === 'value') this.#onValue(chunk)
      else this.#onEnd(chunk)
      if (this.#isGivenUp) return
    }
    if (this.#isCollecting) this.#collect(chunk, this.#from, chunk.length)
  }

  #onName(): void {
    const { name, depth } = this.#scanner
    if (depth > 2) return
    const names = depth === 1 ? this.#messageNames : this.#resultNames
    const own = depth === 1 ? name.toLowerCase() : name
    if (names.has(own)) throw new DuplicateMember()
    if (names.size === maxMembers) throw tooManyMembers(0)
    names.add(own)
  }

  /** Handles the start of a value in the innermost inspected container. */
  #onValue(chunk: Buffer): void {
    const c = chunk[this.#scanner.at] ?? 0
    const frame = this.#frames.at(-1)
    if (!frame) {
      if (c !== openObject) throw new JsonError('object expected', 0)
      this.#open({ kind: 'message' })
    } else if (frame.kind === 'message') this.#beginOfMessage(c)
    else if (frame.kind === 'result') this.#beginMember(chunk, c)
    else if (frame.kind === 'array') this.#inspect(chunk, c === openObject ? c : 0, frame.objects)
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
    // Treat a null member as absent. Only null begins with n.
    else if (
      c !== nullByte &&
      (name === 'result' || name === 'error' || name === 'method' || name === 'params')
    )
      throw new JsonError('no result', this.#scanner.at)
  }

  #beginMember(chunk: Buffer, c: number): void {
    const { name, rawName, at } = this.#scanner
    const kept = new Pieces()
    for (const piece of [rawName, colon]) kept.add(piece)
    const placeholder = c === openArray ? arrayOfObject : emptyObjectBytes
    this.#member = { name, kept, maySend: this.#maySendMember(name, c), placeholder }
    this.#isCollecting = true
    this.#from = at
    if (this.#isForSession && containers.has(name)) this.#inspect(chunk, c, 2)
  }

  /**
   * True if the member may be sent. For a session client, structured content must be an object. Any other value becomes
   * text if there is no other content. The splitter must therefore find out first whether there is other content.
   */
  #maySendMember(name: string, c: number): boolean {
    if (protocolMembers.has(name)) return false
    return !this.#isForSession || (name === 'structuredContent' ? c === openObject : name !== 'content')
  }

  /**
   * Inspects a value that begins here if the value can contain metadata. `objects` is the nesting depth of the value,
   * counted in objects.
   */
  #inspect(chunk: Buffer, c: number, objects: number): void {
    if (objects > maxObjects) return
    if (c === openArray) this.#open({ kind: 'array', objects })
    if (c !== openObject) return
    if (this.#frames.at(-1)?.kind === 'array' && this.#member?.name === 'content') this.#member.maySend = true
    const { at } = this.#scanner
    this.#collect(chunk, this.#from, at + 1)
    this.#isCollecting = false
    this.#open({ kind: 'object', objects, isEmpty: true })
  }

  #beginInObject(chunk: Buffer, c: number, frame: ObjectFrame): void {
    const { name, rawName, at } = this.#scanner
    if (name === '_meta' && c === openObject) {
      this.#capturedName = rawName
      this.#capture()
      return
    }
    this.#writeName(frame, rawName)
    this.#isCollecting = true
    this.#from = at
    if (containers.has(name)) this.#inspect(chunk, c, frame.objects + 1)
  }

  #writeName(frame: ObjectFrame, rawName: Buffer): void {
    for (const piece of frame.isEmpty ? [rawName, colon] : [comma, rawName, colon])
      this.#collect(piece, 0, piece.length)
    frame.isEmpty = false
  }

  #capture(): void {
    this.#captured = new Pieces()
    this.#isCollecting = true
    this.#from = this.#scanner.at
  }

  /** Handles the end of a value in the innermost container, or the end of the container itself. */
  #onEnd(chunk: Buffer): void {
    const { at, depth } = this.#scanner
    if (depth < this.#frames.length) {
      const closed = this.#frames.pop()
      this.#scanner.watched = this.#frames.length
      if (closed?.kind === 'object') {
        this.#isCollecting = true
        this.#from = at - 1
      }
    }
    const frame = this.#frames.at(-1)
    if (!frame || frame.kind === 'array') return
    if (this.#isCollecting) this.#collect(chunk, this.#from, at)
    this.#isCollecting = false
    if (frame.kind === 'message') this.#endOfMessage()
    else if (frame.kind === 'result') this.#endMember()
    else if (this.#captured) this.#endMeta(frame, this.#captured.whole())
  }

  #endOfMessage(): void {
    if (!this.#captured) return
    const value = this.#captured.whole().toString()
    this.#captured = undefined
    if (this.#scanner.name === 'id') this.#responseId = value
    else if (this.#scanner.name === 'jsonrpc') this.#jsonrpc = value
  }

  #endMember(): void {
    const member = this.#member
    if (!member) return
    if (this.#kept.length > 0) this.#kept.push(comma)
    if (member.kept) this.#kept.push(member.kept.whole())
    else {
      this.#sent.push(member.name)
      this.#kept.push(Buffer.from(`${JSON.stringify(member.name)}:`), member.placeholder)
    }
    this.#member = undefined
  }

  #endMeta(frame: ObjectFrame, raw: Buffer): void {
    this.#captured = undefined
    const own = metaWithoutReserved(raw)
    if (!own) return
    this.#writeName(frame, this.#capturedName)
    this.#collect(own, 0, own.length)
  }

  #collect(chunk: Buffer, from: number, to: number): void {
    if (from === to) return
    const kept = this.#captured ?? this.#member?.kept
    if (!kept) {
      this.#out.push(chunk.subarray(from, to))
      this.#bytes += to - from
      return
    }
    kept.add(chunk, from, to)
    if (this.#captured) {
      if (kept.size > maxMetaBytes) throw new JsonError('too large', from)
    } else if (this.#member && kept.size > this.#largeBytes) this.#onLargeMember(this.#member, kept)
  }

  #onLargeMember(member: Member, kept: Pieces): void {
    if (!member.maySend) {
      const max = member.name === '_meta' || !this.#isSending ? maxMetaBytes : maxKeptBytes
      if (kept.size > max) throw new JsonError('too large', kept.size)
      return
    }
    if (!this.#isSending && !this.#begin()) {
      this.#isGivenUp = true
      return
    }
    if (this.#sent.length > 0) this.#out.push(comma)
    this.#out.push(...kept.take())
    this.#bytes += kept.size
    member.kept = undefined
  }

  /** True if `id` is the id of the request. A server may return a numeric id as a string. */
  #isOwn(id: string | undefined): boolean {
    return id === this.#id || id === JSON.stringify(this.#id)
  }

  /** Starts sending. Returns false if the client may be waiting for a different response. */
  #begin(): boolean {
    if (this.#responseId !== undefined && !this.#isOwn(this.#responseId)) return false
    if ((this.#jsonrpc ?? '"2.0"') !== '"2.0"') return false
    const type = this.#kept.find((piece) => piece.includes('"resultType"'))
    if (type && !type.includes('"complete"')) return false
    this.#isSending = this.#passage.begin()
    return this.#isSending
  }
}

const arrayOfObject = Buffer.concat([arrayStart, emptyObjectBytes, arrayEnd])
