/**
 * Sends this program's own requests over a link. Assigns ids, matches responses, and cancels requests. Client ids are
 * never sent to a server that several clients share.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { Message } from '../message.ts'
import { errorObject, notificationMessage, requestMessage } from '../write.ts'
import type { LinkOutcome } from './link.ts'

interface Pending {
  resolve(outcome: LinkOutcome): void
  reject(error: Error): void
}

export class LinkRequester {
  readonly #send: (message: Buffer) => void
  readonly #idPrefix: string | undefined
  readonly #pending = new Map<string, Pending>()
  #nextId = 1

  /** `idPrefix` makes ids unique on the link. By default, ids are numbers. */
  constructor(send: (message: Buffer) => void, idPrefix?: string) {
    this.#send = send
    this.#idPrefix = idPrefix
  }

  /** Number of requests in flight. */
  get size(): number {
    return this.#pending.size
  }

  /** Returns a new raw id. */
  newId(): string {
    const number = String(this.#nextId++)
    return this.#idPrefix === undefined ? number : JSON.stringify(this.#idPrefix + number)
  }

  /**
   * Sends a request with an id from `newId`. Rejects with BACKEND_UNREACHABLE, or with the signal's reason after the
   * request has been cancelled at the server.
   */
  request(id: string, method: string, params: Buffer | string, signal?: AbortSignal): Promise<LinkOutcome> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        if (!this.#pending.delete(id)) return
        this.#cancel(id)
        reject(reasonOf(signal))
      }
      const settled = (): void => signal?.removeEventListener('abort', onAbort)
      this.#pending.set(id, {
        resolve: (outcome) => {
          settled()
          resolve(outcome)
        },
        reject: (error) => {
          settled()
          reject(error)
        },
      })
      signal?.addEventListener('abort', onAbort, { once: true })
      try {
        if (signal?.aborted) throw reasonOf(signal)
        this.#send(requestMessage(id, method, params))
      } catch (error) {
        this.#pending.delete(id)
        settled()
        reject(error instanceof Error ? error : new GatehouseError('BACKEND_UNREACHABLE'))
      }
    })
  }

  #cancel(id: string): void {
    this.notify('notifications/cancelled', `{"requestId":${id},"reason":"cancelled"}`)
  }

  /** Sends a notification. Does nothing if the server has exited. */
  notify(method: string, params?: Buffer | string): void {
    try {
      this.#send(notificationMessage(method, params))
    } catch {
      // All requests fail anyway when the link ends.
    }
  }

  /**
   * Handles a response. Returns true if the message responds to one of this program's requests, including cancelled
   * requests.
   */
  take(message: Message): boolean {
    if (message.method !== '') return false
    const pending = message.id === undefined ? undefined : this.#pending.get(message.id)
    if (!pending || message.id === undefined) return true
    this.#pending.delete(message.id)
    if (message.result) pending.resolve({ result: message.result })
    else pending.resolve({ error: message.error ?? Buffer.from(JSON.stringify(errorObject(undefined))) })
    return true
  }

  /** Fails all requests, because no further responses will arrive. */
  failAll(error: Error): void {
    const pending = [...this.#pending.values()]
    this.#pending.clear()
    for (const { reject } of pending) reject(error)
  }
}

export function reasonOf(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason
  return reason instanceof Error ? reason : new Error('cancelled')
}

/** Returns the error for a link that has ended. */
export function linkEnded(why: string): GatehouseError {
  return new GatehouseError('BACKEND_UNREACHABLE', { detail: `the server has stopped: ${why}` })
}
