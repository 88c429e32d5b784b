/**
 * Client messages that wait until the server is available again. These messages have not been sent yet, so sending them
 * later is safe. The waiting time and the total number are limited. The number per client is also limited, so that no
 * client can use all slots.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { errorMessage, type Message } from '../../../mcp/index.ts'
import type { SharedLink } from './shared-link.ts'

const maxWaiting = 1_000
const maxBytes = 32 * 1024 * 1024
/** Limits per client. */
const maxWaitingOfOne = 100
const maxBytesOfOne = 8 * 1024 * 1024

interface Waiting {
  readonly link: SharedLink
  readonly message: Message
  readonly timer: NodeJS.Timeout
}

export class WaitingRequests {
  readonly #waiting = new Set<Waiting>()
  readonly #waitMs: number
  readonly #why: () => string
  #bytes = 0

  /** `why` returns the reason why the server is unavailable, as shown to clients. */
  constructor(waitMs: number, why: () => string) {
    this.#waitMs = waitMs
    this.#why = why
  }

  get size(): number {
    return this.#waiting.size
  }

  add(link: SharedLink, message: Message): void {
    if (!this.#hasPlaceFor(link, message.bytes.length)) {
      this.#refuse(link, message)
      return
    }
    const timer = setTimeout(() => {
      this.#remove(entry)
      this.#refuse(link, message)
    }, this.#waitMs)
    timer.unref()
    const entry: Waiting = { link, message, timer }
    this.#waiting.add(entry)
    this.#bytes += message.bytes.length
  }

  #hasPlaceFor(link: SharedLink, bytes: number): boolean {
    if (this.#waiting.size >= maxWaiting || this.#bytes + bytes > maxBytes) return false
    const own = [...this.#waiting]
      .filter((one) => one.link === link)
      .map(({ message }) => message.bytes.length)
    return own.length < maxWaitingOfOne && own.reduce((sum, one) => sum + one, bytes) <= maxBytesOfOne
  }

  /** Drops the client's waiting request with this raw id. Returns false when no such request is waiting. */
  cancel(link: SharedLink, id: string | undefined): boolean {
    const found = [...this.#waiting].find((one) => one.link === link && one.message.id === id)
    if (found) this.#remove(found)
    return found !== undefined
  }

  leave(link: SharedLink): void {
    for (const entry of this.#waiting) if (entry.link === link) this.#remove(entry)
  }

  /** Removes and returns all messages, oldest first. */
  takeAll(): readonly Pick<Waiting, 'link' | 'message'>[] {
    const all = [...this.#waiting]
    for (const entry of all) this.#remove(entry)
    return all
  }

  refuseAll(): void {
    for (const { link, message } of this.takeAll()) this.#refuse(link, message)
  }

  #remove(entry: Waiting): void {
    clearTimeout(entry.timer)
    if (this.#waiting.delete(entry)) this.#bytes -= entry.message.bytes.length
  }

  #refuse(link: SharedLink, { id }: Message): void {
    const error = new GatehouseError('BACKEND_UNAVAILABLE', {
      detail: `the server is unavailable and the request was not sent: ${this.#why()}`,
    })
    link.answer(errorMessage(id, error))
  }
}
