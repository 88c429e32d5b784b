/**
 * The live connections to a session-era backend. Each client session has its own connections. Connections for reading
 * lists are shared by clients with the same capabilities. A pool provides connections for the requests of clients
 * without a session. The number of connections is bounded, and idle connections are closed.
 *
 * If the backend's responses depend on the caller, every key contains the requester's identity. A client session gets a
 * different backend session when its credentials or passed-through headers change. Each caller that uses the pool also
 * gets a separate backend session.
 */
import { hash } from 'node:crypto'
import { GatehouseError } from '../../../../schemas/index.ts'
import type { Log } from '../../../net/index.ts'
import { noAbilities } from '../../model/client.ts'
import type { AskReply } from '../../../mcp/index.ts'
import type { ClientSession } from '../../model/session.ts'
import { ConnectionClosed } from './channel.ts'
import type { Sender } from '../transport/target.ts'
import type { ConnectionEvents, ListKind } from '../connection.ts'
import { credentialKey } from '../../model/identity.ts'
import { SessionConnection } from './connection.ts'
import { unassignedError } from './inbound.ts'
import { Pool, type PooledConnection, type PoolUser } from './pool.ts'
import type { BackendSettings } from '../settings.ts'
import { SseChannel } from './sse-channel.ts'
import { StreamableChannel } from './streamable-channel.ts'

/** A client session and the requester that uses it. */
export interface SessionScope {
  readonly kind: 'session'
  readonly session: ClientSession
  /** Identity of the requester. Empty if the backend responds the same way to every requester. */
  readonly identity: string
}

/** The client or clients that a connection serves. */
export type ConnectionScope =
  | SessionScope
  | { readonly kind: 'listing'; readonly key: string }
  | { readonly kind: 'pool'; readonly key: string }

/** A session's client, which can receive messages and server requests outside any call. */
export type SessionListener = Pick<ClientSession, 'deliver' | 'ask'>

export interface ManagedConnection extends PooledConnection {
  /** Key that identifies the connection among all managed connections. */
  readonly key: string
  readonly connection: SessionConnection
  readonly scope: ConnectionScope
  sender: Sender
  usedAt: number
  /** True once the lists have been reread to find out whether a client still uses the connection. */
  isRevalidated: boolean
}

const maxPerBackend = 4_096
/**
 * Maximum number of connections for each client session. A session has one connection for each identity that it uses.
 */
const maxPerSession = 8
/**
 * Maximum number of connections for reading lists. Beyond this number, the connection that has been idle longest is
 * closed.
 */
const maxShared = 256

/** Events that connections report to their backend. */
export interface ConnectionsEvents {
  listChanged(kind: ListKind, scope: ConnectionScope): void
  /** Called when announcements over this connection may have been lost. */
  announcementsLost(scope: ConnectionScope): void
  resourceUpdated(scope: ConnectionScope, params: Buffer): void
  /** Returns the recipient of notifications and server requests that arrive outside any call. */
  listener(session: ClientSession): SessionListener
  /** Called when a message is dropped or rejected because it cannot be assigned to a single caller. */
  unassigned(method: string): void
}

export interface ConnectionsOptions {
  readonly settings: BackendSettings
  readonly events: ConnectionsEvents
  /** Raw JSON of Gatehouse's `Implementation`. */
  readonly info: string
  readonly log: Log
  readonly now: () => number
}

interface ConnectOptions {
  readonly capabilities: Buffer
  readonly sender: Sender
  /** Returns true if a message without a request id can belong to the only request in flight. */
  readonly assigns?: () => boolean
}

export class Connections {
  readonly #options: ConnectionsOptions
  readonly #managed = new Map<string, ManagedConnection>()
  /** Connections, keyed by client session id. */
  readonly #bySession = new Map<string, Set<ManagedConnection>>()
  readonly #pool: Pool<ManagedConnection>
  #closed = false

  constructor(options: ConnectionsOptions) {
    this.#options = options
    this.#pool = new Pool({ sendsOutsideStream: options.settings.transport === 'sse' })
  }

