/**
 * One backend: which era it speaks, and its live connections.
 *
 * A session-era backend gets one connection for each client session, and a pool for everybody else; where a client can
 * be asked back, a pooled connection serves one request at a time, so that a question always belongs to one client.
 * A stateless backend needs one connection in all. Numbers are bounded; idle connections are closed.
 * Source: design, section 3; spec document 3 (backends).
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { JsonObject } from '../../mcp/index.ts'
import type { Log } from '../../net/index.ts'
import type { Ask, AskReply, Client, ClientSession, Outcome } from '../operation.ts'
import type { ChannelTarget, Sender } from './channel.ts'
import { type BackendObservation, measured } from './measure.ts'
import type { Connection, ConnectionEvents, ListKind, Request, ServerInfo } from './connection.ts'
import { type Verdict, probeEra } from './probe.ts'
import { SessionConnection } from './session-connection.ts'
import { SseChannel } from './sse-channel.ts'
import { StatelessSide } from './stateless-side.ts'
import { StreamableChannel } from './streamable-channel.ts'

export interface BackendSettings {
  readonly name: string
  readonly transport: 'streamable-http' | 'sse'
  readonly target: ChannelTarget
  readonly timeoutMs: number
  /** True when what the backend answers may depend on who asks: credentials of the caller, passed-through headers. */
  readonly perCaller: boolean
  /** Equal settings have equal fingerprints; a changed one replaces the backend. */
  readonly fingerprint: string
  /** Authentication type, for the status report. */
  readonly authType: string
}

/** What a backend tells the catalog and the sessions. */
export interface BackendEvents {
  /** The list behind a listing connection, or of one session, has changed. */
  listChanged(backend: Backend, kind: ListKind, scope: ConnectionScope): void
  resourceUpdated(backend: Backend, scope: ConnectionScope, params: Buffer): void
  /** Asked before every request of a client; throws BACKEND_UNAVAILABLE while requests are kept away. */
  admit(backend: Backend): void
  /** How a request went; undefined for success. */
  outcome(backend: Backend, error: Error | undefined): void
}

/** Whom a connection serves. */
export type ConnectionScope =
  | { readonly kind: 'session'; readonly session: ClientSession }
  | { readonly kind: 'listing'; readonly key: string }
  | { readonly kind: 'pool'; readonly key: string }

interface Held {
  readonly connection: Connection
  readonly scope: ConnectionScope
  sender: Sender
  usedAt: number
}

const MAX_POOLED = 256
const MAX_PER_BACKEND = 4_096
const EMPTY: JsonObject = new JsonObject(Buffer.from('{}'))
const NOBODY: Sender = { caller: undefined, headers: {} }

export interface BackendOptions {
  readonly events: BackendEvents
  readonly observation?: BackendObservation | undefined
  readonly info: string
  readonly log: Log
  readonly now: () => number
}

export class Backend {
  readonly settings: BackendSettings
  readonly #options: BackendOptions
  readonly #held = new Map<string, Held>()
  readonly #idle = new Map<string, Held[]>()
  #pooled = 0
  #verdict: Verdict = 'unknown'
  #probing: Promise<Verdict> | undefined
  #stateless: StatelessSide | undefined
  #closed = false
  #revision: string | undefined

  constructor(settings: BackendSettings, options: BackendOptions) {
    this.settings = settings
    this.#options = options
    if (settings.transport === 'sse') this.#verdict = 'session'
  }

  get name(): string {
    return this.settings.name
  }

  /** Revision family that the backend was found to speak. */
  get era(): Verdict {
    return this.#verdict
  }

  /** Revision that was last agreed on. */
  get revision(): string | undefined {
    return this.#revision
  }

