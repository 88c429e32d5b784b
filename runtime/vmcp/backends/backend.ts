/**
 * One backend, with its protocol era and its live connections.
 *
 * A session-era backend gets one connection for each client session and identity, and a connection pool for clients
 * without a session. If a client accepts requests or log messages from the backend, a pooled connection serves one
 * request at a time, for a single identity. Messages that do not identify a request therefore belong to one client. A
 * stateless backend needs only one connection. The number of connections is bounded, and idle connections are closed.
 * Source: ARCHITECTURE.md, "A tool call"; docs/reference/specification/virtual-server.md#backends (backends).
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { Log } from '../../net/index.ts'
import type { Events } from '../../observe/index.ts'
import { isShared } from '../model/client.ts'
import { unavailableError } from '../model/unavailable.ts'
import { requesterIdentity } from '../model/identity.ts'
import type { OperationClient, ClientSession } from '../model/session.ts'
import type { Outcome } from '../model/outcome.ts'
import { WrongEra } from './session-era/channel.ts'
import { noSender, type Sender } from './transport/target.ts'
import type { Era } from '../../mcp/index.ts'
import { BackendEra } from './era/backend-era.ts'
import { errorOfBackend, isBackendError, loginErrors } from './backend-errors.ts'
import { CallCounter } from './call-counts.ts'
import type { BackendConnection, ListKind, Request, ServerInfo } from './connection.ts'
import {
  Connections,
  type ConnectionScope,
  type SessionListener,
  type SessionScope,
} from './session-era/connections.ts'
import type { HealthMonitor } from './health/monitor.ts'
import { LivenessCheck } from './liveness.ts'
import { type BackendObservation, observeRequest } from './transport/measure.ts'
import { ClientKinds } from './session-era/client-kinds.ts'
import { NewClientLimiter } from './session-era/new-client-limiter.ts'
import type { ProbedEra } from './era/probe.ts'
import { ReadableFailure } from './openapi/readable-failure.ts'
import type { RestConnection } from './openapi/connection.ts'
import type { BackendSettings } from './settings.ts'
import { withinLimit } from './transport/send.ts'
import { StatelessBackend } from './stateless-era/stateless-backend.ts'

/** Connects a backend to the catalog and to the client sessions. */
export interface BackendLinks {
  /** Called when a list has changed, either for a listing connection or for one session. */
  listChanged(backend: Backend, kind: ListKind, scope: ConnectionScope): void
  /** Called when announcements over this connection may have been lost. */
  announcementsLost(backend: Backend, scope: ConnectionScope): void
  resourceUpdated(backend: Backend, scope: ConnectionScope, params: Buffer): void
  /** Returns the recipient of notifications and server requests that arrive outside any call. */
  listener(backend: Backend, session: ClientSession): SessionListener
  /** Called when the backend has changed its era. */
  eraChanged(backend: Backend): void
}

/** The health monitor. A reload may replace the monitor. */
export interface BackendHealthReports {
  readonly monitor: Pick<HealthMonitor, 'admit' | 'admitCall' | 'isAvailable' | 'report' | 'release'>
}

export interface BackendOptions {
  readonly links: BackendLinks
  readonly health: BackendHealthReports
  readonly events: Events
  readonly observation?: BackendObservation | undefined
  /** Present if the backend is a REST service. */
  readonly rest?: RestConnection | undefined
  readonly info: string
  readonly log: Log
  readonly now: () => number
}

export class Backend {
  readonly name: string
  readonly settings: BackendSettings
  readonly newClients: NewClientLimiter
  readonly counter = new CallCounter()
  readonly #options: BackendOptions
  readonly #health: BackendHealthReports
  readonly #connections: Connections
  readonly #liveness: LivenessCheck
  readonly #era: BackendEra
  readonly #clientKinds: ClientKinds
  #stateless: StatelessBackend | undefined
  #revision: string | undefined

