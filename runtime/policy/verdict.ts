/** The result of a policy decision, with its reasons. Only operators see this result. */

/**
 * `permitted` by a policy; `forbidden` by a policy or because of a failure; `unmentioned` if no policy applies, in
 * which case the request is also denied.
 */
export type CedarDecision = 'permitted' | 'forbidden' | 'unmentioned'

export interface PolicyVerdict {
  readonly decision: CedarDecision
  /** Ids of the determining policies, at most `maxListed`. */
  readonly reason: readonly string[]
  /** Ids of policies that failed, or that read an attribute whose value Cedar cannot represent. */
  readonly errors: readonly string[]
  /** Attributes that an applicable permit reads but the request lacks; empty when permitted. */
  readonly missing: readonly string[]
}

/** Maximum number of ids or names in each list of a verdict. */
export const maxListed = 16

/** Returned when the engine failed or was not called. */
export const undecided: PolicyVerdict = { decision: 'forbidden', reason: [], errors: [], missing: [] }
