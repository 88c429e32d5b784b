/** Types of pinning: kinds of items, their parts, digests, reasons and checks. Imports nothing. */

/** `instructions` are a server's instructions. Their name is empty. */
export type PinKind = 'tool' | 'prompt' | 'resourceTemplate' | 'instructions'

export const parts = ['text', 'input', 'output', 'hints', 'execution', 'icons', 'meta', 'other'] as const

/** One aspect of an item on which clients rely. Each has a separate digest. */
export type PinnedPart = (typeof parts)[number]

export interface PinDigests {
  /** Digest of all parts, in the form `sha256:<hex>`. Does not cover the item's name. */
  readonly digest: string
  readonly parts: Readonly<Partial<Record<PinnedPart, string>>>
}

/** Rules for digesting a backend's items. */
export interface PinRules {
  /** JSON pointers to members of `_meta` that are not compared. */
  readonly ignore: readonly string[]
}

/** Reason why an item is not offered, for audit and status. */
export type PinReason = 'tool_changed' | 'tool_new' | 'lock_invalid' | 'no_lock'

/**
 * Lists mismatches between a value (JSON) and schemas (a JSON list), one line each. Compiles the schemas outside the
 * server's thread.
 */
export type MatchSchemas = (schemas: string, value: Buffer) => Promise<readonly string[]>

/**
 * Lists violations in the arguments (JSON text), one line each; empty if there are none. Rejects in the same cases as
 * `match`.
 */
export type ArgumentCheck = (args: Buffer | undefined, match: MatchSchemas) => Promise<readonly string[]>
