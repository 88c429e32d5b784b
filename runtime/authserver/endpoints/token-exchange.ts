/**
 * Token exchange: a declared client exchanges a user's access token for a token that names both (delegation).
 *
 * The new token grants at most what the exchanged token and the client have in common, and never outlives the exchanged
 * token. `act` is built from authenticated clients and verified tokens, and never copied from a request.
 * Source: RFC 8693 sections 2, 4.1 and 4.4; RFC 8707.
 */
import type { AuthenticatedMachine } from '../clients/client-directory.ts'
import { type AuthServerContext, canSignIn, nowSec } from '../login/context.ts'
import { makeEvent } from '../model/events.ts'
import { isMachineToken, machineSubject } from '../model/identifiers.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { parseScope, within } from '../model/scopes.ts'
import { actingClients, signDelegatedToken } from '../tokens/delegated-tokens.ts'
import { tokenType } from '../tokens/jwt.ts'
import { type AccessTokenClaims, verifyAccessToken } from '../tokens/verify-access-token.ts'
import { findResources } from './authorize.ts'
import type { Parameters } from './form.ts'
import type { ClientRequest, TokenResponse } from './token-request.ts'

export const tokenExchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'

const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'
/** Our access tokens are JWTs, so both types describe them. */
const tokenTypes: ReadonlySet<string> = new Set([accessTokenType, 'urn:ietf:params:oauth:token-type:jwt'])

/** True when users can sign in and a declared client may exchange their tokens. */
export function canExchangeTokens(context: AuthServerContext): boolean {
  const isDelegate = ({ subjectClients }: { readonly subjectClients: readonly string[] }): boolean =>
    subjectClients.length > 0
  return (
    context.config.tokenExchange !== undefined &&
    canSignIn(context) &&
    context.declared.all().some(isDelegate)
  )
}

export async function exchangeToken(
  { form, client, jkt }: ClientRequest,
  context: AuthServerContext,
): Promise<TokenResponse> {
  const { config, keys } = context
  const { tokenExchange } = config
  if (!tokenExchange || client.kind !== 'declared' || client.subjectClients.length === 0)
    throw new OAuthError('unauthorized_client', 'the client is not declared for token exchange')
  if ((form.get('requested_token_type') ?? accessTokenType) !== accessTokenType)
    throw new OAuthError('invalid_request', 'requested_token_type must be an access token')
  const request = { form, client, jkt }
  const subject = await readSubject(request, context)
  await checkActor(request, context)
  const actors = [client.id, ...subject.actors]
  if (actors.length > tokenExchange.maxDelegationDepth)
    throw rejected(client, 'the act chain would be too long')
  const scopes = readScopes(form, { subject, client })
  const audience = readResource(form, { subject, client }, context)
  const now = nowSec(context)
  const lifeSec = Math.min(Math.floor(tokenExchange.lifeMs / 1000), subject.exp - now)
  const token = await signDelegatedToken(keys(), {
    user: subject,
    actors,
    authMethod: client.authMethod,
    scopes,
    audience,
    issuer: config.issuer,
    nowSec: now,
    lifeSec,
    jkt,
  })
  return {
    body: {
      access_token: token,
      issued_token_type: accessTokenType,
      token_type: tokenType(jkt),
      expires_in: lifeSec,
      scope: scopes.join(' '),
    },
    event: makeEvent('token_exchanged', {
      clientId: client.id,
      userId: subject.sub,
      sessionId: subject.tsid,
    }),
  }
}

/** A verified subject token of a user. */
interface Subject {
  readonly sub: string
  readonly tsid: string
  readonly gid: string
  readonly sessionClientId: string
  readonly authTimeSec: number | undefined
  /** Clients that already act for the user, the current one first. */
  readonly actors: readonly string[]
  readonly scopes: readonly string[]
  readonly audience: readonly string[]
  readonly exp: number
}

interface MachineRequest extends Pick<ClientRequest, 'form' | 'jkt'> {
  readonly client: AuthenticatedMachine
}

interface Parties {
  readonly subject: Subject
  readonly client: AuthenticatedMachine
}

/** Throws OAuthError invalid_request (RFC 8693 section 2.2.2). The reason is in the audit log. */
async function readSubject(request: MachineRequest, context: AuthServerContext): Promise<Subject> {
  const { client } = request
  const claims = await verifyToken(request, 'subject_token', context)
  const { sub, client_id: holder, tsid, gid, exp, scope, aud } = claims
  if (isMachineToken(claims) || tsid === undefined || gid === undefined)
    throw rejected(client, 'the subject token does not belong to a user')
  if (!context.declared.mayExchange(client.id, holder))
    throw rejected(client, 'the client may not exchange tokens that were issued to this client')
  return {
    sub,
    tsid,
    gid,
    sessionClientId: claims.session_client_id ?? holder,
    authTimeSec: claims.auth_time,
    actors: actingClients(claims.act) ?? [],
    scopes: parseScope(scope),
    audience: aud,
    exp,
  }
}

/**
 * The client has already proved who it is. An actor token must therefore be the client's own token, and adds nothing to
 * the new token.
 */
async function checkActor(request: MachineRequest, context: AuthServerContext): Promise<void> {
  const { form, client } = request
  if (!form.has('actor_token')) {
    if (form.has('actor_token_type'))
      throw new OAuthError('invalid_request', 'actor_token_type requires actor_token')
    return
  }
  const { sub } = await verifyToken(request, 'actor_token', context)
  if (sub !== machineSubject(client.id))
    throw rejected(client, 'the actor token does not belong to the client')
}

/** Returns the claims of a live access token from this server. */
async function verifyToken(
  { form, client, jkt }: MachineRequest,
  name: 'subject_token' | 'actor_token',
  context: AuthServerContext,
): Promise<AccessTokenClaims> {
  const token = form.require(name)
  if (!tokenTypes.has(form.require(`${name}_type`)))
    throw new OAuthError('invalid_request', `${name}_type must be an access token or a JWT`)
  const claims = await verifyAccessToken(token, context)
  if (!claims) throw rejected(client, `the ${name} is not a valid access token from this server`)
  // The proof in the request must be signed with the key to which the token is bound.
  if (claims.cnf !== undefined && claims.cnf.jkt !== jkt)
    throw rejected(client, `the ${name} is bound to a key that the request does not prove`)
  return claims
}

function rejected({ id: clientId }: AuthenticatedMachine, reason: string): OAuthError {
  const text = 'the token is invalid, expired, revoked, or not for this client'
  return new OAuthError('invalid_request', text, { rejection: { clientId, reason } })
}

/** Returns the requested scopes, or else all scopes that the token and the client have in common. */
function readScopes(form: Parameters, { subject, client }: Parties): readonly string[] {
  const allowed = subject.scopes.filter((scope) => client.scopes.includes(scope))
  const requested = parseScope(form.get('scope') ?? '')
  if (!within(requested, allowed) || allowed.length === 0)
    throw new OAuthError('invalid_scope', 'the scope exceeds the subject token or the declared scopes')
  return requested.length > 0 ? requested : allowed
}

/** Returns the resource of the new token: one that the token and the client have in common. */
function readResource(form: Parameters, { subject, client }: Parties, context: AuthServerContext): string {
  const allowed = subject.audience.filter((resource) => client.resources.includes(resource))
  const requested = findResources([...form.all('resource'), ...form.all('audience')], context)
  const [resource, ...others] = requested.length > 0 ? requested : allowed
  if (resource === undefined || others.length > 0 || !allowed.includes(resource))
    throw new OAuthError('invalid_target', 'the resource must be one of the subject token and of the client')
  return resource
}
