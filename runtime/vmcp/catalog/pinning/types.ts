/** Types of tool pinning: compared items, results, and approvals. */
import type { CatalogItem, ToolItem } from '../../model/catalog/entries.ts'
import type { ArgumentCheck, PinnedPart, PinDigests, PinKind } from '../../model/catalog/pinning.ts'

/** `new`: not in the lock. `removed`: in the lock, but not offered. */
export type PinState = 'pinned' | 'new' | 'changed' | 'removed'

/** An item that differs from the lock. Plain data. */
export interface PinDrift {
  readonly backend: string
  readonly kind: PinKind
  readonly name: string
  readonly state: Exclude<PinState, 'pinned'>
  /** Parts that differ: all parts for a new item, none for a removed one. */
  readonly parts: readonly PinnedPart[]
  /** Digest of the offered definition, or of the approved one for a removed item. */
  readonly digest: string
  /** Name of a removed item with the same definition, which may have been renamed to this one. */
  readonly renamedFrom?: string
}

export interface ApprovedForm {
  readonly digests: PinDigests
  /** The item that is listed instead of a changed definition. */
  readonly item: CatalogItem | ToolItem
  /** Checks arguments while the backend offers another form. Undefined if this form cannot replace another one. */
  readonly check: ArgumentCheck | undefined
}

/** The approved forms of one name: the definition and equivalent variants. */
export interface Approved {
  readonly kind: PinKind
  readonly name: string
  readonly forms: readonly [ApprovedForm, ...ApprovedForm[]]
}

export type OnChanged = 'observe' | 'warn' | 'freeze' | 'block'
export type OnNew = 'observe' | 'warn' | 'block'
export type OnRemoved = 'observe' | 'warn'

/** A backend's combined locks. */
export interface CompiledLock {
  readonly backend: string
  /** Names of the MCPToolLocks. */
  readonly names: readonly string[]
  /** By `<kind> <name>`. */
  readonly items: ReadonlyMap<string, Approved>
  /** Kinds of differences that are ignored. */
  readonly accept: ReadonlySet<string>
  /** The lock's settings, which take precedence over the server's. */
  readonly onChanged: OnChanged | undefined
  readonly onNew: OnNew | undefined
  readonly onRemoved: OnRemoved | undefined
  /** Reason why the lock cannot be used; undefined for a valid lock. */
  readonly failure: string | undefined
}

export function pinKey(kind: PinKind, name: string): string {
  return `${kind} ${name}`
}
