/** What the side towards backends is given by the server that it belongs to. */
import type { AuthServerFacts } from '../../../incoming/index.ts'
import type { Log } from '../../../net/index.ts'
import type { UpstreamTokens } from '../../../outgoing/index.ts'
import type { Events } from '../../../observe/index.ts'
import type { PerformStep } from '../../call/links.ts'
import type { LockKeeper } from '../../catalog/pinning/first-seen.ts'
import type { Clock } from '../../model/time/clock.ts'
import type { Observation } from '../observation.ts'
import type { Watcher } from '../../clients/watcher.ts'

export interface EngineOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly upstreamTokens: UpstreamTokens | undefined
  /** Settings of the embedded authorization server, where there is one. */
  readonly authServer: AuthServerFacts | undefined
  /** Raw JSON of our own `Implementation`, as backends see it. */
  readonly info: string
  readonly clock: Clock
  readonly log: Log
  readonly events: Events
  /** Clients who want to know of changed lists. */
  readonly watchers: () => Iterable<Watcher>
  /**
   * Called after a configuration was applied, with the names of left-out backends and the number of backends set up.
   */
  readonly onApplied?: ((leftOut: readonly string[], served: number) => void) | undefined
  /** Told when something changed that is worth a report. */
  readonly onChange: () => void
  /** Key material shared by replicas; while it answers nothing, what is sealed is good in this process only. */
  readonly stateSecret: () => string | undefined
  /** Performs a step of a workflow. */
  readonly performStep: PerformStep
  /** Stores locks of backends that have none, where `pinning.noLock` is pin. */
  readonly lockKeeper?: LockKeeper | undefined
  readonly observation: Pick<Observation, 'audit' | 'backends' | 'telemetry' | 'mask'>
}
