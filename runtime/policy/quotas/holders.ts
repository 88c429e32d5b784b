/**
 * Determines the owner of a budget: the user, groups or client of a call, or all callers of the server.
 *
 * The keys are suitable for a store and do not identify a person. All callers without a group or client share one
 * budget, so omitting a claim does not yield a separate budget.
 * Source: RFC 9068 (client_id), OpenID Connect Core (azp).
 */
import { hash } from 'node:crypto'
import type { Quota } from '../../../schemas/index.ts'
import type { Caller } from '../../net/index.ts'
import { groupsOf } from '../subject.ts'
import { userKey } from '../limits/rate-limit.ts'

/**
 * Maximum number of a caller's groups that get a budget. A caller with more groups also uses the budget of callers
 * without a group.
 */
const maxGroups = 256

/** Key of the budget for callers without a group or client. */
const namelessHolder = '-'

/** Key of the shared budget when the store has no room for more budgets. */
export const overflowHolder = 'others'

/** Returns the distinct keys of the budgets that a call made by this caller uses. */
export function holdersOf(
  per: Quota['per'],
  caller: Caller,
  groupClaimName: string | undefined,
): readonly string[] {
  switch (per) {
    case 'user':
      return [userKey(caller)]
    case 'client':
      return [holderKey(caller, clientOf(caller))]
    case 'group': {
      const groups = [...new Set(groupsOf(caller.claims, { groupClaimName }))].sort()
      const own = groups.slice(0, maxGroups).map((group) => holderKey(caller, group))
      return groups.length === 0 || groups.length > maxGroups ? [...own, namelessHolder] : own
    }
    default:
      return ['all']
  }
}

function holderKey({ issuer }: Caller, name: string | undefined): string {
  return name === undefined ? namelessHolder : hash('sha256', `${issuer}\0${name}`, 'base64url')
}

/** Returns the OAuth client that received the token. */
function clientOf({ claims }: Caller): string | undefined {
  for (const claim of ['client_id', 'azp'] as const) {
    const value = Object.hasOwn(claims, claim) ? claims[claim] : undefined
    if (typeof value === 'string' && value !== '') return value
  }
  return undefined
}
