/**
 * Subjects of trusted issuers that obtain tokens through the jwt-bearer grant: platforms without a client, and users of
 * an identity provider through an authenticated client (ID-JAG).
 *
 * The issuer, the selector and the type of assertion determine the id of a binding. The tokens of the binding contain
 * this id. Removing a binding invalidates its tokens immediately, as removing a client does (`declared-clients.ts`).
 * The policies are reloaded every few seconds.
 * Source: RFC 7523 section 2.1; draft-ietf-oauth-identity-assertion-authz-grant;
 * docs/reference/specification/external-auth.md#embeddedAuthServer.
 */
import { compileBoundedCel, GatehouseError } from '../../../schemas/index.ts'
import type {
  AssertionPolicySettings,
  SubjectBindingSettings,
  TrustedIssuerSettings,
} from '../../config/index.ts'
import { assertionClientId, compoundKey } from '../model/identifiers.ts'
import { PendingRemovals } from './pending-removals.ts'

type Claims = Readonly<Record<string, unknown>>

export interface AssertionBinding {
  /** Client id of the tokens. */
  readonly clientId: string
  readonly matches: (claims: Claims) => boolean
  readonly scopes: readonly string[]
  readonly resources: readonly string[]
}

/** A binding for users of an identity provider. */
export interface UserBinding {
  /** Id of the binding, which its tokens contain. The client of these tokens is the client that authenticated. */
  readonly bindingId: string
  readonly matches: (claims: Claims) => boolean
  /** Allowed scopes. If undefined, the assertion and the client determine the scopes. */
  readonly scopes: readonly string[] | undefined
  /** Allowed resources. If undefined, all resources of the client are allowed. */
  readonly resources: readonly string[] | undefined
}

export interface AssertionPolicy extends Omit<AssertionPolicySettings, 'bindings'> {
  /** Empty unless `types` contains `jwt_bearer`. */
  readonly bindings: readonly AssertionBinding[]
  /** Empty unless `types` contains `id_jag`. */
  readonly userBindings: readonly UserBinding[]
}

type AssertionType = AssertionPolicySettings['types'][number]

type ReadPolicies = () => readonly AssertionPolicySettings[]

export class AssertionPolicies {
  readonly #read: ReadPolicies
  readonly #now: () => number
  readonly #removals = new PendingRemovals()
  #loaded: Loaded

  /** Throws INVALID_CONFIG for an invalid matcher. */
  constructor(read: ReadPolicies, now: () => number) {
    this.#read = read
    this.#now = now
    this.#loaded = load(read())
  }

  /** Returns the policy for an issuer, which is compared exactly. */
  find(issuerUrl: string): AssertionPolicy | undefined {
    return this.#loaded.byIssuer.get(issuerUrl)
  }

  issuers(): readonly TrustedIssuerSettings[] {
    return [...this.#loaded.byIssuer.values()].map(({ issuer }) => issuer)
  }

  /** True when a policy accepts this type of assertion. */
  accept(type: AssertionType): boolean {
    return [...this.#loaded.byIssuer.values()].some(({ types }) => types.includes(type))
  }

  /**
   * Reloads the policies. Rejects with INVALID_CONFIG and keeps all previous policies when the file is invalid. Calls
   * `storeRemoval` for each removed binding. If `storeRemoval` rejects, the next reload calls it again.
   */
  async reload(storeRemoval: (clientId: string) => Promise<void>): Promise<void> {
    const next = load(this.#read())
    this.#removals.record(this.#loaded.clientIds.difference(next.clientIds), this.#now())
    this.#loaded = next
    await this.#removals.store(storeRemoval)
  }

  /** True if the binding exists and every removal of it after this time has been stored. */
  isBoundSince(clientId: string, sinceSec: number): boolean {
    return this.#loaded.clientIds.has(clientId) && !this.#removals.hasSince(clientId, sinceSec)
  }
}

interface Loaded {
  readonly byIssuer: ReadonlyMap<string, AssertionPolicy>
  readonly clientIds: ReadonlySet<string>
}

function load(settings: readonly AssertionPolicySettings[]): Loaded {
  const policies = settings.map((policy): AssertionPolicy => {
    const { issuer, types, bindings = [] } = policy
    return {
      ...policy,
      bindings: types.includes('jwt_bearer')
        ? bindings.map((binding) => toBinding(issuer.issuerUrl, binding))
        : [],
      userBindings: types.includes('id_jag') ? toUserBindings(policy) : [],
    }
  })
  return {
    byIssuer: new Map(policies.map((policy) => [policy.issuer.issuerUrl, policy])),
    clientIds: new Set(
      policies.flatMap(({ bindings, userBindings }) => [
        ...bindings.map(({ clientId }) => clientId),
        ...userBindings.map(({ bindingId }) => bindingId),
      ]),
    ),
  }
}

function toUserBindings({ issuer: { issuerUrl }, bindings }: AssertionPolicySettings): UserBinding[] {
  const idOf = (selector: string): string => assertionClientId(issuerUrl, 'id_jag', selector)
  if (bindings === undefined)
    return [{ bindingId: idOf(''), matches: () => true, scopes: undefined, resources: undefined }]
  return bindings.map(({ subject, matcher = '', scopes, resources }) => ({
    bindingId: idOf(
      subject === undefined ? compoundKey('matcher', matcher) : compoundKey('subject', subject),
    ),
    // The same subject in another tenant is a different user. A matcher can compare the tenant.
    matches:
      subject === undefined
        ? claimMatcher(matcher)
        : ({ sub, tenant }) => sub === subject && tenant === undefined,
    scopes,
    resources,
  }))
}

function toBinding(
  issuerUrl: string,
  { subject, matcher = '', scopes, resources }: SubjectBindingSettings,
): AssertionBinding {
  const rights = { scopes, resources }
  return subject === undefined
    ? {
        ...rights,
        clientId: assertionClientId(issuerUrl, 'matcher', matcher),
        matches: claimMatcher(matcher),
      }
    : {
        ...rights,
        clientId: assertionClientId(issuerUrl, 'subject', subject),
        matches: ({ sub }) => sub === subject,
      }
}

/** An expression that fails, for example because a claim is missing, does not match. */
export function claimMatcher(expression: string): (claims: Claims) => boolean {
  const program = compileBoundedCel(expression)
  return (claims) => {
    try {
      return program({ claims }) === true
    } catch (error) {
      if (error instanceof GatehouseError) return false
      throw error
    }
  }
}
