/**
 * Policies for token exchange: which tokens of trusted issuers the declared clients may exchange.
 *
 * The issuer and the rules of a policy determine its id, which the exchanged tokens contain. Changing or removing a
 * policy invalidates its earlier tokens, as removing a binding does (`assertion-policies.ts`). The policies are
 * reloaded every few seconds.
 * Source: RFC 8693 section 2; docs/guides/authorization-server.md, "Tokens of other issuers".
 */
import type { ExchangePolicySettings, TrustedIssuerSettings } from '../../../config/index.ts'
import { exchangePolicyId } from '../../model/identifiers.ts'
import { claimMatcher } from '../assertion-policies.ts'
import { PendingRemovals } from '../pending-removals.ts'

type Claims = Readonly<Record<string, unknown>>

export interface ExchangePolicy {
  /** Id of the policy, which the exchanged tokens contain. */
  readonly id: string
  readonly issuer: TrustedIssuerSettings
  readonly issuerUrl: string
  readonly expectedAudience: string
  readonly allowMayAct: boolean
  /** Returns the client in the issuer's token; undefined if the token contains no client. */
  readonly actorIn: (claims: Claims) => string | undefined
  /** True when the client in the issuer's token may let a declared client act for the user. */
  readonly acceptsActor: (claims: Claims) => boolean
  /** True when the declared client may exchange the issuer's tokens. */
  readonly allows: (clientId: string) => boolean
}

type ReadPolicies = () => readonly ExchangePolicySettings[]

export class ExchangePolicies {
  readonly #read: ReadPolicies
  readonly #now: () => number
  readonly #removals = new PendingRemovals()
  #policies: readonly ExchangePolicy[]

  /** Throws INVALID_CONFIG for an invalid matcher. */
  constructor(read: ReadPolicies, now: () => number) {
    this.#read = read
    this.#now = now
    this.#policies = read().map(toPolicy)
  }

  all(): readonly ExchangePolicy[] {
    return this.#policies
  }

  /** Returns the policy for an issuer, which is compared exactly. */
  ofIssuer(issuerUrl: string): ExchangePolicy | undefined {
    return this.#policies.find((policy) => policy.issuerUrl === issuerUrl)
  }

  get(policyId: string): ExchangePolicy | undefined {
    return this.#policies.find(({ id }) => id === policyId)
  }

  /** True when a policy lets the client exchange the tokens of its issuer. */
  allows(clientId: string): boolean {
    return this.#policies.some((policy) => policy.allows(clientId))
  }

  /**
   * Reloads the policies. Rejects with INVALID_CONFIG and keeps all previous policies when the file is invalid. Calls
   * `storeRemoval` for each changed or removed policy. If `storeRemoval` rejects, the next reload calls it again.
   */
  async reload(storeRemoval: (policyId: string) => Promise<void>): Promise<void> {
    const next = this.#read().map(toPolicy)
    const kept = new Set(next.map(({ id }) => id))
    this.#removals.record(
      this.#policies.map(({ id }) => id).filter((id) => !kept.has(id)),
      this.#now(),
    )
    this.#policies = next
    await this.#removals.store(storeRemoval)
  }

  /** True if the policy exists and every removal of it after this time has been stored. */
  isKnownSince(policyId: string, sinceSec: number): boolean {
    return this.get(policyId) !== undefined && !this.#removals.hasSince(policyId, sinceSec)
  }
}

function toPolicy(settings: ExchangePolicySettings): ExchangePolicy {
  const { issuer, expectedAudience, actorClaim, allowMayAct } = settings
  const { allowedActors = [], actorMatcher, allowedDelegateClients } = settings
  const { issuerUrl } = issuer
  const matches = actorMatcher === undefined ? undefined : claimMatcher(actorMatcher)
  const actorIn = (claims: Claims): string | undefined => {
    const actor = Object.hasOwn(claims, actorClaim) ? claims[actorClaim] : undefined
    return typeof actor === 'string' && actor !== '' ? actor : undefined
  }
  return {
    id: exchangePolicyId(issuerUrl, [
      expectedAudience,
      actorClaim,
      JSON.stringify([...allowedActors].sort()),
      actorMatcher ?? '',
      JSON.stringify([...allowedDelegateClients].sort()),
      String(allowMayAct),
    ]),
    issuer,
    issuerUrl,
    expectedAudience,
    allowMayAct,
    actorIn,
    acceptsActor(claims) {
      const actor = actorIn(claims)
      return actor !== undefined && (allowedActors.includes(actor) || matches?.(claims) === true)
    },
    allows: (clientId) => allowedDelegateClients.includes('*') || allowedDelegateClients.includes(clientId),
  }
}
