/**
 * Serves `subscriptions/listen` requests from stateless clients, using the sessions in one lane. Announces list changes
 * to the clients that requested them, and resource updates to the clients that watch the resources. Every session in
 * the lane subscribes to all resources that a client watches.
 * Source: MCP 2026-07-28, patterns/subscriptions; MCP 2025-11-25, server/resources.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { limitToOncePerMinute, type Log } from '../../net/index.ts'
import {
  acknowledgement,
  announcedLists,
  listChangedMethod,
  readFilter,
  subscriptionEnd,
  withSubscription,
} from '../eras/subscriptions.ts'
import { JsonObject } from '../json/object.ts'
import type { Message } from '../message.ts'
import { paramsOf } from '../param-types.ts'
import { updatedMethod } from '../protocol.ts'
import { notificationMessage } from '../write.ts'
import type { SessionLink } from './session-link.ts'
import type { StatelessReply, StatelessRequest } from './stateless-reply.ts'

const maxWatchers = 1_000
const maxResources = 100

interface Watcher {
  readonly id: string
  readonly reply: StatelessReply
  /** Methods of the notifications that the client requested. Empty until the subscription has been acknowledged. */
  methods: ReadonlySet<string>
  uris: ReadonlySet<string>
}

const none: ReadonlySet<string> = new Set()

const reportLeftOut = limitToOncePerMinute((log: Log, count: number) =>
  log.warn('a subscription contains too many resources', { watched: maxResources, left_out: count }),
)

export class Watchers {
  readonly #links: () => readonly SessionLink[]
  readonly #log: Log
  readonly #watchers = new Set<Watcher>()

  /** `links` returns the lane's current sessions. */
  constructor(links: () => readonly SessionLink[], log: Log) {
    this.#links = links
    this.#log = log
  }

  get size(): number {
    return this.#watchers.size
  }

  /** Keeps a subscription open until the client or the session ends. Rejects if the subscription cannot be opened. */
  async listen(request: StatelessRequest, reply: StatelessReply, link: SessionLink): Promise<void> {
    const filter = request.params.object('notifications')
    if (!filter)
      throw new GatehouseError('INVALID_PARAMS', {
        detail: 'Invalid params: notifications must be an object',
      })
    if (!reply.streams) throw new GatehouseError('NOT_ACCEPTABLE')
    if (this.#watchers.size >= maxWatchers)
      throw new GatehouseError('RATE_LIMITED', { detail: 'too many subscriptions' })
    // Add the watcher before the first await. Otherwise, concurrent requests could exceed the maximum.
    const watcher: Watcher = { id: request.id, reply, methods: none, uris: none }
    this.#watchers.add(watcher)
    try {
      await this.#watch(watcher, readFilter(filter), link)
    } finally {
      this.#watchers.delete(watcher)
      this.#unsubscribe(watcher.uris)
    }
    if (!reply.gone.aborted) reply.drop()
  }

  /** Resolves when the client or the session has ended. */
  async #watch(watcher: Watcher, wanted: ReturnType<typeof readFilter>, link: SessionLink): Promise<void> {
    const { id, reply } = watcher
    const announced = announcedLists((await link.opened).capabilities)
    const kinds = wanted.kinds.filter((kind) => announced.includes(kind))
    const leftOut = wanted.uris.length - maxResources
    if (leftOut > 0) reportLeftOut(this.#log, leftOut)
    const uris = await this.#subscribe(link, wanted.uris.slice(0, maxResources))
    watcher.uris = new Set(uris)
    if (reply.gone.aborted) return
    watcher.methods = new Set(kinds.map(listChangedMethod))
    await reply.send(acknowledgement(id, { kinds, uris }))
    await Promise.race([link.ended, gone(reply.gone)])
  }

  /** Subscribes every session in the lane. Returns the resources that the watcher's own session accepted. */
  async #subscribe(own: SessionLink, uris: readonly string[]): Promise<string[]> {
    for (const link of this.#links())
      if (link !== own) for (const uri of uris) sendSubscription(link, 'subscribe', uri)
    const accepted = await Promise.all(
      uris.map(async (uri) => ((await subscribe(own, 'subscribe', uri)) ? [uri] : [])),
    )
    return accepted.flat()
  }

  #unsubscribe(uris: ReadonlySet<string>): void {
    const watched = this.#watched()
    for (const uri of uris) {
      if (watched.has(uri)) continue
      for (const link of this.#links()) sendSubscription(link, 'unsubscribe', uri)
    }
  }

  #watched(): ReadonlySet<string> {
    return new Set([...this.#watchers].flatMap(({ uris }) => [...uris]))
  }

  /** Subscribes a new session in the lane. */
  addSession(link: SessionLink): void {
    for (const uri of this.#watched()) sendSubscription(link, 'subscribe', uri)
  }

  /** Forwards a session notification that does not belong to a request. */
  forward(message: Message): void {
    const params = paramsOf(message)
    const uri = message.method === updatedMethod ? params.text('uri') : undefined
    for (const { id, reply, methods, uris } of this.#watchers) {
      if (uri === undefined ? !methods.has(message.method) : !uris.has(uri)) continue
      void reply.send(notificationMessage(message.method, withSubscription(params, id)))
    }
  }

  /** Closes each subscription with a result. */
  close(): void {
    for (const { id, reply } of this.#watchers) void reply.end(subscriptionEnd(id))
  }
}

async function subscribe(
  link: SessionLink,
  what: 'subscribe' | 'unsubscribe',
  uri: string,
): Promise<boolean> {
  try {
    const params = new JsonObject(Buffer.from(JSON.stringify({ uri })))
    return (await link.request(`resources/${what}`, { params }, undefined)).result !== undefined
  } catch {
    return false
  }
}

/** Like `subscribe`, but ignores the result. */
function sendSubscription(link: SessionLink, what: 'subscribe' | 'unsubscribe', uri: string): void {
  void subscribe(link, what, uri)
}

function gone(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
