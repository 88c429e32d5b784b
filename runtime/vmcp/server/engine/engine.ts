/**
 * The backend side of a virtual server: the fleet, its health, the catalog, and notifications about catalog changes.
 * Applies a changed configuration while the server runs.
 */
import { GatehouseError, reservedTools, type RuntimeBackend, byText } from '../../../../schemas/index.ts'
import type { ExcludedBackend, VmcpConfig } from '../../../config/index.ts'
import type { Cause } from '../../../observe/index.ts'
import type { Backend } from '../../backends/backend.ts'
import type { ConnectionScope, SessionListener } from '../../backends/session-era/connections.ts'
import { type BackendState, servedState } from './backend-state.ts'
import { LeftOutBackends } from './left-out.ts'
import { makeCursors } from '../../catalog/cursors.ts'
import { Conflicts } from '../../catalog/names/conflicts.ts'
import { Pins } from '../../catalog/pinning/pins.ts'
import { ResourceLinks } from '../../catalog/resource-links.ts'
import type { Composer } from '../../model/catalog/entries.ts'
import { Views } from '../../catalog/views.ts'
import { type CallParts, Core } from '../../call/core.ts'
import { type BackendConfiguration, configureBackend } from '../../backends/backend-settings.ts'
import { Fleet } from './fleet.ts'
import { BundleExpiry } from './certificates.ts'
import { localCauses } from '../../backends/health/local-causes.ts'
import { makeSignIns, type SignIns } from '../../backends/sign-ins.ts'
import { HealthMonitor } from '../../backends/health/monitor.ts'
import { healthSettings } from '../../backends/health/settings.ts'
import type { EngineOptions } from './engine-options.ts'
import { Notifier } from './notifier.ts'
import { outputCheck } from './output-check.ts'
import { ExtensionSet } from '../../model/extensions.ts'
import type { ClientSession } from '../../model/session.ts'
import { type PinParts, reportRefusals } from '../../features/pinning/refusal.ts'
import { makeOutgoingAuth, type BackendStrategies } from '../../backends/outgoing-auth.ts'
import { UnmatchedTools } from './unmatched-tools.ts'
import { NameProblems } from './name-problems.ts'
import { ResourceUpdates } from '../../catalog/changes/resource-updates.ts'
import { Evaluator, makeWorkflows } from '../../features/workflows/index.ts'
import { updatedMethod } from '../../../mcp/index.ts'
import { PageDrift } from '../../features/apps/page-drift.ts'
import { PageReads } from '../../features/apps/page-reads.ts'
import { listingTreatment, makeTreatments, shownUpdates } from './treatments.ts'
import { CurrentGuard } from '../../features/guardrails/current-guard.ts'
import { ListMarks } from '../../features/guardrails/lists/list-marks.ts'

/** The scope of a change that affects the lists of every client. */
const everyClient: ConnectionScope = { kind: 'pool', key: '' }

export class VmcpEngine {
  readonly core: Core
  readonly outgoing: BackendStrategies
  /** The user's logins. Undefined unless the server runs on the user's own machine. */
  readonly signIns: SignIns | undefined
  readonly #options: EngineOptions
  readonly #evaluator: Evaluator
  readonly #fleet: Fleet
  readonly #notifier: Notifier
  readonly #conflicts: Conflicts
  readonly #pins: Pins
  readonly #certificates: BundleExpiry
  readonly #unmatched: UnmatchedTools
  readonly #guard: CurrentGuard
  readonly #listGuardrails: ListMarks
  readonly #names: NameProblems
  readonly #updates: ResourceUpdates
  readonly #links = new ResourceLinks()
  readonly #leftOut: LeftOutBackends
  readonly #localCause: ((name: string) => Cause | undefined) | undefined
  monitor: HealthMonitor
  /** Recorded reads and differences of MCP Apps pages. A reload keeps them. */
  readonly #pages: { readonly reads: PageReads; readonly drift: PageDrift }
  #config: VmcpConfig
  /** Backends that are already invalid in the file. */
  #invalid: readonly ExcludedBackend[] = []

