/**
 * Reports certificates in backends' CA bundles that have expired or will expire within two weeks. Checks every hour.
 */
import type { Events } from '../../../observe/index.ts'
import type { BackendState } from './backend-state.ts'
import type { Clock } from '../../model/time/clock.ts'

const soonMs = 14 * 24 * 60 * 60_000
const periodMs = 60 * 60_000

export interface BundleExpiryOptions {
  readonly backends: () => readonly Pick<BackendState, 'name' | 'caEndsAt'>[]
  readonly clock: Clock
  readonly events: Events
}

export class BundleExpiry {
  readonly #options: BundleExpiryOptions
  /** Backends that have an open problem. */
  #reported: ReadonlySet<string> = new Set()
  #cancel: (() => void) | undefined

  constructor(options: BundleExpiryOptions) {
    this.#options = options
  }

  /** Checks now, and then every hour. */
  check(): void {
    const { backends, clock, events } = this.#options
    const now = clock.now()
    const ending = backends().flatMap(({ name, caEndsAt }) =>
      caEndsAt !== undefined && caEndsAt - now < soonMs ? [{ name, endsAt: caEndsAt }] : [],
    )
    for (const { name, endsAt } of ending)
      events.emit('certificate_expiring', {
        backend: name,
        ends: new Date(endsAt).toISOString(),
        expired: endsAt <= now,
      })
    const names = new Set(ending.map(({ name }) => name))
    for (const name of this.#reported)
      if (!names.has(name)) events.emit('certificate_expiring', { backend: name })
    this.#reported = names
    this.#cancel?.()
    this.#cancel = clock.after(periodMs, () => this.check())
  }

  close(): void {
    this.#cancel?.()
  }
}
