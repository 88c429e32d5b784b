/**
 * Collects bytes that arrive in chunks. Memory use is close to the number of stored bytes. The sender controls chunk
 * sizes and the underlying buffers, so small chunks and large buffers must add no overhead.
 */
import type { ServerResponse } from 'node:http'

/** Length below which a chunk is copied into a block instead of becoming a separate object. */
const minPieceBytes = 4 * 1024
const minBlockBytes = 1024
const maxBlockBytes = 64 * 1024
/** Up to this length, a loop copies faster than a function call. */
const fewBytes = 32

export class Pieces {
  size = 0
  readonly #pieces: Buffer[] = []
  #block: Buffer | undefined
  #used = 0

  add(chunk: Buffer, from = 0, end: number = chunk.length): void {
    const length = end - from
    if (length === 0) return
    const isFirst = this.size === 0
    this.size += length
    if (!isFirst && length < minPieceBytes) return this.#copy(chunk, from, end)
    if (this.#block) this.#endBlock(this.#block)
    const piece = chunk.subarray(from, end)
    const usesMostOfBuffer = length * 2 >= chunk.buffer.byteLength
    this.#pieces.push(isFirst || usesMostOfBuffer ? piece : Buffer.from(piece))
  }

  /** Returns the collected bytes in order. */
  take(): readonly Buffer[] {
    if (this.#block) this.#endBlock(this.#block)
    return this.#pieces
  }

  /** Returns the collected bytes as one buffer. For large data, use `joined` from runtime/mcp. */
  whole(): Buffer {
    if (this.#block) this.#endBlock(this.#block)
    const [first] = this.#pieces
    return first && this.#pieces.length === 1 ? first : Buffer.concat(this.#pieces, this.size)
  }

  #copy(chunk: Buffer, from: number, end: number): void {
    if (this.#block && this.#block.length - this.#used < end - from) this.#endBlock(this.#block)
    this.#block ??= Buffer.allocUnsafeSlow(Math.min(Math.max(this.size, minBlockBytes), maxBlockBytes))
    if (end - from > fewBytes) this.#used += chunk.copy(this.#block, this.#used, from, end)
    else for (let i = from; i < end; i++) this.#block[this.#used++] = chunk[i] ?? 0
  }

  #endBlock(block: Buffer): void {
    this.#pieces.push(block.subarray(0, this.#used))
    this.#block = undefined
    this.#used = 0
  }
}

/** Writes several buffers at once, without copying them into one. */
export function writeParts(res: ServerResponse, parts: readonly Buffer[]): void {
  res.cork()
  for (const part of parts) res.write(part)
  res.uncork()
}
