/**
 * The locks in force: compiled in the background when they change, applied to listings, and reported.
 *
 * A changed lock takes effect once it is compiled; until then the one before stays in force, and a backend that is listed
 * for the first time waits. Nothing is ever opened by a lock that is not ready.
 */
import { createHash } from 'node:crypto'
import type { Pinning, RuntimeToolLock } from '../../../../schemas/index.ts'
import type { Listing } from '../listing.ts'
import { hasFailedLists } from '../listing.ts'
import { applyPins, closedBy, type PinSettings, settingsFor } from './apply.ts'
import { compileLocks } from './compile.ts'
import { forReview } from './diff.ts'
import { evaluate, type Evaluation, offeredBy } from './evaluate.ts'
import type { PinKind, PinRules } from '../../model/catalog/pinning.ts'
import { FirstSeen, type LockKeeper } from './first-seen.ts'
import { detailOf, gather, type PinDetail, type PinReport } from './report.ts'
import { type CompiledLock, pinKey, type PinState } from './types.ts'

export interface BookParts {
  /** A changed lock is in force. */
  readonly onReady: (backend: string) => void
  /** Stores locks of backends that have none, where `noLock` is pin. */
  readonly keeper?: LockKeeper | undefined
  /** Told when such a lock was written. */
  readonly onWritten?: (backend: string, listing: Listing) => void
}

export interface PinningConfig {
  readonly pinning?: Pinning | undefined
  readonly toolLocks?: readonly RuntimeToolLock[] | undefined
}

interface Held {
  readonly digest: string
  readonly lock: CompiledLock
}

interface Known {
  readonly lock: CompiledLock
  readonly evaluation: Evaluation
}

/** A backend, and all listings that are known of it. */
export interface SeenBackend {
  readonly backend: string
  readonly listings: readonly Listing[]
  /** It may show callers different things. */
  readonly perCaller: boolean
}

interface KnownReport {
  readonly lock: CompiledLock | undefined
  readonly pinning: Pinning
  readonly seen: SeenBackend
  readonly report: PinReport
}

export class PinBook {
  readonly #onReady: (backend: string) => void
  readonly #firstSeen: FirstSeen
  #pinning: Pinning | undefined
  readonly #locks = new Map<string, Held>()
  readonly #compiling = new Map<string, { readonly digest: string; readonly done: Promise<void> }>()
  /** What listings were found to be; they are immutable. */
  readonly #evaluations = new WeakMap<Listing, Known>()
  readonly #reports = new Map<string, KnownReport>()

  constructor({ onReady, keeper, onWritten = () => {} }: BookParts) {
    this.#onReady = onReady
    this.#firstSeen = new FirstSeen(keeper, onWritten)
  }

  get enabled(): boolean {
    return this.#pinning !== undefined
  }

