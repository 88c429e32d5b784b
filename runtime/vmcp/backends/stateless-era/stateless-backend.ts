/**
 * The connections to a stateless-era backend. One connection serves all requests. There is one listening stream for
 * each session with subscriptions, and one for each group of clients that share watched lists.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { JsonObject, uriIn } from '../../../mcp/index.ts'
import { resultOutcome, type Outcome } from '../../model/outcome.ts'
import type { ClientSession } from '../../model/session.ts'
import type { ChannelTarget, Sender } from '../transport/target.ts'
import type { SessionScope } from '../session-era/connections.ts'
import type { ListKind, Request, ServerInfo } from '../connection.ts'
import { StatelessConnection } from './connection.ts'
import { type ListenerEvents, StatelessListener } from './listener.ts'

const maxListeners = 4_096
/** Maximum number of listeners for each session. A session has one listener for each identity that it uses. */
const maxPerSession = 8

export interface StatelessBackendOptions {
  readonly target: ChannelTarget
  readonly info: string
  readonly openTimeoutMs: number
  readonly now: () => number
}

interface ListWatch {
  readonly listener: StatelessListener
  readonly onChange: (kind: ListKind) => void
  usedAt: number
  /** True once the lists have been reread to find out whether a client still uses them. */
  isRevalidated: boolean
}

export class StatelessBackend {
  readonly connection: StatelessConnection
  readonly #options: StatelessBackendOptions
  /** Streams of sessions with subscriptions, keyed by session id and then by requester identity. */
  readonly #listeners = new Map<string, Map<string, StatelessListener>>()
  /** Streams that announce list changes. */
  readonly #lists = new Map<string, ListWatch>()

  constructor(options: StatelessBackendOptions) {
    this.#options = options
    this.connection = new StatelessConnection(options)
  }

  /** Handles `resources/subscribe` and `resources/unsubscribe`. These methods do not exist in the stateless era. */
  async handleSubscription(scope: SessionScope, request: Request, events: ListenerEvents): Promise<Outcome> {
    const uri = uriIn(new JsonObject(request.params.with(request.changes ?? {})))
    const listener = this.#listener(scope, request.capabilities, events)
    if (request.method === 'resources/subscribe') await listener.addResource(uri, request.sender)
    else await listener.removeResource(uri, request.sender)
    return resultOutcome({})
  }

  /** Watches the lists for which the backend announces changes, on behalf of the clients that share the lists. */
  watchLists(
    key: string,
    server: ServerInfo,
    capabilities: Buffer,
    sender: Sender,
    changed: (kind: ListKind) => void,
  ): void {
    const usedAt = this.#options.now()
    const known = this.#lists.get(key)
    if (known) {
      known.usedAt = usedAt
      known.isRevalidated = false
      known.listener.renew(sender)
      return
    }
    if (server.capabilities.listChanged.size === 0 || this.#lists.size >= maxListeners) return
    const { target, info } = this.#options
    const events = { listChanged: changed, resourceUpdated: () => {} }
    const listener = new StatelessListener({ target, info, capabilities, events })
    this.#lists.set(key, { listener, onChange: changed, usedAt, isRevalidated: false })
    listener.watchLists(server.capabilities.listChanged, sender)
  }

  /**
   * Closes streams for lists that have not been read since `before`. Before a stream is closed, the lists are read once
   * more. A client that still uses the lists keeps the stream open by reading them.
   */
  evict(before: number): void {
    for (const [key, watch] of this.#lists) {
      if (watch.usedAt > before) continue
      if (!watch.isRevalidated) {
        watch.isRevalidated = true
        watch.onChange('tools')
        continue
      }
      this.#lists.delete(key)
      watch.listener.close()
    }
  }

  #listener(
    { session, identity }: SessionScope,
    capabilities: Buffer,
    events: ListenerEvents,
  ): StatelessListener {
    const own = this.#listeners.get(session.id) ?? new Map<string, StatelessListener>()
    const known = own.get(identity)
    if (known) return known
    if (this.#listeners.size >= maxListeners || own.size >= maxPerSession)
      throw new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'too many subscriptions' })
    const { target, info } = this.#options
    const listener = new StatelessListener({ target, info, capabilities, events })
    this.#listeners.set(session.id, own.set(identity, listener))
    return listener
  }

  endSession({ id }: ClientSession): void {
    for (const listener of this.#listeners.get(id)?.values() ?? []) listener.close()
    this.#listeners.delete(id)
  }

  close(): void {
    for (const own of this.#listeners.values()) for (const listener of own.values()) listener.close()
    for (const { listener } of this.#lists.values()) listener.close()
    this.#listeners.clear()
    this.#lists.clear()
  }
}
