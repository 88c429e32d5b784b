/**
 * The backends that are not served because their settings are invalid. These backends are treated as unavailable
 * wherever backends are listed, called or reported. Gatehouse retries invalid backends, because a mounted file may
 * arrive late.
 */
import { byText } from '../../../../schemas/index.ts'
import type { ExcludedBackend } from '../../../config/index.ts'
import type { Events, Metrics } from '../../../observe/index.ts'
import type { Clock } from '../../model/time/clock.ts'
import { type BackendState, excludedState } from './backend-state.ts'

const retryMs = 30_000

export interface LeftOutBackendsParts {
  readonly events: Events
  readonly metrics: Metrics
  readonly clock: Clock
  /**
   * Sets up the excluded backends whose settings are now valid, then calls `replace`. Returns false if there are no
   * such backends.
   */
  readonly retry: () => boolean
}

export class LeftOutBackends {
  readonly #parts: LeftOutBackendsParts
  #backends: readonly ExcludedBackend[] = []
  #cancelRetry: (() => void) | undefined

  constructor(parts: LeftOutBackendsParts) {
    this.#parts = parts
  }

  /** Names of the excluded backends, sorted. */
  get names(): readonly string[] {
    return this.#backends.map(({ name }) => name)
  }

  get states(): readonly BackendState[] {
    return this.#backends.map(excludedState)
  }

  replace(excluded: readonly ExcludedBackend[]): void {
    const { events, metrics } = this.#parts
    const before = this.names
    this.#backends = excluded.filter(({ isUnknown }) => !isUnknown).sort((a, b) => byText(a.name, b.name))
    const { names } = this
    for (const { name, problems } of this.#backends)
      events.emit('backend_excluded', { backend: name, problems })
    for (const name of before) if (!names.includes(name)) events.emit('backend_included', { backend: name })
    metrics.backendsExcluded(names.length, {})
    this.#retryLater()
  }

  /** Retries now. Returns false if no excluded backend has this name. */
  recheck(name: string): boolean {
    if (!this.names.includes(name)) return false
    this.#parts.retry()
    return true
  }

  #retryLater(): void {
    this.#cancelRetry?.()
    if (this.#backends.length === 0) return
    this.#cancelRetry = this.#parts.clock.after(retryMs, () => {
      if (!this.#parts.retry()) this.#retryLater()
    })
  }

  close(): void {
    this.#cancelRetry?.()
  }
}
