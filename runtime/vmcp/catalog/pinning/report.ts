/**
 * A backend's pinning report for all listings in use, as plain data for `/status`, metrics, the cluster report and the
 * console.
 *
 * Each item is counted once, in its worst state. If a backend returns different items to different callers, an item
 * that is missing for one caller is not treated as removed. The lock may have been created from another caller's view.
 */
import { type DiffLimits, type PartDiff, pinDiff } from './diff.ts'
import type { EvaluatedItem, Evaluation } from './evaluate.ts'
import type { PinKind } from '../../model/catalog/pinning.ts'
import { type Approved, type PinDrift, pinKey, type PinState } from './types.ts'

export type LockState = 'ok' | 'missing' | 'invalid'

export interface PinReport {
  readonly backend: string
  readonly lock: LockState
  /** Names of the backend's MCPToolLocks. */
  readonly locks: readonly string[]
  /** Reason why the lock cannot be used. */
  readonly failure: string | undefined
  /** True if all of the backend's items are withheld because the backend has no lock. */
  readonly closed: boolean
  readonly counts: Readonly<Record<PinState, number>>
  /** False until the backend has been listed. */
  readonly observed: boolean
  /** Changed, new and removed items, sorted by kind and name. Contains at most 1000 items. */
  readonly drift: readonly PinDrift[]
  /** True if differences are only observed and not logged. */
  readonly quiet: boolean
}

/** A difference that includes both definitions and their diff. */
export interface PinDetail extends PinDrift {
  /** JSON text of the approved definition. Undefined for a new item. */
  readonly approved: string | undefined
  /** Digest of the approved definition. Undefined for a new item. */
  readonly approvedDigest: string | undefined
  /** JSON text of the offered definition. Undefined for a removed item. */
  readonly offered: string | undefined
  readonly diff: readonly PartDiff[]
}

/** Items beyond this number are only counted. */
const maxDrift = 1_000

/** The state of the item with a given name. */
type ItemState =
  | { readonly state: 'pinned' | 'new' | 'changed'; readonly item: EvaluatedItem }
  | { readonly state: 'removed'; readonly item: Approved }

/** Summarizes evaluations. `perCaller` is true if the backend returns different items to different callers. */
export function summarize(
  backend: string,
  evaluations: readonly Evaluation[],
  { perCaller }: { readonly perCaller: boolean },
): Pick<PinReport, 'counts' | 'drift'> {
  const worst = worstStates(evaluations, perCaller)
  const counts = { pinned: 0, new: 0, changed: 0, removed: 0 }
  for (const { state } of worst.values()) counts[state]++
  const differing = [...worst.values()].filter(({ state }) => state !== 'pinned')
  const named = differing.sort((a, b) => byKindAndName(a.item, b.item)).slice(0, maxDrift)
  return { counts, drift: named.flatMap((found) => driftOf(backend, found) ?? []) }
}

/** Returns a difference that includes both definitions. Returns undefined if the item does not differ. */
export function detailOf(
  backend: string,
  evaluations: readonly Evaluation[],
  { perCaller, kind, name }: { readonly perCaller: boolean; readonly kind: PinKind; readonly name: string },
  limits?: DiffLimits,
): PinDetail | undefined {
  const found = worstStates(evaluations, perCaller).get(pinKey(kind, name))
  const drift = found && driftOf(backend, found)
  if (!found || !drift) return undefined
  const form = found.state === 'removed' ? found.item.forms[0] : found.item.form
  const approved = form?.item.json.toString()
  const offered = found.state === 'removed' ? undefined : found.item.json.toString()
  const approvedDigest = form?.digests.digest
  return { ...drift, approved, approvedDigest, offered, diff: pinDiff(kind, approved, offered, limits) }
}

function worstStates(evaluations: readonly Evaluation[], perCaller: boolean): ReadonlyMap<string, ItemState> {
  const worst = new Map<string, ItemState>()
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

function driftOf(backend: string, found: ItemState): PinDrift | undefined {
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

const order: readonly PinKind[] = ['tool', 'prompt', 'resourceTemplate', 'skill', 'instructions']

function byKindAndName(
  a: { readonly kind: PinKind; readonly name: string },
  b: { readonly kind: PinKind; readonly name: string },
): number {
  const kinds = order.indexOf(a.kind) - order.indexOf(b.kind)
  return kinds !== 0 ? kinds : a.name < b.name ? -1 : 1
}