  #agreed(server: ServerInfo): ServerInfo {
    this.#revision = server.protocolVersion
    return server
  }

  async #era(sender: Sender, signal: AbortSignal): Promise<'session' | 'stateless'> {
    if (this.#verdict !== 'unknown') return this.#verdict
    this.#probing ??= probeEra(this.settings.target, this.#options.info, sender, signal).finally(() => {
      this.#probing = undefined
    })
    this.#verdict = await this.#probing
    return this.#verdict === 'stateless' ? 'stateless' : 'session'
  }

  /** Carries out a client's operation. Rejects with BACKEND_* errors that name the backend. */
  async call(client: Client, asked: Request): Promise<Outcome> {
    this.#options.observation?.named(this.name)
    return this.measured(asked, (request) => this.#call(client, request))
  }

  /** Puts a request under observation; for requests that go over a connection directly. */
  measured(request: Request, work: (request: Request) => Promise<Outcome>): Promise<Outcome> {
    return measured(this.#options.observation, this, request, work)
  }

  async #call(client: Client, request: Request): Promise<Outcome> {
    return this.#observed(async () => {
      if ((await this.#era(request.sender, request.signal)) === 'stateless')
        return this.#callStateless(client, request)
      if (client.session)
        return this.#forSession(client.session, client, request.sender).connection.request(request)
      return this.#pooledRequest(client, request)
    })
  }

  /**
   * The connection over which lists are read for one kind of client, or over the connection of one session. Rejects
   * with BACKEND_* errors when it cannot be opened.
   */
  async listing(
    key: string,
    session: ClientSession | undefined,
    capabilities: Buffer,
    sender: Sender,
    signal: AbortSignal,
  ): Promise<{ connection: Connection; server: ServerInfo }> {
    return this.#observed(async () => {
      if ((await this.#era(sender, signal)) === 'stateless') {
        const side = this.#statelessSide()
        side.connection.refresh()
        const server = this.#agreed(await side.connection.open(sender, signal))
        side.watchLists(key, server, capabilities, sender, (kind) =>
          this.#options.events.listChanged(this, kind, { kind: 'listing', key }),
        )
        return { connection: side.connection, server }
      }
      const { connection } = session
        ? this.#hold(`session ${session.id}`, { kind: 'session', session }, capabilities, sender)
        : this.#hold(`listing ${key}`, { kind: 'listing', key }, capabilities, sender)
      return { connection, server: this.#agreed(await connection.open(sender, signal)) }
    })
  }

  /** The live connection of a session, if there is one. */
  connectionOf(session: ClientSession): Connection | undefined {
    return this.#stateless?.connection ?? this.#held.get(`session ${session.id}`)?.connection
  }

  async #observed<T>(work: () => Promise<T>): Promise<T> {
    this.#options.events.admit(this)
    try {
      const result = await work()
      this.#options.events.outcome(this, undefined)
      return result
    } catch (error) {
      const named = this.#named(error)
      if (isBackendFault(named)) this.#options.events.outcome(this, named)
      throw named
    }
  }

  #named(error: unknown): Error {
    if (!(error instanceof GatehouseError))
      return error instanceof Error ? error : new Error('backend request failed')
    if (!isBackendFault(error)) return error
    return new GatehouseError(error.code, {
      detail: `backend ${this.name}: ${error.message}`,
      data: { backend: this.name },
      cause: error.cause ?? error,
    })
  }

  #statelessSide(): StatelessSide {
    const { target, timeoutMs } = this.settings
    this.#stateless ??= new StatelessSide({ target, info: this.#options.info, openTimeoutMs: timeoutMs })
    return this.#stateless
  }

  #callStateless(client: Client, request: Request): Promise<Outcome> {
    const side = this.#statelessSide()
    const { session } = client
    const { method } = request
    if (session === undefined || (method !== 'resources/subscribe' && method !== 'resources/unsubscribe')) {
      return side.connection.request(request)
    }
    const { events } = this.#options
    const scope: ConnectionScope = { kind: 'session', session }
    return side.subscription(session, request, {
      listChanged: (kind) => events.listChanged(this, kind, scope),
      resourceUpdated: (params) => events.resourceUpdated(this, scope, params),
    })
  }

  #forSession(session: ClientSession, client: Client, sender: Sender): Held {
    return this.#hold(`session ${session.id}`, { kind: 'session', session }, client.abilities.raw, sender)
  }

  #hold(key: string, scope: ConnectionScope, capabilities: Buffer, sender: Sender): Held {
    const known = this.#held.get(key)
    if (known) {
      known.usedAt = this.#options.now()
      known.sender = sender
      return known
    }
    if (this.#held.size >= MAX_PER_BACKEND)
      throw new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'too many sessions' })
    const held = this.#connect(scope, capabilities, sender)
    this.#held.set(key, held)
    return held
  }

  #connect(scope: ConnectionScope, capabilities: Buffer, sender: Sender): Held {
    if (this.#closed) throw new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'the backend was removed' })
    const { target, transport, timeoutMs } = this.settings
    const connection = new SessionConnection({
      makeChannel: (events, resume) =>
        transport === 'sse' ? new SseChannel(target, events) : new StreamableChannel(target, events, resume),
      resume: scope.kind === 'session' && transport !== 'sse' ? scope.session.resume?.(this.name) : undefined,
      onOpened: (opened) => {
        if (scope.kind === 'session') scope.session.opened?.(this.name, opened)
      },
      events: this.#connectionEvents(scope),
      capabilities,
      info: this.#options.info,
      openTimeoutMs: timeoutMs,
      log: this.#options.log,
    })
    return { connection, scope, sender, usedAt: this.#options.now() }
  }

  #connectionEvents(scope: ConnectionScope): ConnectionEvents {
    const { events } = this.#options
    return {
      listChanged: (kind) => events.listChanged(this, kind, scope),
      resourceUpdated: (params) => events.resourceUpdated(this, scope, params),
      notification: (method, params) => {
        if (scope.kind === 'session') scope.session.deliver(this.name, method, params)
      },
      ask: (ask, signal) => askScope(scope, ask, signal),
    }
  }

  async #pooledRequest(client: Client, request: Request): Promise<Outcome> {
    const { abilities, caller } = client
    const key = `${this.settings.perCaller ? caller.key : ''} ${abilities.signature}`
    if (!abilities.elicitation && !abilities.sampling && !abilities.roots) {
      return this.#hold(
        `pool ${key}`,
        { kind: 'pool', key },
        abilities.raw,
        request.sender,
      ).connection.request(request)
    }
    const held = this.#take(key, client, request.sender)
    try {
      return await held.connection.request(request)
    } finally {
      this.#giveBack(key, held)
    }
  }

  #take(key: string, client: Client, sender: Sender): Held {
    const idle = this.#idle.get(key)?.pop()
    if (idle) return idle
    if (this.#pooled >= MAX_POOLED)
      throw new GatehouseError('BACKEND_UNAVAILABLE', { detail: 'too many calls at a time' })
    this.#pooled++
    return this.#connect({ kind: 'pool', key }, client.abilities.raw, sender)
  }

  #giveBack(key: string, held: Held): void {
    held.usedAt = this.#options.now()
    const idle = this.#idle.get(key)
    if (idle) idle.push(held)
    else this.#idle.set(key, [held])
  }

  /** Ends the connection of a session; `end` false leaves the backend's session to another replica. */
  async endSession(session: ClientSession, end: boolean): Promise<void> {
    const key = `session ${session.id}`
    const held = this.#held.get(key)
    this.#held.delete(key)
    this.#stateless?.endSession(session)
    await held?.connection.close(held.sender, end)
  }

  /** Closes what nobody used for `idleMs`, but connections of sessions, which live as long as their session. */
  sweep(idleMs: number): void {
    const before = this.#options.now() - idleMs
    for (const [key, held] of this.#held) {
      if (held.scope.kind === 'session' || held.usedAt > before || held.connection.busy > 0) continue
      this.#held.delete(key)
      void held.connection.close(held.sender, true)
    }
    for (const [key, list] of this.#idle) {
      const keep = list.filter((held) => held.usedAt > before)
      for (const held of list) {
        if (keep.includes(held)) continue
        this.#pooled--
        void held.connection.close(held.sender, true)
      }
      if (keep.length === 0) this.#idle.delete(key)
      else this.#idle.set(key, keep)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#stateless?.close()
    const all = [...this.#held.values(), ...[...this.#idle.values()].flat()]
    this.#held.clear()
    this.#idle.clear()
    await Promise.all(all.map((held) => held.connection.close(held.sender, true)))
  }

  /** Checks that the backend answers. Rejects with BACKEND_* errors. */
  async check(signal: AbortSignal): Promise<void> {
    if ((await this.#era(NOBODY, signal)) === 'stateless') {
      const { connection } = this.#statelessSide()
      connection.refresh()
      this.#agreed(await connection.open(NOBODY, signal))
      return
    }
    const { connection } = this.#hold('health', { kind: 'pool', key: 'health' }, EMPTY.bytes, NOBODY)
    this.#agreed(await connection.open(NOBODY, signal))
    const { timeoutMs } = this.settings
    await connection.request({
      method: 'ping',
      params: EMPTY,
      sender: NOBODY,
      capabilities: EMPTY.bytes,
      signal,
      timeoutMs,
    })
  }
}

function askScope(scope: ConnectionScope, ask: Ask, signal: AbortSignal): Promise<AskReply> {
  if (scope.kind === 'session') return scope.session.ask(ask, signal)
  if (ask.method === 'roots/list') return Promise.resolve({ result: Buffer.from('{"roots":[]}') })
  return Promise.reject(new GatehouseError('METHOD_NOT_FOUND', { detail: 'nobody can be asked now' }))
}

/** True for faults between us and a backend: unreachable, broken, or not to be authenticated to. */
export function isBackendFault(error: unknown): error is GatehouseError {
  return (
    error instanceof GatehouseError && (error.code.startsWith('BACKEND_') || OUTGOING_FAULTS.has(error.code))
  )
}

/** Faults of the outgoing credentials; the caller or the operator has to change something. */
const OUTGOING_FAULTS: ReadonlySet<string> = new Set([
  'ENTERPRISE_REQUIRED',
  'OAUTH_UNAVAILABLE',
  'OAUTH_REFUSED',
])
