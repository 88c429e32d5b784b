/**
 * One client's conversation with a server that several clients share. To the client, the conversation behaves like a
 * separate process, and it survives the replacement of the real process.
 */
import { type Message, scanMessage, type ServerLink, linkEnded } from '../../../mcp/index.ts'

/** The server functions that a link needs. */
export interface LinkOwner {
  fromClient(link: SharedLink, message: Message): void
  left(link: SharedLink): void
}

export class SharedLink implements ServerLink {
  readonly ended: Promise<string>
  /** Minimum severity of log messages that this client requested; undefined when it requested no level. */
  level: string | undefined
  /** Raw ids of this client's pending requests at the server, keyed by the client's id. */
  readonly inFlight = new Map<string, string>()
  readonly #owner: LinkOwner
  readonly #onMessage: (message: Message) => void
  readonly #ended = Promise.withResolvers<string>()
  #over: string | undefined

  constructor(owner: LinkOwner, onMessage: (message: Message) => void) {
    this.#owner = owner
    this.#onMessage = onMessage
    this.ended = this.#ended.promise
  }

  get over(): boolean {
    return this.#over !== undefined
  }

  send(message: Buffer): void {
    if (this.#over !== undefined) throw linkEnded(this.#over)
    this.#owner.fromClient(this, scanMessage(message))
  }

  /** Delivers a message from the server. */
  hand(message: Message): void {
    if (this.#over === undefined) this.#onMessage(message)
  }

  /** Responds on behalf of the server, after the caller has returned. */
  answer(bytes: Buffer): void {
    queueMicrotask(() => this.hand(scanMessage(bytes)))
  }

  end(why: string): void {
    if (this.#over !== undefined) return
    this.#over = why
    this.#owner.left(this)
    this.#ended.resolve(why)
  }

  close(): Promise<void> {
    this.end('the client disconnected')
    return Promise.resolve()
  }
}
