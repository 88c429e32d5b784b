/**
 * Watches a response on its way to the client: determines its length, and whether it is a JSON-RPC error.
 *
 * Keeps the first and last bytes of a JSON body, or of the event that contains the response. The watch does not delay,
 * change or parse the response.
 */
import type { ServerResponse } from 'node:http'
import { readResponse, type RpcResponse, scannedBytes } from './rpc-answer.ts'

const newlineByte = 0x0a
const openBraceByte = 0x7b
const dataField = 'data:'

/** The beginning and end of a message that arrives in pieces. */
class Ends {
  readonly #keep: number
  readonly #head: Buffer[] = []
  #headSize = 0
  #tail: Buffer = Buffer.alloc(0)
  size = 0

  constructor(keep: number) {
    this.#keep = keep
  }

  add(piece: Buffer): void {
    this.size += piece.length
    if (this.#headSize < this.#keep) {
      const part = piece.subarray(0, this.#keep - this.#headSize)
      this.#head.push(part)
      this.#headSize += part.length
    }
    const all =
      piece.length >= scannedBytes || this.#tail.length === 0 ? piece : Buffer.concat([this.#tail, piece])
    this.#tail = all.subarray(-scannedBytes)
  }

  get head(): string {
    return Buffer.concat(this.#head).toString()
  }

  response(): RpcResponse | undefined {
    if (this.size === 0) return undefined
    return readResponse(this.head.slice(0, scannedBytes), this.#tail.toString().trimEnd())
  }
}

export class ResponseWatch {
  /** Number of body bytes written so far. */
  bytes = 0
  /** Format of the response, known once the first byte has been written. */
  #kind: 'unknown' | 'json' | 'events' | 'other' = 'unknown'
  readonly #keep: number
  #message: Ends
  #responded: { readonly message: Ends; readonly response: RpcResponse } | undefined
  #line = ''
  #lineSize = 0

  /** `keepBytes` is the number of response bytes to keep for the record. */
  constructor(keepBytes: number) {
    this.#keep = Math.max(keepBytes, scannedBytes)
    this.#message = new Ends(this.#keep)
  }

  take(chunk: Buffer): void {
    this.bytes += chunk.length
    if (this.#kind === 'unknown') this.#kind = kindOf(chunk)
    if (this.#kind === 'json') this.#message.add(chunk)
    else if (this.#kind === 'events') this.#takeEvents(chunk)
  }

  /** Returns the JSON-RPC response; undefined for a missing or unrecognized response. */
  response(): RpcResponse | undefined {
    if (this.#kind === 'json') return this.#message.response()
    return this.#responded?.response
  }

  /** Returns the beginning of the response message, which is decoded when it is read, and whether it is complete. */
  body(): { readonly text: string; readonly whole: boolean } | undefined {
    const message = this.#kind === 'json' ? this.#message : this.#responded?.message
    if (!message) return undefined
    return {
      get text() {
        return message.head
      },
      whole: message.size <= this.#keep,
    }
  }

  #takeEvents(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length) {
      const newline = chunk.indexOf(newlineByte, at)
      const end = newline < 0 ? chunk.length : newline
      this.#takeLine(chunk.subarray(at, end))
      if (newline < 0) return
      this.#endLine()
      at = newline + 1
    }
  }

  #takeLine(piece: Buffer): void {
    this.#lineSize += piece.length
    let rest = piece
    if (this.#line.length < dataField.length) {
      const missing = dataField.length - this.#line.length
      this.#line += piece.toString('latin1', 0, missing)
      rest = piece.subarray(missing)
    }
    if (this.#line === dataField && rest.length > 0) this.#message.add(rest)
  }

  #endLine(): void {
    const blank = this.#lineSize === 0 || (this.#lineSize === 1 && this.#line === '\r')
    this.#line = ''
    this.#lineSize = 0
    if (!blank || this.#message.size === 0) return
    const response = this.#message.response()
    if (response) this.#responded = { message: this.#message, response }
    this.#message = new Ends(this.#keep)
  }
}

/** Determines the type from the first character, because headers passed to writeHead cannot be read back. */
function kindOf(chunk: Buffer): 'unknown' | 'json' | 'events' | 'other' {
  if (chunk[0] === openBraceByte) return 'json'
  const text = chunk.toString('latin1', 0, 64).trimStart()
  if (text === '') return 'unknown'
  if (text.startsWith('{')) return 'json'
  return /^(?:data|event|id|retry)?:/.test(text) ? 'events' : 'other'
}

/** Watches a response. Call this function before the first write. `onOpen` is called when the headers are written. */
export function watchResponse(res: ServerResponse, keepBytes: number, onOpen?: () => void): ResponseWatch {
  const watch = new ResponseWatch(keepBytes)
  const write = callable(res.write.bind(res))
  const end = callable(res.end.bind(res))
  const watchedWrite = (...args: unknown[]) => {
    take(watch, args)
    return write(...args)
  }
  const watchedEnd = (...args: unknown[]) => {
    take(watch, args)
    return end(...args)
  }
  res.write = watchedWrite as typeof res.write
  res.end = watchedEnd as typeof res.end
  if (onOpen) {
    const writeHead = callable(res.writeHead.bind(res))
    const watchedHead = (...args: unknown[]) => {
      const result = writeHead(...args)
      onOpen()
      return result
    }
    res.writeHead = watchedHead as typeof res.writeHead
  }
  return watch
}

/** Makes an overloaded function callable with the original arguments. */
function callable(method: unknown): (...args: unknown[]) => unknown {
  return method as (...args: unknown[]) => unknown
}

function take(watch: ResponseWatch, [chunk, encoding]: readonly unknown[]): void {
  if (Buffer.isBuffer(chunk)) watch.take(chunk)
  else if (chunk instanceof Uint8Array)
    watch.take(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))
  else if (typeof chunk === 'string') {
    watch.take(
      Buffer.from(chunk, typeof encoding === 'string' && Buffer.isEncoding(encoding) ? encoding : 'utf8'),
    )
  }
}
