/**
 * Who holds a budget: the user, the groups or the client behind a call, or all callers of the server together.
 *
 * Keys fit a store and say nothing about a person. Who has no such name (a token without groups, without a client) shares the
 * budget of all who have none, so that leaving a claim out wins nobody a budget of their own.
 * Source: RFC 9068 (client_id), OpenID Connect Core (azp).
 */
import { hash } from 'node:crypto'
import type { Quota } from '../../../schemas/index.ts'
import type { Caller } from '../../net/index.ts'
import { groupsOf } from '../subject.ts'
import { userKey } from '../limits/user-key.ts'

/** Groups of one caller that have budgets of their own; the others count with callers without a group. */
const maxGroups = 256

/** The budget of those who have no name of the kind. */
const nobody = '-'

/** The budget of those for whom there is no space any more. */
export const overflowHolder = 'others'

/** Keys of the budgets that a call of this caller counts on, each once. */
export function holdersOf(
  per: Quota['per'],
  caller: Caller,
  groupClaimName: string | undefined,
): readonly string[] {
  switch (per) {
    case 'user':
      return [userKey(caller)]
    case 'client':
      return [named(caller, clientOf(caller))]
    case 'group': {
      const groups = [...new Set(groupsOf(caller.claims, { groupClaimName }))].sort()
      const own = groups.slice(0, maxGroups).map((group) => named(caller, group))
      return groups.length === 0 || groups.length > maxGroups ? [...own, nobody] : own
    }
    default:
      return ['all']
  }
}

function named({ issuer }: Caller, name: string | undefined): string {
  return name === undefined ? nobody : hash('sha256', `${issuer}\0${name}`, 'base64url')
}

/** The OAuth client that the token was issued to. */
function clientOf({ claims }: Caller): string | undefined {
  for (const claim of ['client_id', 'azp'] as const) {
    const value = Object.hasOwn(claims, claim) ? claims[claim] : undefined
    if (typeof value === 'string' && value !== '') return value
  }
  return undefined
}
