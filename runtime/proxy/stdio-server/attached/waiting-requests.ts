/**
 * Messages of clients that wait for the server to be there again. They have not been sent, so sending them later is safe; each waits
 * for a bounded time. All together are bounded, and those of each client, so that none takes the places of the others.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { errorMessage, type Message } from '../../../mcp/index.ts'
import type { SharedLink } from './shared-link.ts'

const maxWaiting = 1_000
const maxBytes = 32 * 1024 * 1024
/** Of one client. */
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

  /** `why`: what clients are told about the server that is not there. */
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

  /** True when a request with this raw id of the client waited; it does no more. */
  cancel(link: SharedLink, id: string | undefined): boolean {
    const found = [...this.#waiting].find((one) => one.link === link && one.message.id === id)
    if (found) this.#remove(found)
    return found !== undefined
  }

  leave(link: SharedLink): void {
    for (const entry of this.#waiting) if (entry.link === link) this.#remove(entry)
  }

  /** All of them, oldest first; they wait no more. */
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
      detail: `the server is not there, and the request was not sent: ${this.#why()}`,
    })
    link.answer(errorMessage(id, error))
  }
}
