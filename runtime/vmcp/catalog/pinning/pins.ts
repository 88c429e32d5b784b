/**
 * Pinning of all backends of a server: the locks in force, and the word about what differs.
 *
 * Looks at the listings a moment after they changed, once for a burst of changes.
 */
import type { Events } from '../../../observe/index.ts'
import type { Listing } from '../listing.ts'
import type { LockKeeper } from './first-seen.ts'
import { PinBook, type PinningConfig, type SeenBackend } from './book.ts'
import type { PinKind } from '../../model/catalog/pinning.ts'
import type { PinDetail, PinReport } from './report.ts'
import { PinsTold } from './told.ts'
import type { PinState } from './types.ts'

/** What pinning needs of the backends of a server. */
export interface PinnedMember {
  readonly backend: { readonly settings: { readonly perCaller: boolean } }
  readonly listings: { all(): readonly Listing[] }
}

export interface PinsOptions {
  readonly events: Events
  readonly members: () => ReadonlyMap<string, PinnedMember>
  /** A changed lock is in force: clients may see something else. */
  readonly onChange: () => void
  /** Stores locks of backends that have none, where `noLock` is pin. */
  readonly keeper?: LockKeeper | undefined
}

const settleMs = 50

export class Pins {
  readonly book: PinBook
  readonly #options: PinsOptions
  readonly #told: PinsTold
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(options: PinsOptions) {
    this.#options = options
    this.#told = new PinsTold(options.events)
    this.book = new PinBook({
      onReady: () => {
        if (this.#closed) return
        options.onChange()
        this.changed()
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

  /** Takes a configuration. Returns the backends that have no lock any more. */
  replace(config: PinningConfig): readonly string[] {
    const unlocked = this.book.replace(config)
    this.changed()
    return unlocked
  }

  /** Listings or locks changed. */
  changed(): void {
    if (this.#closed || !(this.book.enabled || this.#told.isOpen)) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#told.note(this.reports())
    }, settleMs)
    this.#timer.unref()
  }

  /** Of all backends, sorted by name; empty while pinning is off. */
  reports(): readonly PinReport[] {
    const members = this.#options.members()
    this.book.keepReports(members)
    const names = [...members.keys()].sort()
    return names.flatMap((name) => this.report(name) ?? [])
  }

  report(backend: string): PinReport | undefined {
    const seen = this.#seen(backend)
    return seen && this.book.report(seen)
  }

  /** One difference with both definitions, for those who review it. */
  detail(backend: string, kind: PinKind, name: string): PinDetail | undefined {
    const seen = this.#seen(backend)
    return seen && this.book.detail(seen, kind, name)
  }

  /** The state of what a backend offers under its own name; undefined where nothing is compared. */
  pinState(backend: string, kind: PinKind, original: string): Exclude<PinState, 'removed'> | undefined {
    const seen = this.#seen(backend)
    return seen && this.book.stateOf(seen, kind, original)
  }

  /** The backend may show callers different things. */
  isPerCaller(backend: string): boolean {
    return this.#seen(backend)?.perCaller ?? false
  }

  #seen(backend: string): SeenBackend | undefined {
    const member = this.#options.members().get(backend)
    if (!member) return undefined
    return { backend, listings: member.listings.all(), perCaller: member.backend.settings.perCaller }
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
  }
}
