/** Determines whether a configuration has a single backend, whose names and addresses clients see unchanged. */
import type { ExcludedBackend, VmcpConfig } from '../../../config/index.ts'
import type { Events } from '../../../observe/index.ts'
import type { Listing } from '../../catalog/listing.ts'
import { AppListings } from '../../features/apps/listing.ts'
import type { PageReads } from '../../features/apps/page-reads.ts'

/**
 * Returns the only backend in a configuration, including excluded backends. Returns undefined if there are several
 * backends.
 */
export function onlyBackend(
  { backends = [] }: VmcpConfig,
  invalid: readonly ExcludedBackend[],
): string | undefined {
  const [first, second] = [...backends, ...invalid.filter(({ isUnknown }) => !isUnknown)]
  return second === undefined ? first?.name : undefined
}

/** Returns the names of all backends in a configuration, including excluded backends. */
export function backendNames(
  { backends = [] }: VmcpConfig,
  invalid: readonly ExcludedBackend[],
): ReadonlySet<string> {
  return new Set([...backends, ...invalid].map(({ name }) => name))
}

interface ListingTreatment {
  apply(listing: Listing): Listing
}

/** Returns the treatments as one treatment. */
export function listingTreatment(
  treatments: readonly (ListingTreatment | undefined)[],
): ListingTreatment | undefined {
  const [first, ...others] = treatments.filter((one) => one !== undefined)
  if (!first || others.length === 0) return first
  return { apply: (listing) => others.reduce((shown, next) => next.apply(shown), first.apply(listing)) }
}

/** Returns the treatment of the pages and tools of MCP Apps. Returns undefined if MCP Apps is disabled. */
export function appListings(
  config: VmcpConfig,
  invalid: readonly ExcludedBackend[],
  reads: PageReads,
  events: Events,
): AppListings | undefined {
  const { enabled = true, allowedOrigins, allowedPermissions } = config.extensions?.apps ?? {}
  if (!enabled) return undefined
  const backends = onlyBackend(config, invalid) === undefined ? backendNames(config, invalid) : undefined
  const origins = allowedOrigins && new Set(allowedOrigins.map((origin) => origin.toLowerCase()))
  return new AppListings({ backends, allowedOrigins: origins, allowedPermissions, reads, events })
}
