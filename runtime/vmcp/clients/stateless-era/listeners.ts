/**
 * Handles `subscriptions/listen`, which opens streams that notify stateless clients of changed lists and updated
 * resources.
 *
 * The first message lists the accepted subscriptions. Every message contains the subscription id. Gatehouse ends a
 * stream with a result. The number of streams is bounded, in total and for each caller.
 * Source: MCP 2026-07-28, patterns/subscriptions.
 */
import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { GatehouseError } from '../../../../schemas/index.ts'
import {
  acknowledgement,
  emptyObject,
  encodeEvent,
  JsonObject,
  keepAliveComment,
  listChangedMethod,
  type ListenFilter,
  MessageError,
  notificationMessage,
  readFilter,
  subscriptionEnd,
  updatedMethod,
  withSubscription,
} from '../../../mcp/index.ts'
import { registerCallerStream } from '../../../net/index.ts'
import type { ListKind } from '../../backends/connection.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { requireTasks, type TaskFeature } from '../../features/tasks/index.ts'
import type { Watcher } from '../session-life.ts'
import type { Ask, AskReply } from '../../../mcp/index.ts'
import type { OperationClient, ClientSession } from '../../model/session.ts'
import { isShared } from '../../model/client.ts'
import type { VmcpExchange } from '../../model/exchange.ts'
import { Resubscriber } from '../session-era/resubscribe.ts'
import { maxWatchedTasks, maxWatchersPerTask, type ReadTaskState, watchTask } from './task-watch.ts'
import { acceptsEventStream, beginEventStream, writeBounded } from '../stream.ts'

const maxListeners = 5_000
const maxPerCaller = 100
const maxResources = 100

export interface ListenersOptions {
  readonly serverInfo: string
  /** Rejects if the caller is not allowed to subscribe to a named item. */
  readonly authorize: (client: OperationClient, params: JsonObject, signal: AbortSignal) => Promise<void>
  /** Returns a client's current catalog. Never rejects. */
  readonly viewAvailable: (client: OperationClient) => Promise<Catalog>
  /** Returns a resource's backend, or undefined if the resource is unknown. */
  readonly backendOf: (client: OperationClient, uri: string) => string | undefined
  /** Subscribes a listener to a resource. Rejects if the backend does not accept the subscription. */
  readonly subscribe: (client: OperationClient, uri: string, signal: AbortSignal) => Promise<void>
  /** The tasks that a listener may watch. */
  readonly tasks: Pick<TaskFeature, 'isOffered' | 'isValid'>
  readonly readTask: ReadTaskState
  /** Ends a listener's backend sessions. */
  readonly endSession: (session: ClientSession) => void
}

export class Listeners {
  readonly #options: ListenersOptions
  readonly #open = new Set<Listener>()

  constructor(options: ListenersOptions) {
    this.#options = options
  }

  *watchers(): Iterable<Watcher> {
    yield* this.#open
  }

