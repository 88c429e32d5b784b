/**
 * Pinning for all of a server's backends. Manages the active locks and reports differences.
 *
 * Listings are evaluated shortly after they change, once for each burst of changes.
 */
import type { Events } from '../../../observe/index.ts'
import type { Listing } from '../listing.ts'
import type { LockKeeper } from './first-seen.ts'
import { ActiveLocks, type PinningConfig, type ListedBackend } from './active-locks.ts'
import type { PinKind } from '../../model/catalog/pinning.ts'
import type { PinDetail, PinReport } from './report.ts'
import { PinReporter } from './pin-reporter.ts'
import type { PinState } from './types.ts'

/** The parts of a backend that pinning requires. */
export interface PinnedMember {
  readonly backend: { readonly settings: { readonly perCaller: boolean } }
  readonly listings: { all(): readonly Listing[] }
}

export interface PinsOptions {
  readonly events: Events
  readonly members: () => ReadonlyMap<string, PinnedMember>
  /** Called when a changed lock takes effect. The change may affect what clients see. */
  readonly onChange: () => void
  /** Stores locks for backends that have no lock. Used if `noLock` is `pin`. */
  readonly keeper?: LockKeeper | undefined
}

const settleMs = 50

export class Pins {
  readonly locks: ActiveLocks
  readonly #options: PinsOptions
  readonly #reporter: PinReporter
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: PinsOptions) {
    this.#options = options
    this.#reporter = new PinReporter(options.events)
    this.locks = new ActiveLocks({
      onReady: () => {
        if (this.#closed) return
        options.onChange()
        this.scheduleReport()
      },
      keeper: options.keeper,
      onWritten: (backend, { tools, prompts, templates }) =>
        options.events.emit('tool_lock_written', {
          backend,
          tools: tools.length,
          prompts: prompts.length,
          templates: templates.length,
        }),
    })
  }

  /** Applies a configuration. Returns the backends that no longer have a lock. */
  replace(config: PinningConfig): readonly string[] {
    const unlocked = this.locks.replace(config)
    this.scheduleReport()
    return unlocked
  }

  /** Schedules a report. The server calls this method when listings or locks have changed. */
  scheduleReport(): void {
    if (this.#closed || !(this.locks.enabled || this.#reporter.isOpen)) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#reporter.update(this.reports())
    }, settleMs)
    this.#timer.unref()
  }

  /** Returns the reports of all backends, sorted by name. Returns an empty list while pinning is off. */
  reports(): readonly PinReport[] {
    const members = this.#options.members()
    this.locks.keepReports(members)
    const names = [...members.keys()].sort()
    return names.flatMap((name) => this.report(name) ?? [])
  }

  report(backend: string): PinReport | undefined {
    const seen = this.#listedBackend(backend)
    return seen && this.locks.report(seen)
  }

  /** Returns a difference that includes both definitions, for reviewers. */
  detail(backend: string, kind: PinKind, name: string): PinDetail | undefined {
    const seen = this.#listedBackend(backend)
    return seen && this.locks.detail(seen, kind, name)
  }

  /** Returns the state of the item with this original name. Returns undefined if nothing is compared. */
  pinState(backend: string, kind: PinKind, original: string): Exclude<PinState, 'removed'> | undefined {
    const seen = this.#listedBackend(backend)
    return seen && this.locks.stateOf(seen, kind, original)
  }

  /** True if the backend may return different items to different callers. */
  isPerCaller(backend: string): boolean {
    return this.#listedBackend(backend)?.perCaller ?? false
  }

  #listedBackend(backend: string): ListedBackend | undefined {
    const member = this.#options.members().get(backend)
    if (!member) return undefined
    return { backend, listings: member.listings.all(), perCaller: member.backend.settings.perCaller }
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }
}
