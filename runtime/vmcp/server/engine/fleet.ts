/**
 * The backends of the running configuration. A changed configuration adds, removes and replaces individual backends.
 * Unchanged backends keep their connections and listings.
 */
import { hash } from 'node:crypto'
import { certificatesIn } from '../../../../schemas/certificate/index.ts'
import type { RuntimeBackend } from '../../../../schemas/index.ts'
import type { ExcludedBackend, VmcpConfig } from '../../../config/index.ts'
import { type Dispatcher, type Log, makeDispatcher, type TlsMaterial } from '../../../net/index.ts'
import type { Events } from '../../../observe/index.ts'
import { Backend, type BackendLinks } from '../../backends/backend.ts'
import { RestConnection } from '../../backends/openapi/connection.ts'
import { RestDocuments } from '../../backends/openapi/documents.ts'
import type { CheckOutput } from '../../backends/openapi/output-check.ts'
import { Deviations } from '../../backends/deviations.ts'
import type { HealthMonitor } from '../../backends/health/monitor.ts'
import type { BackendObservation } from '../../backends/transport/measure.ts'
import type { BackendSettings } from '../../backends/settings.ts'
import type { BackendConfiguration, DeclaredBackend } from '../../backends/backend-settings.ts'
import type { Listing } from '../../catalog/listing.ts'
import { pinRules } from '../../catalog/pinning/active-locks.ts'
import { Listings } from '../../catalog/listings.ts'
import type { AggregatedBackend } from '../../catalog/views.ts'
import type { Clock } from '../../model/time/clock.ts'

export interface FleetOptions {
  readonly info: string
  readonly log: Log
  readonly clock: Clock
  readonly links: BackendLinks
  readonly events: Events
  readonly observation?: BackendObservation | undefined
  /** Called when a listing has been read for the first time, has changed, or can no longer be read. */
  readonly onListing: (backend: Backend, listing: Listing | undefined, before: Listing | undefined) => void
  /** Called when the lists that clients see may have changed. */
  readonly onState: () => void
  /** Called when a listing is no longer in use. */
  readonly onDropped: (listing: Listing) => void
  /** The health monitor. A reload may replace the monitor. */
  readonly health: { readonly monitor: HealthMonitor }
  /**
   * Resolves when a listing can be compared with the approved items and shown. Resolves to false if the listing must be
   * reread soon.
   */
  readonly ready: (name: string, listing: Listing) => Promise<boolean>
  /** Checks the responses of REST services. */
  readonly checkOutput: CheckOutput
  readonly configure: (backend: RuntimeBackend, config: VmcpConfig) => BackendConfiguration
}

export interface FleetChange {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  /** Backends in the configuration that cannot be served. */
  readonly excluded: readonly ExcludedBackend[]
}

interface WantedBackend {
  readonly settings: BackendSettings
  readonly declared: RuntimeBackend
  /** Names of the headers that the configuration sets. */
  readonly configuredHeaders: readonly string[]
}

export class Fleet {
  readonly #options: FleetOptions
  readonly #members = new Map<string, AggregatedBackend>()
  readonly #dispatchers = new Map<string, Dispatcher>()
  readonly #documents: RestDocuments

  constructor(options: FleetOptions) {
    this.#options = options
    this.#documents = new RestDocuments(options.events, options.clock.now)
  }

  get members(): ReadonlyMap<string, AggregatedBackend> {
    return this.#members
  }

