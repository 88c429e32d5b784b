/**
 * What one client sees right now: the listings of all backends, merged. Merging is done once per set of listings.
 *
 * A backend that cannot be listed is named in `down`; what that means for the request is the core's business.
 */
import { type Aggregation, prefixedName, byText } from '../../../schemas/index.ts'
import type { Backend } from '../backends/backend.ts'
import { atMost } from '../../net/index.ts'
import { noTelemetry, type Tracer } from '../../observe/index.ts'
import type { OperationClient } from '../model/session.ts'
import { aliasPattern, stemOf } from './names/aliases.ts'
import { Catalog } from './catalog.ts'
import type { Listing } from './listing.ts'
import type { Listings, ViewOptions } from './listings.ts'
import { requesterIdentity } from '../model/identity.ts'
import type { PinBook } from './pinning/book.ts'
import type { Composer } from '../model/catalog/entries.ts'

const maxCatalogs = 128
const maxReady = 1_024
/** How long a view with backends missing may be used again. */
const incompleteMs = 1_000

export interface AggregatedBackend {
  readonly backend: Backend
  readonly listings: Listings
}

export interface View {
  readonly catalog: Catalog
  /** Backends that could not be asked, sorted by name, with what was wrong. */
  readonly down: readonly Lack[]
  /** Backends of which the last lists are shown, because they could not be read again. */
  readonly stale: readonly Lack[]
}

/** What guardrails make of a list. */
export interface ListTreatment {
  /** `offered`: what pinning lets through of the listing. */
  apply(listing: Listing, offered: Listing): Listing
}

interface AskedView extends View {
  /** What the catalog was made of, as it was read. */
  readonly asked: readonly Listing[]
}

/** A backend of which something is missing, and why where that is known. */
interface Lack {
  readonly name: string
  readonly error: Error | undefined
}

interface Asked {
  readonly down: Lack[]
  readonly listings: Listing[]
}

interface Ready {
  readonly view: View
  readonly until: number
}

/** How long somebody who looks for one name waits for backends that have not said anything yet. */
const maxWaitMs = 50
const slowError = new Error('the backend has not answered yet')

export class Views {
  /** True when a call waits for a list whose change a backend has announced, because approved definitions may differ. */
  readonly awaitsAnnounced: boolean
  readonly #aggregation: Aggregation
  readonly #now: () => number
  readonly #tracer: Tracer
  readonly #compose: Composer | undefined
  readonly #onMerged: () => void
  readonly #reserved: ReadonlySet<string>
  readonly #pins: PinBook | undefined
  readonly #marks: ListTreatment | undefined
  /** Views that need no asking, by kind of client. */
  readonly #ready = new Map<string, Ready>()
  /** Insertion order is order of use. */
  readonly #catalogs = new Map<string, Catalog>()

  constructor(
    aggregation: Aggregation,
    now: () => number,
    tracer: Tracer = noTelemetry.tracer,
    compose?: Composer,
    /** Told when listings were merged that were not before. */
    onMerged: () => void = () => {},
    /** Names of the tools of the server itself. */
    reserved: ReadonlySet<string> = new Set(),
    pins?: PinBook,
    marks?: ListTreatment,
  ) {
    this.#aggregation = aggregation
    this.#compose = compose
    this.#now = now
    this.#tracer = tracer
    this.#onMerged = onMerged
    this.#reserved = reserved
    this.#pins = pins
    this.awaitsAnnounced = pins?.enabled === true
    this.#marks = marks
  }

  /** What was known may be wrong now. */
  changed(): void {
    this.#ready.clear()
  }

  /** What was made of the listings is wrong now. */
  reset(): void {
    this.#ready.clear()
    this.#catalogs.clear()
  }

  /** Drops what was made of a listing that will not be shown any more. */
  forget(serial: number): void {
    for (const [key, { listings, absent }] of this.#catalogs) {
      if ([...listings, ...absent].some((listing) => listing.serial === serial)) this.#catalogs.delete(key)
    }
  }

  /** The view of a client when nobody has to be asked for it; the usual case. */
  ready(members: ReadonlyMap<string, AggregatedBackend>, client: OperationClient): View | undefined {
    const known = this.#ready.get(keyOf(members, client))
    return known && known.until > this.#now() ? known.view : undefined
  }

