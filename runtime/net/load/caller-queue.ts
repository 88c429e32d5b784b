/**
 * Fair queue with one flow per caller. Flows take turns; requests within a flow are handled in order of arrival. A
 * caller with a thousand waiting requests delays another caller by one request, not a thousand.
 *
 * All operations take constant time. The queue keeps empty flows for a while, because a busy server would otherwise
 * recreate them constantly. load.ts decides when a request starts and how many requests may wait.
 * Source: J. Nagle, "On Packet Switches With Infinite Storage", RFC 970 (fair queueing, round robin).
 */
export interface WaitingRequest {
  /** Starts the request. */
  readonly start: () => void
  readonly reject: (error: Error) => void
  readonly since: number
  /** Memory in use while the request is waiting. */
  readonly bytes: number
  next: WaitingRequest | undefined
}

/** Waiting requests from one caller. */
export interface Flow {
  readonly key: string
  size: number
  /** Time of the last short wait, according to the clock in load.ts. */
  calmAt: number
  first: WaitingRequest | undefined
  last: WaitingRequest | undefined
  /** The flow whose turn is next. */
  next: Flow | undefined
}

/** Maximum number of empty flows. */
const maxIdleFlows = 1_000

export class CallerQueue {
  readonly #flows = new Map<string, Flow>()
  #first: Flow | undefined
  #last: Flow | undefined
  /** Number of waiting requests. */
  size = 0
  /** Number of flows with waiting requests. */
  active = 0
  /** Memory that the waiting requests use. */
  bytes = 0

  /** Returns a caller's flow, creating it if necessary. */
  flow(key: string, now: number): Flow {
    const known = this.#flows.get(key)
    if (known) return known
    if (this.#flows.size >= this.active + maxIdleFlows) this.#removeIdle()
    const flow: Flow = {
      key,
      size: 0,
      calmAt: now,
      first: undefined,
      last: undefined,
      next: undefined,
    }
    this.#flows.set(key, flow)
    return flow
  }

  push(flow: Flow, waiting: WaitingRequest): void {
    if (flow.last) flow.last.next = waiting
    else {
      flow.first = waiting
      this.active++
      this.#append(flow)
    }
    flow.last = waiting
    flow.size++
    this.size++
    this.bytes += waiting.bytes
  }

  /** Removes and returns the request whose turn is next. Its flow moves to the end of the queue. */
  take(): WaitingRequest | undefined {
    const flow = this.#first
    const waiting = flow?.first
    if (!flow || !waiting) return undefined
    this.#first = flow.next
    if (this.#first === undefined) this.#last = undefined
    flow.next = undefined
    flow.first = waiting.next
    waiting.next = undefined
    flow.size--
    this.size--
    this.bytes -= waiting.bytes
    if (flow.first) this.#append(flow)
    else {
      flow.last = undefined
      this.active--
    }
    return waiting
  }

  #append(flow: Flow): void {
    if (this.#last) this.#last.next = flow
    else this.#first = flow
    this.#last = flow
  }

  #removeIdle(): void {
    for (const [key, { size }] of this.#flows) if (size === 0) this.#flows.delete(key)
  }
}
