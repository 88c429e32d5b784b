/** What is cached of the lists of a backend for one kind of client. */
import { isCredentialError } from '../../backends/backend-errors.ts'
import type { Listing } from '../listing.ts'

export interface CachedListing {
  listing: Listing | undefined
  /** Why the last read failed; undefined after a read that succeeded. With a listing: that one is stale. */
  failure: Error | undefined
  /** Time since when the listing, or one of its lists, is stale. */
  staleSince: number | undefined
  /** Time after which it is read again; 0: now. */
  freshUntil: number
  reading: Promise<Listing> | undefined
  /** Credential of the last read: its failure does not count for another one. */
  credential: string
  /** The backend changed while it was being read: the result is old already. */
  outdated: boolean
  retries: number
  cancelRetry: (() => void) | undefined
}

export function emptyCachedListing(): CachedListing {
  return {
    listing: undefined,
    failure: undefined,
    staleSince: undefined,
    freshUntil: 0,
    reading: undefined,
    credential: '',
    outdated: false,
    retries: 0,
    cancelRetry: undefined,
  }
}

/** True when the last read failed because of the credential of another client. */
export function failedForAnother({ failure, credential }: CachedListing, own: string): boolean {
  return credential !== own && isCredentialError(failure)
}
