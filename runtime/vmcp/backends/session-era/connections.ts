/**
 * The live connections to a session-era backend: one for each client session, one for each kind of client whose lists
 * are read, and pooled ones. Their number is bounded, and idle ones are closed.
 *
 * When the backend's responses depend on the caller, every key contains the requester's identity. A client session
 * that changes its credentials or passed-through headers gets another backend session, and so does each caller of the
 * pool.
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
import { unassigned } from './inbound.ts'
import { Pool, type PooledConnection, type PoolUser } from './pool.ts'
import type { BackendSettings } from '../settings.ts'
import { SseChannel } from './sse-channel.ts'
import { StreamableChannel } from './streamable-channel.ts'

/** A client session as used by one requester. */
export interface SessionScope {
  readonly kind: 'session'
  readonly session: ClientSession
  /** Identity of the requester; '' when the backend responds the same to every requester. */
  readonly identity: string
}

/** Whom a connection serves. */
export type ConnectionScope =
  | SessionScope
  | { readonly kind: 'listing'; readonly key: string }
  | { readonly kind: 'pool'; readonly key: string }

/** The client of a session, outside of calls. */
export type SessionListener = Pick<ClientSession, 'deliver' | 'ask'>

export interface HeldConnection extends PooledConnection {
  /** Key among the held connections. */
  readonly key: string
  readonly connection: SessionConnection
  readonly scope: ConnectionScope
  sender: Sender
  usedAt: number
  /** Set once those who look at a list were asked whether they still do. */
  revalidated: boolean
}

const maxPerBackend = 4_096
/** Maximum number of connections of one client session, which has one for each identity that it uses. */
const maxPerSession = 8
/** Connections that serve no session: one for each kind of client. The one not used for longest makes space. */
const maxShared = 256

/** What connections tell the backend that they belong to. */
export interface ConnectionsEvents {
  listChanged(kind: ListKind, scope: ConnectionScope): void
  /** Changes of what is listed over this connection may not have been heard. */
  gap(scope: ConnectionScope): void
  resourceUpdated(scope: ConnectionScope, params: Buffer): void
  /** Who hears what the backend says and asks outside of calls. */
  listener(session: ClientSession): SessionListener
  /** Called when a message is dropped or rejected because it cannot be assigned to a single caller. */
  unassigned(method: string): void
}

export interface ConnectionsOptions {
  readonly settings: BackendSettings
  readonly events: ConnectionsEvents
  /** Raw JSON of our own `Implementation`. */
  readonly info: string
  readonly log: Log
  readonly now: () => number
}

export class Connections {
  readonly #options: ConnectionsOptions
  readonly #held = new Map<string, HeldConnection>()
  /** Connections by client session id. */
  readonly #bySession = new Map<string, Set<HeldConnection>>()
  readonly #pool: Pool<HeldConnection>
  #closed = false

  constructor(options: ConnectionsOptions) {
    this.#options = options
    this.#pool = new Pool({ sendsOutsideStream: options.settings.transport === 'sse' })
  }

