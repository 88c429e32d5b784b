/**
 * A byte stream over the binary frames of a WebSocket, on a socket whose upgrade is complete. Used by both sides; only
 * the client's frames are masked.
 *
 * Emits `alive` for every received frame. Extensions and text frames are not supported, and message boundaries are
 * ignored. An invalid or oversized frame ends the stream. Pings are answered while the peer reads; `ping` sends a ping.
 * Source: RFC 6455 sections 4 to 7.
 */
import { createHash, randomFillSync } from 'node:crypto'
import { Duplex } from 'node:stream'

const guid = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const maxFrameBytes = 1_048_576
/** RFC 6455 section 5.5. */
const maxControlBytes = 125
/** Maximum payload of a sent frame. */
const chunkBytes = 65_535

const opcodes = { continuation: 0, binary: 2, close: 8, ping: 9, pong: 10 } as const

/** Returns the Sec-WebSocket-Accept value for a key. */
export function acceptKey(key: string): string {
  return createHash('sha1')
    .update(key + guid)
    .digest('base64')
}

export class WebSocketStream extends Duplex {
  readonly #socket: Duplex
  readonly #masks: boolean
  #held: Buffer = Buffer.alloc(0)
  #closed = false
  /** True once the peer has sent its close frame. */
  #ended = false
  #paused = false
  /** Value of `performance.now()` when the last frame was received. */
  aliveAt: number = performance.now()

  /**
   * `role`: the client is the side that opened the connection. `head`: the bytes after the upgrade that have already
   * been read.
   */
  constructor(socket: Duplex, role: 'client' | 'server', head: Buffer = Buffer.alloc(0)) {
    super({ allowHalfOpen: false })
    this.#socket = socket
    this.#masks = role === 'client'
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    // If a stream ends without a close frame, the connection broke. Without this handler, a server's socket would stay
    // half open.
    socket.on('end', () => {
      if (!this.#ended) this.destroy()
    })
    // After a close frame, received data can still be read.
    socket.on('close', () => {
      if (!this.#ended || this.readableLength === 0) this.destroy()
    })
    socket.on('error', () => this.destroy())
    socket.on('drain', () => this.emit('socketdrain'))
    if (head.length > 0) this.#receive(head)
  }

  /** True while this side does not read because its consumer is slow. */
  get held(): boolean {
    return this.#paused
  }

  ping(): void {
    if (!this.#socket.writableNeedDrain) this.#send(opcodes.ping, Buffer.alloc(0))
  }

  override _read(): void {
    this.#paused = false
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    let space = true
    for (let at = 0; at < chunk.length; at += chunkBytes) {
      space = this.#send(opcodes.binary, chunk.subarray(at, at + chunkBytes))
    }
    if (space || this.#socket.destroyed) done()
    else this.once('socketdrain', done)
  }

  override _final(done: () => void): void {
    this.#close()
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#close()
    this.#socket.destroy()
    done(error)
  }

  #close(): void {
    if (this.#closed) return
    this.#closed = true
    if (!this.#socket.destroyed && this.#socket.writable) {
      this.#send(opcodes.close, Buffer.from([0x03, 0xe8]))
      this.#socket.end()
    }
  }

  #send(opcode: number, payload: Buffer): boolean {
    if (!this.#socket.writable) return false
    return this.#socket.write(frameOf(opcode, payload, this.#masks))
  }

  #receive(chunk: Buffer): void {
    this.#held = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk])
    for (let frame = this.#nextFrame(); frame; frame = this.#nextFrame()) this.#handle(frame)
  }

  #handle({ opcode, payload }: Frame): void {
    this.aliveAt = performance.now()
    this.emit('alive')
    if (opcode === opcodes.binary || opcode === opcodes.continuation) {
      if (payload.length > 0 && !this.push(payload)) {
        this.#paused = true
        this.#socket.pause()
      }
    } else if (opcode === opcodes.ping) {
      if (!this.#socket.writableNeedDrain) this.#send(opcodes.pong, payload)
    } else if (opcode === opcodes.close) {
      this.#ended = true
      this.push(null)
      this.#close()
    } else if (opcode !== opcodes.pong) this.destroy()
  }

  /** Returns the next complete frame; undefined when more bytes are needed or the frame is invalid. */
  #nextFrame(): Frame | undefined {
    const held = this.#held
    if (held.length < 2 || this.destroyed || this.#ended) return undefined
    const first = held.readUInt8(0)
    const second = held.readUInt8(1)
    const isMasked = (second & 0x80) !== 0
    // Reserved bits indicate extensions, which were not negotiated. Only clients must mask.
    if ((first & 0x70) !== 0 || isMasked === this.#masks) return this.#refuse()
    const short = second & 0x7f
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0
    if (held.length < 2 + lengthBytes) return undefined
    const length =
      short === 126 ? held.readUInt16BE(2) : short === 127 ? Number(held.readBigUInt64BE(2)) : short
    const isControl = (first & 0x08) !== 0
    if (length > (isControl ? maxControlBytes : maxFrameBytes)) return this.#refuse()
    if (isControl && (first & 0x80) === 0) return this.#refuse()
    const headBytes = 2 + lengthBytes + (isMasked ? 4 : 0)
    if (held.length < headBytes + length) return undefined
    const body = held.subarray(headBytes, headBytes + length)
    this.#held = held.subarray(headBytes + length)
    // The bytes are not shared, so they can be unmasked in place.
    if (isMasked) applyMask(body, held.subarray(headBytes - 4, headBytes))
    return { opcode: first & 0x0f, payload: body }
  }

  #refuse(): undefined {
    this.destroy()
    return undefined
  }
}

interface Frame {
  readonly opcode: number
  readonly payload: Buffer
}

/** Returns a whole frame with a copy of the payload. */
function frameOf(opcode: number, payload: Buffer, isMasked: boolean): Buffer {
  const { length } = payload
  const lengthBytes = length < 126 ? 0 : 2
  const start = 2 + lengthBytes + (isMasked ? 4 : 0)
  const frame = Buffer.allocUnsafe(start + length)
  frame[0] = 0x80 | opcode
  // Sent payloads are smaller than 64 KiB, so the length always fits in two bytes.
  frame[1] = (isMasked ? 0x80 : 0) | (lengthBytes === 0 ? length : 126)
  if (lengthBytes > 0) frame.writeUInt16BE(length, 2)
  payload.copy(frame, start)
  if (isMasked) {
    const mask = frame.subarray(start - 4, start)
    randomFillSync(mask)
    applyMask(frame.subarray(start), mask)
  }
  return frame
}

/** Masks in place (RFC 6455 section 5.3), four bytes at a time where memory is aligned. */
function applyMask(bytes: Buffer, mask: Buffer): void {
  const { length } = bytes
  const lead = (4 - (bytes.byteOffset & 3)) & 3
  const count = Math.max(0, (length - lead) >> 2)
  const from = count === 0 ? 0 : lead
  if (count > 0) {
    const words = new Int32Array(bytes.buffer, bytes.byteOffset + lead, count)
    // The mask for the first word, in the machine's byte order.
    const [word = 0] = new Int32Array(Uint8Array.from([0, 1, 2, 3], (i) => mask[(lead + i) & 3] ?? 0).buffer)
    for (let k = 0; k < count; k++) words[k] = (words[k] ?? 0) ^ word
  }
  for (let i = 0; i < from; i++) bytes[i] = (bytes[i] ?? 0) ^ (mask[i & 3] ?? 0)
  for (let i = from + count * 4; i < length; i++) bytes[i] = (bytes[i] ?? 0) ^ (mask[i & 3] ?? 0)
}
