/**
 * What pinning found out of one backend, over all the listings that clients of it are shown: for `/status`, metrics, the
 * report to the cluster and the console. Plain data.
 *
 * An item counts once, in its worst state. Of a backend that shows callers different things, what one of them misses is
 * not removed: nobody knows what the caller saw who wrote the lock.
 */
import { type DiffLimits, type PartDiff, pinDiff } from './diff.ts'
import type { EvaluatedItem, Evaluation } from './evaluate.ts'
import type { PinKind } from '../../model/catalog/pinning.ts'
import { type Approved, type PinDrift, pinKey, type PinState } from './types.ts'

export type LockState = 'ok' | 'missing' | 'invalid'

export interface PinReport {
  readonly backend: string
  readonly lock: LockState
  /** Names of the MCPToolLocks, where there are any. */
  readonly locks: readonly string[]
  /** Why the lock cannot be used. */
  readonly failure: string | undefined
  /** There is no lock, and nothing of the backend is offered for that. */
  readonly closed: boolean
  readonly counts: Readonly<Record<PinState, number>>
  /** False until the backend was listed. */
  readonly observed: boolean
  /** The items that are not pinned: changed, new and removed ones, by kind and name; at most 1000. */
  readonly drift: readonly PinDrift[]
  /** What differs is only observed, and the log says nothing. */
  readonly quiet: boolean
}

/** A difference with both definitions and what differs between them. */
export interface PinDetail extends PinDrift {
  /** JSON text of what was approved; undefined for a new item. */
  readonly approved: string | undefined
  /** Of what was approved; undefined for a new item. */
  readonly approvedDigest: string | undefined
  /** JSON text of what is offered; undefined for a removed item. */
  readonly offered: string | undefined
  readonly diff: readonly PartDiff[]
}

/** More are counted, and not named. */
const maxDrift = 1_000

/** What was found of one name. */
type Found =
  | { readonly state: 'pinned' | 'new' | 'changed'; readonly item: EvaluatedItem }
  | { readonly state: 'removed'; readonly item: Approved }

/** `perCaller`: the backend shows callers different things. */
export function gather(
  backend: string,
  evaluations: readonly Evaluation[],
  { perCaller }: { readonly perCaller: boolean },
): Pick<PinReport, 'counts' | 'drift'> {
  const worst = worstOf(evaluations, perCaller)
  const counts = { pinned: 0, new: 0, changed: 0, removed: 0 }
  for (const { state } of worst.values()) counts[state]++
  const differing = [...worst.values()].filter(({ state }) => state !== 'pinned')
  const named = differing.sort((a, b) => byKindAndName(a.item, b.item)).slice(0, maxDrift)
  return { counts, drift: named.flatMap((found) => driftOf(backend, found) ?? []) }
}

/** One difference in full; undefined when there is none of that name. */
export function detailOf(
  backend: string,
  evaluations: readonly Evaluation[],
  { perCaller, kind, name }: { readonly perCaller: boolean; readonly kind: PinKind; readonly name: string },
  limits?: DiffLimits,
): PinDetail | undefined {
  const found = worstOf(evaluations, perCaller).get(pinKey(kind, name))
  const drift = found && driftOf(backend, found)
  if (!found || !drift) return undefined
  const form = found.state === 'removed' ? found.item.forms[0] : found.item.form
  const approved = form?.item.json.toString()
  const offered = found.state === 'removed' ? undefined : found.item.json.toString()
  const approvedDigest = form?.digests.digest
  return { ...drift, approved, approvedDigest, offered, diff: pinDiff(kind, approved, offered, limits) }
}

function worstOf(evaluations: readonly Evaluation[], perCaller: boolean): ReadonlyMap<string, Found> {
  const worst = new Map<string, Found>()
  for (const { items } of evaluations) {
    for (const [key, item] of items) {
      const known = worst.get(key)?.state
      if (known === undefined || (known === 'pinned' && item.state !== 'pinned'))
        worst.set(key, { state: item.state, item })
    }
  }
  for (const item of perCaller ? [] : removedFromAll(evaluations))
    worst.set(pinKey(item.kind, item.name), { state: 'removed', item })
  return worst
}

function removedFromAll(evaluations: readonly Evaluation[]): readonly Approved[] {
  const [first, ...more] = evaluations
  const others = more.map(({ removed }) => new Set(removed))
  return (first?.removed ?? []).filter((approved) => others.every((removed) => removed.has(approved)))
}

function driftOf(backend: string, found: Found): PinDrift | undefined {
  if (found.state === 'pinned') return undefined
  const { kind, name } = found.item
  if (found.state === 'removed')
    return { backend, kind, name, state: 'removed', parts: [], digest: found.item.forms[0].digests.digest }
  const { parts, pin, renamedFrom } = found.item
  return {
    backend,
    kind,
    name,
    state: found.state,
    parts,
    digest: pin?.digest ?? '',
    ...(renamedFrom === undefined ? {} : { renamedFrom }),
  }
}

const order: readonly PinKind[] = ['tool', 'prompt', 'resourceTemplate', 'instructions']

function byKindAndName(
  a: { readonly kind: PinKind; readonly name: string },
  b: { readonly kind: PinKind; readonly name: string },
): number {
  const kinds = order.indexOf(a.kind) - order.indexOf(b.kind)
  return kinds !== 0 ? kinds : a.name < b.name ? -1 : 1
}
