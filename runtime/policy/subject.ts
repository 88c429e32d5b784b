/**
 * The policies' view of a caller: the principal, its parents, and its claims as attributes of the principal and the
 * context.
 *
 * Source: docs/reference/specification/virtual-server.md#incomingAuth, incomingAuth.authz (groupClaimName,
 * roleClaimName, groupEntityType).
 */
import { hash } from 'node:crypto'
import type { CedarValue, tokenFacts, Uid } from '../../schemas/cedar/index.ts'
import { type Caller, callerFacts } from '../net/index.ts'
import type { Claims } from './claims.ts'
import { Budget, toCedar } from './cedar/values.ts'
import type { CedarAttributes } from './cedar/static-entities.ts'

export interface ClaimRules {
  readonly groupClaimName?: string | undefined
  readonly roleClaimName?: string | undefined
  readonly groupEntityType: string
}

/** The caller, in the representation that policy decisions use. Authorizer.subject creates it. */
export interface PolicySubject {
  readonly principal: Uid
  /** Claims that policies may read; undefined when they are unavailable. */
  readonly claims: Claims | undefined
  /** Claims that policies read. */
  readonly attributes: CedarAttributes
  /** Facts about the caller's token that policies read, as attributes of the principal only. */
  readonly facts: CedarAttributes
  /** Facts about the caller's token that policies read, as attributes of the context only. */
  readonly contextFacts: CedarAttributes
  /** All facts about the caller's token, for the audit log. */
  readonly allFacts: Facts
  readonly parents: readonly Uid[]
  /** Attributes whose values have no Cedar representation. */
  readonly unusable: ReadonlySet<string>
  /** Key that is equal for callers that no policy can distinguish. */
  readonly fingerprint: string
  /** True when every request is denied, because required claims are unavailable. */
  readonly denyAll: boolean
}

const claimPrefix = 'claim_'
const principalType = 'Client'
const wellKnownGroupClaims = ['groups', 'roles', 'cognito:groups'] as const

export interface Wanted {
  /** True for claims that a policy reads. */
  readonly claim: (attribute: string) => boolean
  /** True for facts that a policy reads. */
  readonly fact: (name: TokenFact) => boolean
}

/**
 * Creates a subject. `claims` contains the claims that policies read. Without a `sub` claim, the caller identifies the
 * principal.
 */
export function makeSubject(
  claims: Claims,
  caller: Caller,
  rules: ClaimRules,
  wanted: Wanted,
): PolicySubject {
  const { sub } = claims
  const id = typeof sub === 'string' && sub !== '' ? sub : caller.subject
  const { attributes, unusable } = claimAttributes(claims, wanted.claim)
  const allFacts = factsOf(caller)
  const { actor, ...facts } = Object.fromEntries(
    Object.entries(allFacts).filter(([name]) => wanted.fact(name as TokenFact)),
  )
  const contextFacts = actor === undefined ? {} : { actor }
  const groups = [...new Set([...groupsOf(claims, rules), ...rolesOf(claims, rules)])].sort()
  const parents = groups.map((group) => ({ type: rules.groupEntityType, id: group }))
  const named = [{ ...facts, ...contextFacts }, attributes].map((values) =>
    Object.entries(values).sort(byName),
  )
  const text = JSON.stringify([id, groups, ...named, [...unusable].sort()])
  return {
    principal: { type: principalType, id },
    claims,
    attributes,
    facts,
    contextFacts,
    allFacts,
    parents,
    unusable,
    fingerprint: hash('sha256', text, 'base64url'),
    denyAll:
      ![id, ...Object.values({ ...facts, ...contextFacts })].every((value) => value.isWellFormed()) ||
      !isWithinGroupLimit([id, ...groups]),
  }
}

export type TokenFact = (typeof tokenFacts)[number]

/** Facts that have no value are omitted. */
type Facts = Readonly<Partial<Record<TokenFact, string>>>

function factsOf(caller: Caller): Facts {
  const { kind, clientId, authMethod, actor } = caller.facts ?? callerFacts(caller.claims)
  const { issuer } = caller
  return {
    kind,
    ...(issuer !== '' && { issuer }),
    ...(clientId !== undefined && { clientId }),
    ...(authMethod !== undefined && { authMethod }),
    ...(actor !== undefined && { actor }),
  }
}

/** Returns false when the groups exceed the limit, because omitting groups could evade a forbid. */
function isWithinGroupLimit(names: readonly string[]): boolean {
  const budget = new Budget()
  return names.every((name) => budget.take(name.length))
}

/** Returns a subject that has no permissions. */
export function denyAll(id: string): PolicySubject {
  return {
    principal: { type: principalType, id },
    claims: undefined,
    attributes: {},
    facts: {},
    contextFacts: {},
    allFacts: {},
    parents: [],
    unusable: new Set(),
    fingerprint: 'denyAll',
    denyAll: true,
  }
}

function byName([a]: [string, CedarValue], [b]: [string, CedarValue]): number {
  return a < b ? -1 : 1
}

function claimAttributes(
  claims: Claims,
  wants: (attribute: string) => boolean,
): { attributes: CedarAttributes; unusable: ReadonlySet<string> } {
  const attributes: [string, CedarValue][] = []
  const unusable = new Set<string>()
  const budget = new Budget()
  function add(name: string, claim: unknown): void {
    if (claim === null || claim === undefined || !wants(name)) return
    const value = toCedar(claim, budget)
    if (value === undefined || !name.isWellFormed() || !budget.take(name.length)) unusable.add(name)
    else attributes.push([name, value])
  }
  for (const [name, claim] of Object.entries(claims)) add(`${claimPrefix}${name}`, claim)
  return { attributes: Object.fromEntries(attributes), unusable }
}

/** Returns the groups in the configured claim, or else in a well-known claim. */
export function groupsOf(
  claims: Claims,
  { groupClaimName }: Pick<ClaimRules, 'groupClaimName'>,
): readonly string[] {
  const named = groupClaimName === undefined ? undefined : claimAt(claims, groupClaimName)
  if (Array.isArray(named)) return texts(named)
  for (const name of wellKnownGroupClaims) {
    const groups = ownClaim(claims, name)
    if (Array.isArray(groups)) return texts(groups)
  }
  return []
}

function rolesOf(claims: Claims, { roleClaimName }: ClaimRules): readonly string[] {
  const roles = roleClaimName === undefined ? undefined : claimAt(claims, roleClaimName)
  return Array.isArray(roles) ? texts(roles) : []
}

/** Returns the claim with exactly this name, or else the claim at this dotted path. */
function claimAt(claims: Claims, name: string): unknown {
  const exact = ownClaim(claims, name)
  if (exact !== undefined) return exact
  let at: unknown = claims
  for (const step of name.split('.'))
    at = typeof at === 'object' && at !== null ? ownClaim(at, step) : undefined
  return at
}

function ownClaim(claims: object, name: string): unknown {
  return Object.hasOwn(claims, name) ? (claims as Claims)[name] : undefined
}

/** Returns the valid strings in a list, and ignores all other elements. */
function texts(list: readonly unknown[]): string[] {
  return list.filter((item): item is string => typeof item === 'string' && item !== '' && item.isWellFormed())
}