  constructor(settings: BackendSettings, options: BackendOptions) {
    this.name = settings.name
    this.settings = settings
    this.#health = options.health
    this.#options = options
    const { links, info, log, now } = options
    this.newClients = new NewClientLimiter(now)
    this.#clientKinds = new ClientKinds(this.newClients)
    this.#connections = new Connections({
      settings,
      info,
      log,
      now,
      events: {
        listChanged: (kind, scope) => links.listChanged(this, kind, scope),
        announcementsLost: (scope) => links.announcementsLost(this, scope),
        resourceUpdated: (scope, params) => links.resourceUpdated(this, scope, params),
        listener: (session) => links.listener(this, session),
        unassigned: (method) =>
          options.events.emit('backend_message_unassigned', { backend: settings.name, method }),
      },
    })
    this.#liveness = new LivenessCheck(settings)
    this.#era = new BackendEra(settings, info, (era) => this.#eraChanged(era))
  }

  /** The era that the backend uses. */
  get era(): ProbedEra {
    return this.#era.current
  }

  /** The most recently negotiated protocol revision. */
  get revision(): string | undefined {
    return this.#revision
  }

  /** False while the backend's health does not permit requests. */
  get isAvailable(): boolean {
    return this.#health.monitor.isAvailable(this.name)
  }

  /** The BACKEND_SIGN_IN_REQUIRED error. Undefined if the user does not need to sign in. */
  get signInError(): GatehouseError | undefined {
    const { login } = this.settings.target
    return login?.signInError && errorOfBackend(this.name, login.signInError)
  }

  #recordRevision(server: ServerInfo): ServerInfo {
    this.#revision = server.protocolVersion
    return server
  }

  /** The error for requests while `isAvailable` is false. */
  get unavailableError(): GatehouseError {
    const cause = this.signInError
    return unavailableError([this.name], { cause, reason: cause?.message })
  }

  /**
   * Performs a client's operation if the backend's health permits it. Rejects with BACKEND_* errors that contain the
   * backend's name.
   */
  async call(client: OperationClient, request: Request): Promise<Outcome> {
    const { observation } = this.#options
    if (!this.#health.monitor.admitCall(this.name)) throw this.unavailableError
    observation?.onBackendSelected(this.name)
    const startedAt = performance.now()
    let failed = true
    try {
      const outcome = observation
        ? await observeRequest(observation, this, request, (traced) => this.#send(client, traced))
        : await this.#send(client, request)
      failed = false
      return outcome
    } finally {
      this.counter.record(startedAt, failed)
    }
  }

  /** Sends a request in the backend's era, and reports the outcome to the backend's health. */
  async #send(client: OperationClient, request: Request): Promise<Outcome> {
    const { sender, signal, method } = request
    const { rest } = this.#options
    try {
      let outcome: Outcome
      const era =
        this.#era.current === 'unknown' ? await this.#era.determine(sender, signal) : this.#era.current
      try {
        outcome = rest ? await rest.request(request) : await this.#sendIn(era, client, request)
      } catch (error) {
        outcome = await this.#era
          .retryInOtherEra(error, { era, sender, signal }, (other) => this.#sendIn(other, client, request))
          .catch(outcomeOf)
      }
      const limited = withinLimit(this.settings.target, method, outcome)
      this.#health.monitor.report(this.name, undefined)
      return limited
    } catch (error) {
      const failure = this.#reportFailure(error)
      if (error instanceof ReadableFailure) return error.outcome
      throw failure
    }
  }

  /** Observes a request that is sent directly over a connection. */
  observeRequest(request: Request, work: (request: Request) => Promise<Outcome>): Promise<Outcome> {
    const { observation } = this.#options
    return observation ? observeRequest(observation, this, request, work) : work(request)
  }

  #sendIn(era: Era, client: OperationClient, request: Request): Promise<Outcome> {
    const { session, abilities } = client
    const { sender } = request
    const identity = this.settings.perCaller ? requesterIdentity(sender) : ''
    if (era === 'stateless') return this.#callStateless(client, request, identity)
    if (!session) return this.#pooledRequest(client, request, identity)
    const scope: SessionScope = { kind: 'session', session, identity }
    return this.#connections.getOrConnect(scope, abilities.raw, sender).connection.request(request)
  }

  /** Reports that the backend has changed its era, and closes the connections that used the previous era. */
  #eraChanged(era: Era): void {
    this.#options.events.emit('backend_era', { backend: this.name, era })
    this.#options.links.eraChanged(this)
    if (era === 'stateless')
      for (const managed of this.#connections.dropAll())
        void managed.connection.close(managed.sender, { end: false })
    this.#stateless?.close()
    this.#stateless = undefined
  }

  /**
   * Returns the connection used to read lists, either for `session` or for the clients that share the lists (`key`).
   * Rejects with a BACKEND_* error if the connection cannot be opened.
   */
  async listing(
    key: string,
    session: ClientSession | undefined,
    capabilities: Buffer,
    sender: Sender,
    signal: AbortSignal,
  ): Promise<{ connection: BackendConnection; server: ServerInfo }> {
    const { rest } = this.#options
    if (rest) return { connection: rest, server: await rest.open(sender, signal) }
    return this.#trackHealth(() =>
      this.#era.run(sender, signal, async (era) => {
        if (era === 'stateless') {
          const side = this.#getStatelessBackend()
          const server = this.#recordRevision(await side.connection.discover(sender, signal))
          side.watchLists(key, server, capabilities, sender, (kind) =>
            this.#options.links.listChanged(this, kind, { kind: 'listing', key }),
          )
          return { connection: side.connection, server }
        }
        const identity = this.settings.perCaller ? requesterIdentity(sender) : ''
        const scope: ConnectionScope = session
          ? { kind: 'session', session, identity }
          : { kind: 'listing', key }
        const { connection } = this.#connections.getOrConnect(scope, capabilities, sender)
        return { connection, server: this.#recordRevision(await connection.open(sender, signal)) }
      }),
    )
  }

  /** Sends a notification over each of a session's live connections. */
  notify(session: ClientSession, method: string): void {
    for (const { connection, sender } of this.#connections.ofSession(session))
      connection.notify(method, undefined, sender)
  }

  /** Requests log messages at this level over each of a session's live connections. */
  setLogLevel(session: ClientSession, level: string): void {
    for (const { connection, sender } of this.#connections.ofSession(session))
      connection.setLogLevel(level, sender)
  }

  async #trackHealth<T>(work: () => Promise<T>): Promise<T> {
    this.#health.monitor.admit(this.name)
    try {
      const result = await work()
      this.#health.monitor.report(this.name, undefined)
      return result
    } catch (error) {
      throw this.#reportFailure(error)
    }
  }

  /** Reports a failed request to the backend's health. Returns an error with the backend's name. */
  #reportFailure(error: unknown): Error {
    const { monitor } = this.#health
    const named = this.#nameBackend(error)
    if (named instanceof GatehouseError && named.code === 'BACKEND_RESULT_TOO_LARGE') {
      // The backend executed the request, so the error is not a backend failure.
      this.#options.events.emit('backend_call_failed', { backend: this.name, reason: named.message })
      monitor.report(this.name, undefined)
    } else if (isBackendError(named)) monitor.report(this.name, named)
    else {
      monitor.release(this.name)
      this.#reportLogin(named)
    }
    return named
  }

  /** Reports that a caller must sign in again. A missing sign-in is not a backend failure. */
  #reportLogin(error: Error): void {
    if (!(error instanceof GatehouseError) || !loginErrors.has(error.code)) return
    const { authType: strategy } = this.settings
    const reason = error.code.toLowerCase()
    this.#options.events.emit('token_failed', { backend: this.name, strategy, reason, err: error })
  }

  #nameBackend(error: unknown): Error {
    if (!(error instanceof Error)) return new Error('backend request failed')
    return isBackendError(error) ? errorOfBackend(this.name, error) : error
  }

  #getStatelessBackend(): StatelessBackend {
    const { target, timeoutMs } = this.settings
    this.#stateless ??= new StatelessBackend({
      target,
      info: this.#options.info,
      openTimeoutMs: timeoutMs,
      now: this.#options.now,
    })
    return this.#stateless
  }

  #callStateless(client: OperationClient, request: Request, identity: string): Promise<Outcome> {
    const side = this.#getStatelessBackend()
    const { session } = client
    const { method } = request
    if (session === undefined || (method !== 'resources/subscribe' && method !== 'resources/unsubscribe')) {
      return side.connection.request(request)
    }
    const { links } = this.#options
    const scope: SessionScope = { kind: 'session', session, identity }
    return side.handleSubscription(scope, request, {
      listChanged: (kind) => links.listChanged(this, kind, scope),
      resourceUpdated: (params) => links.resourceUpdated(this, scope, params),
    })
  }

  async #pooledRequest(client: OperationClient, request: Request, identity: string): Promise<Outcome> {
    const { sender, relay } = request
    const { elicitation, sampling, roots, raw, signature } = this.#clientKinds.abilitiesToDeclare(
      identity,
      client.abilities,
    )
    if (!elicitation && !sampling && !roots && relay?.logLevel === undefined) {
      const managed = this.#connections.getOrConnect(
        { kind: 'pool', key: `${identity} ${signature}` },
        raw,
        sender,
      )
      return managed.connection.request(request).finally(() => this.#connections.release(managed))
    }
    const key = `${requesterIdentity(sender)} ${signature}`
    const user = { key, isIdentified: !isShared(client.caller) }
    const managed = this.#connections.take(user, raw, sender)
    try {
      return await managed.connection.request(request)
    } finally {
      this.#connections.returnToPool(user, managed)
    }
  }

  /** Closes a session's connections. If `end` is false, the backend's session stays open for another replica. */
  async endSession(session: ClientSession, { end }: { readonly end: boolean }): Promise<void> {
    const all = this.#connections.ofSession(session, { forget: true })
    this.#stateless?.endSession(session)
    await Promise.all(all.map(({ connection, sender }) => connection.close(sender, { end })))
  }

  /** Closes connections that have been idle for `idleMs`, except session connections. */
  evict(idleMs: number): void {
    this.#connections.evict(idleMs)
    this.#stateless?.evict(this.#options.now() - idleMs)
  }

  async close(): Promise<void> {
    await this.#options.rest?.close()
    this.#stateless?.close()
    await this.#connections.close()
  }

  /** Checks that the backend responds. Rejects with BACKEND_* errors. */
  async check(signal: AbortSignal): Promise<void> {
    if (this.#options.rest) return this.#options.rest.check(signal)
    await this.#era.run(noSender, signal, async (era) => {
      if (era === 'stateless') {
        this.#recordRevision(await this.#getStatelessBackend().connection.discover(noSender, signal))
        return
      }
      const { connection } = this.#connections.forChecks(noSender)
      await this.#liveness.check(connection, signal, (server) => this.#recordRevision(server))
    })
  }
}

/** Returns the outcome of a request that the backend rejected as if it had changed eras, although it had not. */
function outcomeOf(error: unknown): Outcome {
  if (error instanceof WrongEra && error.outcome) return error.outcome
  throw error
}
