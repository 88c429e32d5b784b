/**
 * The providers that a user's groups select (authServerUpstreamFilter). The first provider identifies the user and is
 * always included.
 */
import { own, type UpstreamFilter } from '../../../schemas/index.ts'

/** The members that a login and a session share. */
export interface Offer {
  /** Names of the providers for the user's groups. Absent: all. */
  readonly offered?: readonly string[] | undefined
}

/** Returns the providers for a user in these groups, in configured order; undefined without a filter. */
export function offeredProviders(
  filter: UpstreamFilter | undefined,
  providers: readonly { readonly name: string }[],
  groups: readonly string[],
): readonly string[] | undefined {
  if (!filter) return undefined
  // A provider may list any number of groups.
  const memberOf = new Set(groups)
  const rules = filter.rules.filter((rule) => rule.groups.some((group) => memberOf.has(group)))
  const names =
    rules.length > 0 ? rules.flatMap((rule) => rule.upstreamProviders) : (filter.defaultUpstreams ?? [])
  return providers.map(({ name }) => name).filter((name, index) => index === 0 || names.includes(name))
}

export function isOffered({ offered }: Offer, name: string): boolean {
  return offered === undefined || offered.includes(name)
}

/** Returns the names of the providers that are not offered. */
export function withheldProviders(
  providers: readonly { readonly name: string }[],
  offer: Offer,
): readonly string[] {
  return providers.map(({ name }) => name).filter((name) => !isOffered(offer, name))
}

/** Returns the distinct names that are offered. */
export function keepOffered(names: readonly string[], offered: Offer['offered']): readonly string[] {
  return [...new Set(names)].filter((name) => isOffered({ offered }, name))
}

/** Returns the groups in a claim: a list of strings, or one string. Other values are ignored. */
export function groupsIn(claims: object, claim: string | undefined): readonly string[] {
  const value: unknown = claim === undefined ? undefined : own(claims as Record<string, unknown>, claim)
  if (typeof value === 'string') return [value]
  return Array.isArray(value) ? value.filter((group) => typeof group === 'string') : []
}
