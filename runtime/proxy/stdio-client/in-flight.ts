/**
 * Tracks messages in flight: requests by id, so that they can be cancelled, and all other messages by number. The
 * number of messages of each kind is limited, so that neither side can fill the bridge's memory: further requests are
 * rejected, and further notifications wait.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Era, Message } from '../../mcp/index.ts'
import { maxMessageBytes } from './http.ts'

const maxRequests = 1_000
/** Leaves room for other messages alongside the largest one. */
const maxRequestBytes = 2 * maxMessageBytes
const maxOthers = 100
/** How long to wait for responses when the bridge ends. */
const answerMs = 1_000

export interface InFlightRequest {
  readonly era: Era
  readonly cancel: AbortController
  /** Set when the client has cancelled the request. The request then gets no response. */
  isCancelled: boolean
}

interface Entry extends InFlightRequest {
  readonly done: Promise<void>
}

export class BridgedRequests {
  readonly #requests = new Map<string, Entry>()
  readonly #others = new Set<Promise<void>>()
  #bytes = 0

  /** Returns the reason why this request cannot be accepted at the moment. */
  refusal({ id, bytes }: Message): string | undefined {
    if (id !== undefined && this.#requests.has(id)) return 'a request with this id is in flight'
    const full = this.#requests.size >= maxRequests
    return full || this.#bytes + bytes.length > maxRequestBytes
      ? 'too many requests are in flight'
      : undefined
  }

  /** Tracks a request. `done` never rejects. */
  request({ id = '', bytes }: Message, request: InFlightRequest, done: Promise<void>): void {
    this.#requests.set(id, { ...request, done })
    this.#bytes += bytes.length
    void done.then(() => {
      this.#requests.delete(id)
      this.#bytes -= bytes.length
    })
  }

  find(id: string): InFlightRequest | undefined {
    return this.#requests.get(id)
  }

  /** Tracks a message that is not a request. Resolves when the next message can be accepted. */
  async other(accepted: Promise<void>): Promise<void> {
    this.#others.add(accepted)
    void accepted.then(() => {
      this.#others.delete(accepted)
    })
    if (this.#others.size >= maxOthers) await Promise.race(this.#others)
  }

  /** Resolves when nothing is in flight. */
  async settled(): Promise<void> {
    await Promise.all([...this.#others, ...[...this.#requests.values()].map(({ done }) => done)])
  }

  /**
   * Aborts all requests, using `reason` for those that the client has not cancelled. Resolves when all requests have
   * been answered, or after one second.
   */
  async cutOff(reason: Error): Promise<void> {
    for (const { cancel, isCancelled } of this.#requests.values())
      cancel.abort(isCancelled ? undefined : reason)
    await Promise.race([this.settled(), sleep(answerMs, undefined, { ref: false })])
  }
}
