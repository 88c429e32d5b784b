/**
 * One backend: which era it speaks, and its live connections.
 *
 * A session-era backend gets one connection for each client session, and a pool for everybody else; where a client can
 * be asked back, a pooled connection serves one request at a time, so that a question always belongs to one client.
 * A stateless backend needs one connection in all. Numbers are bounded; idle connections are closed.
 * Source: ARCHITECTURE.md, "A tool call"; docs/specification/virtual-server.md#backends (backends).
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { type AnySignal, type Log, signalOf } from '../../net/index.ts'
import type { Events } from '../../observe/index.ts'
import type { OperationClient, ClientAbilities, ClientSession, Outcome } from '../pipeline/operation.ts'
import { noSender, type Sender, WrongEra } from './session-era/channel.ts'
import { isBackendError, loginErrors } from './backend-errors.ts'
import { CallCounter } from './call-counts.ts'
import type { BackendConnection, ListKind, Request, ServerInfo } from './connection.ts'
import {
  Connections,
  type ConnectionScope,
  type HeldConnection,
  type SessionListener,
} from './session-era/connections.ts'
import { LivenessCheck } from './liveness.ts'
import { type BackendObservation, measured } from './transport/measure.ts'
import { NewClientLimiter } from './session-era/new-client-limiter.ts'
import { probeEra, type ProbedEra } from './probe.ts'
import type { BackendSettings } from './settings.ts'
import { withinLimit } from './transport/send.ts'
import { StatelessSide } from './stateless-era/side.ts'

/** How a backend is tied to the catalog, the sessions and its health. */
export interface BackendLinks {
  /** The list behind a listing connection, or of one session, has changed. */
  listChanged(backend: Backend, kind: ListKind, scope: ConnectionScope): void
  /** Changes that the backend announced over this connection may not have been heard. */
  gap(backend: Backend, scope: ConnectionScope): void
  resourceUpdated(backend: Backend, scope: ConnectionScope, params: Buffer): void
  /** Who hears what it says and asks outside of calls. */
  listener(backend: Backend, session: ClientSession): SessionListener
  /** Asked before every request of a client; throws BACKEND_UNAVAILABLE while requests are held back. */
  admit(backend: Backend): void
  /** How a request went; undefined for success. */
  outcome(backend: Backend, error: Error | undefined): void
  /** A request ended without saying how the backend is: its client gave it up, or it was never sent. */
  released(backend: Backend): void
  /** The backend was found to speak the other era than before. */
  reclassified(backend: Backend): void
}

export interface BackendOptions {
  readonly links: BackendLinks
  readonly events: Events
  readonly observation?: BackendObservation | undefined
  readonly info: string
  readonly log: Log
  readonly now: () => number
}

export class Backend {
  readonly settings: BackendSettings
  readonly newClients: NewClientLimiter
  readonly counter = new CallCounter()
  readonly #options: BackendOptions
  readonly #connections: Connections
  readonly #liveness: LivenessCheck
  #verdict: ProbedEra = 'unknown'
  #probing: Promise<ProbedEra> | undefined
  #stateless: StatelessSide | undefined
  #revision: string | undefined

