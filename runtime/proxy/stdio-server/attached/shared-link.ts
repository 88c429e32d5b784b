/**
 * One client's conversation with a server that several clients share. To whoever holds it, it looks like a process of its
 * own; it stays when the process behind it is replaced.
 */
import { type Message, scanMessage, type ServerLink, linkOver } from '../../../mcp/index.ts'

/** What a link needs of the server behind it. */
export interface LinkOwner {
  fromClient(link: SharedLink, message: Message): void
  left(link: SharedLink): void
}

export class SharedLink implements ServerLink {
  readonly ended: Promise<string>
  /** Least severe log messages that this client wants; undefined: none were asked for. */
  level: string | undefined
  /** Raw ids under which the server knows what this client waits for, by the client's. */
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
    if (this.#over !== undefined) throw linkOver(this.#over)
    this.#owner.fromClient(this, scanMessage(message))
  }

  /** Hands over what the server says. */
  hand(message: Message): void {
    if (this.#over === undefined) this.#onMessage(message)
  }

  /** Answers in place of the server, after whoever asked has returned. */
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
    this.end('the client has left')
    return Promise.resolve()
  }
}
