/**
 * `subscriptions/listen` of stateless clients, served by the sessions of one lane: changed lists are announced to the clients that
 * asked for them, updated resources to those that watch them. Every session of the lane is subscribed to what any client watches.
 * Source: MCP 2026-07-28, patterns/subscriptions; MCP 2025-11-25, server/resources.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { JsonObject } from '../json/object.ts'
import type { Message } from '../message.ts'
import { paramsOf } from '../param-types.ts'
import { metaKey, updatedMethod } from '../protocol.ts'
import { notificationMessage, resultMessage } from '../write.ts'
import type { SessionLink, SessionServer } from './session-link.ts'
import type { StatelessReply, StatelessRequest } from './stateless-reply.ts'

const maxWatchers = 1_000
const maxResources = 100
const lists: Readonly<Record<string, { kind: string; method: string }>> = {
  toolsListChanged: { kind: 'tools', method: 'notifications/tools/list_changed' },
  promptsListChanged: { kind: 'prompts', method: 'notifications/prompts/list_changed' },
  resourcesListChanged: { kind: 'resources', method: 'notifications/resources/list_changed' },
}

interface Watcher {
  readonly id: string
  readonly reply: StatelessReply
  /** Methods of the notifications that were asked for. */
  readonly methods: ReadonlySet<string>
  uris: ReadonlySet<string>
}

export class Watchers {
  readonly #links: () => readonly SessionLink[]
  readonly #watchers = new Set<Watcher>()

  /** `links`: the sessions of the lane, as they are now. */
  constructor(links: () => readonly SessionLink[]) {
    this.#links = links
  }

  get size(): number {
    return this.#watchers.size
  }

  /** Holds a subscription open until the client or the session ends. Rejects when it cannot be opened. */
  async listen(request: StatelessRequest, reply: StatelessReply, link: SessionLink): Promise<void> {
    const filter = request.params.object('notifications')
    if (!filter)
      throw new GatehouseError('INVALID_PARAMS', {
        detail: 'Invalid params: notifications must be an object',
      })
    if (!reply.streams) throw new GatehouseError('NOT_ACCEPTABLE')
    if (this.#watchers.size >= maxWatchers)
      throw new GatehouseError('RATE_LIMITED', { detail: 'too many subscriptions' })
    const server = await link.opened
    const names = Object.keys(lists).filter((name) => filter.value(name) === true && announces(server, name))
    const watcher: Watcher = {
      id: request.id,
      reply,
      methods: new Set(names.flatMap((name) => lists[name]?.method ?? [])),
      uris: new Set(),
    }
    const uris = await this.#subscribe(link, urisIn(filter))
    watcher.uris = new Set(uris)
    if (reply.gone.aborted) return this.#unsubscribe(uris)
    this.#watchers.add(watcher)
    await this.#acknowledge(watcher, names)
    await Promise.race([link.ended, gone(reply.gone)])
    this.#watchers.delete(watcher)
    this.#unsubscribe(uris)
    if (!reply.gone.aborted) reply.drop()
  }

  /** Subscribes every session of the lane; returns the resources that the watcher's own session accepted. */
  async #subscribe(own: SessionLink, uris: readonly string[]): Promise<string[]> {
    for (const link of this.#links()) if (link !== own) for (const uri of uris) ask(link, 'subscribe', uri)
    const taken = await Promise.all(
      uris.map(async (uri) => ((await subscribe(own, 'subscribe', uri)) ? [uri] : [])),
    )
    return taken.flat()
  }

  #unsubscribe(uris: readonly string[]): void {
    const watched = this.#watched()
    for (const uri of uris) {
      if (watched.has(uri)) continue
      for (const link of this.#links()) ask(link, 'unsubscribe', uri)
    }
  }

  #watched(): ReadonlySet<string> {
    return new Set([...this.#watchers].flatMap(({ uris }) => [...uris]))
  }

  /** A session that has joined the lane. */
  joined(link: SessionLink): void {
    for (const uri of this.#watched()) ask(link, 'subscribe', uri)
  }

  #acknowledge({ id, reply, uris }: Watcher, names: readonly string[]): void | Promise<void> {
    const honoured = {
      ...Object.fromEntries(names.map((name) => [name, true])),
      ...(uris.size > 0 ? { resourceSubscriptions: [...uris] } : {}),
    }
    const params = `{"_meta":${markOf(id)},"notifications":${JSON.stringify(honoured)}}`
    return reply.send(notificationMessage('notifications/subscriptions/acknowledged', params))
  }

  /** A notification of a session of the lane that belongs to no request. */
  heard(message: Message): void {
    const params = paramsOf(message)
    const uri = message.method === updatedMethod ? params.text('uri') : undefined
    for (const { id, reply, methods, uris } of this.#watchers) {
      if (uri === undefined ? !methods.has(message.method) : !uris.has(uri)) continue
      const meta = params.object('_meta')?.with({ [metaKey.subscriptionId]: id }) ?? markOf(id)
      void reply.send(notificationMessage(message.method, params.with({ _meta: meta })))
    }
  }

  /** The graceful end: a result that closes each subscription. */
  close(): void {
    for (const { id, reply } of this.#watchers)
      void reply.end(resultMessage(id, `{"resultType":"complete","_meta":${markOf(id)}}`))
  }
}

function markOf(id: string): string {
  return `{"${metaKey.subscriptionId}":${id}}`
}

function announces({ capabilities }: SessionServer, name: string): boolean {
  const kind = lists[name]?.kind ?? ''
  return capabilities.object(kind)?.value('listChanged') === true
}

function urisIn(filter: JsonObject): string[] {
  const value = filter.value('resourceSubscriptions')
  const texts = Array.isArray(value) ? value.filter((uri): uri is string => typeof uri === 'string') : []
  return [...new Set(texts)].slice(0, maxResources)
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

/** The same, when nothing depends on it. */
function ask(link: SessionLink, what: 'subscribe' | 'unsubscribe', uri: string): void {
  void subscribe(link, what, uri)
}

function gone(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
