/** A backend's cached lists for one listing key. */
import { isCredentialError } from '../../backends/backend-errors.ts'
import type { Listing } from '../listing.ts'

export interface CachedListing {
  listing: Listing | undefined
  /**
   * Error from the last read. Undefined if the last read succeeded. A listing that is present despite an error is
   * stale.
   */
  failure: Error | undefined
  /** Time at which the listing or one of its lists became stale. */
  staleSince: number | undefined
  /** Time after which the listing is reread. 0 means now. */
  freshUntil: number
  reading: Promise<Listing> | undefined
  /** Credential of the last read. A failure with this credential does not apply to other credentials. */
  credential: string
  /** True if the backend announced a change during the read. The result is then already outdated. */
  isOutdated: boolean
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
    isOutdated: false,
    retries: 0,
    cancelRetry: undefined,
  }
}

/** True if the last read failed because of another client's credential. */
export function failedForAnother({ failure, credential }: CachedListing, own: string): boolean {
  return credential !== own && isCredentialError(failure)
}