  /** The connection of a scope, opened when there is none. Throws BACKEND_UNAVAILABLE when there are too many. */
  hold(scope: ConnectionScope, capabilities: Buffer, sender: Sender): HeldConnection {
    const key = connectionKey(scope)
    const known = this.#held.get(key)
    if (known) {
      known.usedAt = this.#options.now()
      known.sender = sender
      known.revalidated = false
      return known
    }
    if (scope.kind !== 'session') this.#makeRoom()
    else if (scope.session.over) throw new ConnectionClosed()
    else this.#makeRoomIn(scope.session)
    if (this.#held.size >= maxPerBackend)
      throw new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'too many sessions' })
    const held = this.#connect(scope, capabilities, sender)
    this.#held.set(key, held)
    if (scope.kind === 'session') this.#addTo(scope.session, held)
    return held
  }

  #addTo({ id }: ClientSession, held: HeldConnection): void {
    const known = this.#bySession.get(id)
    if (known) known.add(held)
    else this.#bySession.set(id, new Set([held]))
  }

  #remove(held: HeldConnection): void {
    const { key, scope } = held
    if (this.#held.get(key) === held) this.#held.delete(key)
    if (scope.kind !== 'session') return
    const siblings = this.#bySession.get(scope.session.id)
    siblings?.delete(held)
    if (siblings?.size === 0) this.#bySession.delete(scope.session.id)
  }

  /**
   * Closes a session's least recently used idle connection when it has too many. Throws BACKEND_UNAVAILABLE if all are
   * busy.
   */
  #makeRoomIn({ id }: ClientSession): void {
    const own = this.#bySession.get(id)
    if (!own || own.size < maxPerSession) return
    let oldest: HeldConnection | undefined
    for (const held of own) {
      if (held.connection.busy === 0 && held.usedAt < (oldest?.usedAt ?? Number.POSITIVE_INFINITY))
        oldest = held
    }
    if (!oldest) throw new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'too many identities at a time' })
    this.#remove(oldest)
    void oldest.connection.close(oldest.sender, { end: true })
  }

  /**
   * The connection that checks of the backend go over: the one by which clients without abilities are shown lists, as a session for
   * checks alone would take a start as many requests as the lists do. Lists that belong to a caller have its name in their keys, so
   * that no check goes over these.
   */
  forChecks(sender: Sender): HeldConnection {
    const { raw, signature } = noAbilities
    return this.hold({ kind: 'listing', key: signature }, raw, sender)
  }

  /** Closes the shared connection that nobody used for longest when there are too many. */
  #makeRoom(): void {
    let shared = 0
    let oldest: [string, HeldConnection] | undefined
    for (const entry of this.#held) {
      const [, held] = entry
      if (held.scope.kind === 'session') continue
      shared++
      if (held.connection.busy === 0 && held.usedAt < (oldest?.[1].usedAt ?? Number.POSITIVE_INFINITY))
        oldest = entry
    }
    if (shared < maxShared || !oldest) return
    this.#held.delete(oldest[0])
    void oldest[1].connection.close(oldest[1].sender, { end: true })
  }

  /** `assigns` returns true when a message that names no request can belong to the only request in flight. */
  #connect(
    scope: ConnectionScope,
    capabilities: Buffer,
    sender: Sender,
    assigns: () => boolean = () => false,
  ): HeldConnection {
    if (this.#closed) throw new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'the backend was removed' })
    const { name, target, transport, timeoutMs, perCaller } = this.#options.settings
    const binding = scope.kind === 'session' ? this.#bindingOf(scope) : ''
    const connection = new SessionConnection({
      makeChannel: (events, resume) =>
        transport === 'sse' ? new SseChannel(target, events) : new StreamableChannel(target, events, resume),
      sent: target.sent,
      resume: () =>
        scope.kind === 'session' && transport !== 'sse' ? scope.session.resume?.(name, binding) : undefined,
      onOpened: (opened) => {
        if (scope.kind === 'session') scope.session.opened?.(name, { ...opened, binding })
      },
      credentialOf: perCaller ? credentialKey : () => '',
      assigns: scope.kind === 'session' ? 'newest' : assigns,
      events: this.#connectionEvents(scope),
      capabilities,
      info: this.#options.info,
      openTimeoutMs: timeoutMs,
      log: this.#options.log,
    })
    return {
      key: connectionKey(scope),
      connection,
      scope,
      sender,
      usedAt: this.#options.now(),
      uses: 0,
      revalidated: false,
    }
  }

  /** Returns the binding of a stored backend session, which is not valid for another address or another requester. */
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
      gap: () => events.gap(scope),
      lost: () => {
        // What it would have announced is not heard of: the lists are read again, over a new connection.
        if (scope.kind === 'listing') events.listChanged('tools', scope)
        else if (scope.kind === 'session') scope.session.lost?.(name)
      },
      ask: (ask, signal) => {
        if (scope.kind === 'session') return events.listener(scope.session).ask(ask, signal)
        if (ask.method === 'roots/list') return noRoots
        events.unassigned(ask.method)
        return Promise.reject(unassigned())
      },
      unassigned: (method) => {
        this.#pool.noteOutsideStream()
        events.unassigned(method)
      },
    }
  }

  /** A pooled connection for one request at a time; goes back with `giveBack`. */
  take(user: PoolUser, capabilities: Buffer, sender: Sender): HeldConnection {
    const held = this.#pool.take(user, () => {
      const made: HeldConnection = this.#connect(
        { kind: 'pool', key: user.key },
        capabilities,
        sender,
        () => {
          return user.isIdentified || made.uses <= 1
        },
      )
      return made
    })
    held.sender = sender
    return held
  }

  giveBack(user: PoolUser, held: HeldConnection): void {
    held.usedAt = this.#options.now()
    this.#pool.giveBack(user, held)
    if (this.#closed)
      for (const left of this.#pool.dropAll()) void left.connection.close(left.sender, { end: true })
  }

  /**
   * Called when a request on a shared connection has ended. Retires the connection if the backend may still work on a
   * request.
   */
  release(held: HeldConnection): void {
    if (!held.connection.isSpent) return
    this.#remove(held)
    this.#pool.spend(held)
  }

  /** Returns the connections of a session. With `forget`, also removes them. */
  ofSession(
    session: ClientSession,
    { forget = false }: { readonly forget?: boolean } = {},
  ): readonly HeldConnection[] {
    const all = [...(this.#bySession.get(session.id) ?? [])]
    if (forget) for (const held of all) this.#remove(held)
    return all
  }

  /**
   * Closes connections that were idle for `idleMs`. A session's most recently used connection stays open as long as
   * the session. Before a connection that announces list changes is closed, the lists are read once more, so that a
   * client that still uses them keeps it open.
   */
  evict(idleMs: number): void {
    const before = this.#options.now() - idleMs
    for (const held of this.#held.values()) {
      if (held.usedAt > before || held.connection.busy > 0 || this.#isLatest(held)) continue
      if (held.scope.kind === 'listing' && !held.revalidated) {
        held.revalidated = true
        this.#options.events.listChanged('tools', held.scope)
        continue
      }
      this.#remove(held)
      void held.connection.close(held.sender, { end: true })
    }
    this.#pool.evict(before)
  }

  /** True for the most recently used connection of its session. */
  #isLatest({ scope, usedAt }: HeldConnection): boolean {
    if (scope.kind !== 'session') return false
    for (const other of this.ofSession(scope.session)) if (other.usedAt > usedAt) return false
    return true
  }

  /** Removes and returns every connection, except pooled ones in use. */
  dropAll(): HeldConnection[] {
    const all = [...this.#held.values(), ...this.#pool.dropAll()]
    this.#held.clear()
    this.#bySession.clear()
    return all
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.dropAll().map((held) => held.connection.close(held.sender, { end: true })))
  }
}

/** Returns the key of a scope. It contains the identity when the backend's responses depend on the caller. */
function connectionKey(scope: ConnectionScope): string {
  return scope.kind === 'session'
    ? `session ${scope.session.id} ${scope.identity}`
    : `${scope.kind} ${scope.key}`
}

const noRoots: Promise<AskReply> = Promise.resolve({ result: Buffer.from('{"roots":[]}') })
