/** How one backend is at the moment, for everything that tells of it: `/status`, backend health, the report to the cluster. */
import type { ListsState } from './catalog/listings.ts'
import type { BackendHealth } from './health/monitor.ts'

export interface BackendState {
  readonly name: string
  readonly url: string
  readonly transport: string
  readonly authType: string
  /** Revision of the protocol that was last agreed on. */
  readonly revision: string | undefined
  readonly health: BackendHealth
  readonly lists: ListsState
}
