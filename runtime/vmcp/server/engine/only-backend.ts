/** Determines whether a configuration has a single backend, whose names and addresses clients see unchanged. */
import type { ExcludedBackend, VmcpConfig } from '../../../config/index.ts'
import type { Events } from '../../../observe/index.ts'
import { AppListings } from '../../features/apps/listing.ts'
import { PageDrift } from '../../features/apps/page-drift.ts'
import { PageReads } from '../../features/apps/page-reads.ts'
import type { Clock } from '../../model/time/clock.ts'

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

/** What is known about pages, which a reload keeps. */
export interface KnownPages {
  readonly reads: PageReads
  readonly drift: PageDrift
}

export function makeKnownPages(options: { readonly events: Events; readonly clock: Clock }): KnownPages {
  const { now } = options.clock
  return { reads: new PageReads(now), drift: new PageDrift(options.events, now) }
}

/** Returns the treatment of the pages and tools of MCP Apps. Returns undefined if MCP Apps is disabled. */
export function appListings(
  config: VmcpConfig,
  invalid: readonly ExcludedBackend[],
  pages: KnownPages,
  events: Events,
): AppListings | undefined {
  const { enabled = true, allowedOrigins, allowedPermissions } = config.extensions?.apps ?? {}
  if (!enabled) return undefined
  const names = [...(config.backends ?? []), ...invalid].map(({ name }) => name)
  const backends = onlyBackend(config, invalid) === undefined ? new Set(names) : undefined
  const origins = allowedOrigins && new Set(allowedOrigins.map((origin) => origin.toLowerCase()))
  return new AppListings({ backends, allowedOrigins: origins, allowedPermissions, ...pages, events })
}
