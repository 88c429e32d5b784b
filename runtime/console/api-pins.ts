/** Console API for differences from the locks; part of `api.ts`. */

export type LockedKind = 'tool' | 'prompt' | 'resourceTemplate' | 'skill' | 'instructions'
export type PinDriftState = 'new' | 'changed' | 'removed'

/** Item of GET `pins?backend&state&cursor&limit`: a definition that differs from the lock. */
export interface LockDifference {
  readonly backend: string
  readonly kind: LockedKind
  /** Original name on the backend; empty for instructions. */
  readonly name: string
  readonly state: PinDriftState
  readonly parts: readonly string[]
  /**
   * Digest of the offered definition, or of the approved definition if it was removed. Empty when the definition cannot
   * be compared.
   */
  readonly digest: string
  /** A removed item with the same definition, which may have been renamed to this item. */
  readonly renamedFrom?: string
}

export interface PinnedBackend {
  readonly backend: string
  readonly lock: 'ok' | 'missing' | 'invalid'
  readonly locks: readonly string[]
  /** Reason why the lock cannot be used. */
  readonly failure?: string
  /** True when the backend has no lock and therefore offers nothing. */
  readonly closed: boolean
  /** False until the backend's items have been listed. */
  readonly observed: boolean
  readonly counts: Readonly<Record<'pinned' | PinDriftState, number>>
}

/**
 * How a difference can be approved: with a button, with a command that needs write access to the lock, or not at all in
 * the console.
 */
export type ApprovalWay =
  | { readonly way: 'file'; readonly lock: string; readonly file: string }
  | { readonly way: 'command'; readonly lock: string; readonly command: string }
  | { readonly way: 'none'; readonly why: string }

/** GET `pins/item?backend&kind&name`. */
export interface LockDifferenceDetail extends LockDifference {
  /** Digest of the approved definition; absent for a new item. */
  readonly approvedDigest?: string | undefined
  /** Contains at most `mostReviewed` characters of each part. */
  readonly diff: readonly { readonly part: string; readonly diff: string }[]
  /** Present for users who may approve changes. */
  readonly approval?: ApprovalWay
}

/**
 * Body of POST `pins/approve`; response: `ApprovalResult`. Contains both sides of the review. 409 APPROVAL_STALE means
 * that the offered or the approved definition has changed since the review. 409 LOCK_NOT_WRITTEN means that the lock
 * cannot be written. Both errors leave the lock unchanged.
 */
export interface ApprovalRequest {
  readonly backend: string
  readonly kind: LockedKind
  readonly name: string
  readonly state: PinDriftState
  readonly digest: string
  /** Digest of the previously approved definition; absent for a new item. */
  readonly approvedDigest?: string | undefined
}

/** Maximum number of characters that a page shows for review. Longer differences cannot be approved on the page. */
export const mostReviewed = 400_000

/** The server reloads the file and then sends `catalog` on the stream. */
export interface ApprovalResult {
  readonly file: string
}
