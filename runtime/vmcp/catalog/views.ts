/**
 * Provides a client's current view, which consists of the merged listings of all backends. Merges each set of listings
 * only once.
 *
 * `down` contains the backends that cannot be listed. The core decides how these backends affect a request.
 */
import { type Aggregation, prefixedName, byText } from '../../../schemas/index.ts'
import type { Backend } from '../backends/backend.ts'
import { withTimeout } from '../../net/index.ts'
import { noTelemetry, type Tracer } from '../../observe/index.ts'
import type { OperationClient } from '../model/session.ts'
import { mayBeAlias, stemOf } from './names/aliases.ts'
import { Catalog } from './catalog.ts'
import type { Listing } from './listing.ts'
import type { Listings, ViewOptions } from './listings.ts'
import { requesterIdentity } from '../model/identity.ts'
import type { ActiveLocks } from './pinning/active-locks.ts'
import type { Composer } from '../model/catalog/entries.ts'

const maxCatalogs = 128
const maxReady = 1_024
/** Time for which a view with missing backends can be reused. */
const incompleteMs = 1_000

export interface AggregatedBackend {
  readonly backend: Backend
  readonly listings: Listings
}

export interface View {
  readonly catalog: Catalog
  /** Backends that could not be listed, sorted by name, with their errors. */
  readonly down: readonly MissingBackend[]
  /** Backends whose lists could not be reread. The last known lists of these backends are in use. */
  readonly stale: readonly MissingBackend[]
  /** True if no backend is down or stale. */
  readonly isComplete: boolean
}

/** Applies guardrails to listings. */
export interface ListTreatment {
  /** `offered` is the part of the listing that pinning allows. */
  apply(listing: Listing, offered: Listing): Listing
}

interface QueriedView extends View {
  /** The listings before merging. */
  readonly queried: readonly Listing[]
}

/** A backend with missing or stale lists, and the reason if it is known. */
interface MissingBackend {
  readonly name: string
  readonly error: Error | undefined
}

interface QueryResult {
  readonly down: MissingBackend[]
  readonly listings: Listing[]
}

interface Ready {
  readonly view: View
  readonly until: number
}

/**
 * Maximum time in milliseconds for which the lookup of a single name waits for backends that have not responded yet.
 */
const maxWaitMs = 50
const slowError = new Error('the backend has not responded yet')

export class Views {
  /**
   * True if a call waits for a list after the backend has announced a change to that list. The wait is necessary
   * because approved definitions may differ.
   */
  readonly awaitsAnnounced: boolean
  readonly #aggregation: Aggregation
  readonly #now: () => number
  readonly #tracer: Tracer
  readonly #compose: Composer | undefined
  readonly #onMerged: () => void
  readonly #reserved: ReadonlySet<string>
  readonly #pins: ActiveLocks | undefined
  readonly #guardrails: ListTreatment | undefined
  readonly #apps: { apply(listing: Listing): Listing } | undefined
  /** Views that do not require any requests to backends, keyed by the kind of client. */
  readonly #ready = new Map<string, Ready>()
  /** Merged catalogs in order of last use. */
  readonly #catalogs = new Map<string, Catalog>()

  constructor(
    aggregation: Aggregation,
    now: () => number,
    tracer: Tracer = noTelemetry.tracer,
    compose?: Composer,
    /** Called after new listings have been merged. */
    onMerged: () => void = () => {},
    /** Names of the server's own tools. */
    reserved: ReadonlySet<string> = new Set(),
    pins?: ActiveLocks,
    guardrails?: ListTreatment,
    apps?: { apply(listing: Listing): Listing },
  ) {
    this.#aggregation = aggregation
    this.#compose = compose
    this.#now = now
    this.#tracer = tracer
    this.#onMerged = onMerged
    this.#reserved = reserved
    this.#pins = pins
    this.awaitsAnnounced = pins?.enabled === true
    this.#guardrails = guardrails
    this.#apps = apps
  }

  /** Marks cached views as outdated. */
  invalidate(): void {
    this.#ready.clear()
  }

  /** Drops all merged catalogs. */
  reset(): void {
    this.#ready.clear()
    this.#catalogs.clear()
  }

