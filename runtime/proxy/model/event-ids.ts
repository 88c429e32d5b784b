/**
 * Event ids that a client received in a reopened session. Earlier ids belong to the lost session: the target would not
 * recognize them, or would resume the wrong stream. Only known ids are forwarded as `Last-Event-ID`.
 * Source: MCP 2025-11-25, transports, "Resumability and Redelivery".
 */
import { hash } from 'node:crypto'

const maxIds = 512
/** Longer ids do not fit in a header. */
const maxLineBytes = 8 * 1024
/** Longer ids are stored as a hash. */
const maxPlainLength = 128
/** `i` */
const firstByte = 0x69
const lf = 0x0a
const cr = 0x0d

export class EventIds {
  readonly #ids = new Set<string>()

  has(id: string): boolean {
    return this.#ids.has(keyOf(id))
  }

  /** Stores an id, and drops the oldest id when the limit is exceeded. */
  add(id: string): void {
    const key = keyOf(id)
    this.#ids.delete(key)
    this.#ids.add(key)
    if (this.#ids.size <= maxIds) return
    const [oldest] = this.#ids
    if (oldest !== undefined) this.#ids.delete(oldest)
  }

  /** Returns a function that reads one event stream. */
  scanner(): (chunk: Buffer) => void {
    let line: Buffer = Buffer.alloc(0)
    return (chunk) => {
      let from = 0
      for (let at = 0; at < chunk.length; at++) {
        if (chunk[at] !== lf && chunk[at] !== cr) continue
        this.#read(start(line, chunk.subarray(from, at)))
        line = Buffer.alloc(0)
        from = at + 1
      }
      line = start(line, chunk.subarray(from))
    }
  }

  #read(line: Buffer): void {
    const id =
      line[0] === firstByte && line.length <= maxLineBytes
        ? /^id: ?(.+)$/.exec(line.toString())?.[1]
        : undefined
    if (id !== undefined) this.add(id)
  }
}

function keyOf(id: string): string {
  return id.length <= maxPlainLength ? `=${id}` : `#${hash('sha256', id, 'base64url')}`
}

/**
 * Keeps only as much of a line as is needed to recognize an id, and discards the rest of a line that contains no id.
 */
function start(before: Buffer, more: Buffer): Buffer {
  const isOver = before.length > maxLineBytes || (before.length > 0 && before[0] !== firstByte)
  if (isOver || more.length === 0) return before
  const part = more.subarray(0, maxLineBytes + 1 - before.length)
  return before.length === 0 ? Buffer.from(part) : Buffer.concat([before, part])
}