  constructor(settings: BackendSettings, options: BackendOptions) {
    this.settings = settings
    this.#options = options
    const { links, info, log, now } = options
    this.newClients = new NewClientLimiter(now)
    this.#connections = new Connections({
      settings,
      info,
      log,
      now,
      events: {
        listChanged: (kind, scope) => links.listChanged(this, kind, scope),
        gap: (scope) => links.gap(this, scope),
        resourceUpdated: (scope, params) => links.resourceUpdated(this, scope, params),
        listener: (session) => links.listener(this, session),
      },
    })
    this.#liveness = new LivenessCheck(settings)
    if (settings.transport === 'sse') this.#verdict = 'session'
  }

  get name(): string {
    return this.settings.name
  }

  /** Revision family that the backend was found to speak. */
  get era(): ProbedEra {
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

  async #probed(sender: Sender, signal: AnySignal): Promise<'session' | 'stateless'> {
    this.#verdict = await this.#probe(sender, signal)
    return this.#verdict === 'stateless' ? 'stateless' : 'session'
  }

  #probe(sender: Sender, signal: AnySignal): Promise<ProbedEra> {
    const { target } = this.settings
    this.#probing ??= probeEra(target, this.#options.info, sender, signalOf(signal)).finally(() => {
      this.#probing = undefined
    })
    return this.#probing
  }

  /** Carries out a client's operation. Rejects with BACKEND_* errors that name the backend. */
  async call(client: OperationClient, asked: Request): Promise<Outcome> {
    this.#options.observation?.named(this.name)
    const startedAt = this.counter.started()
    let failed = true
    try {
      const outcome = await this.measured(asked, (request) =>
        this.#observed(() => this.#call(client, request)),
      )
      failed = false
      return outcome
    } finally {
      this.counter.ended(startedAt, failed)
    }
  }

  /** Puts a request under observation; for requests that go over a connection directly. */
  measured(request: Request, work: (request: Request) => Promise<Outcome>): Promise<Outcome> {
    return measured(this.#options.observation, this, request, work)
  }

  async #call(client: OperationClient, request: Request): Promise<Outcome> {
    const { sender, signal, method } = request
    let outcome: Outcome
    try {
      outcome = await this.#inEra(sender, signal, (era) => this.#callIn(era, client, request))
    } catch (error) {
      outcome = outcomeOf(error)
    }
    return withinLimit(this.settings.target, method, outcome)
  }

  #callIn(era: 'session' | 'stateless', client: OperationClient, request: Request): Promise<Outcome> {
    if (era === 'stateless') return this.#callStateless(client, request)
    if (client.session)
      return this.#forSession(client.session, client, request.sender).connection.request(request)
    return this.#pooledRequest(client, request)
  }

  /**
   * Does something in the backend's era. When the backend turns out to speak the other one by now (an upgrade, a
   * rollback), it is done once more: what was refused was not executed.
   */
  async #inEra<T>(
    sender: Sender,
    signal: AnySignal,
    work: (era: 'session' | 'stateless') => Promise<T>,
  ): Promise<T> {
    const era = this.#verdict === 'unknown' ? await this.#probed(sender, signal) : this.#verdict
    try {
      return await work(era)
    } catch (error) {
      if (!(error instanceof WrongEra) || !(await this.#hasChanged(era, sender, signal))) throw error
      return work(era === 'session' ? 'stateless' : 'session')
    }
  }

  /** Asks the backend again what it speaks; drops all connections when that is not `era` any more. */
  async #hasChanged(era: 'session' | 'stateless', sender: Sender, signal: AnySignal): Promise<boolean> {
    if (this.settings.transport === 'sse') return false
    if (this.#verdict !== 'unknown' && this.#verdict !== era) return true
    const verdict = await this.#probe(sender, signal)
    if (verdict === 'unknown' || verdict === era) return false
    if (this.#verdict === verdict) return true
    this.#verdict = verdict
    this.#options.events.emit('backend_era', { backend: this.name, era: verdict })
    this.#options.links.reclassified(this)
    for (const held of this.#connections.dropAll()) void held.connection.close(held.sender, { end: false })
    this.#stateless?.close()
    this.#stateless = undefined
    return true
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
  ): Promise<{ connection: BackendConnection; server: ServerInfo }> {
    return this.#observed(() =>
      this.#inEra(sender, signal, async (era) => {
        if (era === 'stateless') {
          const side = this.#statelessSide()
          const server = this.#agreed(await side.connection.discover(sender, signal))
          side.watchLists(key, server, capabilities, sender, (kind) =>
            this.#options.links.listChanged(this, kind, { kind: 'listing', key }),
          )
          return { connection: side.connection, server }
        }
        const { connection } = session
          ? this.#connections.hold({ kind: 'session', session }, capabilities, sender)
          : this.#connections.hold({ kind: 'listing', key }, capabilities, sender)
        return { connection, server: this.#agreed(await connection.open(sender, signal)) }
      }),
    )
  }

  /** The live connection of a session, if there is one. */
  connectionOf(session: ClientSession): BackendConnection | undefined {
    return this.#stateless?.connection ?? this.#connections.ofSession(session)?.connection
  }

  async #observed<T>(work: () => Promise<T>): Promise<T> {
    this.#options.links.admit(this)
    try {
      const result = await work()
      this.#options.links.outcome(this, undefined)
      return result
    } catch (error) {
      const named = this.#named(error)
      if (isTooLarge(named)) this.#refusedResult(named)
      else if (isBackendError(named)) this.#options.links.outcome(this, named)
      else {
        this.#options.links.released(this)
        this.#tellLogin(named)
      }
      throw named
    }
  }

  /** The backend did its work: this says nothing of its health. */
  #refusedResult(error: GatehouseError): void {
    this.#options.events.emit('backend_call_failed', { backend: this.name, reason: error.message })
    this.#options.links.outcome(this, undefined)
  }

  /** A caller whose login has ended, or never was, concerns nobody but them: it is no failure of the backend. */
  #tellLogin(error: Error): void {
    if (!(error instanceof GatehouseError) || !loginErrors.has(error.code)) return
    const { authType: strategy } = this.settings
    const reason = error.code.toLowerCase()
    this.#options.events.emit('token_failed', { backend: this.name, strategy, reason, err: error })
  }

  #named(error: unknown): Error {
    if (!(error instanceof GatehouseError))
      return error instanceof Error ? error : new Error('backend request failed')
    if (!isBackendError(error)) return error
    return new GatehouseError(error.code, {
      detail: `backend ${this.name}: ${error.message}`,
      data: { backend: this.name },
      cause: error.cause ?? error,
    })
  }

  #statelessSide(): StatelessSide {
    const { target, timeoutMs } = this.settings
    this.#stateless ??= new StatelessSide({
      target,
      info: this.#options.info,
      openTimeoutMs: timeoutMs,
      now: this.#options.now,
    })
    return this.#stateless
  }

  #callStateless(client: OperationClient, request: Request): Promise<Outcome> {
    const side = this.#statelessSide()
    const { session } = client
    const { method } = request
    if (session === undefined || (method !== 'resources/subscribe' && method !== 'resources/unsubscribe')) {
      return side.connection.request(request)
    }
    const { links } = this.#options
    const scope: ConnectionScope = { kind: 'session', session }
    return side.subscription(session, request, {
      listChanged: (kind) => links.listChanged(this, kind, scope),
      resourceUpdated: (params) => links.resourceUpdated(this, scope, params),
    })
  }

  #forSession(session: ClientSession, client: OperationClient, sender: Sender): HeldConnection {
    return this.#connections.hold({ kind: 'session', session }, client.abilities.raw, sender)
  }

  async #pooledRequest(client: OperationClient, request: Request): Promise<Outcome> {
    const identity = this.settings.perCaller ? client.caller.key : ''
    const abilities = this.#admitted(client.abilities, (signature) =>
      this.#connections.hasPooled(`${identity} ${signature}`),
    )
    const key = `${identity} ${abilities.signature}`
    if (!abilities.elicitation && !abilities.sampling && !abilities.roots) {
      return this.#connections
        .hold({ kind: 'pool', key }, abilities.raw, request.sender)
        .connection.request(request)
    }
    const held = this.#connections.take(key, abilities.raw, request.sender)
    try {
      return await held.connection.request(request)
    } finally {
      this.#connections.giveBack(key, held)
    }
  }

  /** The abilities under which a client is known to the backend; plain ones when too many new kinds have come of late. */
  #admitted(abilities: ClientAbilities, isKnown: (signature: string) => boolean): ClientAbilities {
    if (!abilities.plain || isKnown(abilities.signature)) return abilities
    if (!this.newClients.any) return abilities.plain
    this.newClients.take()
    return abilities
  }

  /** Ends the connection of a session; `end` false leaves the backend's session to another replica. */
  async endSession(session: ClientSession, { end }: { readonly end: boolean }): Promise<void> {
    const held = this.#connections.ofSession(session, { forget: true })
    this.#stateless?.endSession(session)
    await held?.connection.close(held.sender, { end })
  }

  /** Closes what nobody used for `idleMs`, but what belongs to sessions. */
  evict(idleMs: number): void {
    this.#connections.evict(idleMs)
    this.#stateless?.evict(this.#options.now() - idleMs)
  }

  async close(): Promise<void> {
    this.#stateless?.close()
    await this.#connections.close()
  }

  /** Checks that the backend answers. Rejects with BACKEND_* errors. */
  async check(signal: AbortSignal): Promise<void> {
    await this.#inEra(noSender, signal, (era) => this.#checkIn(era, signal))
  }

  async #checkIn(era: 'session' | 'stateless', signal: AbortSignal): Promise<void> {
    if (era === 'stateless') {
      this.#agreed(await this.#statelessSide().connection.discover(noSender, signal))
      return
    }
    const { connection } = this.#connections.forChecks(noSender)
    await this.#liveness.check(connection, signal, (server) => this.#agreed(server))
  }
}

function isTooLarge(error: Error): error is GatehouseError {
  return error instanceof GatehouseError && error.code === 'BACKEND_RESULT_TOO_LARGE'
}

/** What is left of a refusal that belongs to the other era when the backend has not changed. */
function outcomeOf(error: unknown): Outcome {
  if (error instanceof WrongEra && error.outcome) return error.outcome
  throw error
}
