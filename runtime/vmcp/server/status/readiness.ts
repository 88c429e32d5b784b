/**
 * Determines why a virtual server is not ready. `/readyz` returns the reason.
 *
 * Excluded backends prevent a server from becoming ready, so a rollout with invalid settings does not replace working
 * pods. An excluded backend never revokes readiness, because a reload must not take a running pod out of service.
 * Source: docs/reference/specification/virtual-server.md, "Endpoints", operational.failureHandling.
 */
import { engineAnswers } from '../../../../schemas/cedar/index.ts'
import type { VmcpConfig } from '../../../config/index.ts'
import type { EmbeddedAuthServer } from '../../../incoming/index.ts'
import type { Store } from '../../../store/index.ts'
import { usesEngine } from '../../call/guards.ts'

const key = 'server-was-ready'

export interface VmcpReadinessParts {
  readonly authServer: EmbeddedAuthServer | undefined
  /**
   * Store that the processes of one server share. A restarted worker is treated as ready if its siblings were ready.
   */
  readonly shared: Store | undefined
  readonly config: () => VmcpConfig
  readonly stopping: () => boolean
}

export class VmcpReadiness {
  readonly #parts: VmcpReadinessParts
  #wasReady = false
  #leftOut: string | undefined

  constructor(parts: VmcpReadinessParts) {
    this.#parts = parts
  }

  /**
   * Called after a configuration has been applied. `served` is the number of backends that are set up, regardless of
   * their health.
   */
  onApplied(leftOut: readonly string[], served: number): void {
    const { partialFailureMode } = this.#parts.config().operational.failureHandling
    const isBlocked = leftOut.length > 0 && (partialFailureMode === 'fail' || served === 0)
    if (isBlocked) {
      this.#leftOut = `the configuration of ${leftOut.join(', ')} is invalid; see the problems in /status`
      return
    }
    this.#wasReady = true
    // Without this record, a restarted worker would decide from its own first configuration.
    this.#parts.shared?.set(key, '').catch(() => {})
  }

  /** Returns the reason why the server is not ready. Returns undefined if the server is ready. */
  async notReady(): Promise<string | undefined> {
    const { authServer, config, stopping } = this.#parts
    if (stopping()) return 'shutting_down'
    if (usesEngine(config()) && !engineAnswers()) return 'the policy engine is not responding'
    if (!(await this.#hasBeenReady())) return this.#leftOut
    return (await authServer?.notReady())?.join('; ') || undefined
  }

  async #hasBeenReady(): Promise<boolean> {
    if (!this.#wasReady) {
      const found = await this.#parts.shared?.get(key).catch(() => undefined)
      this.#wasReady ||= found !== undefined
    }
    return this.#wasReady
  }
}
