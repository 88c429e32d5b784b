/**
 * The locks in force. Compiles changed locks in the background, applies locks to listings, and reports differences.
 *
 * A changed lock takes effect once it has been compiled. Until then, the previous lock stays active, and a newly listed
 * backend waits. A lock that is not ready never allows anything.
 */
import { createHash } from 'node:crypto'
import type { Pinning, RuntimeToolLock } from '../../../../schemas/index.ts'
import type { Listing } from '../listing.ts'
import { hasFailedLists } from '../listing.ts'
import { applyPins, closingReason, type PinSettings, settingsFor } from './apply.ts'
import { compileLocks } from './compile.ts'
import { digestsOf } from './digest.ts'
import { forReview } from './diff.ts'
import { evaluate, type Evaluation, pinnableItems } from './evaluate.ts'
import type { PinKind, PinReason, PinRules } from '../../model/catalog/pinning.ts'
import { FirstSeen, type LockKeeper } from './first-seen.ts'
import { detailOf, summarize, type PinDetail, type PinReport } from './report.ts'
import { type CompiledLock, pinKey, type PinState } from './types.ts'

export interface ActiveLocksParts {
  /** Called when a changed lock takes effect. */
  readonly onReady: (backend: string) => void
  /** Stores locks for backends that have no lock. Used if `noLock` is `pin`. */
  readonly keeper?: LockKeeper | undefined
  /** Called when a lock has been stored for a backend that had no lock. */
  readonly onWritten?: (backend: string, listing: Listing) => void
}

export interface PinningConfig {
  readonly pinning?: Pinning | undefined
  readonly toolLocks?: readonly RuntimeToolLock[] | undefined
}

interface StoredLock {
  readonly digest: string
  readonly lock: CompiledLock
}

interface KnownEvaluation {
  readonly lock: CompiledLock
  readonly evaluation: Evaluation
}

/** A backend and all its known listings. */
export interface ListedBackend {
  readonly backend: string
  readonly listings: readonly Listing[]
  /** True if the backend may return different items to different callers. */
  readonly perCaller: boolean
}

interface KnownReport {
  readonly lock: CompiledLock | undefined
  readonly pinning: Pinning
  readonly seen: ListedBackend
  readonly report: PinReport
}

export class ActiveLocks {
  readonly #onReady: (backend: string) => void
  readonly #firstSeen: FirstSeen
  #pinning: Pinning | undefined
  readonly #locks = new Map<string, StoredLock>()
  readonly #compiling = new Map<string, { readonly digest: string; readonly done: Promise<void> }>()
  /** Evaluations, keyed by immutable listings. */
  readonly #evaluations = new WeakMap<Listing, KnownEvaluation>()
  readonly #reports = new Map<string, KnownReport>()

  constructor({ onReady, keeper, onWritten = () => {} }: ActiveLocksParts) {
    this.#onReady = onReady
    this.#firstSeen = new FirstSeen(keeper, onWritten)
  }

  get enabled(): boolean {
    return this.#pinning !== undefined
  }