  async open(exchange: VmcpExchange, id: string, params: JsonObject, client: OperationClient): Promise<void> {
    const filter = params.object('notifications')
    if (!filter)
      throw new MessageError('INVALID_PARAMS', id, {
        detail: 'Invalid params: notifications must be an object',
      })
    if (!acceptsEventStream(exchange.req)) {
      throw new MessageError('NOT_ACCEPTABLE', id, {
        detail: 'Not Acceptable: the client must accept text/event-stream',
      })
    }
    await this.#options.authorize(client, params, exchange.signal)
    const own = [...this.#open].filter(({ owner }) => owner === client.caller.key).length
    const limit = isShared(client.caller) ? maxListeners : maxPerCaller
    if (this.#open.size >= maxListeners || own >= limit) {
      throw new MessageError('RATE_LIMITED', id, { detail: 'too many subscriptions' })
    }
    const { kinds, uris: wantedUris, taskIds: wantedTasks } = readFilter(filter)
    const taskIds = this.#watchable(client, wantedTasks)
    const listener = new Listener(id, client, exchange.res, new Set(kinds), this.#options)
    listener.taskIds = new Set(taskIds)
    this.#open.add(listener)
    exchange.res.once('close', () => {
      this.#open.delete(listener)
      this.#options.endSession(listener.session)
    })
    const uris = await listener.prepare(wantedUris.slice(0, maxResources))
    if (exchange.res.destroyed) return
    beginEventStream(exchange.res, { 'cache-control': 'private, no-store' })
    registerCallerStream(exchange, () => listener.end())
    listener.acknowledge({ kinds, uris, taskIds })
    for (const taskId of taskIds) listener.watchTask(taskId)
  }

  /** Returns the ids that the client may watch. Throws CAPABILITY_REQUIRED if the client did not declare tasks. */
  #watchable(client: OperationClient, taskIds: readonly string[]): readonly string[] {
    const { tasks } = this.#options
    if (taskIds.length === 0 || !tasks.isOffered()) return []
    requireTasks(client)
    const watchers = (taskId: string) => [...this.#open].filter((one) => one.taskIds.has(taskId)).length
    return [...new Set(taskIds)]
      .slice(0, maxWatchedTasks)
      .filter((taskId) => tasks.isValid(client, taskId) && watchers(taskId) < maxWatchersPerTask)
  }

  keepAlive(): void {
    for (const listener of this.#open) listener.keepAlive()
  }

  close(): void {
    for (const listener of this.#open) listener.end()
  }
}

class Listener implements Watcher {
  readonly owner: string
  readonly session: ClientSession
  /** Ids of the tasks that this stream watches. */
  taskIds: ReadonlySet<string> = new Set()
  seen: Readonly<Partial<Record<ListKind, string>>> | undefined
  readonly #id: string
  readonly #client: OperationClient
  readonly #res: ServerResponse
  readonly #kinds: ReadonlySet<ListKind>
  readonly #options: ListenersOptions
  #uris: ReadonlySet<string> = new Set()
  readonly #resubscriber = new Resubscriber()
  readonly #ended = new AbortController()
  #acknowledged = false
  #waiting: Buffer[] = []

  constructor(
    id: string,
    client: OperationClient,
    res: ServerResponse,
    kinds: ReadonlySet<ListKind>,
    options: ListenersOptions,
  ) {
    this.owner = client.caller.key
    this.#id = id
    this.#res = res
    this.#kinds = kinds
    this.#options = options
    this.session = {
      id: `listen-${randomUUID()}`,
      get isOver() {
        return res.destroyed
      },
      deliver: (backend, method, params) => this.#deliver(backend, method, params),
      backendSessionLost: (backend) => this.#renewSubscriptions(backend),
      ask: (_request: Ask): Promise<AskReply> => Promise.reject(new GatehouseError('METHOD_NOT_FOUND')),
    }
    this.#client = { ...client, session: this.session }
    res.once('close', () => this.#ended.abort(new Error('the stream has ended')))
  }

  /** Records the current state of the lists and subscribes to resources. Returns the URIs that backends accepted. */
  async prepare(uris: readonly string[]): Promise<string[]> {
    if (this.#kinds.size > 0) {
      const { digests } = await this.view()
      this.seen = Object.fromEntries([...this.#kinds].map((kind) => [kind, digests[kind]]))
    }
    this.#uris = new Set(uris)
    const signal = AbortSignal.timeout(30_000)
    const honoured = await Promise.all(
      uris.map((uri) =>
        this.#options.subscribe(this.#client, uri, signal).then(
          () => [uri],
          () => [],
        ),
      ),
    )
    this.#uris = new Set(honoured.flat())
    return honoured.flat()
  }

  #renewSubscriptions(backend: string): void {
    this.#resubscriber.schedule(backend, {
      uris: () => [...this.#uris],
      subscribe: (uri, signal) => this.#options.subscribe(this.#client, uri, signal).then(() => true),
      onResubscribed: (uri) => this.#notifyUpdated(uri, new JsonObject(Buffer.from(JSON.stringify({ uri })))),
      isOver: () => this.#res.destroyed,
    })
  }

  view(): Promise<Catalog> {
    return this.#options.viewAvailable({ ...this.#client, session: undefined })
  }

  acknowledge(accepted: ListenFilter): void {
    this.#write(acknowledgement(this.#id, accepted))
    this.#acknowledged = true
    for (const message of this.#waiting) this.#write(message)
    this.#waiting = []
  }

  watchTask(taskId: string): void {
    const read = (signal: AbortSignal) =>
      this.#options.readTask({ ...this.#client, session: undefined }, taskId, signal)
    void watchTask(read, this.#ended.signal, (task) =>
      this.#write(notificationMessage('notifications/tasks', withSubscription(task, this.#id))),
    )
  }

  notify(_message: Buffer, kind: ListKind): void {
    if (this.#kinds.has(kind))
      this.#sendAfterAcknowledgement(
        notificationMessage(listChangedMethod(kind), withSubscription(emptyObject, this.#id)),
      )
  }

  #deliver(backend: string, method: string, params: Buffer | undefined): void {
    if (method !== updatedMethod || !params) return
    const updated = new JsonObject(params)
    const uri = updated.text('uri')
    if (uri === undefined) return
    // Ignore updates from a backend that does not own the resource.
    const owner = this.#options.backendOf(this.#client, uri)
    if (owner === undefined || owner === backend) this.#notifyUpdated(uri, updated)
  }

  #notifyUpdated(uri: string, updated: JsonObject): void {
    if (!this.#uris.has(uri)) return
    this.#sendAfterAcknowledgement(notificationMessage(updatedMethod, withSubscription(updated, this.#id)))
  }

  /** Sends a message. Keeps the message until the acknowledgement has been sent. */
  #sendAfterAcknowledgement(message: Buffer): void {
    if (this.#acknowledged) this.#write(message)
    else if (this.#waiting.length < 100) this.#waiting.push(message)
  }

  #write(message: Buffer): void {
    writeBounded(this.#res, encodeEvent(message))
  }

  keepAlive(): void {
    if (this.#acknowledged) writeBounded(this.#res, keepAliveComment)
  }

  /** Ends the stream gracefully with the result that closes the subscription. */
  end(): void {
    if (this.#res.writableEnded || this.#res.destroyed) return
    this.#res.end(encodeEvent(subscriptionEnd(this.#id, this.#options.serverInfo)))
  }
}
