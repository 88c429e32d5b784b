/**
 * Declared clients that authenticate without a secret, with the token of a trusted issuer. Examples are the tokens of a
 * ServiceAccount and of a CI job.
 *
 * The unverified `iss` and `sub` only select the client. The caller of this module marks the token as used.
 * Source: RFC 7521 section 4.2; RFC 7523 sections 2.2 and 3; draft-ietf-oauth-rfc7523bis-10 (audience, typ).
 */
import { decodeJwt } from 'jose'
import { replayKey, type VerifiedClientAssertion } from './client-assertion.ts'
import type { FederatedClient } from './declared-clients.ts'
import { verifyGrantAssertion } from './grant-assertion.ts'
import type { IssuerKeys } from './issuer-keys.ts'

interface FederatedRules {
  /** Issuer of this server, which must be the only audience. */
  readonly self: string
  readonly issuerKeys: IssuerKeys
  readonly now: () => number
}

/** Returns the issuer and the subject in an unverified token, if they differ. */
export function claimedIdentity(
  assertion: string,
): { readonly issuer: string; readonly subject: string } | undefined {
  try {
    const { iss, sub } = decodeJwt(assertion)
    if (iss === undefined || sub === undefined || iss === sub) return undefined
    return { issuer: iss, subject: sub }
  } catch {
    return undefined
  }
}

/**
 * Returns the verified token, or the reason for its rejection in fixed wording. Rejects with AUTH_UNAVAILABLE while the
 * issuer's keys are unavailable.
 */
export async function verifyFederatedAssertion(
  assertion: string,
  { issuer, maxAgeMs, matches, replay }: FederatedClient,
  { self, issuerKeys, now }: FederatedRules,
): Promise<VerifiedClientAssertion | string> {
  const rules = { issuer, audiences: [self], maxAgeMs, types: ['jwt', 'client-authentication+jwt'], now }
  const verified = await issuerKeys.verify(issuer, (keys) =>
    verifyGrantAssertion(assertion, { ...rules, keys }),
  )
  if (verified === undefined) return "the issuer's keys cannot be read"
  if (typeof verified === 'string') return verified
  if (!matches(verified.claims)) return "the assertion does not match the client's identity"
  const { subject, jti, expSec } = verified
  // Uses the same purpose as grants, so that a token is not accepted once as a grant and once here.
  const mark = replayKey({ purpose: 'jwt-bearer', issuer: issuer.issuerUrl, subject, jti })
  return { mark, expSec, isOnce: replay === 'once' }
}
