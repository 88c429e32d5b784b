/** What pinning looks at: kinds of items, their parts, and what it says of one. Plain shapes; imports nothing. */

/** `instructions` are those of the server; their name is empty. */
export type PinKind = 'tool' | 'prompt' | 'resourceTemplate' | 'instructions'

export const parts = ['text', 'input', 'output', 'hints', 'execution', 'icons', 'meta', 'other'] as const

/** One aspect of an item that clients rely on; each has a digest of its own. */
export type PinnedPart = (typeof parts)[number]

export interface PinDigests {
  /** Of all parts together, `sha256:<hex>`; the name of the item is no part. */
  readonly digest: string
  readonly parts: Readonly<Partial<Record<PinnedPart, string>>>
}

/** How the items of a backend are digested. */
export interface PinRules {
  /** JSON pointers to members of `_meta` that are not compared. */
  readonly ignore: readonly string[]
}

/** Why an item is not offered, for audit and status. */
export type PinReason = 'tool_changed' | 'tool_new' | 'lock_invalid' | 'no_lock'

/** What of a value (JSON) does not match schemas (a JSON list), one line each. Compiles them outside of the server's thread. */
export type MatchSchemas = (schemas: string, value: Buffer) => Promise<readonly string[]>

/** What is wrong with the arguments, one line each; none: they fit. `args` is JSON text. Rejects as `match` does. */
export type ArgumentCheck = (args: Buffer | undefined, match: MatchSchemas) => Promise<readonly string[]>
