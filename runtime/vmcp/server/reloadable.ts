/**
 * The parts that a changed configuration replaces while the server runs. These are the guards, the features and the
 * authenticator.
 *
 * A request in flight keeps the features with which it began. At all later positions in the chain, however, the request
 * uses the new guards. The engine replaces backends. Changes to the listener, session store, audit and telemetry
 * settings require a restart.
 * Source: docs/reference/specification/virtual-server.md#incomingAuth; ARCHITECTURE.md, "A tool call".
 */
import { type VmcpConfig, vmcpEnvironment } from '../../config/index.ts'
import { type Authenticator, type EmbeddedAuthServer, makeAuthenticator } from '../../incoming/index.ts'
import type { LocalTokens, Log, OriginCheck } from '../../net/index.ts'
import { maxMarks } from '../../oauth/index.ts'
import type { Events } from '../../observe/index.ts'
import type { UpstreamTokens } from '../../outgoing/index.ts'
import { makeMemoryStore, type Store } from '../../store/index.ts'
import type { Clock } from '../model/time/clock.ts'
import { closeRemovedFeatures, makeFeatures } from './features.ts'
import { closeGuards, type Guards, makeGuards, makePermissionCheck } from '../call/guards.ts'
import type { Observation } from './observation.ts'
import type { Feature } from '../model/operation.ts'
import { reportAuthentication } from './gauges.ts'
import { incomingConfig, renamedClaims } from './incoming-config.ts'

/**
 * Maximum number of counters. A quarter is reserved for server-wide quotas and for the counter that all further callers
 * share.
 */
const maxCounters = 100_000

export interface ReloadableOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
  readonly clock: Clock
  readonly events: Events
  readonly observation: Observation
  /** The shared store. Rate limits require this store. */
  readonly store: Store | undefined
  /** Store for counters that several processes share. By default, counters are stored in the memory of this process. */
  readonly counters?: Store | undefined
  /**
   * Store for used DPoP proofs that several processes share. By default, proofs are stored in the memory of this
   * process.
   */
  readonly proofs?: Store | undefined
  readonly upstreamTokens: UpstreamTokens | undefined
  readonly authServer: EmbeddedAuthServer | undefined
  /** True if the listener asks clients for certificates. */
  readonly clientCertificates?: boolean | undefined
  /** Tokens of the owner's programs, which are accepted in addition to the issuers' tokens. */
  readonly localTokens?: LocalTokens | undefined
}

export class Reloadable {
  readonly #options: ReloadableOptions
  /** The quota counters, used if there is no shared store. A reload keeps these counters. */
  readonly #counters: Store
  /** Previous DPoP proofs, stored here if there is no shared store. A reload keeps these proofs. */
  readonly #proofs: Store
  config: VmcpConfig
  authenticator: Authenticator
  guards: Guards
  features: readonly Feature[]
  /** Names of the passed-through headers in lowercase. */
  passthroughHeaders: readonly string[]
  /** The check of the Origin and Host headers. Set when the port is bound. */
  originCheck: OriginCheck | undefined

  /** Throws an INVALID_CONFIG error that names the invalid setting. */
  constructor(config: VmcpConfig, options: ReloadableOptions) {
    this.#options = options
    this.#counters = options.counters ?? makeMemoryStore({ now: options.clock.now, maxEntries: maxCounters })
    this.#proofs = options.proofs ?? makeMemoryStore({ now: options.clock.now, maxEntries: maxMarks })
    this.config = config
    this.passthroughHeaders = passthroughHeaders(config)
    this.authenticator = this.#makeAuthenticator(config)
    this.guards = this.#makeGuards(config)
    this.features = makeFeatures(config, this.#featureParts())
  }

  /** True for a tool that belongs to a feature, such as `find_tool`. */
  isOwnTool(tool: string): boolean {
    return this.features.some(({ tools }) => tools.some(({ name }) => name === tool))
  }

  /**
   * Applies a configuration that has passed the startup checks. If the configuration is invalid in any other way,
   * throws INVALID_CONFIG and replaces nothing. `permissionsChanged` is true if clients may see different tools than
   * before.
   */
  replace(config: VmcpConfig): { readonly permissionsChanged: boolean } {
    const guards = this.#makeGuards(config)
    const before = this.config.incomingAuth
    const authzChanged = !isSame(config.incomingAuth.authz, before.authz)
    const isSameCheck =
      isSame(config.incomingAuth, before) && isSame(renamedClaims(config), renamedClaims(this.config))
    const authenticator = isSameCheck ? undefined : this.#makeAuthenticator(config)
    const features = makeFeatures(config, { ...this.#featureParts(), before: this.features })
    // Nothing after this point throws.
    this.config = config
    this.passthroughHeaders = passthroughHeaders(config)
    void closeGuards(this.guards, guards)
    this.guards = guards
    // Cancels scripts and searches that belong to removed features.
    const featuresChanged = closeRemovedFeatures(this.features, features)
    this.features = features
    if (authenticator) {
      void this.authenticator.close()
      this.authenticator = authenticator
      this.#options.events.emit('token_check_recovered', {})
    }
    return { permissionsChanged: authzChanged || featuresChanged }
  }

  /** Ends guards and features. Tokens can still be checked until `closeAuthenticator` is called. */
  async closeGuards(): Promise<void> {
    await Promise.all([...this.features.map((feature) => feature.close()), closeGuards(this.guards)])
  }

  async closeAuthenticator(): Promise<void> {
    await this.authenticator.close()
  }

  #makeAuthenticator(config: VmcpConfig): Authenticator {
    const {
      authServer,
      clientCertificates,
      env,
      events,
      localTokens,
      log,
      store = this.#proofs,
    } = this.#options
    return makeAuthenticator(incomingConfig(config, env, log), {
      log,
      observe: (event) => reportAuthentication(events, event),
      keys: authServer?.keys,
      isLive: authServer?.isLive,
      dpop: authServer?.dpop ?? { store: store.namespace('dpop:') },
      clientCertificates,
      localTokens: localTokens?.digests,
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
      isGranted: (tool) => this.isOwnTool(tool),
      log,
    })
  }

  #featureParts() {
    const { env, observation, clock, log } = this.#options
    return {
      env,
      telemetry: observation.telemetry,
      audit: observation.audit,
      permits: makePermissionCheck(() => this.guards),
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
