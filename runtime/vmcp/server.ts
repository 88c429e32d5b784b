/**
 * Starts a virtual MCP server in this process: listener, sessions, backends, health, and the wiring between them.
 *
 * `reload` takes a changed configuration without a restart: backends come and go, sessions stay and are told what
 * changed for them. What belongs to the listener and the session store takes effect at the next start.
 * Source: spec document 3; design, section 3.
 */
import { GatehouseError, parseDuration } from '../../schemas/index.ts'
import { type VmcpConfig, vmcpEnvironment } from '../config/index.ts'
import { type Authenticator, makeAuthenticator } from '../incoming/index.ts'
import { listen, type Log, makeOriginGuard, type OriginGuard, silentLog } from '../net/index.ts'
import type { UpstreamTokens } from '../outgoing/index.ts'
import type { Backend, ConnectionScope } from './backends/backend.ts'
import { Views } from './catalog/views.ts'
import { type Clock, systemClock } from './clock.ts'
import { Core, type CoreParts } from './core.ts'
import { type Edges, makeEdges } from './edges.ts'
import { Fleet } from './fleet.ts'
import { HealthMonitor, UNKNOWN_HEALTH } from './health/monitor.ts'
import { healthSettings } from './health/settings.ts'
import { makeHandler, MCP_PATH } from './http.ts'
import { Notifier } from './notifier.ts'
import { makeObservation, type Observation } from './observation.ts'
import type { ClientSession, Middleware } from './operation.ts'
import { makeOutgoingAuth, type OutgoingAuth } from './outgoing-auth.ts'
import { type ClusterApi, type Reporter, reporterFor } from './report.ts'
import { builtInRoute } from './routes.ts'
import { watcherOf } from './session-life.ts'
import { sessionRecords } from './sessions/records.ts'
import { openSessionStorage, type SessionStorage } from './sessions/storage.ts'
import { SessionTable } from './sessions/table.ts'
import { checkStart } from './start-check.ts'
import { statusReport } from './status.ts'
import { incomingConfig } from './incoming-config.ts'

export interface StartOptions {
  /** Bind address. Default 127.0.0.1. */
  readonly host?: string | undefined
  /** 0 lets the kernel choose. Default 4483. */
  readonly port?: number | undefined
  readonly log?: Log | undefined
  readonly version?: string | undefined
  /** Sliding life of a session without use. Default 30 minutes. */
  readonly sessionTtlMs?: number | undefined
  readonly maxSessions?: number | undefined
  readonly allowedOrigins?: readonly string[] | undefined
  readonly clock?: Clock | undefined
  /** Stand between the edges and the core, outermost first. */
  readonly middlewares?: readonly Middleware[] | undefined
  /** Upstream tokens of callers, from the embedded authorization server. */
  readonly upstreamTokens?: UpstreamTokens | undefined
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  /** SHA-256 of the configuration file, for the report to the cluster. */
  readonly configChecksum?: string | undefined
  /** Replaces the access to the cluster that the environment gives (tests). */
  readonly clusterApi?: ClusterApi | undefined
  /** Time for requests in flight when closing. Default 10 s. */
  readonly graceMs?: number | undefined
}

export interface VmcpServer {
  /** Address of the MCP endpoint. */
  readonly url: string
  /** Address without path, for `/health` and the like. */
  readonly origin: string
  /** Takes a changed configuration. Throws INVALID_CONFIG and changes nothing when it cannot be used. */
  reload(config: VmcpConfig, checksum?: string): void
  close(): Promise<void>
}

const DEFAULT_PORT = 4483
const DEFAULT_TTL_MS = 30 * 60_000
const DEFAULT_MAX_SESSIONS = 10_000
/** Live copies of sessions that the shared store keeps; a session that was put out is restored when it is used. */
const DEFAULT_SHARED_SESSIONS = 1_000
const DEFAULT_GRACE_MS = 10_000
/** How often idle things are looked for, and how long connections may be idle. */
const SWEEP_MS = 5_000
const IDLE_MS = 5 * 60_000
const KEEP_ALIVE_SWEEPS = 5