  /** Drops all catalogs that contain an unused listing. */
  forget(serial: number): void {
    for (const [key, { listings, absent }] of this.#catalogs) {
      if ([...listings, ...absent].some((listing) => listing.serial === serial)) this.#catalogs.delete(key)
    }
  }

  /** Returns a client's view if no query to a backend is required, which is the usual case. */
  ready(members: ReadonlyMap<string, AggregatedBackend>, client: OperationClient): View | undefined {
    const known = this.#ready.get(keyOf(members, client))
    return known && known.until > this.#now() ? known.view : undefined
  }

  /**
   * Queries all backends concurrently. Listings.get describes `waitForFresh`. With `skipSlow`, omits backends that are
   * slow to respond for the first time, if their items cannot affect other backends' items. Never rejects.
   */
  async query(
    members: ReadonlyMap<string, AggregatedBackend>,
    client: OperationClient,
    { waitForFresh, skipSlow = false }: ViewOptions & { readonly skipSlow?: boolean },
  ): Promise<View> {
    return this.#tracer.internal('aggregator.AggregateCapabilities', undefined, async () => {
      const { down, listings } = await this.#tracer.internal(
        'aggregator.QueryAllCapabilities',
        undefined,
        () => this.#ask(members, client, { waitForFresh, skipSlow: skipSlow && this.#hasIndependentNames }),
      )
      const catalog = this.#tracer.internal('aggregator.MergeCapabilities', undefined, () =>
        this.merge(listings, absentOf(members, client, listings)),
      )
      const stale = listings.flatMap(({ backend: name }) => {
        const error = members.get(name)?.listings.failureOf(client)
        return error ? [{ name, error }] : []
      })
      const view = {
        catalog,
        down: down.sort((a, b) => byText(a.name, b.name)),
        stale,
        isComplete: down.length + stale.length === 0,
      }
      if (view.down.every(({ error }) => error !== slowError))
        this.#keep(members, client, { ...view, queried: listings })
      return view
    })
  }

  /** True if a catalog name has a form that could belong to this backend. */
  mayOwn(backend: string, name: string): boolean {
    const { conflictResolutionConfig, maxToolNameLength } = this.#aggregation
    if (!this.#hasIndependentNames) return true
    const prefix = prefixedName(conflictResolutionConfig.prefixFormat, backend, '')
    return (
      name.startsWith(prefix) ||
      (mayBeAlias(name, maxToolNameLength) && name.startsWith(stemOf(prefix, maxToolNameLength)))
    )
  }

  /** True if the names of different backends cannot conflict. */
  get #hasIndependentNames(): boolean {
    const { conflictResolution, conflictResolutionConfig } = this.#aggregation
    return conflictResolution === 'prefix' && conflictResolutionConfig.prefixFormat.includes('{workload}')
  }

  async #ask(
    members: ReadonlyMap<string, AggregatedBackend>,
    client: OperationClient,
    { waitForFresh, skipSlow }: ViewOptions & { readonly skipSlow: boolean },
  ): Promise<QueryResult> {
    const down: MissingBackend[] = []
    const listings: Listing[] = []
    const pending: Promise<void>[] = []
    for (const { backend, listings: lists } of members.values()) {
      const { name } = backend
      if (!backend.isAvailable) {
        down.push({ name, error: backend.signInError })
        continue
      }
      pending.push(
        this.#tracer
          .internal('aggregator.QueryCapabilities', { 'target.workload_name': name }, () =>
            lists.get(client, { waitForFresh, waitForAnnounced: this.awaitsAnnounced }),
          )
          .then(
            (listing) => void listings.push(listing),
            (error: unknown) => void down.push({ name, error: error instanceof Error ? error : undefined }),
          ),
      )
    }
    const all = Promise.all(pending)
    if (skipSlow) await withTimeout(maxWaitMs, all, () => {})
    else await all
    const responded = new Set([...listings.map(({ backend }) => backend), ...down.map(({ name }) => name)])
    const slow = [...members.keys()].filter((name) => !responded.has(name))
    return { down: [...down, ...slow.map((name) => ({ name, error: slowError }))], listings: [...listings] }
  }

  /** Caches the view, unless one of its lists was replaced while the view waited for another list. */
  #keep(
    members: ReadonlyMap<string, AggregatedBackend>,
    client: OperationClient,
    { queried, ...view }: QueriedView,
  ): void {
    for (const listing of queried) if (members.get(listing.backend)?.listings.peek(client) !== listing) return
    let until = view.down.length > 0 ? this.#now() + incompleteMs : Number.POSITIVE_INFINITY
    for (const { backend, listings } of members.values()) {
      if (backend.isAvailable) until = Math.min(until, listings.freshUntil(client))
    }
    if (this.#ready.size >= maxReady) this.#ready.clear()
    this.#ready.set(keyOf(members, client), { view, until })
  }

  /** Returns the known catalog without querying backends. The result can be compared with a client's earlier view. */
  peek(members: ReadonlyMap<string, AggregatedBackend>, client: OperationClient): Catalog {
    const ready = this.ready(members, client)
    if (ready) return ready.catalog
    const known = [...members.values()]
      .filter(({ backend }) => backend.isAvailable)
      .map(({ listings }) => listings.peek(client))
    const listings = known.filter((listing) => listing !== undefined)
    return this.merge(listings, absentOf(members, client, listings))
  }

  /**
   * Returns the items that all backends offered when they were last listed for a client. Includes backends that are
   * down.
   */
  lastKnown(members: ReadonlyMap<string, AggregatedBackend>, client: OperationClient): Catalog {
    return this.merge([...members.values()].flatMap(({ listings }) => listings.peek(client) ?? []))
  }

  /** Returns the catalogs in use, for the status report. */
  catalogs(): IterableIterator<Catalog> {
    return this.#catalogs.values()
  }

  /**
   * Merges listings into a catalog. `down` contains the last listings of backends that are down. Only workflows use
   * these listings.
   */
  merge(listings: readonly Listing[], down: readonly Listing[] = []): Catalog {
    const absent = this.#compose ? down : []
    const key = `${keyOfListings(listings)};${keyOfListings(absent)}`
    const known = this.#catalogs.get(key)
    if (known) {
      this.#catalogs.delete(key)
      this.#catalogs.set(key, known)
      return known
    }
    const catalog = new Catalog(
      listings.map((listing) => this.#visibleListing(listing)),
      this.#aggregation,
      this.#compose,
      this.#reserved,
      absent.map((listing) => this.#visibleListing(listing)),
    )
    this.#catalogs.set(key, catalog)
    if (this.#catalogs.size > maxCatalogs) {
      const [oldest] = this.#catalogs.keys()
      if (oldest !== undefined) this.#catalogs.delete(oldest)
    }
    this.#onMerged()
    return catalog
  }

  /**
   * Returns the listing as clients see it. Pinning first compares the original items. Guardrails then change the
   * offered items. MCP Apps then receive the addresses that clients use.
   */
  #visibleListing(listing: Listing): Listing {
    const offered = this.#pins?.apply(listing) ?? listing
    const shown = this.#guardrails?.apply(listing, offered) ?? offered
    return this.#apps?.apply(shown) ?? shown
  }
}

function keyOfListings(listings: readonly Listing[]): string {
  return listings
    .map(({ serial }) => serial)
    .sort((a, b) => a - b)
    .join()
}

/** Returns the cached listings of the backends that are not in `present`. */
function absentOf(
  members: ReadonlyMap<string, AggregatedBackend>,
  client: OperationClient,
  present: readonly Listing[],
): readonly Listing[] {
  const names = new Set(present.map(({ backend }) => backend))
  return [...members].flatMap(([name, { listings }]) =>
    names.has(name) ? [] : (listings.peek(client) ?? []),
  )
}

function keyOf(members: ReadonlyMap<string, AggregatedBackend>, client: OperationClient): string {
  let perCaller = false
  for (const { backend, listings } of members.values()) {
    const { keys } = listings
    if (keys.forks.size > 0 && keys.forkOf(client) !== undefined)
      return `session ${client.session?.id ?? ''} ${requesterIdentity(client)}`
    perCaller ||= backend.settings.perCaller
  }
  const { signature } = client.abilities
  return perCaller ? `${signature} ${requesterIdentity(client)}` : signature
}
