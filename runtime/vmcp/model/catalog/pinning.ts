/** Types for pinning: item kinds, item parts, digests, reasons and checks. This module imports nothing. */

/** The kind `instructions` refers to a server's instructions, which have an empty name. */
export type PinKind = 'tool' | 'prompt' | 'resourceTemplate' | 'skill' | 'instructions'

export const parts = [
  'text',
  'input',
  'output',
  'hints',
  'execution',
  'icons',
  'meta',
  'files',
  'other',
] as const

/** An aspect of an item that clients rely on. Each part has a separate digest. */
export type PinnedPart = (typeof parts)[number]

export interface PinDigests {
  /** Digest of all parts, in the form `sha256:<hex>`. The digest does not include the item's name. */
  readonly digest: string
  readonly parts: Readonly<Partial<Record<PinnedPart, string>>>
}

/** Rules for hashing a backend's items. */
export interface PinRules {
  /** JSON pointers to members of `_meta` that are not compared. */
  readonly ignore: readonly string[]
}

/** Reason why an item is not offered, for audit and status. */
export type PinReason = 'tool_changed' | 'tool_new' | 'lock_invalid' | 'no_lock'

/**
 * Lists mismatches between a JSON value and a JSON list of schemas, one line each. The schemas are compiled outside the
 * server's thread.
 */
export type MatchSchemas = (schemas: string, value: Buffer) => Promise<readonly string[]>

/**
 * Lists violations in the arguments (JSON text), one line each. The list is empty if there are no violations. Rejects
 * in the same cases as `match`.
 */
export type ArgumentCheck = (args: Buffer | undefined, match: MatchSchemas) => Promise<readonly string[]>
