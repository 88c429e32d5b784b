/**
 * Data about a running server, for the console. The virtual server provides it. Contains no credentials and no session
 * ids. Times are milliseconds since the epoch.
 */

/** One tool in the catalog. */
export interface ShownTool {
  /** The name in policies and settings, which clients also use unless there is an alias. */
  readonly name: string
  /** The name that clients use when the full name is too long for them. */
  readonly alias?: string | undefined
  /** Empty for one of the server's own tools, such as a workflow. */
  readonly backend: string
  readonly original: string
  /** The definition that clients see. */
  readonly json: Buffer
  /** The rule that hides the tool from clients; undefined when the tool is visible. */
  readonly hidden: string | undefined
  /** Result of the comparison with the backend's lock; undefined when there was none. */
  readonly pin: 'pinned' | 'new' | 'changed' | undefined
  /** True when pinning hides the tool from clients; `json` is then the unapproved definition. */
  readonly refused: boolean
}

const pinRefusals: Readonly<Record<string, string>> = {
  tool_changed:
    'its definition differs from the approved one; review the difference, then approve it or ask its maintainer',
  tool_new: 'it is new, and new tools are blocked until they are approved',
  lock_invalid: 'the lock for its backend cannot be used',
  no_lock: 'its backend has no lock, and backends without one are blocked',
}

/** Returns the reason why pinning hides an item from clients. */
export function pinRefusal(reason: string): string {
  return pinRefusals[reason] ?? reason
}

export interface ShownSession {
  /** `sessionHash` of the session id. */
  readonly hash: string
  /** `Caller.key` of the owner. */
  readonly owner: string
  readonly subject: string
  readonly displayName: string
  /** The client that acts for the owner. */
  readonly actor: string | undefined
  /** Raw `Implementation` object of the client. */
  readonly info: Buffer | undefined
  readonly protocolVersion: string
  readonly openedAt: number
  readonly usedAt: number
  readonly streams: number
}