  /** Takes a configuration; changed locks are compiled. Returns the backends that have no lock any more. */
  replace({ pinning, toolLocks = [] }: PinningConfig): readonly string[] {
    this.#pinning = pinning
    const given = new Set(toolLocks.map(({ backend }) => backend))
    const stored = this.#firstSeen.locks.filter(({ backend }) => !given.has(backend))
    const wanted = Map.groupBy(pinning ? [...toolLocks, ...stored] : [], ({ backend }) => backend)
    const known = new Set([...this.#locks.keys(), ...this.#compiling.keys()])
    const unlocked = [...known].filter((name) => !wanted.has(name))
    for (const name of unlocked) {
      this.#locks.delete(name)
      this.#compiling.delete(name)
      this.#reports.delete(name)
    }
    for (const [backend, locks] of wanted) this.#compile(backend, locks)
    return unlocked
  }

  #compile(backend: string, locks: readonly RuntimeToolLock[]): void {
    const digest = digestOf(locks)
    const present = this.#compiling.get(backend)?.digest ?? this.#locks.get(backend)?.digest
    if (present === digest) return
    const done = compileLocks(backend, locks).then((lock) => {
      if (this.#compiling.get(backend)?.digest !== digest) return
      this.#compiling.delete(backend)
      this.#locks.set(backend, { digest, lock })
      this.#onReady(backend)
    })
    this.#compiling.set(backend, { digest, done })
  }

  /**
   * Settles once the lock of a backend can be applied for the first time. Where locks are made of what is seen first, that of
   * this listing is made now; false: that failed, and what is read next may do better.
   */
  async ready(backend: string, listing: Listing): Promise<boolean> {
    await this.#compiled(backend)
    if (this.#pinning?.noLock !== 'pin' || this.#locks.has(backend)) return true
    // The lock would lack the items of the lists that failed.
    if (hasFailedLists(listing)) return false
    const locks = await this.#firstSeen.keep(backend, listing)
    // A lock of the configuration may have come meanwhile: it goes before.
    if (locks && !this.#locks.has(backend) && !this.#compiling.has(backend)) this.#compile(backend, locks)
    await this.#compiled(backend)
    return this.#locks.has(backend) || this.#firstSeen.failureOf(backend) === undefined
  }

  async #compiled(backend: string): Promise<void> {
    while (!this.#locks.has(backend)) {
      const compiling = this.#compiling.get(backend)
      if (!compiling) return
      await compiling.done
    }
  }

  /** A changed lock of this backend is not in force yet. */
  isChanging(backend: string): boolean {
    return this.#compiling.has(backend)
  }

  /** What may be offered of a listing. */
  apply(listing: Listing): Listing {
    const pinning = this.#pinning
    if (!pinning) return listing
    const lock = this.#locks.get(listing.backend)?.lock
    const settings = settingsFor(pinning, lock)
    const closed = closedBy(settings, lock)
    const evaluation = lock && !settings.invalid ? this.#evaluationOf(listing, lock) : undefined
    return applyPins(listing, evaluation, settings, closed)
  }

  #evaluationOf(listing: Listing, lock: CompiledLock): Evaluation {
    const known = this.#evaluations.get(listing)
    if (known?.lock === lock) return known.evaluation
    const evaluation = evaluate(offeredBy(listing), lock)
    this.#evaluations.set(listing, { lock, evaluation })
    return evaluation
  }

  /** Drops what is remembered of backends that are not there any more. */
  keepReports(backends: ReadonlyMap<string, unknown>): void {
    for (const name of this.#reports.keys()) if (!backends.has(name)) this.#reports.delete(name)
  }

  /** How a backend compares with its lock; undefined while pinning is off. */
  report(seen: SeenBackend): PinReport | undefined {
    const pinning = this.#pinning
    if (!pinning) return undefined
    const { backend, listings, perCaller } = seen
    const lock = this.#locks.get(backend)?.lock
    const known = this.#reports.get(backend)
    if (
      known &&
      known.lock === lock &&
      known.pinning === pinning &&
      !this.#firstSeen.failureOf(backend) &&
      isSame(known.seen, seen)
    )
      return known.report
    const settings = settingsFor(pinning, lock)
    const failure = lock ? lock.failure : this.#firstSeen.failureOf(backend)
    const found = gather(backend, this.#evaluationsOf(seen), { perCaller })
    const report: PinReport = {
      backend,
      lock: failure !== undefined ? 'invalid' : lock ? 'ok' : 'missing',
      locks: lock?.names ?? [],
      failure,
      closed: pinning.noLock === 'block' && !lock && !this.#compiling.has(backend),
      observed: listings.length > 0,
      quiet: isQuiet(settings, found.counts),
      ...found,
    }
    this.#reports.set(backend, { lock, pinning, seen, report })
    return report
  }

  /** One difference in full, with both definitions; undefined when there is none of that name. */
  detail(seen: SeenBackend, kind: PinKind, name: string): PinDetail | undefined {
    const wanted = { perCaller: seen.perCaller, kind, name }
    return detailOf(seen.backend, this.#evaluationsOf(seen), wanted, forReview)
  }

  #evaluationsOf({ backend, listings }: SeenBackend): readonly Evaluation[] {
    const lock = this.#pinning ? this.#locks.get(backend)?.lock : undefined
    if (!lock || lock.failure !== undefined) return []
    return listings.map((listing) => this.#evaluationOf(listing, lock))
  }

  /** The worst state of what a backend offers under its original name; undefined where nothing is compared. */
  stateOf(seen: SeenBackend, kind: PinKind, original: string): Exclude<PinState, 'removed'> | undefined {
    const states = this.#evaluationsOf(seen).flatMap(
      ({ items }) => items.get(pinKey(kind, original))?.state ?? [],
    )
    return states.find((state) => state !== 'pinned') ?? states[0]
  }
}

function isSame(a: SeenBackend, b: SeenBackend): boolean {
  return (
    a.perCaller === b.perCaller &&
    a.listings.length === b.listings.length &&
    a.listings.every((listing, i) => listing === b.listings[i])
  )
}

/** Every difference that there is, is of a sort that is only observed. */
function isQuiet({ onChanged, onNew, onRemoved }: PinSettings, counts: PinReport['counts']): boolean {
  return (
    (counts.changed === 0 || onChanged === 'observe') &&
    (counts.new === 0 || onNew === 'observe') &&
    (counts.removed === 0 || onRemoved === 'observe')
  )
}

function digestOf(locks: readonly RuntimeToolLock[]): string {
  const hash = createHash('sha256')
  for (const lock of locks) hash.update(JSON.stringify(lock))
  return hash.digest('base64')
}

/** How the items of a backend are digested; undefined while pinning is off. */
export function pinRules({ pinning, toolLocks = [] }: PinningConfig, backend: string): PinRules | undefined {
  if (!pinning) return undefined
  const own = toolLocks.filter((lock) => lock.backend === backend)
  return { ignore: [...new Set(own.flatMap(({ ignore = [] }) => ignore))].sort() }
}
