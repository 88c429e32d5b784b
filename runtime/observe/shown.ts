/**
 * Data about a running server, which the virtual server provides to the console. Contains no credentials and no session
 * ids. Times are milliseconds since the epoch.
 */
import { hash } from 'node:crypto'

/** One tool in the catalog. */
export interface ShownTool {
  /** Name in policies and settings. Clients also use this name unless there is an alias. */
  readonly name: string
  /** Alias that clients use instead of a long name. */
  readonly alias?: string | undefined
  /** Backend of the tool; empty for one of the server's own tools, such as a workflow. */
  readonly backend: string
  readonly original: string
  /** Definition that clients see. */
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
    'the definition differs from the approved definition; review the difference, then approve it or ask the maintainer',
  tool_new: 'the tool is new, and new tools are blocked until they are approved',
  lock_invalid: 'the lock for the backend cannot be used',
  no_lock: 'the backend has no lock, and backends without a lock are blocked',
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

/** A live task of a client. */
export interface ShownTask {
  /** Hash of the task's id. It cannot be used as an id. */
  readonly hash: string
  /** `Caller.key` of the owner. */
  readonly owner: string
  readonly subject: string
  readonly displayName: string
  readonly actor: string | undefined
  readonly tool: string
  /** Undefined for a task that Gatehouse itself runs. */
  readonly backend: string | undefined
  readonly state: 'working' | 'input_required'
  readonly startedAt: number
  /** Time at which the task expires. */
  readonly endsAt: number
}

/** Returns a short hash of a session id for display. The hash cannot be used as an id. */
export function sessionHash(id: string): string {
  return hash('sha256', id, 'hex').slice(0, 12)
}
