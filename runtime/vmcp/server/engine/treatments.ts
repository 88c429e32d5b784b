/** The features that change the addresses in lists and results, as one configuration enables them. */
import type { ExcludedBackend, VmcpConfig } from '../../../config/index.ts'
import type { Events } from '../../../observe/index.ts'
import type { Listing } from '../../catalog/listing.ts'
import type { ActiveLocks } from '../../catalog/pinning/active-locks.ts'
import { AppListings } from '../../features/apps/listing.ts'
import type { PageDrift } from '../../features/apps/page-drift.ts'
import type { PageReads } from '../../features/apps/page-reads.ts'
import { makeSkillShelf, type SkillShelf } from '../../features/skills/index.ts'
import type { Clock } from '../../model/time/clock.ts'
import { backendNames, onlyBackend } from './only-backend.ts'

interface ListingTreatment {
  apply(listing: Listing): Listing
}

export interface Treatments {
  /** The only backend. Undefined if there are several backends. */
  readonly onlyBackend: string | undefined
  /** Undefined if MCP Apps is disabled. */
  readonly apps: AppListings | undefined
  /** Undefined if skills are disabled. */
  readonly skills: SkillShelf | undefined
}

export interface TreatmentParts {
  /** Recorded reads and differences of MCP Apps pages. */
  readonly pages: { readonly reads: PageReads; readonly drift: PageDrift }
  readonly events: Events
  readonly clock: Clock
  readonly locks: Pick<ActiveLocks, 'skillRefusal'>
}

export function makeTreatments(
  config: VmcpConfig,
  invalid: readonly ExcludedBackend[],
  { pages, events, clock, locks }: TreatmentParts,
): Treatments {
  const backends = backendNames(config, invalid)
  const only = onlyBackend(config, invalid)
  return {
    onlyBackend: only,
    apps: appListings(config, only === undefined ? backends : undefined, { pages, events }),
    skills: makeSkillShelf(config, {
      backends,
      onlyBackend: only,
      events,
      now: clock.now,
      refusalOf: (...skill) => locks.skillRefusal(...skill),
    }),
  }
}

function appListings(
  config: VmcpConfig,
  backends: ReadonlySet<string> | undefined,
  { pages, events }: Pick<TreatmentParts, 'pages' | 'events'>,
): AppListings | undefined {
  const { enabled = true, allowedOrigins, allowedPermissions } = config.extensions?.apps ?? {}
  if (!enabled) {
    // Without MCP Apps, pages are not compared.
    pages.drift.setLocks(new Map())
    return undefined
  }
  const origins = allowedOrigins && new Set(allowedOrigins.map((origin) => origin.toLowerCase()))
  return new AppListings({ backends, allowedOrigins: origins, allowedPermissions, ...pages, events })
}

/** Returns the treatment of listings. Each feature receives the listing that the previous feature returned. */
export function listingTreatment({
  apps,
  skills,
}: Omit<Treatments, 'onlyBackend'>): ListingTreatment | undefined {
  const listings = skills?.listings
  if (!apps || !listings) return apps ?? listings
  return { apply: (listing) => listings.apply(apps.apply(listing)) }
}

/** Returns the params of `notifications/resources/updated` with each address that clients may have used. */
export function shownUpdates(
  { apps, skills }: Treatments,
  backend: string,
  params: Buffer,
): readonly Buffer[] {
  const named = skills?.listings.updateOf(backend, params) ?? params
  return apps?.updatesOf(backend, named) ?? [named]
}
