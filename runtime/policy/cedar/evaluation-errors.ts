/**
 * Handles policies that fail during evaluation: decides which failures affect the decision, and logs them.
 *
 * The first occurrence of a policy error is a warning, and later occurrences are at debug level. The engine's message
 * may quote the caller's data, so the log contains a reworded message.
 */
import type { EngineError } from '../../../schemas/cedar/index.ts'
import type { Log } from '../../net/index.ts'
import type { Policy } from './policies.ts'

/**
 * A policy that could not be evaluated. Without `policy`, the failure affects all policies. Contains no data from
 * callers.
 */
export interface PolicyFailure {
  readonly policy?: string | undefined
  readonly effect?: Policy['effect'] | undefined
  readonly reason: string
}

interface Failed {
  readonly policyId: string
  readonly error: EngineError
}

export class EvaluationErrors {
  readonly #policies: ReadonlyMap<string, Policy>
  readonly #log: Log
  readonly #reportFailure: ((failure: PolicyFailure) => void) | undefined
  /**
   * Logged errors. Contains at most one error per policy for each error kind that `reword` recognizes and each
   * attribute that policies read.
   */
  readonly #seen = new Set<string>()

  /** `reportFailure` is called once for each failure. If it is absent, a warning is logged instead. */
  constructor(policies: readonly Policy[], log: Log, reportFailure?: (failure: PolicyFailure) => void) {
    this.#policies = new Map(policies.map((policy) => [policy.id, policy]))
    this.#log = log
    this.#reportFailure = reportFailure
  }

  /** True when a forbid policy failed, so the request must be denied. */
  failed(errors: readonly Failed[]): boolean {
    let forbid = false
    for (const { policyId, error } of errors) {
      const policy = this.#policies.get(policyId)
      if (!policy) return true
      if (policy.effect === 'forbid') forbid = true
      this.#note(policy, reword(error.message, policy))
    }
    return forbid
  }

  /** Reports a policy that reads an attribute without a Cedar value. */
  reportUnusable(policy: Policy, attribute: string): void {
    const name = policy.reads.attributes.has(attribute) ? attribute : 'some attribute'
    this.#note(policy, `the value of ${name} has no Cedar representation; the request is denied`)
  }

  #note(policy: Policy, reason: string): void {
    const { id, effect } = policy
    const key = `${id}\0${reason}`
    const fields = { policy: id, effect, reason }
    const text =
      'a policy could not be evaluated; a failed permit is ignored, and a failed forbid denies the request'
    if (this.#seen.has(key)) this.#log.debug(text, fields)
    else {
      this.#seen.add(key)
      if (this.#reportFailure) this.#reportFailure(fields)
      else this.#log.warn(text, fields)
    }
  }

  /** Reports that the engine rejected the request as a whole. */
  reportEngineRejection(errors: readonly EngineError[]): void {
    this.#reportFailure?.({ reason: "the engine rejected this user's data" })
    this.#log.error('the policy engine rejected the request data; the request is denied', {
      reasons: errors.map(({ message }) => message.replaceAll(/`[^`]*`|"[^"]*"/g, '…').slice(0, 200)),
    })
  }
}

/** Returns the engine's message without any text from the request. */
function reword(message: string, { reads }: Policy): string {
  const [, attribute] = /does not have the attribute `([^`]*)`/.exec(message) ?? []
  if (attribute !== undefined) {
    return reads.attributes.has(attribute)
      ? `the attribute ${attribute} is absent; check for it with has`
      : 'an attribute is absent'
  }
  const [mismatch] = /^type error: expected [a-z ,]+, got [a-z]+/.exec(message) ?? []
  if (mismatch !== undefined) return mismatch
  const [, called] = /^error while evaluating `([A-Za-z]+)`/.exec(message) ?? []
  if (called !== undefined) return `${called} does not accept this value`
  if (message.startsWith('integer overflow')) return 'integer overflow'
  return /^entity .* does not exist$/.test(message) ? 'an entity does not exist' : 'evaluation failed'
}
