/**
 * The grant jwt-bearer: a token of a trusted issuer for an access token of this server, without a client.
 *
 * Every rejected assertion gets the same response. The audit log contains the reason.
 * Source: RFC 7523 section 2.1; RFC 7521 section 4.1; RFC 8707 section 2.
 */
import type { Exchange } from '../../net/index.ts'
import type { AssertionPolicy } from '../clients/assertion-policies.ts'
import { replayKey, replayMs } from '../clients/client-assertion.ts'
import {
  claimedIssuer,
  type VerifiedGrantAssertion,
  verifyGrantAssertion,
} from '../clients/grant-assertion.ts'
import { type AuthServerContext, nowSec } from '../login/context.ts'
import { makeEvent } from '../model/events.ts'
import { issuerSubject } from '../model/identifiers.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { takePermission, tooManyRequests } from '../storage/limits.ts'
import { signAccessToken, tokenType } from '../tokens/jwt.ts'
import type { Parameters } from './form.ts'
import { markTokenProof, readTokenBinding } from './token-proof.ts'
import {
  type AnyRequest,
  readMachineResource,
  readMachineScopes,
  type TokenResponse,
} from './token-request.ts'

export const jwtBearerGrant = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

const lifeSec = 900

/** True when the server has a policy for at least one issuer. */
export function acceptsAssertions({ assertionPolicies }: AuthServerContext): boolean {
  return assertionPolicies.issuers().length > 0
}

/** Issues a token for the subject of an assertion. */
export async function issueForAssertion(
  { exchange, form }: AnyRequest,
  context: AuthServerContext,
): Promise<TokenResponse> {
  requireNoClient(exchange, form)
  const assertion = form.require('assertion')
  const claimed = claimedIssuer(assertion)
  if (typeof claimed === 'string') throw grantError(claimed)
  const policy = context.assertionPolicies.find(claimed.issuer)
  if (!policy) throw grantError('no trusted issuer issued the assertion')
  const verified = await verify(assertion, policy, context)
  const subject = issuerSubject(policy.issuer.issuerUrl, verified.subject)
  const binding = policy.bindings.find(({ matches }) => matches(verified.claims))
  if (!binding) throw grantError('no binding matches the assertion', subject)
  const { clientId } = binding
  const scopes = readMachineScopes(form, binding)
  const audience = readMachineResource(form, binding, context)
  const proved = await readTokenBinding(exchange, {}, context)
  await markAsUsed(verified, { policy, subject }, context)
  if (proved.proof) await markTokenProof(proved.proof, subject, context)
  const accessToken = await signAccessToken(context.keys(), {
    issuer: context.config.issuer,
    subject,
    clientId,
    authMethod: 'jwt_bearer',
    scopes,
    audience: [audience],
    nowSec: nowSec(context),
    lifeSec,
    binding: proved.binding,
  })
  return {
    body: {
      access_token: accessToken,
      token_type: tokenType(proved.binding),
      expires_in: lifeSec,
      scope: scopes.join(' '),
    },
    event: makeEvent('token_issued', { clientId, userId: subject }),
  }
}

/** The assertion alone identifies the caller. A client id without proof is ignored (RFC 7521 section 4.1). */
function requireNoClient({ req }: Exchange, form: Parameters): void {
  const names = ['client_secret', 'client_assertion', 'client_assertion_type']
  if (req.headers.authorization === undefined && !names.some((name) => form.has(name))) return
  throw new OAuthError('invalid_request', 'this grant does not support client authentication')
}

async function verify(
  assertion: string,
  policy: AssertionPolicy,
  { config, urls, issuerKeys, now }: AuthServerContext,
): Promise<VerifiedGrantAssertion> {
  const { issuer, maxAgeMs } = policy
  // A resource as audience would make the issuer's access tokens grants as well.
  const audiences =
    policy.acceptedAudiences ??
    [config.issuer, urls.token].filter((audience) => !config.allowedAudiences.includes(audience))
  const verified = await issuerKeys.verify(issuer, (keys) =>
    verifyGrantAssertion(assertion, { issuer, audiences, maxAgeMs, keys, now }),
  )
  if (verified === undefined) throw grantError("the issuer's keys cannot be read")
  if (typeof verified === 'string') throw grantError(verified)
  return verified
}

/** Takes a permit, and marks the assertion if it can be used only once. Call this after all checks. */
async function markAsUsed(
  { subject: sub, jti, expSec }: VerifiedGrantAssertion,
  { policy: { issuer, replay }, subject }: { readonly policy: AssertionPolicy; readonly subject: string },
  { state, now }: AuthServerContext,
): Promise<void> {
  const mark = replayKey({ purpose: 'jwt-bearer', issuer: issuer.issuerUrl, subject: sub, jti })
  const isOnce = replay === 'once'
  const used = (): OAuthError => grantError('the assertion has already been used', subject)
  // Checked before the limit, so that a stolen used assertion cannot use up the subject's permits.
  if (isOnce && (await state.store.get(mark)) !== undefined) throw used()
  const waitMs = await takePermission(state.store, 'grantAssertion', {
    issuer: issuer.issuerUrl,
    host: subject,
  })
  if (waitMs > 0) throw tooManyRequests(waitMs)
  if (!isOnce) return
  // The number of subjects is unlimited, so their records must not displace the records of signed-in users.
  const options = { ttlMs: replayMs({ expSec }, now()), onlyIf: 'absent', yields: true } as const
  if (!(await state.store.set(mark, '1', options))) throw used()
}

/** `subject` is set once the signature is verified. `reason` is for the audit log. */
function grantError(reason: string, subject?: string): OAuthError {
  return new OAuthError('invalid_grant', 'the assertion is not accepted', {
    rejection: { reason, ...(subject === undefined ? {} : { userId: subject }) },
  })
}
