/**
 * Verifies a subject token of a trusted issuer: an access token that a declared client exchanges.
 *
 * The issuer's token must contain a client that the policy accepts, or the requesting client in `may_act`. A token that
 * was already delegated (`act`) is rejected, because this server cannot check the earlier actors.
 * Source: RFC 8693 sections 2.1 and 4.4; RFC 9068 section 4; RFC 8725.
 */
import type { JWTPayload } from 'jose'
import { isFields } from '../../../../schemas/index.ts'
import { callerFacts } from '../../../net/index.ts'
import {
  accessTokenTypes,
  hasIdTokenClaims,
  type Keys,
  maxTokenLength,
  TokenRefused,
  verifyJwt,
} from '../../../oauth/index.ts'
import { machineSubject } from '../../model/identifiers.ts'
import { parseScope } from '../../model/scopes.ts'
import { maxSubjectLength } from '../grant-assertion.ts'
import type { ExchangePolicy } from './exchange-policies.ts'

export interface ExternalSubject {
  readonly sub: string
  /** The client that the token names. */
  readonly actor: string | undefined
  readonly scopes: readonly string[]
  /** Unix seconds. */
  readonly expSec: number
  /** The claim `cnf`; undefined if the token is a bearer token. */
  readonly cnf: unknown
}

export interface ExternalSubjectRules {
  readonly policy: ExchangePolicy
  /** The client that requests the exchange. */
  readonly clientId: string
  /** Issuer of this server. */
  readonly issuer: string
  readonly keys: Keys
  readonly now: () => number
}

/**
 * Returns the subject, or why the token is rejected, in fixed wording. Rejects with OAuthClientError when the keys are
 * unavailable.
 */
export async function readExternalSubject(
  token: string,
  rules: ExternalSubjectRules,
): Promise<ExternalSubject | string> {
  const { policy, clientId, keys, now } = rules
  if (!policy.allows(clientId)) return 'the client may not exchange tokens of this issuer'
  if (token.length > maxTokenLength) return 'the subject token is larger than 16 KiB'
  try {
    const claims = await verifyJwt(token, {
      keys,
      issuer: policy.issuerUrl,
      audience: policy.expectedAudience,
      types: accessTokenTypes,
      now,
    })
    return checkClaims(claims, rules)
  } catch (error) {
    if (error instanceof TokenRefused) return `the subject token is invalid: ${error.reason}`
    throw error
  }
}

function checkClaims(claims: JWTPayload, rules: ExternalSubjectRules): ExternalSubject | string {
  const { policy } = rules
  const { sub, exp } = claims
  if (hasIdTokenClaims(claims) || Object.hasOwn(claims, 'nonce')) return 'the subject token is an ID token'
  if (typeof sub !== 'string' || sub === '' || sub.length > maxSubjectLength)
    return 'the subject token has no usable sub'
  if (exp === undefined) return 'the subject token has no exp'
  if (callerFacts(claims, 'external').kind === 'machine') return 'the subject token does not belong to a user'
  if (Object.hasOwn(claims, 'act')) return 'the subject token was already delegated'
  const violation = actorViolation(claims, rules)
  if (violation !== undefined) return violation
  const cnf: unknown = claims['cnf'] ?? undefined
  return { sub, actor: policy.actorIn(claims), scopes: scopesIn(claims), expSec: exp, cnf }
}

/** Returns the reason why the token does not allow the client to act for the user; undefined if it allows this. */
function actorViolation(
  claims: JWTPayload,
  { policy, clientId, issuer }: ExternalSubjectRules,
): string | undefined {
  if (!Object.hasOwn(claims, 'may_act'))
    return policy.acceptsActor(claims) ? undefined : 'the client named in the subject token is not accepted'
  if (!policy.allowMayAct) return 'may_act is not accepted from this issuer'
  const { may_act: party } = claims
  // Requires `iss`, because the issuer could otherwise refer to one of its own clients with the same id.
  const isNamed =
    isFields(party) &&
    party['iss'] === issuer &&
    (party['sub'] === clientId || party['sub'] === machineSubject(clientId))
  return isNamed ? undefined : 'may_act does not name the client'
}

/** Returns the scopes in `scope`, or in `scp` if `scope` is absent. `scp` is a string or a list. */
function scopesIn({ scope, scp }: JWTPayload): readonly string[] {
  const granted = scope ?? scp
  if (typeof granted === 'string') return parseScope(granted)
  return Array.isArray(granted) ? granted.filter((item): item is string => typeof item === 'string') : []
}
