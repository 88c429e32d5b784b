/** Shapes of tool pinning: what is compared, what came out, and what an approval consists of. */
import type { CatalogItem, ToolItem } from '../../model/catalog/entries.ts'
import type { ArgumentCheck, PinnedPart, PinDigests, PinKind } from '../../model/catalog/pinning.ts'

/** `new`: not in the lock; `removed`: in the lock, and not offered. */
export type PinState = 'pinned' | 'new' | 'changed' | 'removed'

/** One item that differs from the lock. Plain data. */
export interface PinDrift {
  readonly backend: string
  readonly kind: PinKind
  readonly name: string
  readonly state: Exclude<PinState, 'pinned'>
  /** Parts that differ; all parts of a new item, none of a removed one. */
  readonly parts: readonly PinnedPart[]
  /** Of what the backend offers; of the approved form when it is removed. */
  readonly digest: string
  /** Name of a removed item with the same definition: this one may be it under another name. */
  readonly renamedFrom?: string
}

export interface ApprovedForm {
  readonly digests: PinDigests
  /** As it is listed when it stands in for what the backend offers. */
  readonly item: CatalogItem | ToolItem
  /** Of arguments, while the backend offers another form; undefined: it cannot stand in for that. */
  readonly check: ArgumentCheck | undefined
}

/** What was approved under one name: the definition, and variants that are as good. */
export interface Approved {
  readonly kind: PinKind
  readonly name: string
  readonly forms: readonly [ApprovedForm, ...ApprovedForm[]]
}

export type OnChanged = 'observe' | 'warn' | 'freeze' | 'block'
export type OnNew = 'observe' | 'warn' | 'block'
export type OnRemoved = 'observe' | 'warn'

/** What a lock says of one backend. */
export interface CompiledLock {
  readonly backend: string
  /** Names of the MCPToolLocks that it is made of. */
  readonly names: readonly string[]
  /** By `<kind> <name>`. */
  readonly items: ReadonlyMap<string, Approved>
  /** Differences of these sorts count as none. */
  readonly accept: ReadonlySet<string>
  /** Settings of the lock itself; they go before those of the server. */
  readonly onChanged: OnChanged | undefined
  readonly onNew: OnNew | undefined
  readonly onRemoved: OnRemoved | undefined
  /** Why nothing of it can be relied on; undefined when it is in order. */
  readonly failure: string | undefined
}

export function pinKey(kind: PinKind, name: string): string {
  return `${kind} ${name}`
}
