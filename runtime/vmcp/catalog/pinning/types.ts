/** Types for tool pinning: compared items, results and approvals. */
import type { CatalogItem, ToolItem } from '../../model/catalog/entries.ts'
import type { ArgumentCheck, PinnedPart, PinDigests, PinKind } from '../../model/catalog/pinning.ts'

/**
 * `new` means that the lock does not contain the item. `removed` means that the lock contains the item, but the backend
 * does not offer it.
 */
export type PinState = 'pinned' | 'new' | 'changed' | 'removed'

/** Plain data about an item that differs from the lock. */
export interface PinDrift {
  readonly backend: string
  readonly kind: PinKind
  readonly name: string
  readonly state: Exclude<PinState, 'pinned'>
  /** Parts that differ. A new item differs in all parts, and a removed item does not differ in any part. */
  readonly parts: readonly PinnedPart[]
  /** Digest of the offered definition. For a removed item, the digest of the approved definition. */
  readonly digest: string
  /** Name of a removed item with the same definition. The removed item may have been renamed to this item. */
  readonly renamedFrom?: string
}

export interface ApprovedForm {
  readonly digests: PinDigests
  /** The item that is listed instead of a changed definition. */
  readonly item: CatalogItem | ToolItem
  /**
   * Checks arguments while the backend offers a different definition. Undefined if the approved form cannot replace the
   * offered definition.
   */
  readonly check: ArgumentCheck | undefined
}

/** The approved forms of an item: the definition and its equivalent variants. */
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
  /** Approved items, keyed by `<kind> <name>`. */
  readonly items: ReadonlyMap<string, Approved>
  /** Approved skills, keyed like `items`. Undefined if no lock contains skills, which are then not compared. */
  readonly skills: ReadonlyMap<string, Approved> | undefined
  /** JSON pointers to members of `_meta` that are not compared. */
  readonly ignore: readonly string[]
  /** Kinds of differences that are ignored. */
  readonly accept: ReadonlySet<string>
  /** The lock's settings, which take precedence over the server's settings. */
  readonly onChanged: OnChanged | undefined
  readonly onNew: OnNew | undefined
  readonly onRemoved: OnRemoved | undefined
  /** Reason why the lock cannot be used. Undefined for a valid lock. */
  readonly failure: string | undefined
}

export function pinKey(kind: PinKind, name: string): string {
  return `${kind} ${name}`
}
