/**
 * Adds an additional issuer's prefixes to the subject, groups and roles in its tokens' claims. Removes groups with
 * these prefixes from the first issuer's claims.
 *
 * Everything after authentication reads the renamed claims, so a policy, a quota or a session cannot confuse the users
 * or groups of two issuers. The token itself is unchanged.
 * Source: docs/guides/oidc.md, "Several issuers".
 */
import { groupPrefixOf, isFields, type IssuerSettings, subjectPrefixOf } from '../../schemas/index.ts'
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
  const groupPrefix = groupPrefixOf(issuer)
  return (claims) => {
    const sub = `${subjectPrefix}${String(claims['sub'])}`
    if (groupPrefix === '') return { ...claims, sub }
    return { ...withGroups(claims, groupClaims, (name) => [`${groupPrefix}${name}`]), sub }
  }
}

/**
 * Returns a function that removes the groups and roles that begin with an additional issuer's prefix. Otherwise, users
 * of the first issuer who can choose a group's name could join another issuer's groups.
 */
export function foreignGroupRemover(
  issuers: readonly IssuerSettings[],
  groupClaims: readonly string[] = [],
): (claims: TokenClaims) => TokenClaims {
  const prefixes = issuers.map(groupPrefixOf).filter((prefix) => prefix !== '')
  const own = (name: string): readonly string[] =>
    prefixes.some((prefix) => name.startsWith(prefix)) ? [] : [name]
  return (claims) => (prefixes.length === 0 ? claims : withGroups(claims, groupClaims, own))
}

/** Returns the new names of one group or role. */
type Rename = (name: string) => readonly string[]

function withGroups(claims: TokenClaims, groupClaims: readonly string[], rename: Rename): TokenClaims {
  const names = [...new Set([...wellKnownGroupClaims, ...groupClaims])]
  // Policies read the claim with exactly this name or, if it is absent, the claim at this dotted path.
  return names.reduce((all, name) => {
    const paths = names.filter((other) => other.startsWith(`${name}.`))
    const steps = new Set(paths.map((path) => path.slice(name.length + 1).split('.')[0] ?? ''))
    const renameKey: Rename = (key) => (steps.has(key) ? [key] : rename(key))
    return renamedAt(all, Object.hasOwn(all, name) ? [name] : name.split('.'), (value) =>
      isFields(value) ? withKeys(value, renameKey) : renamed(value, rename),
    )
  }, claims)
}

/** Some issuers send an object whose keys are the roles, and role mappings read them. */
function withKeys(roles: TokenClaims, rename: Rename): TokenClaims {
  return Object.fromEntries(
    Object.entries(roles).flatMap(([key, value]) => rename(key).map((name) => [name, value])),
  )
}

function renamedAt(
  claims: TokenClaims,
  [head = '', ...rest]: readonly string[],
  change: (value: unknown) => unknown,
): TokenClaims {
  if (!Object.hasOwn(claims, head)) return claims
  const value = claims[head]
  if (rest.length === 0) return { ...claims, [head]: change(value) }
  return isFields(value) ? { ...claims, [head]: renamedAt(value, rest, change) } : claims
}

function renamed(value: unknown, rename: Rename): unknown {
  if (typeof value === 'string') return rename(value)[0] ?? ''
  if (!Array.isArray(value)) return value
  return value.flatMap((item: unknown): readonly unknown[] =>
    typeof item === 'string' ? rename(item) : [renamed(item, rename)],
  )
}
