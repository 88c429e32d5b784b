/** What came of a question to the policies, and why. For operators only: clients learn nothing of it. */

/**
 * `permitted` by a policy; `forbidden` by one, or because it could not be decided; `unmentioned` when no policy says
 * anything, which is a no as well.
 */
export type CedarDecision = 'permitted' | 'forbidden' | 'unmentioned'

export interface PolicyVerdict {
  readonly decision: CedarDecision
  /** Ids of the policies that determined it, at most `maxListed`. */
  readonly reason: readonly string[]
  /** Ids of the policies that failed, or that read what cannot be told to them. */
  readonly errors: readonly string[]
  /** Attributes that a permit which could have applied reads and the request does not have; empty when permitted. */
  readonly missing: readonly string[]
}

/** Ids and names in one verdict. */
export const maxListed = 16

/** Where the engine itself failed, or was not asked. */
export const undecided: PolicyVerdict = { decision: 'forbidden', reason: [], errors: [], missing: [] }
