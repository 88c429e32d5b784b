/**
 * What a changed configuration replaces while the server runs: guards, features, and the check of credentials.
 *
 * A request in flight passes the new guards that it has not reached, and keeps the features that it began with. The
 * engine replaces backends. Listener, session store, audit and telemetry take changes at the next start.
 * Source: docs/reference/specification/virtual-server.md#incomingAuth; ARCHITECTURE.md, "A tool call".
 */
import { type VmcpConfig, vmcpEnvironment } from '../../config/index.ts'
import { type Authenticator, type EmbeddedAuthServer, makeAuthenticator } from '../../incoming/index.ts'
import type { Log, OriginGuard } from '../../net/index.ts'
import type { Events } from '../../observe/index.ts'
import type { UpstreamTokens } from '../../outgoing/index.ts'
import { makeMemoryStore, type Store } from '../../store/index.ts'
import type { Clock } from '../model/time/clock.ts'
import { closeGone, makeFeatures } from './features.ts'
import { closeGuards, type Guards, makeGuards, permitting } from '../call/guards.ts'
import type { Observation } from './observation.ts'
import type { Feature } from '../model/feature.ts'
import { tellAuthentication } from './gauges.ts'
import { incomingConfig } from './incoming-config.ts'

/** A quarter is for quotas of the whole server, and for what callers share for whom there is no space. */
const maxCounters = 100_000

export interface ReloadableOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  readonly clock: Clock
  readonly events: Events
  readonly observation: Observation
  /** The shared store; rate limits need it. */
  readonly store: Store | undefined
  /** Where several processes of one server count; default the memory of this one. */
  readonly counters?: Store | undefined
  readonly upstreamTokens: UpstreamTokens | undefined
  readonly authServer: EmbeddedAuthServer | undefined
}

export class Reloadable {
  readonly #options: ReloadableOptions
  /** The counters of quotas where nothing is shared; they outlive every configuration. */
  readonly #counters: Store
  config: VmcpConfig
  authenticator: Authenticator
  guards: Guards
  features: readonly Feature[]
  /** Lower-case names. */
  passthroughHeaders: readonly string[]
  /** Set once the port is bound. */
  originGuard: OriginGuard | undefined

  /** Throws INVALID_CONFIG that names the invalid setting. */
  constructor(config: VmcpConfig, options: ReloadableOptions) {
    this.#options = options
    this.#counters = options.counters ?? makeMemoryStore({ now: options.clock.now, maxEntries: maxCounters })
    this.config = config
    this.passthroughHeaders = passthroughHeaders(config)
    this.authenticator = this.#makeAuthenticator(config)
    this.guards = this.#makeGuards(config)
    this.features = makeFeatures(config, this.#featureParts())
  }

  /** True for a tool of a feature, such as `find_tool`. */
  isOwnTool(tool: string): boolean {
    return this.features.some(({ tools }) => tools.some(({ name }) => name === tool))
  }

  /**
   * Takes a configuration that has passed the checks of a start. Throws INVALID_CONFIG and replaces nothing when it
   * cannot be used otherwise. `permissionsChanged`: clients may see other tools than before.
   */
  replace(config: VmcpConfig): { readonly permissionsChanged: boolean } {
    const guards = this.#makeGuards(config)
    const before = this.config.incomingAuth
    const authzChanged = !isSame(config.incomingAuth.authz, before.authz)
    const authenticator = isSame(config.incomingAuth, before) ? undefined : this.#makeAuthenticator(config)
    const features = makeFeatures(config, { ...this.#featureParts(), before: this.features })
    // Nothing throws from here on.
    this.config = config
    this.passthroughHeaders = passthroughHeaders(config)
    void closeGuards(this.guards, guards)
    this.guards = guards
    // Scripts and searches in flight end with their feature.
    const featuresChanged = closeGone(this.features, features)
    this.features = features
    if (authenticator) {
      void this.authenticator.close()
      this.authenticator = authenticator
      this.#options.events.emit('token_check_recovered', {})
    }
    return { permissionsChanged: authzChanged || featuresChanged }
  }

  /** Ends guards and features. Tokens can be checked until `closeAuthenticator`. */
  async closeGuards(): Promise<void> {
    await Promise.all([...this.features.map((feature) => feature.close()), closeGuards(this.guards)])
  }

  async closeAuthenticator(): Promise<void> {
    await this.authenticator.close()
  }

  #makeAuthenticator(config: VmcpConfig): Authenticator {
    const { authServer, env, events } = this.#options
    return makeAuthenticator(incomingConfig(config, env), {
      observe: (event) => tellAuthentication(events, event),
      keys: authServer?.keys,
      isLive: authServer?.isLive,
    })
  }

  #makeGuards(config: VmcpConfig): Guards {
    const { env, store, upstreamTokens, observation, events, clock, log } = this.#options
    return makeGuards(config, {
      store,
      counters: store ?? this.#counters,
      clock,
      env,
      namespace: env[vmcpEnvironment.namespace] || 'local',
      upstreamTokens,
      telemetry: observation.telemetry,
      events,
      before: this.guards,
      granted: (tool) => this.isOwnTool(tool),
      log,
    })
  }

  #featureParts() {
    const { env, observation, clock, log } = this.#options
    return {
      env,
      telemetry: observation.telemetry,
      audit: observation.audit,
      permits: permitting(() => this.guards),
      observer: observation.observer,
      clock,
      log,
    }
  }
}

function passthroughHeaders(config: VmcpConfig): readonly string[] {
  return (config.passthroughHeaders ?? []).map((name) => name.toLowerCase())
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}
