/**
 * Reads the delegation chain from nested `act` claims, for the audit log.
 *
 * The chain is informational and not used for decisions. The reader follows the chain to a bounded depth, and stops at
 * the first invalid actor.
 * Source: RFC 8693 section 4.1; config.audit.maxDelegationDepth.
 */
export interface Actor {
  readonly iss?: string
  readonly sub: string
}

export interface Delegation {
  /** The current actor, followed by earlier actors. */
  readonly chain: readonly Actor[]
  /** True when the chain has more actors than the record contains. */
  readonly truncated: boolean
  /** Number of omitted actors. */
  readonly omitted: number
  readonly malformed: boolean
  readonly malformedReason?: string
}

/** Maximum count of omitted actors. */
const maxWalked = 1_000
const maxTextLength = 512

/** Returns the delegation in a token's claims, or undefined. */
export function delegationOf(
  claims: Readonly<Record<string, unknown>>,
  maxDepth: number,
): Delegation | undefined {
  if (claims['act'] === undefined) return undefined
  const chain: Actor[] = []
  let omitted = 0
  let malformedReason: string | undefined
  let next: unknown = claims['act']
  for (let depth = 0; next !== undefined; depth++) {
    const actor = depth < maxWalked ? readActor(next) : 'the chain is too long'
    if (typeof actor === 'string') {
      malformedReason = actor
      break
    }
    if (chain.length < maxDepth) chain.push(actor.actor)
    else omitted++
    next = actor.next
  }
  return {
    chain,
    truncated: omitted > 0,
    omitted,
    malformed: malformedReason !== undefined,
    ...(malformedReason === undefined ? {} : { malformedReason }),
  }
}

function readActor(value: unknown): { actor: Actor; next: unknown } | string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'act is not an object'
  const { iss, sub, act }: { iss?: unknown; sub?: unknown; act?: unknown } = value
  if (typeof sub !== 'string' || sub === '') return 'act has no sub'
  if (iss !== undefined && typeof iss !== 'string') return 'iss in act is not a string'
  const actor = {
    ...(iss === undefined ? {} : { iss: iss.slice(0, maxTextLength) }),
    sub: sub.slice(0, maxTextLength),
  }
  return { actor, next: act }
}
