/**
 * How one backend is at the moment, for everything that tells of it: `/status`, backend health, the report to the
 * cluster.
 */
import type { ExcludedBackend } from '../../../config/index.ts'
import type { CallCounts } from '../../backends/call-counts.ts'
import type { PinReport } from '../../catalog/pinning/report.ts'
import type { ListsState } from '../../catalog/lists/lists-told.ts'
import { type BackendHealth, unknownHealth } from '../../backends/health/monitor.ts'

export interface BackendState {
  readonly name: string
  /** Undefined for an excluded backend. */
  readonly url: string | undefined
  readonly transport: string
  readonly authType: string
  /** Revision of the protocol that was last agreed on. */
  readonly revision: string | undefined
  /** When the first certificate of its bundle ends, milliseconds since the epoch; undefined without a bundle. */
  readonly caEndsAt: number | undefined
  /** The era that it was found to speak. */
  readonly era: string
  readonly health: BackendHealth
  readonly calls: CallCounts
  readonly lists: ListsState
  /** How its items compare with what was approved; undefined while pinning is off. */
  readonly pins?: PinReport | undefined
  /** Why the backend is not served, as `field: rule` lines; undefined when it is. */
  readonly excluded: readonly string[] | undefined
}

/** The state of a backend that cannot be set up. */
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
