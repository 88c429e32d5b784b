import type { AggregatedBackend } from '../../catalog/views.ts'
import type { ExcludedBackend } from '../../../config/index.ts'
import type { CallCounts } from '../../backends/call-counts.ts'
import type { PinReport } from '../../catalog/pinning/report.ts'
import type { ListsState } from '../../catalog/lists/list-read-reports.ts'
import type { DriftedPage } from '../../features/apps/page-drift.ts'
import { type BackendHealth, unknownHealth } from '../../backends/health/monitor.ts'

/** The current state of a backend, for `/status`, backend health and the report to the cluster. */
export interface BackendState {
  readonly name: string
  /** URL of the backend. Undefined for an excluded backend. */
  readonly url: string | undefined
  readonly transport: string
  readonly authType: string
  /** The most recently negotiated protocol revision. */
  readonly revision: string | undefined
  /**
   * Time at which the first certificate in the backend's bundle expires, in milliseconds since the epoch. Undefined if
   * there is no bundle.
   */
  readonly caEndsAt: number | undefined
  /** The era that the backend uses. */
  readonly era: string
  readonly health: BackendHealth
  readonly calls: CallCounts
  readonly lists: ListsState
  /** Comparison of the backend's items with the approved items. Undefined while pinning is disabled. */
  readonly pins?: PinReport | undefined
  /** Pages that differ from the lock. Undefined if no lock of the backend contains pages. */
  readonly pages?: readonly DriftedPage[] | undefined
  /** The address where the user must sign in. Does not contain the key. Undefined if no sign-in is required. */
  readonly signInAt?: string | undefined
  /** The reasons why the backend is not served, as `field: rule` lines. Undefined if the backend is served. */
  readonly excluded: readonly string[] | undefined
}

/** Returns the state of a backend in use. `known` contains the values that other components track. */
export function servedState(
  { backend: { settings, revision, era, counter }, listings }: AggregatedBackend,
  known: Pick<BackendState, 'health' | 'pins' | 'pages' | 'signInAt'>,
): BackendState {
  return {
    name: settings.name,
    url: settings.target.url.href,
    transport: settings.transport,
    authType: settings.authType,
    revision,
    caEndsAt: settings.caEndsAt?.(),
    era,
    calls: counter.counts,
    lists: listings.state,
    excluded: undefined,
    ...known,
  }
}

/** Returns the state of a backend that cannot be set up. */
export function excludedState({ name, problems }: ExcludedBackend): BackendState {
  return {
    name,
    url: undefined,
    transport: 'unknown',
    authType: 'unknown',
    revision: undefined,
    era: 'unknown',
    caEndsAt: undefined,
    calls: { calls: 0, failed: 0, latencyMs: undefined },
    health: { ...unknownHealth, status: 'unhealthy', lastErrorCategory: 'configuration_invalid' },
    lists: { staleSince: undefined, repaired: 0, leftOut: 0 },
    excluded: problems,
  }
}