  /** Applies a configuration and compiles changed locks. Returns the backends that no longer have a lock. */
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
   * Resolves as soon as a backend's lock can be applied for the first time. When locks are created on first use,
   * creates the lock from this listing. Returns false if the lock could not be created but the next read may succeed.
   */
  async ready(backend: string, listing: Listing): Promise<boolean> {
    await this.#waitForCompilation(backend)
    if (this.#pinning?.noLock !== 'pin' || this.#locks.has(backend)) return true
    // The lock would not contain the items in the failed lists.
    if (hasFailedLists(listing)) return false
    const locks = await this.#firstSeen.keep(backend, listing)
    // The configuration may have supplied a lock in the meantime. That lock takes precedence.
    if (locks && !this.#locks.has(backend) && !this.#compiling.has(backend)) this.#compile(backend, locks)
    await this.#waitForCompilation(backend)
    return this.#locks.has(backend) || this.#firstSeen.failureOf(backend) === undefined
  }

  async #waitForCompilation(backend: string): Promise<void> {
    while (!this.#locks.has(backend)) {
      const compiling = this.#compiling.get(backend)
      if (!compiling) return
      await compiling.done
    }
  }

  /** True while a changed lock for this backend is not yet active. */
  isChanging(backend: string): boolean {
    return this.#compiling.has(backend)
  }

  /** Returns the part of a listing that is offered. */
  apply(listing: Listing): Listing {
    const pinning = this.#pinning
    if (!pinning) return listing
    const lock = this.#locks.get(listing.backend)?.lock
    const settings = settingsFor(pinning, lock)
    const closed = closingReason(settings, lock)
    const evaluation = lock && !settings.invalid ? this.#evaluationOf(listing, lock) : undefined
    return applyPins(listing, evaluation, settings, closed)
  }

  /**
   * Resolves to the reason why a skill is refused, or to undefined. `uri` is the backend's URI, and `json` the entry as
   * the backend sent it. An old skill cannot be served instead of a changed skill, so `freeze` refuses it, as `block`
   * does.
   */
  async skillRefusal(backend: string, uri: string, json: Buffer): Promise<PinReason | undefined> {
    const pinning = this.#pinning
    if (!pinning) return undefined
    await this.#waitForCompilation(backend)
    const lock = this.#locks.get(backend)?.lock
    const settings = settingsFor(pinning, lock)
    const closed = closingReason(settings, lock)
    if (closed || !lock?.skills) return closed
    const approved = lock.skills.get(pinKey('skill', uri))
    if (!approved) return settings.onNew === 'block' ? 'tool_new' : undefined
    if (settings.onChanged !== 'freeze' && settings.onChanged !== 'block') return undefined
    const { digest } = await digestsOf('skill', json, lock.ignore)
    return approved.forms.some(({ digests }) => digests.digest === digest) ? undefined : 'tool_changed'
  }

  #evaluationOf(listing: Listing, lock: CompiledLock): Evaluation {
    const known = this.#evaluations.get(listing)
    if (known?.lock === lock) return known.evaluation
    const evaluation = evaluate(pinnableItems(listing), lock)
    this.#evaluations.set(listing, { lock, evaluation })
    return evaluation
  }

  /** Drops the cached reports of removed backends. */
  keepReports(backends: ReadonlyMap<string, unknown>): void {
    for (const name of this.#reports.keys()) if (!backends.has(name)) this.#reports.delete(name)
  }

  /** Compares a backend with its lock. Returns undefined if pinning is off. */
  report(seen: ListedBackend): PinReport | undefined {
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
    const found = summarize(backend, this.#evaluationsOf(seen), { perCaller })
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

  /** Returns a difference that includes both definitions. Returns undefined if the item does not differ. */
  detail(seen: ListedBackend, kind: PinKind, name: string): PinDetail | undefined {
    const wanted = { perCaller: seen.perCaller, kind, name }
    return detailOf(seen.backend, this.#evaluationsOf(seen), wanted, forReview)
  }

  #evaluationsOf({ backend, listings }: ListedBackend): readonly Evaluation[] {
    const lock = this.#pinning ? this.#locks.get(backend)?.lock : undefined
    if (!lock || lock.failure !== undefined) return []
    return listings.map((listing) => this.#evaluationOf(listing, lock))
  }

  /** Returns the worst state of the item with this original name. Returns undefined if nothing is compared. */
  stateOf(seen: ListedBackend, kind: PinKind, original: string): Exclude<PinState, 'removed'> | undefined {
    const states = this.#evaluationsOf(seen).flatMap(
      ({ items }) => items.get(pinKey(kind, original))?.state ?? [],
    )
    return states.find((state) => state !== 'pinned') ?? states[0]
  }
}

function isSame(a: ListedBackend, b: ListedBackend): boolean {
  return (
    a.perCaller === b.perCaller &&
    a.listings.length === b.listings.length &&
    a.listings.every((listing, i) => listing === b.listings[i])
  )
}

/** True if the configuration sets the action for all existing differences to `observe`. */
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

/** Returns the digest rules for a backend's items. Returns undefined if pinning is off. */
export function pinRules({ pinning, toolLocks = [] }: PinningConfig, backend: string): PinRules | undefined {
  if (!pinning) return undefined
  const own = toolLocks.filter((lock) => lock.backend === backend)
  return { ignore: [...new Set(own.flatMap(({ ignore = [] }) => ignore))].sort() }
}
