/**
 * Reads bodies of requests, bounded in bytes, values and depth while they arrive, and in bytes over all requests.
 *
 * A request takes one of the places of its group when its body has arrived: senders that are slow hold none. What they have
 * sent counts, and when there is no memory for more, the body that has been arriving for longest gives way.
 * What is too much is refused at once in memory and answered when the client can hear it: the rest of its body is dropped
 * unread, as far as one more body of the largest size. Coded bodies are refused; nobody who calls us sends any.
 * Source: RFC 9110 sections 15.5.14 and 15.5.16, RFC 9112 section 9.6.
 */
import type { NextFunction, Request, Response } from 'express'
import { GatehouseError } from '../../schemas/index.ts'
import { JsonBounds, type JsonLimits } from '../base/json-bounds.ts'

export interface BodyLimits extends JsonLimits {
  /** Requests at once whose body has arrived. */
  readonly requests: number
  /** Requests at once whose body is arriving. */
  readonly arriving: number
  /** Memory for the bodies of all of them together. */
  readonly bytesInFlight: number
}

/** A body that has arrived; nobody has looked whether it is JSON. */
export interface Body {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Bytes in use, from the start. */
  readonly size: number
  /** Values that it may hold at most. */
  readonly values: number
}

/** Middleware that sets `request.body` to a Body. Its counters are its own: make one for each group of callers. */
export function requestBody(limits: BodyLimits, now: () => number = () => performance.now()) {
  const budget = new Budget(limits, now)

  return async function requestBody(request: Request, response: Response, next: NextFunction): Promise<void> {
    refuseCoded(request)
    request.body = await collect(request, response, limits, budget)
    next()
  }
}

function comeBack(): GatehouseError {
  return new GatehouseError('RATE_LIMITED', {
    detail: 'too many request bodies at once; try again',
    headers: { 'retry-after': '1' },
  })
}

function refuseCoded(request: Request): void {
  const coding = request.get('content-encoding')
  if (coding !== undefined && coding.toLowerCase() !== 'identity')
    throw new GatehouseError('UNSUPPORTED_MEDIA_TYPE', { detail: 'the request body must not be compressed' })
}

/** A body arrives within this time wherever we are called from; one that takes longer may be made to give way. */
const maxWaitMs = 1_000

interface Arrival {
  readonly since: number
  readonly giveWay: () => void
}

/** What the requests of one group hold. */
class Budget {
  readonly #limits: BodyLimits
  readonly #now: () => number
  /** In the order in which they began. */
  readonly #arriving = new Set<Arrival>()
  #bytes = 0
  #requests = 0

  constructor(limits: BodyLimits, now: () => number) {
    this.#limits = limits
    this.#now = now
  }

  begin(giveWay: () => void): Arrival {
    const [oldest] = this.#arriving
    if (this.#arriving.size >= this.#limits.arriving) oldest?.giveWay()
    const arrival = { since: this.#now(), giveWay }
    this.#arriving.add(arrival)
    return arrival
  }

  /** Takes memory for an arriving body. Throws RATE_LIMITED when there is none. */
  take(bytes: number, own: Arrival): void {
    while (this.#bytes + bytes > this.#limits.bytesInFlight) {
      const slow = [...this.#arriving].find((arrival) => arrival !== own)
      if (!slow || this.#now() - slow.since < maxWaitMs) throw comeBack()
      slow.giveWay()
    }
    this.#bytes += bytes
  }

  release(bytes: number): void {
    this.#bytes -= bytes
  }

  end(arrival: Arrival): void {
    this.#arriving.delete(arrival)
  }

  /** Takes a place for a body that has arrived. Throws RATE_LIMITED when there is none. */
  enter(): void {
    if (this.#requests >= this.#limits.requests) throw comeBack()
    this.#requests += 1
  }

  leave(): void {
    this.#requests -= 1
  }
}

/**
 * The whole body, whose memory and place are free again when the response is closed. Rejects with the first limit that it
 * passes, after the rest has been dropped.
 */
function collect(request: Request, response: Response, limits: BodyLimits, budget: Budget): Promise<Body> {
  const bounds = new JsonBounds(limits)
  const declared = Math.min(Number(request.get('content-length') ?? 0), limits.bytes)
  return new Promise((resolve, reject) => {
    let body = Buffer.alloc(0)
    let size = 0
    let refused: unknown
    let dropped = 0

    function release(): void {
      budget.release(body.length)
      free(body)
      size = 0
      body = Buffer.alloc(0)
    }
    function end(): void {
      budget.end(arrival)
      request.off('data', take).off('end', finish).off('close', cut)
    }
    function take(chunk: Buffer): void {
      if (refused !== undefined) {
        dropped += chunk.length
        if (dropped > limits.bytes) fail(refused)
        return
      }
      try {
        bounds.take(chunk)
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
      const held = body.length
      response.once('close', () => {
        budget.leave()
        budget.release(held)
        free(body)
      })
      resolve({ bytes: body, size, values: bounds.values })
    }
    function cut(): void {
      fail(new GatehouseError('BAD_REQUEST', { detail: 'the request body did not arrive completely' }))
    }
    const arrival = budget.begin(() => {
      response.set('connection', 'close')
      fail(comeBack())
    })
    // An aborted request may report an error long after its end.
    request.on('error', () => {})
    request.on('data', take).on('end', finish).on('close', cut)
  })
}

/** Gives memory back now: what waits for the collector would count beyond the budget. */
function free({ buffer }: Uint8Array<ArrayBuffer>): void {
  if (!buffer.detached) buffer.transfer(0)
}

const firstBytes = 16 * 1024

/**
 * Bytes of the buffer that holds `needed`. One large buffer goes back to the system when it is free; a thousand chunks do
 * not. What is only declared is not allocated.
 */
function capacityFor(needed: number, present: number, declared: number, most: number): number {
  if (needed <= present) return present
  const doubled = Math.min(Math.max(2 * present, needed, firstBytes), most)
  return declared >= needed ? Math.min(doubled, declared) : doubled
}