  /** The engine has no backends before the first `apply`. */
  constructor(config: VmcpConfig, options: EngineOptions) {
    const { env, upstreamTokens, log } = options
    this.#options = options
    this.#config = config
    const { now } = options.clock
    this.#pages = { reads: new PageReads(now), drift: new PageDrift(options.events, now) }
    this.#localCause = localCauses(env)
    this.#conflicts = new Conflicts(options.events)
    this.#unmatched = new UnmatchedTools({ events: options.events, members: () => this.#fleet.members })
    this.#pins = new Pins({
      events: options.events,
      keeper: options.lockKeeper,
      members: () => this.#fleet.members,
      onChange: () => this.#resetViews(),
    })
    this.#listGuardrails = new ListMarks(config.name, {
      ...options,
      members: () => this.#fleet.members,
      pins: this.#pins.locks,
      onChange: () => this.#resetViews(),
    })
    this.outgoing = makeOutgoingAuth(env, upstreamTokens, log, (strategy, err) => {
      if (err === undefined) options.events.emit('token_obtained', { strategy })
      else options.events.emit('token_failed', { strategy, reason: reasonOf(err), err })
    })
    this.signIns = makeSignIns({
      ...options,
      now: options.clock.now,
      onChange: (backend) => void this.#signInChanged(backend),
    })
    this.#leftOut = new LeftOutBackends({
      ...options,
      metrics: options.observation.telemetry.metrics,
      retry: () => this.#retry(),
    })
    this.#evaluator = new Evaluator(log)
    this.monitor = this.#makeMonitor(config)
    this.#fleet = this.#makeFleet()
    this.#certificates = new BundleExpiry({ ...options, backends: () => this.states() })
    const matcherFor: PinParts['matcherFor'] = ({ client, context }, { backend, original: tool }) => {
      const requester = { client, signal: context.signal, subject: { backend, tool } }
      return (schemas, value) => this.#evaluator.violations({ schemas, value }, requester)
    }
    this.#names = new NameProblems(options.events)
    this.#updates = new ResourceUpdates(options)
    this.#guard = new CurrentGuard(config.name, { ...options, matcherFor })
    const pins: PinParts = { ...reportRefusals(options.events), matcherFor }
    this.core = new Core(this.#parts(config), makeCursors(options.stateSecret), pins)
    this.#notifier = new Notifier({
      watchers: options.watchers,
      onError: (error) => log.debug('failed to notify a client of changes', { err: error }),
    })
  }

  /** Returns the state of each backend, including excluded backends, sorted by name. */
  states(): readonly BackendState[] {
    const states = [...this.#fleet.members.values()].map((member) => {
      const { name } = member.backend.settings
      return servedState(member, {
        health: this.monitor.health(name),
        pins: this.#pins.report(name),
        pages: this.#pages.drift.driftOf(name),
        signInAt: this.signIns?.waitingAt(name),
      })
    })
    return [...states, ...this.#leftOut.states].sort((a, b) => byText(a.name, b.name))
  }

  /** The comparison of the backends' items with the approved items. */
  get pins(): Pins {
    return this.#pins
  }

  /** Names in the settings that do not match a backend, one line each. */
  get nameProblems(): readonly string[] {
    return this.#names.problems
  }

  #makeFleet(): Fleet {
    const { info, log, clock, events } = this.#options
    return new Fleet({
      ...{ info, log, events, clock },
      checkOutput: outputCheck(this.#evaluator),
      observation: this.#options.observation.backends,
      links: {
        listChanged: (backend, _kind, scope) => this.#listsChanged(backend, scope),
        announcementsLost: (backend, scope) => this.#listsChanged(backend, scope, { isGap: true }),
        resourceUpdated: (backend, scope, params) => {
          if (scope.kind === 'session') this.#resourceUpdated(backend, scope.session, params)
        },
        listener: (backend, session) => this.#listener(backend, session),
        eraChanged: (backend) => this.#listsChanged(backend, everyClient),
      },
      onListing: ({ name }, listing) => {
        this.#listGuardrails.read(name, listing)
        events.emit('lists_changed', { backend: name })
        this.#notifier.notify()
      },
      ready: async (name, listing) => {
        const isCompared = await this.#pins.locks.ready(name, listing)
        await this.#listGuardrails.ready(listing)
        return isCompared
      },
      onState: () => {
        this.core.parts.views.invalidate()
        this.#pins.scheduleReport()
        this.#unmatched.scheduleCheck()
      },
      onDropped: ({ serial }) => this.core.parts.views.forget(serial),
      health: this,
      configure: (backend, config) => this.#configure(backend, config),
    })
  }

  /** Called when locks or guardrails change which items are shown. */
  #resetViews(): void {
    this.core.parts.views.reset()
    this.#notifier.notify()
  }

  #listener(backend: Backend, session: ClientSession): SessionListener {
    return this.core.parts.guard?.outsideCalls(backend.name, session) ?? session
  }

  #listsChanged(backend: Backend, scope: ConnectionScope, options?: { readonly isGap: boolean }): void {
    const { listings } = this.#fleet.members.get(backend.name) ?? {}
    listings?.changes.handle(scope, () => this.#notifier.notify(), options)
  }

  #resourceUpdated(backend: Backend, session: ClientSession, params: Buffer): void {
    for (const shown of shownUpdates(this.core.parts, backend.name, params))
      this.#updates.forward(backend.name, session.id, shown, (passed) =>
        this.#listener(backend, session).deliver(backend.name, updatedMethod, passed),
      )
  }

  #parts(config: VmcpConfig): CallParts {
    const { clock, events, observation } = this.#options
    const parts = { pages: this.#pages, locks: this.#pins.locks }
    const treatments = makeTreatments(config, this.#invalid, { events, clock, ...parts })
    return {
      members: this.#fleet.members,
      views: new Views(
        config.aggregation,
        clock.now,
        observation.telemetry.tracer,
        this.#workflows(config),
        () => this.#conflicts.update(() => this.core.parts.views.catalogs()),
        reservedTools(config),
        this.#pins.locks,
        this.#listGuardrails,
        listingTreatment(treatments),
      ),
      ...treatments,
      leftOut: this.#leftOut.names,
      partialFailureMode: config.operational.failureHandling.partialFailureMode,
      monitored: healthSettings(config).intervalMs > 0,
      guard: this.#guard.for(config),
      links: this.#links,
      extensions: new ExtensionSet(config.extensions),
    }
  }

  #workflows({ compositeTools }: VmcpConfig): Composer | undefined {
    const { clock, log, observation } = this.#options
    const { audit, telemetry } = observation
    return makeWorkflows(compositeTools, {
      call: this.#options.performStep,
      clock,
      random: Math.random,
      audit,
      telemetry,
      log,
      evaluator: this.#evaluator,
    })
  }

  #makeMonitor(config: VmcpConfig): HealthMonitor {
    const { clock, events } = this.#options
    return new HealthMonitor({
      server: config.name,
      settings: healthSettings(config),
      clock,
      events,
      localCause: this.#localCause,
      onChange: (name) => {
        this.core.parts.views.invalidate()
        this.#fleet.members.get(name)?.listings.expire()
        this.#notifier.notify()
        this.#options.onChange()
      },
    })
  }

  /**
   * Applies a configuration to the backends, the health checks and the catalog. Unchanged backends are kept. Backends
   * that cannot be set up are excluded and reported, together with those in `invalid`. An excluded backend does not
   * prevent other backends from being served.
   */
  apply(config: VmcpConfig, invalid: readonly ExcludedBackend[] = []): void {
    // The items must first be written to a lock, so read them now instead of waiting until the lists expire.
    for (const name of this.#pins.replace(config))
      if (config.pinning?.noLock === 'pin') this.#fleet.members.get(name)?.listings.expire()
    const { added, removed, excluded } = this.#fleet.apply(config)
    if (added.length + removed.length > 0) this.#options.events.emit('backends_changed', { added, removed })
    this.#invalid = invalid
    this.#leftOut.replace([...invalid, ...excluded])
    this.#names.replace(config, invalid)
    this.#unmatched.replace(config)
    this.#listGuardrails.replace(config)
    for (const name of removed) this.monitor.remove(name)
    this.signIns?.retain(new Set(this.#fleet.members.keys()))
    this.#updates.forget(removed)
    this.#links.forgetBackends(removed)
    if (JSON.stringify(healthSettings(config)) === JSON.stringify(healthSettings(this.#config))) {
      for (const name of added) this.#startChecks(name)
    } else {
      this.monitor.close()
      this.monitor = this.#makeMonitor(config)
      for (const name of this.#fleet.members.keys()) this.#startChecks(name)
    }
    this.#config = config
    this.core.parts = this.#parts(config)
    this.#options.observation.telemetry.metrics.backendsDiscovered(this.#fleet.members.size, {})
    this.#notifier.notify()
    this.#options.onApplied?.(this.#leftOut.names, this.#fleet.members.size)
    this.#options.onChange()
    this.#certificates.check()
  }

  /** Sets up the excluded backends whose settings have become valid. Returns false if no backend was set up. */
  #retry(): boolean {
    const { backends = [] } = this.#config
    const missing = backends.filter(({ name }) => !this.#fleet.members.has(name))
    const isBack = missing.some((backend) => this.#configure(backend, this.#config).ready)
    if (isBack) this.apply(this.#config, this.#invalid)
    return isBack
  }

  #configure(backend: RuntimeBackend, config: VmcpConfig): BackendConfiguration {
    return configureBackend(backend, config, {
      outgoing: this.outgoing,
      authServer: this.#options.authServer,
      log: this.#options.log,
      signIns: this.signIns,
    })
  }

  /** Updates a backend's state and lists after the user's login has started, ended or changed. */
  async #signInChanged(name: string): Promise<void> {
    await this.monitor.check(name)
    this.core.parts.views.invalidate()
    this.#fleet.members.get(name)?.listings.expire()
    this.#notifier.notify()
    this.#options.onChange()
  }

  #startChecks(name: string): void {
    const backend = this.#fleet.members.get(name)?.backend
    if (!backend) return
    this.monitor.add({
      name,
      // With client_credentials, checks use the same token as calls, so a rejection is a failure.
      toleratesRejection: !['unauthenticated', 'client_credentials'].includes(backend.settings.authType),
      check: (signal) => backend.check(signal),
    })
  }

  /** Notifies all clients that their lists may have changed even though no backend has changed. */
  permissionsChanged(): void {
    this.#notifier.notifyAll()
  }

  /** Ends a client session's backend sessions. If `gone` is false, the sessions stay open for another replica. */
  endSession(session: ClientSession, { gone }: { readonly gone: boolean }): void {
    this.#links.endSession(session.id)
    for (const { backend, listings } of this.#fleet.members.values()) {
      listings.endSession(session.id)
      backend
        .endSession(session, { end: gone })
        .catch((error: unknown) => this.#options.log.debug('failed to end a backend session', { err: error }))
    }
  }

  /** Checks one backend now, or sets it up again. Resolves to false if no backend has this name. Never rejects. */
  async recheck(name: string): Promise<boolean> {
    if (this.#leftOut.recheck(name)) return true
    if (!this.#fleet.members.has(name)) return false
    await this.monitor.check(name)
    return true
  }

  /** Closes connections that have been idle for `idleMs`. */
  evict(idleMs: number): void {
    this.#fleet.evict(idleMs)
  }

  /** Stops checks and notifications. Requests in flight continue. */
  stop(): void {
    this.#leftOut.close()
    this.#certificates.close()
    this.#pins.close()
    this.#unmatched.close()
    this.#updates.close()
    this.#notifier.close()
    this.monitor.close()
  }

  async close(): Promise<void> {
    this.stop()
    await this.#fleet.close()
    await Promise.all([this.outgoing.close(), this.signIns?.close()])
    await this.#evaluator.close()
  }
}

/** Returns the kind of an error, for event fields and metric labels. */
function reasonOf(error: unknown): string {
  return error instanceof GatehouseError ? error.code.toLowerCase() : 'other'
}
