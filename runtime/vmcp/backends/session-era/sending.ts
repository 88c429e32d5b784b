/** A message on its way to a backend over streamable HTTP, with what is known of its response so far. */
import type { Message } from '../../../mcp/index.ts'
import type { ExchangeControl } from '../transport/http.ts'
import { defaultRetryMs } from '../../../net/index.ts'
import type { SendOptions } from './channel.ts'

/** How long a stream may stay open after its response has arrived. */
const lingerMs = 2_000

/** Where one event stream stands: what a later GET needs to take it up again. */
export interface StreamPosition {
  lastEventId: string | undefined
  retryMs: number
}

export class Sending {
  readonly position: StreamPosition = { lastEventId: undefined, retryMs: defaultRetryMs }
  readonly control: ExchangeControl = { exchange: undefined }
  /** The response is an event stream. */
  isStream = false
  responded = false
  readonly #options: SendOptions
  #timer: NodeJS.Timeout | undefined

  constructor(options: SendOptions) {
    this.#options = options
  }

  /** True for a request whose response is not there yet. */
  get awaitsResponse(): boolean {
    return !this.responded && this.#options.requestId !== undefined
  }

  /** Takes what arrives on the response. */
  readonly onMessage = (received: Message): void => {
    const { requestId, onMessage } = this.#options
    if (this.awaitsResponse && received.method === '' && received.id === requestId) {
      this.responded = true
      if (this.isStream) this.#timer = setTimeout(this.#cut, lingerMs)
    }
    onMessage(received)
  }

  readonly #cut = (): void =>
    this.control.exchange?.fail(new Error('the stream stayed open after the response'))

  end(): void {
    clearTimeout(this.#timer)
  }
}
