/**
 * Bounds what the bodies of all requests hold together, from their arrival until their response is over: a sender that is slow,
 * or a backend that is, would otherwise fill the memory with bodies that are each within their limit.
 *
 * A caller has at most a share of it, so that one alone keeps nobody out. When there is none left, a body that has been
 * arriving for a while gives way, of the caller that holds the most; without such a one, the body that asks is refused.
 * A body that is no larger than what its connection takes anyway is not counted.
 * Does not read: body.ts does.
 */
import { totalmem } from 'node:os'
import { localIssuer } from '../caller.ts'
import type { Exchange } from '../pipeline.ts'
import { peerAddress } from '../listener/forwarded-for.ts'

/** Not counted. */
export const smallBodyBytes = 16 * 1024
/** A body arrives within this time, where the line is good; one that takes longer may be made to give way. */
const slowMs = 1_000
const callerShare = 3 / 4
const leastBytes = 64 * 1024 * 1024
const mostBytes = 1024 * 1024 * 1024

/** The container's memory limit when there is one; systems without one respond with zero or more than there is. */
export function ownMemory(): number {
  const limit = process.constrainedMemory()
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}

/** What bodies may take of this memory. */
export function bodyBytesOf(memory: number): number {
  return Math.min(Math.max(Math.floor(memory / 4), leastBytes), mostBytes)
}

/** What one caller holds. */
interface Holder {
  readonly key: string
  bytes: number
  bodies: number
  /** In the order in which they began. */
  readonly arriving: Set<HeldBody>
}

export interface BodyMemoryOptions {
  readonly maxBytes: number
  /** Milliseconds that only grow. */
  readonly now: () => number
  /** What a body is refused with. */
  readonly refusal: () => Error
}

export class BodyMemory {
  readonly #options: BodyMemoryOptions
  readonly #maxOfOne: number
  readonly #holders = new Map<string, Holder>()
  #bytes = 0

  constructor(options: BodyMemoryOptions) {
    this.#options = options
    this.#maxOfOne = Math.floor(options.maxBytes * callerShare)
  }

  /** In use. */
  get bytes(): number {
    return this.#bytes
  }

  /** A body that turns out to be more than small; `giveWay` ends its arrival with the error. */
  begin(exchange: Exchange, giveWay: (error: Error) => void): HeldBody {
    const key = keyOf(exchange)
    let holder = this.#holders.get(key)
    if (!holder) this.#holders.set(key, (holder = { key, bytes: 0, bodies: 0, arriving: new Set() }))
    const body: HeldBody = { memory: this, holder, since: this.#options.now(), giveWay, bytes: 0 }
    holder.bodies++
    holder.arriving.add(body)
    exchange.res.once('close', () => this.#release(body))
    return body
  }

  /** Takes memory for an arriving body. Throws the refusal when there is none. */
  take(body: HeldBody, bytes: number): void {
    const { holder } = body
    for (;;) {
      const isOver = holder.bytes + bytes > this.#maxOfOne
      if (!isOver && this.#bytes + bytes <= this.#options.maxBytes) break
      const slow = this.#slowOf(isOver ? holder : this.#largest(), body)
      if (!slow) throw this.#refuse(body)
      slow.giveWay(this.#refuse(slow))
    }
    body.bytes += bytes
    holder.bytes += bytes
    this.#bytes += bytes
  }

  /** It has arrived, and counts until its response is over. */
  arrived(body: HeldBody): void {
    body.holder.arriving.delete(body)
  }

  #refuse(body: HeldBody): Error {
    this.#free(body)
    return this.#options.refusal()
  }

  #free(body: HeldBody): void {
    const { holder } = body
    holder.arriving.delete(body)
    holder.bytes -= body.bytes
    this.#bytes -= body.bytes
    body.bytes = 0
  }

  #release(body: HeldBody): void {
    this.#free(body)
    if (--body.holder.bodies === 0) this.#holders.delete(body.holder.key)
  }

  #slowOf(holder: Holder | undefined, own: HeldBody): HeldBody | undefined {
    const [first, second] = holder?.arriving ?? []
    const oldest = first === own ? second : first
    return oldest && this.#options.now() - oldest.since >= slowMs ? oldest : undefined
  }

  #largest(): Holder | undefined {
    let largest: Holder | undefined
    for (const holder of this.#holders.values())
      if (holder.arriving.size > 0 && holder.bytes > (largest?.bytes ?? 0)) largest = holder
    return largest
  }
}

export interface HeldBody {
  readonly memory: BodyMemory
  readonly holder: Holder
  readonly since: number
  readonly giveWay: (error: Error) => void
  bytes: number
}

/** A verified caller, or else an address: a session or a credential that is only named could be made up for each body. */
function keyOf({ req, caller }: Exchange): string {
  return caller === undefined || caller.issuer === localIssuer ? peerAddress(req) : caller.key
}
