/**
 * Limits the total memory for request bodies. A body counts from its arrival until the end of its response. Otherwise,
 * a slow sender or a slow backend could fill the memory with bodies that are each within their limit.
 *
 * Each caller has a limited share, so a single caller cannot block all other callers. When the memory is exhausted,
 * Gatehouse rejects the oldest slow body of the caller that uses the most memory. If no body is slow, the arriving body
 * is rejected. Bodies that fit in the connection's buffers are not counted. For the code that reads bodies, see
 * body.ts.
 */
import { totalmem } from 'node:os'
import { localIssuer } from '../caller.ts'
import type { Exchange } from '../pipeline.ts'
import { peerAddress } from '../addresses.ts'

/** Bodies up to this size are not counted. */
export const smallBodyBytes = 16 * 1024
/** Time after which an arriving body counts as slow and may be rejected in favor of another body. */
const slowMs = 1_000
const callerShare = 3 / 4
const leastBytes = 64 * 1024 * 1024
const mostBytes = 1024 * 1024 * 1024

/**
 * Returns the container's memory limit, or undefined without a limit. Without a limit, `constrainedMemory` returns zero
 * or a value above the total memory.
 */
export function ownMemory(): number {
  const limit = process.constrainedMemory()
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}

/** Returns the share of the given memory that bodies may use. */
export function bodyBytesOf(memory: number): number {
  return Math.min(Math.max(Math.floor(memory / 4), leastBytes), mostBytes)
}

/** Memory use of one caller. */
interface CallerUsage {
  readonly key: string
  bytes: number
  bodies: number
  /** Bodies of the caller, from oldest to newest. */
  readonly arriving: Set<TrackedBody>
}

export interface BodyMemoryOptions {
  readonly maxBytes: number
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number
  /** Creates the error for a rejected body. */
  readonly makeError: () => Error
}

export class BodyMemory {
  readonly #options: BodyMemoryOptions
  readonly #maxOfOne: number
  readonly #usages = new Map<string, CallerUsage>()
  #bytes = 0

  constructor(options: BodyMemoryOptions) {
    this.#options = options
    this.#maxOfOne = Math.floor(options.maxBytes * callerShare)
  }

  /** Memory in use. */
  get bytes(): number {
    return this.#bytes
  }

  /** Starts tracking a body that is not small. `cancel` aborts the reading of the body with the given error. */
  begin(exchange: Exchange, cancel: (error: Error) => void): TrackedBody {
    const key = keyOf(exchange)
    let usage = this.#usages.get(key)
    if (!usage) this.#usages.set(key, (usage = { key, bytes: 0, bodies: 0, arriving: new Set() }))
    const body: TrackedBody = { memory: this, usage, since: this.#options.now(), cancel, bytes: 0 }
    usage.bodies++
    usage.arriving.add(body)
    exchange.res.once('close', () => this.#release(body))
    return body
  }

  /** Reserves memory for an arriving body. Throws the rejection error when no memory is left. */
  take(body: TrackedBody, bytes: number): void {
    const { usage } = body
    for (;;) {
      const isOver = usage.bytes + bytes > this.#maxOfOne
      if (!isOver && this.#bytes + bytes <= this.#options.maxBytes) break
      const slow = this.#findSlow(isOver ? usage : this.#largest(), body)
      if (!slow) throw this.#reject(body)
      slow.cancel(this.#reject(slow))
    }
    body.bytes += bytes
    usage.bytes += bytes
    this.#bytes += bytes
  }

  /** Records that a body has arrived completely. The body still counts until its response ends. */
  arrived(body: TrackedBody): void {
    body.usage.arriving.delete(body)
  }

  #reject(body: TrackedBody): Error {
    this.#free(body)
    return this.#options.makeError()
  }

  #free(body: TrackedBody): void {
    const { usage } = body
    usage.arriving.delete(body)
    usage.bytes -= body.bytes
    this.#bytes -= body.bytes
    body.bytes = 0
  }

  #release(body: TrackedBody): void {
    this.#free(body)
    if (--body.usage.bodies === 0) this.#usages.delete(body.usage.key)
  }

  #findSlow(usage: CallerUsage | undefined, own: TrackedBody): TrackedBody | undefined {
    const [first, second] = usage?.arriving ?? []
    const oldest = first === own ? second : first
    return oldest && this.#options.now() - oldest.since >= slowMs ? oldest : undefined
  }

  #largest(): CallerUsage | undefined {
    let largest: CallerUsage | undefined
    for (const usage of this.#usages.values())
      if (usage.arriving.size > 0 && usage.bytes > (largest?.bytes ?? 0)) largest = usage
    return largest
  }
}

export interface TrackedBody {
  readonly memory: BodyMemory
  readonly usage: CallerUsage
  readonly since: number
  readonly cancel: (error: Error) => void
  bytes: number
}

/**
 * Returns the key of a verified caller, or the peer address of any other caller. A client could send a different
 * unverified session or credential with each body.
 */
function keyOf({ req, caller }: Exchange): string {
  return caller === undefined || caller.issuer === localIssuer ? peerAddress(req) : caller.key
}
