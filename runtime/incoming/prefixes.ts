/**
 * Adds the prefixes of an additional issuer to the subject, groups and roles in the claims of its tokens.
 *
 * Everything after authentication reads the renamed claims, so a policy, a quota or a session cannot confuse the users
 * or groups of two issuers. The token itself is unchanged.
 * Source: docs/guides/oidc.md, "Several issuers".
 */
import { isFields, subjectPrefixOf } from '../../schemas/index.ts'
import type { AdditionalIssuer } from './config.ts'

export type TokenClaims = Readonly<Record<string, unknown>>

/** Claims that policies and decision points read as groups or roles. */
const wellKnownGroupClaims = ['groups', 'roles', 'cognito:groups', 'mgroups', 'mroles'] as const

/** Returns a function that renames claims. `groupClaims` are the configured claims with groups or roles. */
export function claimRenamer(
  issuer: AdditionalIssuer,
  groupClaims: readonly string[] = [],
): (claims: TokenClaims) => TokenClaims {
  const subjectPrefix = subjectPrefixOf(issuer)
  const groupPrefix = issuer.groupPrefix ?? `${issuer.issuer}#`
  const names = new Set([...wellKnownGroupClaims, ...groupClaims])
  return (claims) => {
    const sub = `${subjectPrefix}${String(claims['sub'])}`
    if (groupPrefix === '') return { ...claims, sub }
    const renamed = [...names].reduce((all, name) => withPrefix(all, name, groupPrefix), claims)
    return { ...renamed, sub }
  }
}

/** Renames the claim with exactly this name, or otherwise the one at this dotted path, as policies do. */
function withPrefix(claims: TokenClaims, name: string, prefix: string): TokenClaims {
  return Object.hasOwn(claims, name)
    ? renamedAt(claims, [name], prefix)
    : renamedAt(claims, name.split('.'), prefix)
}

function renamedAt(
  claims: TokenClaims,
  [head = '', ...rest]: readonly string[],
  prefix: string,
): TokenClaims {
  if (!Object.hasOwn(claims, head)) return claims
  const value = claims[head]
  if (rest.length === 0) return { ...claims, [head]: prefixed(value, prefix) }
  return isFields(value) ? { ...claims, [head]: renamedAt(value, rest, prefix) } : claims
}

function prefixed(value: unknown, prefix: string): unknown {
  if (typeof value === 'string') return `${prefix}${value}`
  return Array.isArray(value) ? value.map((item: unknown) => prefixed(item, prefix)) : value
}
