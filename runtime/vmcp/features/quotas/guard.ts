/**
 * Manages the active quotas, and reports them in metrics, events, problems and the audit line. Reports contain the
 * quota's name, but never a user.
 *
 * A problem is open while at least 80% of one of the quota's budgets is used, as seen by this replica. The problem
 * closes at the end of the period.
 */
import type { Quota } from '../../../../schemas/index.ts'
import type { VmcpConfig } from '../../../config/index.ts'
import { annotateQuota, type Events, type Instruments } from '../../../observe/index.ts'
import { makeQuotas, nearShare, type Period, type QuotaEvent, type Quotas } from '../../../policy/index.ts'
import type { Store } from '../../../store/index.ts'
import type { Clock } from '../../model/time/clock.ts'

export interface QuotaGuardParts {
  /** Store for the counters. */
  readonly counters: Store
  /** Namespace for the keys of the counters. */
  readonly namespace: string
  readonly telemetry: Instruments
  readonly events: Events
  readonly clock: Clock
}

/** A quota, and the used fraction of its most heavily used budget in the current period. */
export interface QuotaUsage {
  readonly quota: Quota
  readonly share: number
}

type Level = 'below' | 'near' | 'exhausted'

interface Followed {
  readonly label: string
  readonly endMs: number
  share: number
  level: Level
}

/** Maximum time between two checks for the end of a period. */
const maxWaitMs = 3_600_000

/** Returns the quota settings. Quotas stay in use as long as their settings are unchanged. */
function settingsOf({ name, quotas, costs, incomingAuth: { authz } }: VmcpConfig) {
  const groupClaimName = authz?.type === 'cedar' ? authz.groupClaimName : undefined
  return { name, quotas: quotas ?? [], costs, groupClaimName }
}

/**
 * Returns a configuration's quotas. Returns `before` if the settings are unchanged, and undefined if no quotas are
 * configured.
 */
export function quotaGuard(
  config: VmcpConfig,
  parts: QuotaGuardParts,
  before: QuotaGuard | undefined,
): QuotaGuard | undefined {
  const settings = settingsOf(config)
  if (settings.quotas.length === 0) return undefined
  const text = JSON.stringify(settings)
  return before?.settings === text ? before : new QuotaGuard(text, settings, parts)
}

export class QuotaGuard {
  readonly settings: string
  readonly quotas: Quotas
  readonly #all: readonly Quota[]
  readonly #server: string
  readonly #parts: QuotaGuardParts
  readonly #followed = new Map<string, Followed>()
  #storeDown = false
  #cancel: (() => void) | undefined
  #closed = false

  constructor(settings: string, of: ReturnType<typeof settingsOf>, parts: QuotaGuardParts) {
    this.settings = settings
    this.#parts = parts
    this.#all = of.quotas
    this.#server = of.name
    this.quotas = makeQuotas({
      quotas: of.quotas,
      costs: of.costs,
      groupClaimName: of.groupClaimName,
      store: parts.counters,
      namespace: parts.namespace,
      server: of.name,
      now: parts.clock.now,
      observe: (event) => this.#tell(event),
    })
  }

  /** Returns the usage of each quota. */
  usage(): readonly QuotaUsage[] {
    const now = this.#parts.clock.now()
    return this.#all.map((quota) => {
      const followed = this.#followed.get(quota.name)
      return { quota, share: followed && now < followed.endMs ? followed.share : 0 }
    })
  }

  #tell(event: QuotaEvent): void {
    const { telemetry, events } = this.#parts
    const server = this.#server
    switch (event.kind) {
      case 'used':
        this.#follow(event)
        break
      case 'exceeded':
        this.#exceeded(event)
        break
      case 'full':
        events.emit('quota_memory_full', {})
        break
      case 'fail_open':
        telemetry.metrics.quotaFailOpen(1, { server })
        break
      case 'store_down':
        this.#storeDown = true
        events.emit('quota_store', { up: false, err: event.error })
        break
      case 'store_up':
        this.#storeDown = false
        events.emit('quota_store', { up: true })
        break
      case 'store_error':
        telemetry.metrics.quotaStoreErrors(1, { server, error_type: event.errorType })
        break
      default:
    }
  }

  #follow({ quota, share, period }: Extract<QuotaEvent, { kind: 'used' }>): void {
    const followed = this.#followedIn(quota, period)
    if (!followed || share <= followed.share) return
    followed.share = share
    if (share >= 1) this.#setLevel(quota, followed, 'exhausted')
    else if (share >= nearShare && followed.level === 'below') this.#setLevel(quota, followed, 'near')
  }

  /** Returns undefined for a period that has already ended, because calls may end late. */
  #followedIn(quota: Quota, period: Period): Followed | undefined {
    if (this.#closed || period.endMs <= this.#parts.clock.now()) return undefined
    let followed = this.#followed.get(quota.name)
    if (followed?.label !== period.label) {
      if (followed) this.#setLevel(quota, followed, 'below')
      followed = { label: period.label, endMs: period.endMs, share: 0, level: 'below' }
      this.#followed.set(quota.name, followed)
    }
    return followed
  }

  #exceeded({ quota, enforced }: Extract<QuotaEvent, { kind: 'exceeded' }>): void {
    const { name, per, unit, action } = quota
    const { telemetry, events } = this.#parts
    annotateQuota({ name, enforced })
    events.emit('quota_exceeded', { quota: name, per, unit, enforced })
    telemetry.metrics.quotaExceeded(1, { server: this.#server, quota: name, per, action })
  }

  #setLevel({ name, per, action }: Quota, followed: Followed, level: Level): void {
    if (followed.level === level) return
    followed.level = level
    const until = new Date(followed.endMs).toISOString()
    this.#parts.events.emit('quota_level', {
      quota: name,
      per,
      after: level,
      until,
      blocks: action === 'block',
    })
    if (level !== 'below') this.#endLater()
  }

  /** Closes the problems of periods that have ended, even if there are no further calls. */
  #endLater(): void {
    if (this.#cancel) return
    const { clock } = this.#parts
    const open = [...this.#followed.values()].filter(({ level }) => level !== 'below')
    if (open.length === 0) return
    const next = Math.min(...open.map(({ endMs }) => endMs)) - clock.now()
    this.#cancel = clock.after(Math.min(maxWaitMs, Math.max(1, next)), () => {
      this.#cancel = undefined
      for (const quota of this.#all) {
        const followed = this.#followed.get(quota.name)
        if (followed && clock.now() >= followed.endMs) this.#setLevel(quota, followed, 'below')
      }
      this.#endLater()
    })
  }

  /**
   * Closes the quotas. If `replaced` is true, the quotas are no longer active, so open problems of these quotas are
   * closed too.
   */
  async close({ replaced }: { readonly replaced: boolean }): Promise<void> {
    this.#cancel?.()
    if (replaced) {
      for (const quota of this.#all) {
        const followed = this.#followed.get(quota.name)
        if (followed) this.#setLevel(quota, followed, 'below')
      }
      if (this.#storeDown) this.#parts.events.emit('quota_store', { up: true })
    }
    this.#closed = true
    this.#cancel?.()
    await this.quotas.settled()
  }
}
