/**
 * A virtual MCP server in this process, and its lifetime.
 *
 * `reload` applies a changed configuration without a restart. Backends are added and removed, and open sessions are
 * notified of list changes. Changes to the listener, session store, audit and telemetry settings require a restart.
 * Source: docs/reference/specification/virtual-server.md; ARCHITECTURE.md, "A tool call".
 */
import { timerMs } from '../../../schemas/index.ts'
import type { VmcpConfig } from '../../config/index.ts'
import {
  type Listener,
  listen,
  type LoadControl,
  type Log,
  makeOriginCheck,
  silentLog,
} from '../../net/index.ts'
import type { Events } from '../../observe/index.ts'
import { type Clock, systemClock } from '../model/time/clock.ts'
import { type Edges, makeEdges } from '../clients/codecs.ts'
import { countSecretUses, readinessNotes, withPrimaryProvider } from './embedded-auth.ts'
import { VmcpEngine } from './engine/engine.ts'
import { countSession, observeServer, makeLoadControl } from './gauges.ts'
import { healthSettings } from '../backends/health/settings.ts'
import { mcpPath } from '../model/exchange.ts'
import { makeHandler } from './http.ts'
import type { Observation } from './observation.ts'
import type { ClientSession } from '../model/session.ts'
import { type Chain, type ChainLinks, makeChain } from '../call/chain.ts'
import { makeLinks, stepPerformer } from '../call/links.ts'
import { decisionReporter } from '../call/reports/decisions.ts'
import {
  defaults,
  type ReloadedFile,
  type StartOptions,
  type ServerReports,
  type VmcpServer,
} from './options.ts'
import { VmcpReadiness } from './status/readiness.ts'
import { Reloadable } from './reloadable.ts'
import { type Reporter, reporterFor } from './status/report.ts'
import { cardRoute } from './routes/server-card.ts'
import { signInRoute } from './routes/sign-in-page.ts'
import { makeServerTasks } from './tasks.ts'
import type { TaskFeature } from '../features/tasks/index.ts'
import { builtInRoute } from './status/routes.ts'
import { watcherOf } from '../clients/session-life.ts'
import { offerSessions } from '../clients/processes/offered-sessions.ts'
import { WorkerRelay, workerTag } from '../clients/processes/relay.ts'
import { makeOtherWorkers } from '../clients/sessions/other-workers.ts'
import { SharedSecret } from '../clients/sessions/shared-secret.ts'
import { openSessionStorage, serverScope, type SessionStorage } from '../clients/sessions/storage.ts'
import type { ServerSession } from '../clients/sessions/session.ts'
import { SessionTable } from '../clients/sessions/table.ts'
import { checkStart, requireKeeper, startParts, startWarnings } from './start-check.ts'
import { statusReport } from './status/status.ts'
import { type ServerView, makeServerView } from './snapshot/view.ts'

/** Interval between evictions and maximum idle time of connections, in milliseconds. */
const evictMs = 5_000
const idleMs = 5 * 60_000
const keepAliveEvictions = 5

export class Vmcp implements VmcpServer {
  url = ''
  /**
   * The server's origin. Set before the server listens unless the kernel chooses the port, because health checks start
   * earlier.
   */
  origin: string
  readonly #options: StartOptions
  readonly #env: Readonly<Record<string, string | undefined>>
  readonly #log: Log
  readonly #clock: Clock
  readonly #observation: Observation
  readonly #events: Events
  readonly #stopLog: () => void
  readonly #engine: VmcpEngine
  readonly #tasks: TaskFeature
  readonly #chain: Chain
  readonly #sessions: SessionTable
  readonly #edges: Edges
  readonly #storage: SessionStorage | undefined
  readonly #relay: WorkerRelay | undefined
  readonly #load: LoadControl
  relayPort: number | undefined
  readonly #parts: Reloadable
  readonly #readiness: VmcpReadiness
  #checksum: string | undefined
  readonly #secret: SharedSecret
  #reporter: Reporter | undefined
  #stopping = false
  #evictions = 0
  #listener: Listener | undefined
  readonly view: ServerView
  #timer: NodeJS.Timeout | undefined