  /**
   * Returns a scope's connection, creating it if necessary. Throws BACKEND_UNAVAILABLE if there are too many
   * connections.
   */
  getOrConnect(scope: ConnectionScope, capabilities: Buffer, sender: Sender): ManagedConnection {
    const key =
      scope.kind === 'session'
        ? `session ${scope.session.id} ${scope.identity}`
        : `${scope.kind} ${scope.key}`
    const known = this.#managed.get(key)
    if (known) {
      known.usedAt = this.#options.now()
      known.sender = sender
      known.isRevalidated = false
      return known
    }
    if (scope.kind !== 'session') this.#makeRoom()
    else if (scope.session.isOver) throw new ConnectionClosed()
    else this.#makeRoomIn(scope.session)
    if (this.#managed.size >= maxPerBackend)
      throw new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'too many sessions' })
    const managed = this.#connect(key, scope, { capabilities, sender })
    this.#managed.set(key, managed)
    if (scope.kind === 'session') this.#addTo(scope.session, managed)
    return managed
  }

  #addTo({ id }: ClientSession, managed: ManagedConnection): void {
    const known = this.#bySession.get(id)
    if (known) known.add(managed)
    else this.#bySession.set(id, new Set([managed]))
  }

  #remove(managed: ManagedConnection): void {
    const { key, scope } = managed
    if (this.#managed.get(key) === managed) this.#managed.delete(key)
    if (scope.kind !== 'session') return
    const siblings = this.#bySession.get(scope.session.id)
    siblings?.delete(managed)
    if (siblings?.size === 0) this.#bySession.delete(scope.session.id)
  }

  /**
   * Closes a session's least recently used idle connection if the session has too many connections. Throws
   * BACKEND_UNAVAILABLE if all of these connections are busy.
   */
  #makeRoomIn({ id }: ClientSession): void {
    const own = this.#bySession.get(id)
    if (!own || own.size < maxPerSession) return
    let oldest: ManagedConnection | undefined
    for (const managed of own) {
      if (
        managed.connection.inFlightCount === 0 &&
        managed.usedAt < (oldest?.usedAt ?? Number.POSITIVE_INFINITY)
      )
        oldest = managed
    }
    if (!oldest) throw new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'too many concurrent identities' })
    this.#remove(oldest)
    void oldest.connection.close(oldest.sender, { end: true })
  }

  /**
   * Returns the connection for health checks. Lists for clients without capabilities are read over the same connection,
   * because a separate session would double the number of startup requests. Connections for a single caller's lists
   * have different keys and are never used for checks.
   */
  forChecks(sender: Sender): ManagedConnection {
    const { raw, signature } = noAbilities
    return this.getOrConnect({ kind: 'listing', key: signature }, raw, sender)
  }

  /** Closes the shared connection that has been idle longest if there are too many shared connections. */
  #makeRoom(): void {
    let shared = 0
    let oldest: [string, ManagedConnection] | undefined
    for (const entry of this.#managed) {
      const [, managed] = entry
      if (managed.scope.kind === 'session') continue
      shared++
      if (
        managed.connection.inFlightCount === 0 &&
        managed.usedAt < (oldest?.[1].usedAt ?? Number.POSITIVE_INFINITY)
      )
        oldest = entry
    }
    if (shared < maxShared || !oldest) return
    this.#managed.delete(oldest[0])
    void oldest[1].connection.close(oldest[1].sender, { end: true })
  }

  #connect(
    key: string,
    scope: ConnectionScope,
    { capabilities, sender, assigns = () => false }: ConnectOptions,
  ): ManagedConnection {
    if (this.#closed) throw new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'the backend was removed' })
    const { name, target, transport, timeoutMs, perCaller } = this.#options.settings
    const binding = scope.kind === 'session' ? this.#bindingOf(scope) : ''
    const connection = new SessionConnection({
      makeChannel: (events, resume) =>
        transport === 'sse' ? new SseChannel(target, events) : new StreamableChannel(target, events, resume),
      sentHeaders: target.sentHeaders,
      resume: () =>
        scope.kind === 'session' && transport !== 'sse' ? scope.session.resume?.(name, binding) : undefined,
      onOpened: (opened) => {
        if (scope.kind === 'session') scope.session.backendSessionOpened?.(name, { ...opened, binding })
      },
      credentialOf: perCaller ? credentialKey : () => '',
      assignment: scope.kind === 'session' ? 'newest' : assigns,
      events: this.#connectionEvents(scope),
      capabilities,
      info: this.#options.info,
      openTimeoutMs: timeoutMs,
      log: this.#options.log,
    })
    return {
      key,
      connection,
      scope,
      sender,
      usedAt: this.#options.now(),
      uses: 0,
      isRevalidated: false,
    }
  }

  /** Returns the binding of a stored backend session. A binding is not valid for a different address or requester. */
  #bindingOf({ identity }: SessionScope): string {
    const { name, transport, target } = this.#options.settings
    return hash('sha256', JSON.stringify([name, transport, target.url.href, identity]), 'base64url')
  }

  #connectionEvents(scope: ConnectionScope): ConnectionEvents {
    const { events, settings } = this.#options
    const { name } = settings
    return {
      listChanged: (kind) => events.listChanged(kind, scope),
      resourceUpdated: (params) => events.resourceUpdated(scope, params),
      notification: (method, params) => {
        if (scope.kind === 'session') events.listener(scope.session).deliver(name, method, params)
      },
      announcementsLost: () => events.announcementsLost(scope),
      sessionLost: () => {
        // Announcements may have been lost, so the lists are reread over a new connection.
        if (scope.kind === 'listing') events.listChanged('tools', scope)
        else if (scope.kind === 'session') scope.session.backendSessionLost?.(name)
      },
      ask: (ask, signal) => {
        if (scope.kind === 'session') return events.listener(scope.session).ask(ask, signal)
        if (ask.method === 'roots/list') return noRoots
        events.unassigned(ask.method)
        return Promise.reject(unassignedError())
      },
      unassigned: (method) => {
        this.#pool.noteOutsideStream()
        events.unassigned(method)
      },
    }
  }

  /** Returns a pooled connection for one request at a time. The caller must then call `returnToPool`. */
  take(user: PoolUser, capabilities: Buffer, sender: Sender): ManagedConnection {
    const managed = this.#pool.take(user, () => {
      const scope = { kind: 'pool', key: user.key } as const
      const assigns = (): boolean => user.isIdentified || made.uses <= 1
      const made: ManagedConnection = this.#connect(user.key, scope, { capabilities, sender, assigns })
      return made
    })
    managed.sender = sender
    return managed
  }

  returnToPool(user: PoolUser, managed: ManagedConnection): void {
    managed.usedAt = this.#options.now()
    this.#pool.takeBack(user, managed)
    if (this.#closed)
      for (const left of this.#pool.dropAll()) void left.connection.close(left.sender, { end: true })
  }

  /**
   * Called when a request on a shared connection has ended. Retires the connection if the backend may still be
   * processing the request.
   */
  release(managed: ManagedConnection): void {
    if (!managed.connection.isSpent) return
    this.#remove(managed)
    this.#pool.spend(managed)
  }

  /** Returns a session's connections. If `forget` is true, also stops managing these connections. */
  ofSession(
    session: ClientSession,
    { forget = false }: { readonly forget?: boolean } = {},
  ): readonly ManagedConnection[] {
    const all = [...(this.#bySession.get(session.id) ?? [])]
    if (forget) for (const managed of all) this.#remove(managed)
    return all
  }

  /**
   * Closes connections that have been idle for `idleMs`. A session's most recently used connection stays open until the
   * session ends. Before a connection that announces list changes is closed, the lists are read once more. A client
   * that still uses the lists keeps the connection open by reading them.
   */
  evict(idleMs: number): void {
    const before = this.#options.now() - idleMs
    for (const managed of this.#managed.values()) {
      if (managed.usedAt > before || managed.connection.inFlightCount > 0 || this.#isLatest(managed)) continue
      if (managed.scope.kind === 'listing' && !managed.isRevalidated) {
        managed.isRevalidated = true
        this.#options.events.listChanged('tools', managed.scope)
        continue
      }
      this.#remove(managed)
      void managed.connection.close(managed.sender, { end: true })
    }
    this.#pool.evict(before)
  }

  /** True for the connection that was most recently used in its session. */
  #isLatest({ scope, usedAt }: ManagedConnection): boolean {
    if (scope.kind !== 'session') return false
    for (const other of this.ofSession(scope.session)) if (other.usedAt > usedAt) return false
    return true
  }

  /** Removes and returns every connection, except for pooled connections in use. */
  dropAll(): ManagedConnection[] {
    const all = [...this.#managed.values(), ...this.#pool.dropAll()]
    this.#managed.clear()
    this.#bySession.clear()
    return all
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(
      this.dropAll().map((managed) => managed.connection.close(managed.sender, { end: true })),
    )
  }
}

const noRoots: Promise<AskReply> = Promise.resolve({ result: Buffer.from('{"roots":[]}') })
