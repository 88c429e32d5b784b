/**
 * Requests of this program over a link: gives them ids, matches their responses, and cancels them. Ids of clients never reach
 * a server that several clients share.
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

  /** `idPrefix`: of ids that nobody else on the link can have. Default: ids are numbers. */
  constructor(send: (message: Buffer) => void, idPrefix?: string) {
    this.#send = send
    this.#idPrefix = idPrefix
  }

  /** Requests in flight. */
  get size(): number {
    return this.#pending.size
  }

  /** A fresh raw id. */
  newId(): string {
    const number = String(this.#nextId++)
    return this.#idPrefix === undefined ? number : JSON.stringify(this.#idPrefix + number)
  }

  /**
   * Sends a request under an id of `newId`. Rejects with BACKEND_UNREACHABLE, or the signal's reason; then the server is
   * told to stop.
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

  /** Sends a notification; a server that is gone does not miss it. */
  notify(method: string, params?: Buffer | string): void {
    try {
      this.#send(notificationMessage(method, params))
    } catch {
      // The end of the link says it.
    }
  }

  /** True when the message is the response to a request of this program, in flight or cancelled. */
  take(message: Message): boolean {
    if (message.method !== '') return false
    const pending = message.id === undefined ? undefined : this.#pending.get(message.id)
    if (!pending || message.id === undefined) return true
    this.#pending.delete(message.id)
    if (message.result) pending.resolve({ result: message.result })
    else pending.resolve({ error: message.error ?? Buffer.from(JSON.stringify(errorObject(undefined))) })
    return true
  }

  /** Ends every request with an error: there will be no responses. */
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

/** The error of a link that is over. */
export function linkOver(why: string): GatehouseError {
  return new GatehouseError('BACKEND_UNREACHABLE', { detail: `the server has ended: ${why}` })
}
