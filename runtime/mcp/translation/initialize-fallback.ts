/**
 * Connects one client's session to a server of either era. `initialize` is sent to the server first. If the server
 * rejects `initialize` and supports the stateless era, the session continues through a translator.
 * Source: MCP 2026-07-28, stdio "Backward Compatibility".
 */
import type { Log } from '../../net/index.ts'
import type { Message } from '../message.ts'
import { discover } from './probe.ts'
import { LinkRequester } from './requester.ts'
import { type ClientSide, SessionTranslator } from './session-translator.ts'

export interface InitializeFallbackOptions {
  /** Sends a message to the server. Throws after the server has exited. */
  readonly toServer: (message: Buffer) => void
  /** Receives server messages that do not need to be translated. */
  readonly deliver: (message: Message) => void
  /** Receives translated messages. */
  readonly client: ClientSide
  /** Raw JSON of Gatehouse's own `Implementation` object. */
  readonly info: string
  readonly log: Log
}

export class InitializeFallback {
  readonly #options: InitializeFallbackOptions
  /** The client's `initialize`. Undefined once the server has answered this request. */
  #initialize: Message | undefined
  #probe: LinkRequester | undefined
  #translator: SessionTranslator | undefined

  constructor(options: InitializeFallbackOptions) {
    this.#options = options
  }

  /** True if messages are translated. */
  get isTranslated(): boolean {
    return this.#translator !== undefined
  }

  fromClient(message: Message): void {
    if (message.method === 'initialize') this.#initialize = message
    if (this.#translator) void this.#translator.fromClient(message)
    else this.#options.toServer(message.bytes)
  }

  fromServer(message: Message): void {
    const initialize = this.#initialize
    if (this.#translator) void this.#translator.fromServer(message)
    else if (this.#probe?.take(message)) return
    else if (initialize && message.method === '' && message.id === initialize.id) {
      this.#initialize = undefined
      if (message.result) this.#options.deliver(message)
      else void this.#probeEra(initialize, message)
    } else this.#options.deliver(message)
  }

  async #probeEra(initialize: Message, refusal: Message): Promise<void> {
    const { toServer, deliver, client, info, log } = this.#options
    this.#probe = new LinkRequester(toServer)
    try {
      const discovered = await discover(this.#probe, info)
      if (!discovered) return deliver(refusal)
      this.#translator = new SessionTranslator({ toServer, client, log, discovered })
      await this.#translator.fromClient(initialize)
    } catch {
      // The server has exited, so the session ends.
    } finally {
      this.#probe = undefined
    }
  }

  /** Fails pending requests after the server has exited. */
  end(error: Error): void {
    this.#probe?.failAll(error)
    this.#translator?.end(error)
  }
}
