/** The console's API about what is not as it was approved; part of `api.ts`. */

export type LockedKind = 'tool' | 'prompt' | 'resourceTemplate' | 'instructions'
export type PinDriftState = 'new' | 'changed' | 'removed'

/** GET `pins?backend&state&cursor&limit` lists these: what is not as it was approved. */
export interface LockDifference {
  readonly backend: string
  readonly kind: LockedKind
  /** The backend's own name; empty for instructions. */
  readonly name: string
  readonly state: PinDriftState
  readonly parts: readonly string[]
  /** Of what is offered; of what was approved when it is removed. Empty: it cannot be compared. */
  readonly digest: string
  /** A removed item has the same definition: this may be it under another name. */
  readonly renamedFrom?: string
}

export interface PinnedBackend {
  readonly backend: string
  readonly lock: 'ok' | 'missing' | 'invalid'
  readonly locks: readonly string[]
  /** Why the lock cannot be used. */
  readonly failure?: string
  /** There is no lock, and nothing of the backend is offered for that. */
  readonly closed: boolean
  /** False until the backend was listed. */
  readonly observed: boolean
  readonly counts: Readonly<Record<'pinned' | PinDriftState, number>>
}

/** How a difference is approved: by a button, by a command of somebody who may write the lock, or not from here. */
export type ApprovalWay =
  | { readonly way: 'file'; readonly lock: string; readonly file: string }
  | { readonly way: 'command'; readonly lock: string; readonly command: string }
  | { readonly way: 'none'; readonly why: string }

/** GET `pins/item?backend&kind&name`. */
export interface LockDifferenceDetail extends LockDifference {
  /** Of what was approved; absent for a new item. */
  readonly approvedDigest?: string | undefined
  /** At most `mostReviewed` characters of each part. */
  readonly diff: readonly { readonly part: string; readonly diff: string }[]
  /** For those who may approve. */
  readonly approval?: ApprovalWay
}

/**
 * POST `pins/approve`; answer: `ApprovalResult`. Names both sides of what was reviewed: 409 APPROVAL_STALE when the backend
 * offers, or the lock says, something else by then, 409 LOCK_NOT_WRITTEN when the lock cannot be written. Nothing has changed then.
 */
export interface ApprovalRequest {
  readonly backend: string
  readonly kind: LockedKind
  readonly name: string
  readonly state: PinDriftState
  readonly digest: string
  /** Of what was approved before; absent for a new item. */
  readonly approvedDigest?: string | undefined
}

/** Nobody reads more on a page, so nobody approves more on it. */
export const mostReviewed = 400_000

/** The server takes the file up by itself: `catalog` on the stream tells it. */
export interface ApprovalResult {
  readonly file: string
}
