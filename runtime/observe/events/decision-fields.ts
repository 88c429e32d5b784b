/** The fields of events about decisions: policies, rate limits, quotas, webhooks and guardrails. */
export interface DecisionEventFields {
  /** Policies denied a call. */
  readonly call_denied: {
    readonly method: string
    readonly item?: string | undefined
    /** Ids of the denying policies; absent when no policy permits the call. */
    readonly policies?: readonly string[] | undefined
    /** Attributes that a permit policy reads but the request lacks. */
    readonly missing?: readonly string[] | undefined
  }
  /** A rate limit rejected a call. */
  readonly call_limited: { readonly scope: string; readonly operation_type: string }
  /** The rate limit store became unavailable, or is available again. */
  readonly limits_store: {
    readonly up: boolean
    /** How calls are handled while the store is unavailable. */
    readonly calls?: 'allowed' | 'refused' | undefined
    readonly err?: unknown
  }
  /** A call exceeded a quota. */
  readonly quota_exceeded: {
    readonly quota: string
    readonly per: string
    readonly unit: string
    /** False when the call was allowed. */
    readonly enforced: boolean
  }
  /** Usage of the quota budget that is closest to its limit; `near` at 80% or more. */
  readonly quota_level: {
    readonly quota: string
    readonly per: string
    readonly after: 'below' | 'near' | 'exhausted'
    /** End of the period, as an RFC 3339 timestamp. */
    readonly until: string
    /** True when calls over the quota are rejected. */
    readonly blocks: boolean
  }
  /** The quota store became unavailable, or is available again. */
  readonly quota_store: { readonly up: boolean; readonly err?: unknown }
  /** No memory is left for the budgets of additional callers. */
  readonly quota_memory_full: Readonly<Record<string, never>>
  /**
   * Quotas, costs, guardrails or webhooks refer to a tool that no backend offers; `resolved` when the settings are
   * corrected.
   */
  readonly tool_unmatched: { readonly problem: string; readonly resolved: boolean }
  /** A backend reported an invalid cost. */
  readonly cost_unreadable: { readonly backend: string }
  /** The external decision point returned no decision, so the request was denied. */
  readonly decision_failed: { readonly reason: string; readonly err?: unknown }
  /** The decision point failed several times in a row, or is working again. */
  readonly decision_point: {
    readonly up: boolean
    readonly reason?: string | undefined
    /** True when the decision point was removed from the configuration. */
    readonly replaced?: boolean | undefined
  }
  /** A webhook denied a call or its result, or would have denied it outside of audit mode. */
  readonly webhook_denied: {
    readonly webhook: string
    readonly phase: string
    readonly method: string
    /** The webhook's reason, for operators. */
    readonly reason?: string | undefined
    readonly enforced: boolean
  }
  /** A webhook returned no valid response. */
  readonly webhook_failed: {
    readonly webhook: string
    readonly phase: string
    readonly reason: string
    /** True when the call was rejected. */
    readonly refused: boolean
    readonly err?: unknown
  }
  /** The webhook failed several times in a row, or is working again. */
  readonly webhook_state: {
    readonly webhook: string
    readonly up: boolean
    /** True when calls continue without the webhook. */
    readonly ignored: boolean
    readonly reason?: string | undefined
    /** True when the webhook was removed from the configuration. */
    readonly replaced?: boolean | undefined
  }
  /** A guardrail matched the arguments or a result. */
  readonly guardrail_matched: {
    readonly rule: string
    readonly direction: string
    /** Action taken: masked, refused, observed, marked, stripped, escaped. */
    readonly outcome: string
    readonly backend: string
    readonly method: string
    readonly item?: string | undefined
    /** Number of matches. */
    readonly count: number
  }
  /** A guardrail check failed; the content is withheld. */
  readonly guardrail_failed: {
    readonly direction: string
    readonly backend: string
    readonly method: string
    readonly item?: string | undefined
    readonly err?: unknown
  }
  readonly policy_engine_failed: { readonly err?: unknown }
}
