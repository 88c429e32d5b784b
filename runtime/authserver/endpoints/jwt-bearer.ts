/**
 * The jwt-bearer grant: exchanges a token of a trusted issuer for an access token of this server. A platform's token
 * requires no client authentication. An identity assertion (ID-JAG) gives an authenticated client access for a user.
 *
 * Every rejected assertion gets the same response. The audit log contains the reason.
 * Source: RFC 7523 section 2.1; RFC 7521 section 4.1; RFC 8707 section 2;
 * draft-ietf-oauth-identity-assertion-authz-grant, section 4.4.
 */
import type { Exchange } from '../../net/index.ts'
import type { AssertionPolicy } from '../clients/assertion-policies.ts'
import { replayKey, replayMs } from '../clients/client-assertion.ts'
import { type AuthenticatedClient, clientAuthError } from '../clients/client-directory.ts'
import {
  claimedIssuer,
  type VerifiedGrantAssertion,
  verifyGrantAssertion,
} from '../clients/grant-assertion.ts'
import { type VerifiedIdentityAssertion, verifyIdentityAssertion } from '../clients/identity-assertion.ts'
import { type AuthServerContext, nowSec } from '../login/context.ts'
import { makeEvent } from '../model/events.ts'
import { issuerSubject } from '../model/identifiers.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { parseScope, userScopes } from '../model/scopes.ts'
import { takePermission, tooManyRequests } from '../storage/limits.ts'
import { signAccessToken, tokenType } from '../tokens/jwt.ts'
import { findResources } from './authorize.ts'
import type { Parameters } from './form.ts'
import { bindToken, markTokenProof, readTokenProof } from './token-proof.ts'
import {
  type AnyRequest,
  type ClientRequest,
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
  const policy = policyOf(assertion, context)
  const verified = await verify(assertion, policy, context)
  const subject = issuerSubject(policy.issuer.issuerUrl, verified.subject)
  const binding = policy.bindings.find(({ matches }) => matches(verified.claims))
  if (!binding) throw grantError('no binding matches the assertion', subject)
  const { clientId } = binding
  const scopes = readMachineScopes(form, binding)
  const audience = readMachineResource(form, binding, context)
  const proof = await readTokenProof(exchange, context)
  const { binding: tokenBinding } = bindToken(exchange, { proof }, context)
  const { issuer, replay } = policy
  const identity = { ...verified, issuerUrl: issuer.issuerUrl }
  await markAsUsed(identity, { isOnce: replay === 'once', subject }, context)
  if (proof) await markTokenProof(proof, subject, context)
  const accessToken = await signAccessToken(context.keys(), {
    issuer: context.config.issuer,
    subject,
    clientId,
    authMethod: 'jwt_bearer',
    scopes,
    audience: [audience],
    nowSec: nowSec(context),
    lifeSec,
    binding: tokenBinding,
  })
  return {
    body: {
      access_token: accessToken,
      token_type: tokenType(tokenBinding),
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

/** Returns the policy for the issuer in the unverified assertion. */
function policyOf(assertion: string, { assertionPolicies }: AuthServerContext): AssertionPolicy {
  const claimed = claimedIssuer(assertion)
  if (typeof claimed === 'string') throw grantError(claimed)
  const policy = assertionPolicies.find(claimed.issuer)
  if (!policy) throw grantError('no trusted issuer issued the assertion')
  return policy
}

/** Issues a token to a client for the user in an identity assertion. The client gets no refresh token. */
export async function issueForUser(
  { form, client, binding: proved }: ClientRequest,
  context: AuthServerContext,
): Promise<TokenResponse> {
  const { config, keys } = context
  if (client.authMethod === 'none')
    throw clientAuthError({ isBasic: false, id: client.id }, 'an identity assertion requires authentication')
  const assertion = form.require('assertion')
  const policy = policyOf(assertion, context)
  const verified = await verifyForClient(assertion, { policy, clientId: client.id, jkt: proved.jkt }, context)
  const { issuerUrl } = policy.issuer
  const subject = issuerSubject(issuerUrl, verified.subject, verified.tenant)
  const binding = policy.userBindings.find(({ matches }) => matches(verified.claims))
  if (!binding) throw grantError('no binding matches the assertion', subject)
  const rights = rightsOf(client, context)
  const allowed = rights.scopes.filter((scope) => binding.scopes?.includes(scope) ?? true)
  const scopes = grantedScopes(form, verified, allowed)
  const among = binding.resources ?? rights.resources
  const resources = namedResources(verified, context) ?? rights.resources
  const usable = resources.filter((one) => among.includes(one) && rights.resources.includes(one))
  const audience = readMachineResource(form, { resources: usable }, context)
  await markAsUsed({ ...verified, issuerUrl }, { isOnce: true, subject }, context)
  const accessToken = await signAccessToken(keys(), {
    issuer: config.issuer,
    subject,
    clientId: client.id,
    authMethod: client.authMethod,
    scopes,
    audience: [audience],
    nowSec: nowSec(context),
    lifeSec: rights.lifeSec,
    binding: proved,
    more: { auth_time: verified.authTimeSec, binding_id: binding.bindingId },
  })
  return {
    body: {
      access_token: accessToken,
      token_type: tokenType(proved),
      expires_in: rights.lifeSec,
      ...(scopes.length > 0 ? { scope: scopes.join(' ') } : {}),
    },
    event: makeEvent('token_issued', { clientId: client.id, userId: subject }),
  }
}

interface ClientRights {
  readonly scopes: readonly string[]
  readonly resources: readonly string[]
  readonly lifeSec: number
}

/** A client with a metadata document may request every scope that the server supports. */
function rightsOf(client: AuthenticatedClient, { config }: AuthServerContext): ClientRights {
  if (client.kind === 'declared')
    return {
      scopes: client.scopes,
      resources: client.resources,
      lifeSec: Math.floor(client.tokenMs / 1000),
    }
  const scopes = config.scopesSupported.filter((scope) => !userScopes.has(scope))
  return { scopes, resources: config.allowedAudiences, lifeSec }
}

/**
 * Returns the allowed scopes that the request and the assertion have in common. An assertion without scopes grants no
 * scopes.
 */
function grantedScopes(
  form: Parameters,
  { scope: asserted = '' }: VerifiedIdentityAssertion,
  allowed: readonly string[],
): readonly string[] {
  const named = parseScope(asserted)
  const requested = parseScope(form.get('scope') ?? '')
  const wanted = requested.length > 0 ? requested : named
  const granted = wanted.filter((scope) => named.includes(scope) && allowed.includes(scope))
  if (granted.length === 0 && wanted.length > 0)
    throw new OAuthError('invalid_scope', 'the assertion and the client have no requested scope in common')
  return granted
}

/**
 * Returns the resources in an assertion; undefined if the assertion contains no resources. Each resource must belong to
 * this server.
 */
function namedResources(
  { resources }: VerifiedIdentityAssertion,
  context: AuthServerContext,
): readonly string[] | undefined {
  try {
    return resources && findResources(resources, context)
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    throw grantError('the assertion names a resource of another server')
  }
}

async function verifyForClient(
  assertion: string,
  {
    policy,
    clientId,
    jkt,
  }: {
    readonly policy: AssertionPolicy
    readonly clientId: string
    readonly jkt: string | undefined
  },
  { config, issuerKeys, now }: AuthServerContext,
): Promise<VerifiedIdentityAssertion> {
  const { issuer, userBindings } = policy
  if (userBindings.length === 0) throw grantError('identity assertions of this issuer are not accepted')
  const verified = await issuerKeys.verify(issuer, (keys) =>
    verifyIdentityAssertion(assertion, { issuer, self: config.issuer, clientId, jkt, keys, now }),
  )
  return accepted(verified)
}

async function verify(
  assertion: string,
  policy: AssertionPolicy,
  { config, urls, issuerKeys, now }: AuthServerContext,
): Promise<VerifiedGrantAssertion> {
  const { issuer, maxAgeMs } = policy
  // If a resource were an accepted audience, the issuer's access tokens would also be grants.
  const audiences =
    policy.acceptedAudiences ??
    [config.issuer, urls.token].filter((audience) => !config.allowedAudiences.includes(audience))
  const verified = await issuerKeys.verify(issuer, (keys) =>
    verifyGrantAssertion(assertion, { issuer, audiences, maxAgeMs, types: ['jwt'], keys, now }),
  )
  return accepted(verified)
}

/** Throws invalid_grant, with the reason, when the assertion was rejected or the keys cannot be read. */
function accepted<T extends object>(verified: T | string | undefined): T {
  if (verified === undefined) throw grantError("the issuer's keys cannot be read")
  if (typeof verified === 'string') throw grantError(verified)
  return verified
}

/** Takes a permit, and marks the assertion if it can be used only once. Call this after all checks. */
async function markAsUsed(
  {
    issuerUrl,
    subject: sub,
    jti,
    expSec,
  }: Pick<VerifiedGrantAssertion, 'subject' | 'jti' | 'expSec'> & { readonly issuerUrl: string },
  { isOnce, subject }: { readonly isOnce: boolean; readonly subject: string },
  { state, now }: AuthServerContext,
): Promise<void> {
  const mark = replayKey({ purpose: 'jwt-bearer', issuer: issuerUrl, subject: sub, jti })
  const used = (): OAuthError => grantError('the assertion has already been used', subject)
  // Checked before the limit, so that a stolen assertion that has already been used cannot use up the subject's
  // permits.
  if (isOnce && (await state.store.get(mark)) !== undefined) throw used()
  const waitMs = await takePermission(state.store, 'grantAssertion', {
    issuer: issuerUrl,
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