  /**
   * Asks all backends side by side; see Listings.get for `waitForFresh`. With `skipSlow`, backends that take long to say
   * something for the first time are left out, where what they offer cannot change what the others do. Never rejects.
   */
  async of(
    members: ReadonlyMap<string, AggregatedBackend>,
    client: OperationClient,
    { waitForFresh, skipSlow = false }: ViewOptions & { readonly skipSlow?: boolean },
  ): Promise<View> {
    return this.#tracer.internal('aggregator.AggregateCapabilities', undefined, async () => {
      const { down, listings } = await this.#tracer.internal(
        'aggregator.QueryAllCapabilities',
        undefined,
        () => this.#ask(members, client, { waitForFresh, skipSlow: skipSlow && this.#independent }),
      )
      const catalog = this.#tracer.internal('aggregator.MergeCapabilities', undefined, () =>
        this.merge(listings, absentOf(members, client, listings)),
      )
      const view = {
        catalog,
        down: down.sort((a, b) => byText(a.name, b.name)),
        stale: listings.flatMap(({ backend: name }) => {
          const error = members.get(name)?.listings.failureOf(client)
          return error ? [{ name, error }] : []
        }),
      }
      if (view.down.every(({ error }) => error !== slowError))
        this.#keep(members, client, { ...view, asked: listings })
      return view
    })
  }

  /** True when a name of the catalog could be one of this backend's, as far as names tell. */
  mayOwn(backend: string, name: string): boolean {
    const { conflictResolutionConfig, maxToolNameLength } = this.#aggregation
    if (!this.#independent) return true
    const prefix = prefixedName(conflictResolutionConfig.prefixFormat, backend, '')
    return (
      name.startsWith(prefix) ||
      (aliasPattern(maxToolNameLength).test(name) && name.startsWith(stemOf(prefix, maxToolNameLength)))
    )
  }

  /** True when no backend can take a name away from another. */
  get #independent(): boolean {
    const { conflictResolution, conflictResolutionConfig } = this.#aggregation
    return conflictResolution === 'prefix' && conflictResolutionConfig.prefixFormat.includes('{workload}')
  }

  async #ask(
    members: ReadonlyMap<string, AggregatedBackend>,
    client: OperationClient,
    { waitForFresh, skipSlow }: ViewOptions & { readonly skipSlow: boolean },
  ): Promise<Asked> {
    const down: Lack[] = []
    const listings: Listing[] = []
    const pending: Promise<void>[] = []
    for (const { backend, listings: lists } of members.values()) {
      const { name } = backend
      if (!backend.health.monitor.available(name)) {
        down.push({ name, error: undefined })
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
    if (skipSlow) await atMost(maxWaitMs, all, () => {})
    else await all
    const responded = new Set([...listings.map(({ backend }) => backend), ...down.map(({ name }) => name)])
    const slow = [...members.keys()].filter((name) => !responded.has(name))
    return { down: [...down, ...slow.map((name) => ({ name, error: slowError }))], listings: [...listings] }
  }

  /** For later, unless one of its lists was replaced while another one was waited for. */
  #keep(
    members: ReadonlyMap<string, AggregatedBackend>,
    client: OperationClient,
    { asked, ...view }: AskedView,
  ): void {
    for (const listing of asked) if (members.get(listing.backend)?.listings.peek(client) !== listing) return
    let until = view.down.length > 0 ? this.#now() + incompleteMs : Number.POSITIVE_INFINITY
    for (const [name, { backend, listings }] of members) {
      if (backend.health.monitor.available(name)) until = Math.min(until, listings.freshUntil(client))
    }
    if (this.#ready.size >= maxReady) this.#ready.clear()
    this.#ready.set(keyOf(members, client), { view, until })
  }

  /** What is known without asking: for comparing with what a client has seen. */
  peek(members: ReadonlyMap<string, AggregatedBackend>, client: OperationClient): Catalog {
    const ready = this.ready(members, client)
    if (ready) return ready.catalog
    const known = [...members.values()]
      .filter(({ backend: { health, name } }) => health.monitor.available(name))
      .map(({ listings }) => listings.peek(client))
    const listings = known.filter((listing) => listing !== undefined)
    return this.merge(listings, absentOf(members, client, listings))
  }

  /** What all backends offered when they were last listed for a client, those that are down included. */
  known(members: ReadonlyMap<string, AggregatedBackend>, client: OperationClient): Catalog {
    return this.merge([...members.values()].flatMap(({ listings }) => listings.peek(client) ?? []))
  }

  /** The catalogs in use, for the status report. */
  catalogs(): IterableIterator<Catalog> {
    return this.#catalogs.values()
  }

  /** `down` contains the last listings of backends that are down. Only workflows use them. */
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
      listings.map((listing) => this.#shown(listing)),
      this.#aggregation,
      this.#compose,
      this.#reserved,
      absent.map((listing) => this.#shown(listing)),
    )
    this.#catalogs.set(key, catalog)
    if (this.#catalogs.size > maxCatalogs) {
      const [oldest] = this.#catalogs.keys()
      if (oldest !== undefined) this.#catalogs.delete(oldest)
    }
    this.#onMerged()
    return catalog
  }

  /** Pinning compares what the backend sent; clients see what guardrails have made of what it lets through. */
  #shown(listing: Listing): Listing {
    const offered = this.#pins?.apply(listing) ?? listing
    return this.#marks?.apply(listing, offered) ?? offered
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
