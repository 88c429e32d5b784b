/**
 * What waits for its turn, one flow for each caller: flows take turns, and within a flow the oldest comes first. A caller
 * with a thousand requests waiting delays another one by one request, not by a thousand.
 *
 * Constant time, whatever waits. Flows stay for a while when they are empty, so that a busy server does not make them again
 * and again. Does not know when something may go on, nor how much may wait: load.ts does.
 * Source: J. Nagle, "On Packet Switches With Infinite Storage", RFC 970 (fair queueing, round robin).
 */
export interface Waiting {
  /** Lets the request go on. */
  readonly go: () => void
  readonly refuse: (error: Error) => void
  readonly since: number
  /** Memory that it holds meanwhile. */
  readonly bytes: number
  next: Waiting | undefined
}

/** What waits of one caller. */
export interface Flow {
  readonly key: string
  size: number
  /** When the wait was last short, on the clock of load.ts. */
  calmAt: number
  first: Waiting | undefined
  last: Waiting | undefined
  /** The flow that has its turn after this one. */
  next: Flow | undefined
}

/** Flows without anything that waits, beyond which they are let go. */
const maxIdleFlows = 1_000

export class CallerQueue {
  readonly #flows = new Map<string, Flow>()
  #first: Flow | undefined
  #last: Flow | undefined
  /** Requests that wait. */
  size = 0
  #active = 0
  #bytes = 0

  /** Flows with something that waits. */
  get active(): number {
    return this.#active
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The flow of a caller; makes one at need. */
  flow(key: string, now: number): Flow {
    const known = this.#flows.get(key)
    if (known) return known
    if (this.#flows.size >= this.#active + maxIdleFlows) this.#forgetIdle()
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

  push(flow: Flow, waiting: Waiting): void {
    if (flow.last) flow.last.next = waiting
    else {
      flow.first = waiting
      this.#active++
      this.#append(flow)
    }
    flow.last = waiting
    flow.size++
    this.size++
    this.#bytes += waiting.bytes
  }

  /** The next one in turn; its flow has to wait for the others then. */
  take(): Waiting | undefined {
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
    this.#bytes -= waiting.bytes
    if (flow.first) this.#append(flow)
    else {
      flow.last = undefined
      this.#active--
    }
    return waiting
  }

  #append(flow: Flow): void {
    if (this.#last) this.#last.next = flow
    else this.#first = flow
    this.#last = flow
  }

  #forgetIdle(): void {
    for (const [key, { size }] of this.#flows) if (size === 0) this.#flows.delete(key)
  }
}
