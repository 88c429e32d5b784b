/**
 * The state that all clients share in the one session with the server: the most verbose log level that any client has
 * requested, and the subscriptions that at least one client needs. This state is restored after the server restarts.
 * Source: MCP 2025-11-25, logging, resources.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import {
  errorMessage,
  JsonObject,
  logLevels,
  type Message,
  paramsOf,
  responseMessage,
  resultMessage,
  type LinkRequester,
} from '../../../mcp/index.ts'
import type { SharedLink } from './shared-link.ts'

/** Maximum number of subscriptions across all clients. */
const maxSubscriptions = 10_000

export class SharedSessionState {
  readonly #requester: LinkRequester
  readonly #subscribers = new Map<string, Set<SharedLink>>()
  /** The level that the server has confirmed. */
  #level: string | undefined

  constructor(requester: LinkRequester) {
    this.#requester = requester
  }

  /**
   * Handles a request about shared state, and responds to it. Returns false for other requests. Throws MessageError.
   */
  take(link: SharedLink, message: Message): boolean {
    const { method } = message
    if (method === 'logging/setLevel') void this.#setLevel(link, message, paramsOf(message).text('level'))
    else if (method === 'resources/subscribe')
      void this.#subscribe(link, message, paramsOf(message).text('uri'))
    else if (method === 'resources/unsubscribe')
      void this.#unsubscribe(link, message, paramsOf(message).text('uri'))
    else return false
    return true
  }

  async #setLevel(link: SharedLink, message: Message, level: string | undefined): Promise<void> {
    const known = this.#level !== undefined && level !== undefined && isAtMost(this.#level, level)
    const answer = known ? emptyResult(message) : await this.#carry(message)
    if (level !== undefined && isResult(answer)) {
      link.level = level
      if (!known) this.#level = level
    }
    link.answer(answer)
  }

  async #subscribe(link: SharedLink, message: Message, uri: string | undefined): Promise<void> {
    const isKnown = uri !== undefined && this.#subscribers.has(uri)
    const answer = isKnown
      ? emptyResult(message)
      : this.#subscribers.size >= maxSubscriptions
        ? errorMessage(message.id, tooMany)
        : await this.#carry(message)
    if (uri !== undefined && isResult(answer) && !link.over) this.#add(uri, link)
    link.answer(answer)
  }

  async #unsubscribe(link: SharedLink, message: Message, uri: string | undefined): Promise<void> {
    const isLast = uri !== undefined && this.#remove(uri, link)
    link.answer(isLast ? await this.#carry(message) : emptyResult(message))
  }

  #add(uri: string, link: SharedLink): void {
    const known = this.#subscribers.get(uri)
    if (known) known.add(link)
    else this.#subscribers.set(uri, new Set([link]))
  }

  /** Removes a client's subscription; returns true if no other client is subscribed to the resource. */
  #remove(uri: string, link: SharedLink): boolean {
    const known = this.#subscribers.get(uri)
    if (!known?.delete(link) || known.size > 0) return false
    this.#subscribers.delete(uri)
    return true
  }

  /** Ends the subscriptions that only this client had. */
  leave(link: SharedLink): void {
    for (const uri of this.#subscribers.keys())
      if (this.#remove(uri, link)) void this.#ask('resources/unsubscribe', { uri })
  }

  /** Returns the clients to notify about a change of `uri`. A subscription also covers nested URIs. */
  subscribersOf(uri: string): ReadonlySet<SharedLink> {
    const found = new Set<SharedLink>()
    for (const [own, links] of this.#subscribers) {
      if (own !== uri && !uri.startsWith(own.endsWith('/') ? own : `${own}/`)) continue
      for (const link of links) found.add(link)
    }
    return found
  }

  /** Restores the state in a restarted process. Rejected requests are dropped. */
  restore(): void {
    if (this.#level !== undefined) void this.#ask('logging/setLevel', { level: this.#level })
    for (const uri of this.#subscribers.keys()) void this.#ask('resources/subscribe', { uri })
  }

  async #ask(method: string, params: Readonly<Record<string, string>>): Promise<void> {
    try {
      await this.#requester.request(this.#requester.newId(), method, JSON.stringify(params))
    } catch {
      // The process has ended. The request is sent again to the next process.
    }
  }

  /** Sends the request with a new id. Resolves with the response for the client. Never rejects. */
  async #carry({ id = '', method, params }: Message): Promise<Buffer> {
    try {
      const outcome = await this.#requester.request(this.#requester.newId(), method, params ?? '{}')
      return responseMessage(id, outcome)
    } catch (failure) {
      return errorMessage(id, failure)
    }
  }
}

const tooMany = new GatehouseError('INVALID_REQUEST', { detail: 'too many resource subscriptions' })

function emptyResult({ id = '' }: Message): Buffer {
  return resultMessage(id, '{}')
}

function isResult(answer: Buffer): boolean {
  return new JsonObject(answer).raw('result') !== undefined
}

/** True when a server that logs at `level` and above also logs everything at `other` and above. */
function isAtMost(level: string, other: string): boolean {
  return logLevels.indexOf(level) <= logLevels.indexOf(other)
}
