/**
 * The live connections to a session-era backend: one for each client session, one for each kind of client whose lists
 * are read, and pooled ones. Bounded in number; what is idle is closed.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import type { Log } from '../../../net/index.ts'
import { noAbilities } from '../../client-codecs/client.ts'
import type { Ask, AskReply, ClientSession } from '../../pipeline/operation.ts'
import { ConnectionClosed, type Sender } from './channel.ts'
import type { BackendConnection, ConnectionEvents, ListKind } from '../connection.ts'
import { SessionConnection } from './connection.ts'
import type { BackendSettings } from '../settings.ts'
import { SseChannel } from './sse-channel.ts'
import { StreamableChannel } from './streamable-channel.ts'

/** Whom a connection serves. */
export type ConnectionScope =
  | { readonly kind: 'session'; readonly session: ClientSession }
  | { readonly kind: 'listing'; readonly key: string }
  | { readonly kind: 'pool'; readonly key: string }

/** The client of a session, outside of calls. */
export type SessionListener = Pick<ClientSession, 'deliver' | 'ask'>

export interface HeldConnection {
  readonly connection: BackendConnection
  readonly scope: ConnectionScope
  sender: Sender
  usedAt: number
  /** Set once those who look at a list were asked whether they still do. */
  revalidated: boolean
}

const maxPooled = 256
const maxPerBackend = 4_096
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
  readonly #idle = new Map<string, HeldConnection[]>()
  #pooled = 0
  #closed = false

  constructor(options: ConnectionsOptions) {
    this.#options = options
  }

  /** True when there is a pooled connection under a key, in use by one request at a time or not. */
  hasPooled(key: string): boolean {
    return this.#held.has(keyOf({ kind: 'pool', key })) || this.#idle.has(key)
  }

  /** The connection of a scope, opened when there is none. Throws BACKEND_UNAVAILABLE when there are too many. */
  hold(scope: ConnectionScope, capabilities: Buffer, sender: Sender): HeldConnection {
    const key = keyOf(scope)
    const known = this.#held.get(key)
    if (known) {
      known.usedAt = this.#options.now()
      known.sender = sender
      known.revalidated = false
      return known
    }
    if (scope.kind !== 'session') this.#makeRoom()
    else if (scope.session.over) throw new ConnectionClosed()
    if (this.#held.size >= maxPerBackend)
      throw new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'too many sessions' })
    const held = this.#connect(scope, capabilities, sender)
    this.#held.set(key, held)
    return held
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

  #connect(scope: ConnectionScope, capabilities: Buffer, sender: Sender): HeldConnection {
    if (this.#closed) throw new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'the backend was removed' })
    const { name, target, transport, timeoutMs } = this.#options.settings
    const connection = new SessionConnection({
      makeChannel: (events, resume) =>
        transport === 'sse' ? new SseChannel(target, events) : new StreamableChannel(target, events, resume),
      resume: () =>
        scope.kind === 'session' && transport !== 'sse' ? scope.session.resume?.(name) : undefined,
      onOpened: (opened) => {
        if (scope.kind === 'session') scope.session.opened?.(name, opened)
      },
      events: this.#connectionEvents(scope),
      capabilities,
      info: this.#options.info,
      openTimeoutMs: timeoutMs,
      log: this.#options.log,
    })
    return { connection, scope, sender, usedAt: this.#options.now(), revalidated: false }
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
      ask: (ask, signal) =>
        scope.kind === 'session' ? events.listener(scope.session).ask(ask, signal) : askNobody(ask),
    }
  }

  /** A pooled connection for one request at a time; goes back with `giveBack`. */
  take(key: string, capabilities: Buffer, sender: Sender): HeldConnection {
    const idle = this.#idle.get(key)?.pop()
    if (idle) return idle
    if (this.#pooled >= maxPooled)
      throw new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'too many calls at a time' })
    this.#pooled++
    return this.#connect({ kind: 'pool', key }, capabilities, sender)
  }

  giveBack(key: string, held: HeldConnection): void {
    held.usedAt = this.#options.now()
    const idle = this.#idle.get(key)
    if (idle) idle.push(held)
    else this.#idle.set(key, [held])
  }

  /** The connection of a session, if there is one; forgotten on the way when `forget`. */
  ofSession(
    session: ClientSession,
    { forget = false }: { readonly forget?: boolean } = {},
  ): HeldConnection | undefined {
    const key = keyOf({ kind: 'session', session })
    const held = this.#held.get(key)
    if (forget) this.#held.delete(key)
    return held
  }

  /**
   * Closes what nobody used for `idleMs`, but connections of sessions, which live as long as their session. Before a
   * connection goes on which changes of lists are announced, the lists are read once more: whoever still looks at them
   * keeps it open.
   */
  evict(idleMs: number): void {
    const before = this.#options.now() - idleMs
    for (const [key, held] of this.#held) {
      if (held.scope.kind === 'session' || held.usedAt > before || held.connection.busy > 0) continue
      if (held.scope.kind === 'listing' && !held.revalidated) {
        held.revalidated = true
        this.#options.events.listChanged('tools', held.scope)
        continue
      }
      this.#held.delete(key)
      void held.connection.close(held.sender, { end: true })
    }
    for (const [key, list] of this.#idle) {
      const [keep, drop] = partition(list, (held) => held.usedAt > before)
      for (const held of drop) {
        this.#pooled--
        void held.connection.close(held.sender, { end: true })
      }
      if (keep.length === 0) this.#idle.delete(key)
      else this.#idle.set(key, keep)
    }
  }

  /** Forgets every connection and answers them all. */
  dropAll(): HeldConnection[] {
    const idle = [...this.#idle.values()].flat()
    const all = [...this.#held.values(), ...idle]
    this.#pooled -= idle.length
    this.#held.clear()
    this.#idle.clear()
    return all
  }

  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(this.dropAll().map((held) => held.connection.close(held.sender, { end: true })))
  }
}

function askNobody(ask: Ask): Promise<AskReply> {
  if (ask.method === 'roots/list') return Promise.resolve({ result: Buffer.from('{"roots":[]}') })
  return Promise.reject(new GatehouseError('METHOD_NOT_FOUND', { detail: 'nobody can be asked now' }))
}

function partition<T>(list: readonly T[], keep: (item: T) => boolean): [T[], T[]] {
  return [list.filter(keep), list.filter((item) => !keep(item))]
}

function keyOf(scope: ConnectionScope): string {
  return scope.kind === 'session' ? `session ${scope.session.id}` : `${scope.kind} ${scope.key}`
}
