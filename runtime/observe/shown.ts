/**
 * What a running server shows of itself to the pages about it. The virtual server fills these, the console reads them.
 * Holds no credential and no session id. Times are milliseconds since the epoch.
 */

/** One tool of the catalog. */
export interface ShownTool {
  /** As policies and settings call it, and clients too unless it has an alias. */
  readonly name: string
  /** As clients call it, where the name is too long for them. */
  readonly alias?: string | undefined
  /** Empty for a tool of the server itself, such as a workflow. */
  readonly backend: string
  readonly original: string
  /** The definition as clients see it. */
  readonly json: Buffer
  /** The rule that keeps it from clients; undefined when they see it. */
  readonly hidden: string | undefined
  /** How it compares with the lock of its backend; undefined where nothing is compared. */
  readonly pin: 'pinned' | 'new' | 'changed' | undefined
  /** Pinning keeps it from clients; `json` is what nobody has approved. */
  readonly refused: boolean
}

const pinRefusals: Readonly<Record<string, string>> = {
  tool_changed:
    'its definition is not the approved one; look at the difference, then approve it or ask its maintainer',
  tool_new: 'it is new, and new tools are blocked until they are approved',
  lock_invalid: 'the lock of its backend cannot be used',
  no_lock: 'its backend has no lock, and backends without one are blocked',
}

/** Why pinning keeps something from clients, in words. */
export function pinRefusal(reason: string): string {
  return pinRefusals[reason] ?? reason
}

export interface ShownSession {
  /** `sessionHash` of its id. */
  readonly hash: string
  /** `Caller.key` of whom it belongs to. */
  readonly owner: string
  readonly subject: string
  readonly displayName: string
  /** Raw `Implementation` object of the client. */
  readonly info: Buffer | undefined
  readonly protocolVersion: string
  readonly openedAt: number
  readonly usedAt: number
  readonly streams: number
}