/** Binds and starts serving. Throws INVALID_CONFIG; rejects with the system's error when it cannot bind. */
export async function startVmcp(config: VmcpConfig, options: StartOptions = {}): Promise<VmcpServer> {
  const { env = {}, version = '0.0.0', log = silentLog } = options
  checkStart(config, env)
  const observation = await makeObservation(config, { env, version, log })
  try {
    const server = new Vmcp(config, options, observation)
    await server.listen()
    return server
  } catch (error) {
    await observation.close()
    throw error
  }
}

class Vmcp implements VmcpServer {
  url = ''
  origin = ''
  readonly #options: StartOptions
  readonly #log: Log
  readonly #clock: Clock
  readonly #version: string
  readonly #observation: Observation
  readonly #fleet: Fleet
  readonly #outgoing: OutgoingAuth
  readonly #core: Core
  readonly #sessions: SessionTable
  readonly #notifier: Notifier
  readonly #edges: Edges
  readonly #storage: SessionStorage | undefined
  #stateSecret: string | undefined
  #checksum: string | undefined
  #reporter: Reporter | undefined
  #config: VmcpConfig
  #monitor: HealthMonitor
  #authenticator: Authenticator
  #guard: OriginGuard | undefined
  #stopping = false
  #sweeps = 0
  #closeListener: (() => Promise<void>) | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(config: VmcpConfig, options: StartOptions, observation: Observation) {
    this.#options = options
    this.#observation = observation
    this.#config = config
    this.#checksum = options.configChecksum
    this.#log = options.log ?? silentLog
    this.#clock = options.clock ?? systemClock
    this.#version = options.version ?? '0.0.0'
    this.#monitor = this.#makeMonitor(config)
    this.#outgoing = makeOutgoingAuth(options.env ?? {}, options.upstreamTokens, this.#log)
    checkStart(config, options.env ?? {}, this.#outgoing)
    this.#authenticator = makeAuthenticator(incomingConfig(config, options.env ?? {}), { log: this.#log })
    this.#fleet = this.#makeFleet()
    this.#core = new Core(this.#parts(config))
    this.#notifier = new Notifier({
      watchers: () => this.#watchers(),
      onError: (error) => this.#log.debug('a client could not be told of changes', { err: error }),
    })
    const ttlMs = options.sessionTtlMs ?? DEFAULT_TTL_MS
    this.#storage = openSessionStorage(config, options.env ?? {}, this.#log)
    this.#sessions = new SessionTable({
      ttlMs,
      maxSessions: options.maxSessions ?? (this.#storage ? DEFAULT_SHARED_SESSIONS : DEFAULT_MAX_SESSIONS),
      now: this.#clock.now,
      records: this.#storage && sessionRecords(this.#storage.store, ttlMs, this.#clock.now),
      log: this.#log,
      onEnd: (session, gone) => this.#endSession(session, gone),
    })
    this.#edges = makeEdges({
      core: this.#core,
      sessions: this.#sessions,
      middlewares: [...observation.middlewares, ...(options.middlewares ?? [])],
      serverInfo: this.#identity(config.name),
      passthroughHeaders: () => (this.#config.passthroughHeaders ?? []).map((name) => name.toLowerCase()),
      stateSecret: () => this.#stateSecret,
      clock: this.#clock,
      log: this.#log,
      endSession: (session) => this.#endSession(session, true),
    })
    this.#applyFleet(config)
  }

  *#watchers() {
    for (const session of this.#sessions.all()) yield watcherOf(session, this.#core)
    yield* this.#edges.listeners.watchers()
  }

  #makeFleet(): Fleet {
    return new Fleet({
      info: this.#identity('gatehouse-vmcp'),
      log: this.#log,
      clock: this.#clock,
      observation: this.#observation.backends,
      events: {
        listChanged: (backend, _kind, scope) => this.#listChanged(backend, scope),
        resourceUpdated: (_backend, scope, params) => {
          if (scope.kind === 'session') scope.session.deliver('', 'notifications/resources/updated', params)
        },
        admit: (backend) => this.#monitor.admit(backend.name),
        outcome: (backend, error) => this.#monitor.report(backend.name, error),
      },
      onListing: () => this.#notifier.poke(),
      onState: () => this.#core.parts.views.changed(),
      available: (name) => this.#monitor.available(name),
      authFor: (name, config) => this.#outgoing.authFor(name, config),
      headersFor: (name) => this.#outgoing.headersFor(name),
    })
  }

  #listChanged(backend: Backend, scope: ConnectionScope): void {
    const listings = this.#fleet.members.get(backend.name)?.listings
    if (scope.kind === 'session' && backend.era === 'session') listings?.fork(scope.session.id)
    listings?.expire(scope.kind === 'listing' ? scope.key : undefined)
    this.#notifier.poke()
  }

  #identity(name: string): string {
    return JSON.stringify({ name, version: this.#version })
  }

  #parts(config: VmcpConfig): CoreParts {
    return {
      members: this.#fleet.members,
      views: new Views(config.aggregation, this.#clock.now, this.#observation.telemetry.tracer),
      partialFailureMode: config.operational.failureHandling.partialFailureMode,
    }
  }

  #makeMonitor(config: VmcpConfig): HealthMonitor {
    return new HealthMonitor({
      settings: healthSettings(config),
      clock: this.#clock,
      log: this.#log,
      onChange: (name) => {
        this.#core.parts.views.changed()
        this.#reporter?.poke()
        this.#fleet.members.get(name)?.listings.expire()
        this.#notifier.poke()
      },
    })
  }

  #applyFleet(config: VmcpConfig): void {
    const { added, removed } = this.#fleet.apply(config)
    for (const name of removed) this.#monitor.remove(name)
    for (const name of added) {
      const backend = this.#fleet.members.get(name)?.backend
      if (backend) this.#watch(backend)
    }
    this.#observation.telemetry.metrics.backendsDiscovered(this.#fleet.members.size, {})
    if (added.length + removed.length > 0) this.#log.info('backends changed', { added, removed })
  }

  #watch(backend: Backend): void {
    this.#monitor.add({
      name: backend.name,
      hasCredentials: backend.settings.authType !== 'unauthenticated',
      check: (signal) => backend.check(signal),
    })
  }

  reload(config: VmcpConfig, checksum?: string): void {
    checkStart(config, this.#options.env ?? {}, this.#outgoing)
    const authChanged = JSON.stringify(config.incomingAuth) !== JSON.stringify(this.#config.incomingAuth)
    const authenticator = authChanged
      ? makeAuthenticator(incomingConfig(config, this.#options.env ?? {}), { log: this.#log })
      : undefined
    const monitor =
      JSON.stringify(healthSettings(config)) === JSON.stringify(healthSettings(this.#config))
        ? undefined
        : this.#makeMonitor(config)
    this.#applyFleet(config)
    if (monitor) {
      this.#monitor.close()
      this.#monitor = monitor
      for (const { backend } of this.#fleet.members.values()) this.#watch(backend)
    }
    if (authenticator) {
      void this.#authenticator.close()
      this.#authenticator = authenticator
    }
    this.#config = config
    this.#checksum = checksum
    this.#core.replace(this.#parts(config))
    this.#notifier.poke()
    this.#reporter?.poke()
    this.#observation.reloaded(config)
    this.#log.info('configuration reloaded', { backends: this.#fleet.members.size })
  }

  async listen(): Promise<void> {
    const { host = '127.0.0.1', port = DEFAULT_PORT, allowedOrigins = [] } = this.#options
    const handler = makeHandler({
      authenticator: () => this.#authenticator,
      guard: () => {
        if (!this.#guard) throw new GatehouseError('SHUTTING_DOWN')
        return this.#guard
      },
      sessionEdge: this.#edges.sessionEdge,
      oldSseEdge: this.#edges.oldSseEdge,
      statelessEdge: this.#edges.statelessEdge,
      routes: ({ path }) => this.#observation.route(path) ?? builtInRoute(this.#routeParts(), path),
      stopping: () => this.#stopping,
      observer: this.#observation.observer,
      log: this.#log,
    })
    this.#stateSecret = this.#options.env?.[vmcpEnvironment.stateKey] || undefined
    void this.#shareSecret()
    const listener = await listen({ host, port, handler, log: this.#log })
    this.#guard = makeOriginGuard({ host, port: listener.port, allowedOrigins })
    this.origin = listener.url
    this.url = `${listener.url}${MCP_PATH}`
    this.#closeListener = () => listener.close({ graceMs: this.#options.graceMs ?? DEFAULT_GRACE_MS })
    this.#reporter = this.#makeReporter()
    this.#timer = setInterval(() => this.#sweep(), SWEEP_MS)
    this.#timer.unref()
    this.#log.info('virtual MCP server listening', { url: this.url, backends: this.#fleet.members.size })
  }

  #makeReporter(): Reporter | undefined {
    return reporterFor(this.#options.env ?? {}, this.#options.clusterApi, {
      intervalMs: () => parseDuration(this.#config.operational.failureHandling.statusReportingInterval),
      configChecksum: () => this.#checksum,
      backends: () =>
        [...this.#fleet.members.values()].map(({ backend }) => ({
          name: backend.name,
          url: backend.settings.target.url.href,
          health: this.#monitor.health(backend.name),
          mcpRevision: backend.revision,
        })),
      clock: this.#clock,
      log: this.#log,
    })
  }

  #routeParts() {
    return {
      notReady: () => (this.#stopping ? 'shutting_down' : undefined),
      mode: 'static' as const,
      status: () =>
        statusReport({
          name: this.#config.name,
          group: this.#config.groupRef,
          version: this.#version,
          sessions: this.#sessions.size,
          members: this.#fleet.members.values(),
          health: (name) => this.#monitor.health(name),
          catalogs: this.#core.parts.views.catalogs(),
        }),
      health: () =>
        new Map(
          [...this.#fleet.members.keys()].map((name) => [name, this.#monitor.health(name) ?? UNKNOWN_HEALTH]),
        ),
      monitoring: () => healthSettings(this.#config).intervalMs > 0,
    }
  }

  /** Takes the key that replicas share from the session store, as soon as that can be reached. */
  async #shareSecret(): Promise<void> {
    if (this.#stateSecret !== undefined || !this.#storage) return
    try {
      this.#stateSecret = await this.#storage.sharedSecret()
    } catch (error) {
      this.#log.debug('the shared key is not there yet', { err: error })
    }
  }

  #sweep(): void {
    void this.#shareSecret()
    this.#sessions.sweep()
    this.#fleet.sweep(IDLE_MS)
    if (++this.#sweeps % KEEP_ALIVE_SWEEPS !== 0) return
    for (const session of this.#sessions.all()) session.keepAlive()
    this.#edges.keepAlive()
  }

  #endSession(session: ClientSession, gone: boolean): void {
    for (const { backend, listings } of this.#fleet.members.values()) {
      listings.unfork(session.id)
      backend
        .endSession(session, gone)
        .catch((error: unknown) => this.#log.debug('a backend session was not ended', { err: error }))
    }
  }

  async close(): Promise<void> {
    if (this.#stopping) return
    this.#stopping = true
    clearInterval(this.#timer)
    this.#notifier.close()
    this.#monitor.close()
    this.#edges.close()
    await this.#closeListener?.()
    await this.#reporter?.close()
    this.#sessions.close()
    await this.#fleet.close()
    await Promise.all([this.#outgoing.close(), this.#authenticator.close(), this.#storage?.close()])
    await this.#observation.close()
    this.#log.info('virtual MCP server stopped')
  }
}
