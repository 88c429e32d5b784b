/**
 * Reads request bodies. Limits the bytes, values and depth of each body while it arrives, and the total bytes across
 * all requests.
 *
 * A request occupies one of its group's slots only after its body has arrived, so slow senders occupy no slot. The
 * bytes that slow senders have sent still count toward the memory budget. When the memory budget is exhausted, the body
 * that has been arriving the longest is dropped. An oversized body is released immediately. Before the server responds,
 * it reads and discards up to one more body of the maximum size, because many clients read the response only after they
 * have sent the whole body. Compressed bodies are rejected, because no legitimate caller sends them.
 * Source: RFC 9110 sections 15.5.14 and 15.5.16, RFC 9112 section 9.6.
 */
import type { NextFunction, Request, Response } from 'express'
import { GatehouseError } from '../../schemas/index.ts'
import { JsonBounds, type JsonLimits } from '../base/json-bounds.ts'

export interface BodyLimits extends JsonLimits {
  /** Maximum number of concurrent requests whose body is complete. */
  readonly requests: number
  /** Maximum number of concurrent requests whose body is still arriving. */
  readonly arriving: number
  /** Total memory for all bodies. */
  readonly bytesInFlight: number
}

/** A complete body, not yet parsed as JSON. */
export interface Body {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Number of bytes used, counted from the start. */
  readonly size: number
  /** Upper bound on the number of JSON values. */
  readonly values: number
}

/**
 * Returns middleware that sets `request.body` to a Body. Each middleware has its own counters; create one per group of
 * callers.
 */
export function requestBody(limits: BodyLimits, now: () => number = () => performance.now()) {
  const budget = new Budget(limits, now)

  return async function requestBody(request: Request, response: Response, next: NextFunction): Promise<void> {
    rejectCompressed(request)
    request.body = await collect(request, response, limits, budget)
    next()
  }
}

function overloadError(): GatehouseError {
  return new GatehouseError('RATE_LIMITED', {
    detail: 'too many concurrent request bodies; try again',
    headers: { 'retry-after': '1' },
  })
}

function rejectCompressed(request: Request): void {
  const coding = request.get('content-encoding')
  if (coding !== undefined && coding.toLowerCase() !== 'identity')
    throw new GatehouseError('UNSUPPORTED_MEDIA_TYPE', { detail: 'the request body must not be compressed' })
}

/** Legitimate callers send a body within this time. A slower body may be dropped. */
const maxWaitMs = 1_000

interface Arrival {
  readonly since: number
  readonly drop: () => void
}

/** Memory and slots that one group's requests use. */
class Budget {
  readonly #limits: BodyLimits
  readonly #now: () => number
  /** Arriving bodies, oldest first. */
  readonly #arriving = new Set<Arrival>()
  #bytes = 0
  #requests = 0

  constructor(limits: BodyLimits, now: () => number) {
    this.#limits = limits
    this.#now = now
  }

  begin(drop: () => void): Arrival {
    const [oldest] = this.#arriving
    if (this.#arriving.size >= this.#limits.arriving) oldest?.drop()
    const arrival = { since: this.#now(), drop }
    this.#arriving.add(arrival)
    return arrival
  }

  /** Reserves memory for an arriving body. Throws RATE_LIMITED when the budget is exhausted. */
  take(bytes: number, own: Arrival): void {
    while (this.#bytes + bytes > this.#limits.bytesInFlight) {
      const slow = [...this.#arriving].find((arrival) => arrival !== own)
      if (!slow || this.#now() - slow.since < maxWaitMs) throw overloadError()
      slow.drop()
    }
    this.#bytes += bytes
  }

  release(bytes: number): void {
    this.#bytes -= bytes
  }

  end(arrival: Arrival): void {
    this.#arriving.delete(arrival)
  }

  /** Reserves a slot for a complete body. Throws RATE_LIMITED when all slots are in use. */
  enter(): void {
    if (this.#requests >= this.#limits.requests) throw overloadError()
    this.#requests += 1
  }

  leave(): void {
    this.#requests -= 1
  }
}

/**
 * Reads the whole body. Releases the memory and the slot when the response closes. Rejects with an error for the first
 * exceeded limit, after the rest of the body has been discarded.
 */
function collect(request: Request, response: Response, limits: BodyLimits, budget: Budget): Promise<Body> {
  const bounds = new JsonBounds(limits)
  const declared = Math.min(Number(request.get('content-length') ?? 0), limits.bytes)
  return new Promise((resolve, reject) => {
    let body = Buffer.alloc(0)
    let size = 0
    let refused: unknown
    let discardedBytes = 0

    function release(): void {
      budget.release(body.length)
      free(body)
      size = 0
      body = Buffer.alloc(0)
    }
    function end(): void {
      budget.end(arrival)
      request.off('data', take).off('end', finish).off('close', failIncomplete)
    }
    function take(chunk: Buffer): void {
      if (refused !== undefined) {
        discardedBytes += chunk.length
        if (discardedBytes > limits.bytes) fail(refused)
        return
      }
      try {
        bounds.scan(chunk)
        const capacity = capacityFor(size + chunk.length, body.length, declared, limits.bytes)
        if (capacity > body.length) {
          budget.take(capacity - body.length, arrival)
          const larger = Buffer.allocUnsafeSlow(capacity)
          body.copy(larger, 0, 0, size)
          free(body)
          body = larger
        }
        size += chunk.copy(body, size)
      } catch (error) {
        refuse(error)
      }
    }
    function refuse(error: unknown): void {
      refused = error
      response.set('connection', 'close')
      budget.end(arrival)
      release()
    }
    function fail(error: unknown): void {
      end()
      release()
      reject(error)
    }
    function finish(): void {
      if (refused !== undefined) return fail(refused)
      end()
      try {
        budget.enter()
      } catch (error) {
        return fail(error)
      }
      const heldBytes = body.length
      response.once('close', () => {
        budget.leave()
        budget.release(heldBytes)
        free(body)
      })
      resolve({ bytes: body, size, values: bounds.values })
    }
    function failIncomplete(): void {
      fail(new GatehouseError('BAD_REQUEST', { detail: 'the request body is incomplete' }))
    }
    const arrival = budget.begin(() => {
      response.set('connection', 'close')
      fail(overloadError())
    })
    // An aborted request may emit an error long after its end.
    request.on('error', () => {})
    request.on('data', take).on('end', finish).on('close', failIncomplete)
  })
}

/** Frees the memory immediately. Buffers that wait for garbage collection would exceed the budget. */
function free({ buffer }: Uint8Array<ArrayBuffer>): void {
  if (!buffer.detached) buffer.transfer(0)
}

const firstBytes = 16 * 1024

/**
 * Returns the size of a buffer for `needed` bytes. One large buffer returns its memory to the system when it is freed;
 * a thousand chunks do not. A declared length does not allocate memory by itself.
 */
function capacityFor(needed: number, present: number, declared: number, most: number): number {
  if (needed <= present) return present
  const doubled = Math.min(Math.max(2 * present, needed, firstBytes), most)
  return declared >= needed ? Math.min(doubled, declared) : doubled
}
