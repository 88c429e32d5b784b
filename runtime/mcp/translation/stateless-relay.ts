/**
 * Relays stateless requests from many clients to a stateless server over shared channels. Ids, progress tokens and
 * subscription ids are replaced with values that are unique on the channel. The client's own values are restored in
 * messages to the client.
 *
 * Log messages do not identify their request. A request for log messages therefore gets a separate channel.
 * Source: MCP 2026-07-28, stdio.
 */
import { subscriptionOf, withSubscription } from '../eras/subscriptions.ts'
import { JsonObject } from '../json/object.ts'
import type { Message } from '../message.ts'
import { paramsOf } from '../param-types.ts'
import { metaKey } from '../protocol.ts'
import { errorMessage, errorObject, notificationMessage, rawErrorMessage } from '../write.ts'
import type { OpenLink, ServerLink } from './link.ts'
import { LinkPool, type PooledLink } from './link-pool.ts'
import { linkEnded, LinkRequester } from './requester.ts'
import type { StatelessReply, StatelessRequest } from './stateless-reply.ts'

interface Sent {
  readonly clientId: string
  /** The client's raw progress token. */
  readonly progressToken: string | undefined
  readonly reply: StatelessReply
  readonly wantsLogs: boolean
}

/** One channel to the server. */
export class StatelessLink implements PooledLink {
  readonly requester: LinkRequester
  readonly ended: Promise<string>
  users = 0
  exclusive = false
  usedAt = 0
  pins = 0
  over = false
  readonly #link: ServerLink
  /** Requests, keyed by their id on the channel. */
  readonly #sent = new Map<string, Sent>()

  constructor(open: OpenLink) {
    this.#link = open((message) => this.#receive(message))
    this.requester = new LinkRequester((message) => this.#link.send(message))
    this.ended = this.#link.ended
    void this.ended.then((why) => {
      this.over = true
      this.requester.failAll(linkEnded(why))
    })
  }

  /** Sends a request and forwards its response. Rejects if the link ends or the client cancels the request. */
  async carry(
    { id: clientId, method, params, meta }: StatelessRequest,
    reply: StatelessReply,
  ): Promise<void> {
    const id = this.requester.newId()
    const own = params.object('_meta')
    const progressToken = own?.raw('progressToken')?.toString()
    const wantsLogs = meta.logLevel !== undefined
    this.#sent.set(id, { clientId, progressToken, reply, wantsLogs })
    try {
      const changed =
        own && progressToken !== undefined
          ? params.with({ _meta: own.with({ progressToken: id }) })
          : params.bytes
      const { result, error } = await this.requester.request(id, method, changed, reply.gone)
      const isSubscription = method === 'subscriptions/listen'
      if (result)
        await reply.endResult(
          clientId,
          isSubscription ? withClientSubscription(result, id, clientId) : result,
        )
      else await reply.end(rawErrorMessage(clientId, error), new JsonObject(error).value('code'))
    } finally {
      this.#sent.delete(id)
    }
  }

  #receive(message: Message): void {
    if (this.requester.take(message) || message.kind !== 'notification') return
    const params = paramsOf(message)
    if (message.method === 'notifications/progress') {
      const sent = this.#sent.get(params.raw('progressToken')?.toString() ?? '')
      if (sent?.progressToken === undefined) return
      const own = params.with({ progressToken: sent.progressToken })
      void sent.reply.send(notificationMessage(message.method, own))
    } else if (message.method === 'notifications/message') {
      const [only] = this.exclusive ? this.#sent.values() : []
      if (only?.wantsLogs) void only.reply.send(message.bytes)
    } else this.#announce(message, params)
  }

  #announce({ method }: Message, params: JsonObject): void {
    if (method === 'notifications/cancelled') return this.#closed(params.raw('requestId')?.toString())
    const sent = this.#sent.get(subscriptionOf(params) ?? '')
    if (!sent) return
    void sent.reply.send(notificationMessage(method, withSubscription(params, sent.clientId)))
  }

  /** Handles a subscription that the server ended without a result. */
  #closed(id: string | undefined): void {
    const sent = id === undefined ? undefined : this.#sent.get(id)
    sent?.reply.drop()
  }

  close(): Promise<void> {
    return this.#link.close()
  }
}

/** Returns a subscription's final result with the client's subscription id. */
export function withClientSubscription(result: Buffer, id: string, clientId: string): Buffer {
  if (!result.includes(metaKey.subscriptionId)) return result
  const object = new JsonObject(result)
  return subscriptionOf(object) === id ? withSubscription(object, clientId) : result
}

export interface StatelessRelayOptions {
  readonly open: OpenLink
  readonly maxLinks: () => number
  readonly now: () => number
}

export class StatelessRelay {
  readonly #pool: LinkPool<StatelessLink>

  constructor({ open, maxLinks, now }: StatelessRelayOptions) {
    this.#pool = new LinkPool({ make: () => new StatelessLink(open), maxLinks, now })
  }

  /** Adds an open channel to the pool. */
  adopt(scope: string, link: StatelessLink): void {
    this.#pool.adopt(scope, link)
  }

  get size(): number {
    return this.#pool.size
  }

  /** Sends a request and forwards its response. Never rejects. */
  async request(request: StatelessRequest, reply: StatelessReply): Promise<void> {
    try {
      const link = this.#pool.acquire(request.scope, { exclusive: request.meta.logLevel !== undefined })
      try {
        await link.carry(request, reply)
      } finally {
        this.#pool.release(link)
      }
    } catch (error) {
      if (reply.gone.aborted) return
      if (request.method === 'subscriptions/listen') reply.drop()
      else await reply.end(errorMessage(request.id, error), errorObject(error).code)
    }
  }

  evict(before: number): void {
    this.#pool.evict(before)
  }

  close(): Promise<void> {
    return this.#pool.close()
  }
}