  /** Applies a configuration. Excludes backends that cannot be set up. Never throws. */
  apply(config: VmcpConfig): FleetChange {
    const wanted = new Map<string, WantedBackend>()
    const excluded: ExcludedBackend[] = []
    for (const backend of config.backends ?? []) {
      const { ready, problems } = this.#options.configure(backend, config)
      if (ready)
        wanted.set(backend.name, {
          settings: this.#settings(backend, ready, config),
          declared: backend,
          configuredHeaders: [...Object.keys(ready.headers), ...ready.auth.headerNames],
        })
      else excluded.push({ name: backend.name, problems })
    }
    const added: string[] = []
    const removed: string[] = []
    const closing: Promise<void>[] = []
    for (const [name, member] of this.#members) {
      if (wanted.get(name)?.settings.fingerprint === member.backend.settings.fingerprint) continue
      this.#members.delete(name)
      removed.push(name)
      member.listings.close()
      closing.push(member.backend.close())
    }
    this.#documents.retain(
      new Set(wanted.values().flatMap(({ declared }) => (declared.openapi ? [declared.name] : []))),
    )
    for (const [name, one] of wanted) {
      if (this.#members.has(name)) continue
      this.#members.set(name, this.#makeMember(one))
      added.push(name)
    }
    // Removed backends still need their connection pools to end their sessions.
    void Promise.allSettled(closing).then(() => this.#closeUnused())
    return { added, removed, excluded }
  }

  /** Closes unused connection pools after their requests in flight have ended. */
  #closeUnused(): void {
    const used = new Set([...this.#members.values()].map(({ backend }) => backend.settings.target.dispatcher))
    for (const [key, dispatcher] of this.#dispatchers) {
      if (used.has(dispatcher)) continue
      this.#dispatchers.delete(key)
      dispatcher.close().catch((error: unknown) => {
        this.#options.log.debug('failed to close a connection pool', { err: error })
      })
    }
  }

  #makeMember({ settings, ...wanted }: WantedBackend): AggregatedBackend {
    const { info, log, clock, links, events, observation, onListing, health } = this.#options
    const backendLog = log.child({ backend: settings.name })
    const backend = new Backend(settings, {
      ...{ links, health, events, observation, info },
      ...{ log: backendLog, now: clock.now },
      rest: this.#makeRest(settings, wanted, () =>
        links.listChanged(backend, 'tools', { kind: 'pool', key: '' }),
      ),
    })
    const listings = new Listings(backend, {
      events,
      clock,
      onRead: (listing, before) => onListing(backend, listing, before),
      onState: this.#options.onState,
      onDropped: this.#options.onDropped,
      ready: (listing) => this.#options.ready(settings.name, listing),
    })
    return { backend, listings }
  }

  /** Returns the connection to a REST service; undefined for an MCP server. */
  #makeRest(
    { name, target }: BackendSettings,
    { declared: { openapi, addresses }, configuredHeaders }: Omit<WantedBackend, 'settings'>,
    onChange: () => void,
  ): RestConnection | undefined {
    if (!openapi) return undefined
    const { checkOutput, events } = this.#options
    const document = this.#documents.open(name, { openapi, addresses, configuredHeaders, onChange })
    return new RestConnection({
      name,
      target,
      document,
      settings: openapi.response ?? {},
      apiKeyQuery: openapi.apiKeyQuery,
      checkOutput,
      events,
    })
  }

  #settings(backend: RuntimeBackend, ready: DeclaredBackend, config: VmcpConfig): BackendSettings {
    const { url, tls, headers, auth, login, timeoutMs } = ready
    const passthrough = config.passthroughHeaders ?? []
    const { failureHandling: _, logLevel: __, timeouts: ___, ...limits } = config.operational
    const pins = pinRules(config, backend.name)
    const settings = [backend, timeoutMs, limits, auth.fingerprint, passthrough, headers, pins]
    const fingerprint = JSON.stringify(settings)
    return {
      name: backend.name,
      transport: backend.transport,
      target: {
        url,
        dispatcher: this.#dispatcher(ready, backend),
        credentials: auth.type === 'unauthenticated' ? undefined : auth.credentials,
        login,
        headers,
        limits,
        sentHeaders: [],
        deviations: new Deviations(backend.name, this.#options.events),
        trace: this.#options.observation?.calls.carrier,
      },
      timeoutMs,
      perCaller: auth.perCaller || passthrough.length > 0,
      fingerprint: hash('sha256', fingerprint, 'base64url'),
      authType: auth.type,
      pins,
      caEndsAt: tls && (() => firstExpiry(tls())),
    }
  }

  /** Returns the connection pool for an address rule, trust anchors and a client certificate. */
  #dispatcher({ addresses, tls }: DeclaredBackend, backend: RuntimeBackend): Dispatcher {
    const { caBundlePath, clientCertificatePath, clientKeyPath } = backend
    const key = JSON.stringify([addresses, caBundlePath, clientCertificatePath, clientKeyPath])
    const known = this.#dispatchers.get(key)
    if (known) return known
    const dispatcher = makeDispatcher({
      guard: addresses,
      operatorUrls: 'all',
      tls,
      headersTimeoutMs: 0,
    })
    this.#dispatchers.set(key, dispatcher)
    return dispatcher
  }

  /** Closes idle connections. */
  evict(idleMs: number): void {
    for (const { backend } of this.#members.values()) backend.evict(idleMs)
  }

  async close(): Promise<void> {
    for (const { listings } of this.#members.values()) listings.close()
    await Promise.all([...this.#members.values()].map(({ backend }) => backend.close()))
    await Promise.all([...this.#dispatchers.values()].map((dispatcher) => dispatcher.destroy()))
    await this.#documents.close()
  }
}

function firstExpiry({ ca = '' }: TlsMaterial): number | undefined {
  const found = certificatesIn(ca)
  return typeof found === 'string'
    ? undefined
    : Math.min(...found.map(({ validToDate }) => validToDate.getTime()))
}