  constructor(config: VmcpConfig, options: StartOptions, { observation, events, stopLog }: ServerReports) {
    const { env = {}, log = silentLog, clock = systemClock, worker } = options
    this.#options = options
    this.origin = `http://${options.host ?? '127.0.0.1'}:${options.port ?? defaults.port}`
    this.#env = env
    this.#log = log
    this.#clock = clock
    this.#observation = observation
    this.#events = events
    this.#stopLog = stopLog
    this.#checksum = options.configChecksum
    this.#storage = openSessionStorage(config, env, events, worker?.sessions)
    this.#secret = new SharedSecret(env, this.#storage, log)
    this.#relay = worker && new WorkerRelay(worker.link, observation.observer, log)
    const tag = workerTag(worker?.link.id)
    this.#parts = new Reloadable(config, {
      env,
      log,
      clock,
      events,
      observation,
      store: this.#storage?.isWorkerStore ? undefined : this.#storage?.store,
      counters: worker?.counters,
      proofs: worker?.proofs,
      upstreamTokens: options.upstreamTokens,
      authServer: options.authServer,
      clientCertificates: options.certificate?.hasClientAuthority,
      localTokens: options.localTokens,
    })
    this.#readiness = new VmcpReadiness({
      authServer: options.authServer,
      shared: worker?.counters,
      config: () => this.#parts.config,
      stopping: () => this.#stopping,
    })
    this.#engine = new VmcpEngine(config, {
      env,
      origin: () => this.origin,
      upstreamTokens: options.upstreamTokens,
      authServer: options.authServer?.config,
      info: this.#identity('gatehouse-vmcp'),
      clock,
      log,
      events,
      watchers: () => this.#watchers(),
      onApplied: (leftOut, served) => {
        this.#chain.replace(this.#makeLinks())
        this.#readiness.onApplied(leftOut, served)
      },
      onChange: () => this.#reporter?.notify(),
      stateSecret: () => this.#secret.value,
      lockKeeper: options.lockKeeper,
      performStep: (...step) =>
        stepPerformer(this.#engine.core, () => this.#parts.guards, this.#chain)(...step),
      observation,
    })
    const shared = { storage: this.#storage, workerStore: worker?.tasks, secret: this.#secret }
    this.#tasks = makeServerTasks(this.#engine, this.#parts, { env, log, now: clock.now, ...shared })
    this.#chain = makeChain(this.#makeLinks())
    this.#load = makeLoadControl(events, clock, options.load)
    const ttlMs = options.sessionTtlMs ?? defaults.ttlMs
    this.#sessions = new SessionTable({
      ttlMs,
      maxSessions: options.maxSessions ?? (this.#storage ? defaults.sharedSessions : defaults.maxSessions),
      now: clock.now,
      records: this.#storage?.records(ttlMs, clock.now),
      events,
      otherWorkers: worker && makeOtherWorkers(worker.link, tag),
      freshMs: this.#storage?.isWorkerStore ? defaults.freshMs : undefined,
      onEnd: (session, { gone }) => this.#sessionEnded(session, gone),
    })
    if (worker) offerSessions(worker.link, this.#sessions)
    this.#edges = makeEdges({
      core: this.#engine.core,
      sessions: this.#sessions,
      ...this.#chain,
      gate: () => this.#parts.guards.gate,
      tasks: this.#tasks,
      serverInfo: this.#identity(config.name),
      advertise: options.advertise ?? 'everything',
      allowlist: this.#parts,
      server: serverScope(config, env),
      stateSecrets: () => this.#secret.values,
      clock,
      log,
      endSession: (session: ClientSession) => this.#engine.endSession(session, { gone: true }),
      tag,
    })
    this.#engine.apply(config, options.excluded)
    const quotas = () => this.#parts.guards.quotas?.usage() ?? []
    this.view = makeServerView({
      config: () => this.#parts.config,
      engine: this.#engine,
      events,
      sessions: this.#sessions,
      url: () => this.url,
      requiresToken: options.localTokens !== undefined,
      accountsUrl: options.authServer?.accountsUrl,
      perform: this.#chain.perform,
      ...{ audit: observation.audit, liveTasks: this.#tasks.live },
      quotas,
    })
    observeServer(observation.telemetry.metrics, {
      version: options.version ?? '0.0.0',
      sessions: () => this.#sessions.size,
      load: this.#load,
      backends: () => this.#engine.states(),
      server: config.name,
      quotas,
      servingEndsAt: () => options.certificate?.endsAt,
    })
  }

  #makeLinks(): ChainLinks {
    const { core, signIns } = this.#engine
    const events = this.#events
    const observed = { ...this.#observation, server: this.#parts.config.name, events }
    const onDecision = decisionReporter({ ...observed, core: () => core })
    const requiresToken = this.#options.localTokens !== undefined
    const tasks = this.#tasks
    return makeLinks(this.#parts, { ...observed, core, onDecision, signIns, requiresToken, tasks })
  }

  #sessionEnded(session: ServerSession, gone: boolean): void {
    countSession(this.#observation.telemetry.metrics, session, this.#clock.now())
    this.#engine.endSession(session, { gone })
  }

  *#watchers() {
    for (const session of this.#sessions.all()) yield watcherOf(session, this.#engine.core)
    yield* this.#edges.listeners.watchers()
  }

  #identity(name: string): string {
    return JSON.stringify({ name, version: this.#options.version ?? '0.0.0' })
  }

  reload(fileConfig: VmcpConfig, file: ReloadedFile = {}): void {
    try {
      this.#reload(fileConfig, file)
    } catch (err) {
      this.#events.emit('config_refused', { err })
      throw err
    }
    this.#events.emit('config_reloaded', { backends: fileConfig.backends?.length ?? 0 })
  }

  #reload(fileConfig: VmcpConfig, { checksum, excluded }: ReloadedFile): void {
    const config = withPrimaryProvider(fileConfig, this.#options.authServer?.config)
    requireKeeper(config, this.#options.lockKeeper)
    const parts = startParts(this.#options)
    checkStart(config, parts, excluded)
    for (const warning of startWarnings(config, parts)) this.#log.warn(warning)
    const { permissionsChanged } = this.#parts.replace(config)
    // The previous guards are closed. No request may reach these guards, even if a later step throws.
    this.#chain.replace(this.#makeLinks())
    this.#checksum = checksum
    this.#engine.apply(config, excluded)
    if (permissionsChanged) this.#engine.permissionsChanged()
    this.#observation.reportRestartNeeded(config)
  }

  async listen(): Promise<void> {
    const { host = '127.0.0.1', port = defaults.port, allowedOrigins = [] } = this.#options
    const { certificate, version = '0.0.0', worker } = this.#options
    const cardParts = { version, load: this.#load }
    const relay = this.#relay
    const handler = makeHandler({
      load: this.#load,
      reloadable: this.#parts,
      edges: this.#edges,
      observer: this.#observation.observer,
      routes: ({ path }) =>
        this.#observation.route(path) ??
        builtInRoute(this.#routeParts(), path) ??
        cardRoute(path, this.#parts.config.publish, { ...cardParts, url: this.url }) ??
        signInRoute(this.#engine.signIns, path, () => this.#parts.originCheck) ??
        this.#options.authServer?.routes(path),
      isStopping: () => this.#stopping,
      events: this.#events,
      page: () => this.view.pageFacts(),
      relay: relay && ((exchange) => relay.relay(exchange)),
    })
    const shared = this.#secret.share()
    // Workers and tasks need the secret before the first request.
    if (worker || this.#tasks.isEnabled()) await shared
    this.relayPort = await relay?.open(handler)
    const connections = worker?.link.connections
    const parts = { host, port, handler, certificate, connections, localTokens: this.#options.localTokens }
    const listener = await listen({ ...parts, clientCertificates: 'request', log: this.#log })
    this.#parts.originCheck = makeOriginCheck({
      host,
      port: listener.port,
      secure: certificate !== undefined,
      allowedOrigins,
      requestHeaders: () => this.#parts.passthroughHeaders,
    })
    this.origin = listener.url
    this.url = `${listener.url}${mcpPath}`
    this.#listener = listener
    if (worker) void worker.link.lead.then(() => this.#beginReports())
    else this.#beginReports()
    certificate?.checkFiles()
    this.#timer = setInterval(() => this.#evict(), evictMs)
    this.#timer.unref()
    this.#log[worker ? 'debug' : 'info']('virtual MCP server listening', {
      url: this.url,
      backends: this.#parts.config.backends?.length ?? 0,
    })
  }

  #beginReports(): void {
    if (this.#stopping) return
    this.#reporter = reporterFor(this.#env, this.#options.clusterApi, {
      intervalMs: () => timerMs(this.#parts.config.operational.failureHandling.statusReportingInterval),
      configChecksum: () => this.#checksum,
      backends: () => this.#engine.states(),
      clock: this.#clock,
      log: this.#log,
      events: this.#events,
    })
  }

  #routeParts() {
    return {
      notReady: () => this.#readiness.notReady(),
      notes: () => readinessNotes(this.#options.authServer),
      mode: 'static' as const,
      status: () =>
        statusReport({
          config: this.#parts.config,
          version: this.#options.version ?? '0.0.0',
          sessions: this.#sessions.size,
          backends: this.#engine.states(),
          catalogs: [...this.#engine.core.parts.views.catalogs()],
          problems: [
            ...this.#engine.nameProblems,
            ...this.#parts.features.flatMap((feature) => feature.problems?.() ?? []),
          ],
          events: this.#events,
        }),
      backends: () => this.#engine.states(),
      monitoring: () => healthSettings(this.#parts.config).intervalMs > 0,
    }
  }

  #evict(): void {
    void this.#secret.share()
    this.#sessions.evict()
    this.#engine.evict(idleMs)
    countSecretUses(this.#options.authServer, this.#observation.telemetry.metrics)
    if (++this.#evictions % keepAliveEvictions !== 0) return
    for (const session of this.#sessions.all()) session.keepAlive()
    this.#edges.keepAlive()
  }

  /** Ends the streams, waits up to `graceMs` for calls in flight, and then closes everything else. */
  async close({ graceMs = this.#options.graceMs ?? defaults.graceMs } = {}): Promise<void> {
    if (this.#stopping) return
    this.#stopping = true
    clearInterval(this.#timer)
    this.#engine.stop()
    this.#edges.close()
    await Promise.all([this.#listener?.close({ graceMs }), this.#relay?.close(graceMs)])
    await this.#reporter?.close()
    this.#sessions.close()
    await Promise.all([this.#tasks.close(), this.#parts.closeGuards()])
    await this.#engine.close()
    await Promise.all([this.#parts.closeAuthenticator(), this.#storage?.close(), this.#observation.close()])
    this.#stopLog()
    this.#log.info('virtual MCP server stopped')
  }
}
