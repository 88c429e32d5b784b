import type { AuthServerFacts } from '../../../incoming/index.ts'
import type { Log } from '../../../net/index.ts'
import type { UpstreamTokens } from '../../../outgoing/index.ts'
import type { Events } from '../../../observe/index.ts'
import type { PerformStep } from '../../call/links.ts'
import type { LockKeeper } from '../../catalog/pinning/first-seen.ts'
import type { Clock } from '../../model/time/clock.ts'
import type { Observation } from '../observation.ts'
import type { Watcher } from '../../clients/session-life.ts'

/** The components and settings that the server provides to its backend side. */
export interface EngineOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly upstreamTokens: UpstreamTokens | undefined
  /** Settings for the embedded authorization server. Undefined if no authorization server is embedded. */
  readonly authServer: AuthServerFacts | undefined
  /** Returns this server's address. */
  readonly origin: () => string
  /** Raw JSON of Gatehouse's `Implementation`, as backends see it. */
  readonly info: string
  readonly clock: Clock
  readonly log: Log
  readonly events: Events
  /** Returns the clients that are notified of changed lists. */
  readonly watchers: () => Iterable<Watcher>
  /**
   * Called after a configuration has been applied, with the names of the excluded backends and the number of configured
   * backends.
   */
  readonly onApplied?: ((leftOut: readonly string[], served: number) => void) | undefined
  /** Called when a change should be reported to the cluster. */
  readonly onChange: () => void
  /**
   * Returns key material that the replicas share. While this function returns undefined, sealed values are valid only
   * in this process.
   */
  readonly stateSecret: () => string | undefined
  /** Performs a workflow step. */
  readonly performStep: PerformStep
  /** Stores locks for backends that have no lock. Used if `pinning.noLock` is `pin`. */
  readonly lockKeeper?: LockKeeper | undefined
  readonly observation: Pick<Observation, 'audit' | 'backends' | 'telemetry' | 'mask'>
}
