/**
 * Three endpoints about tokens that exist: revocation, introspection, userinfo.
 *
 * A client learns and ends what is its own and nothing else. In doubt a token is not active, and revoking what is not
 * there succeeds: neither endpoint tells an untrusted client whether a token exists.
 * Source: RFC 7009, RFC 7662, OpenID Connect Core section 5.3, RFC 6750 section 3.
 */
import type { Exchange } from '../../net/index.ts'
import { type AuthServerContext, nowSec } from '../login/context.ts'
import { sessionHash } from '../../observe/index.ts'
import { shownClient } from '../model/events.ts'
import { personal } from '../tokens/jwt.ts'
import { type AccessTokenClaims, verifyAccessToken } from '../tokens/verify-access-token.ts'
import { sendEmpty, sendPrivate } from './responses.ts'
import {
  bearerToken,
  clientCredentials,
  formOf,
  type Parameters,
  readBodyIfAny,
  refuseRepeated,
} from './form.ts'
import { OAuthError } from '../model/oauth-error.ts'
import { sha256 } from '../model/identifiers.ts'

/** POST /oauth/revoke: either kind of token ends its grant, and with the last grant the upstream tokens. */
export async function revoke(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const form = await formOf(exchange)
  refuseRepeated(form)
  const client = await context.clients.authenticate(clientCredentials(exchange, form))
  const token = form.require('token')
  const found = await grantOf(token, context)
  if (found && found.clientId === client.id) {
    await context.sessions.endGrant(found.sessionId, found.grantId)
    context.emit({
      type: 'grant_ended',
      outcome: 'success',
      clientId: shownClient(client.id),
      userId: found.userId,
      sessionHash: sessionHash(found.sessionId),
      reason: 'revoked by the client',
    })
  }
  sendEmpty(exchange, 200)
}

interface Found {
  readonly sessionId: string
  readonly grantId: string
  readonly clientId: string
  readonly userId: string
}

/** The grant behind a token. An old refresh token of a living family names it as well. */
async function grantOf(token: string, context: AuthServerContext): Promise<Found | undefined> {
  const refresh = await context.grants.inspectRefreshToken(token)
  if (refresh) return refresh.family
  const claims = await verifyAccessToken(token, context, { evenExpired: true })
  const session = claims && (await context.sessions.get(claims.tsid))
  const grant = session?.grants.find(({ id }) => sha256(id) === claims?.gid)
  if (!session || !grant) return undefined
  return { sessionId: session.id, grantId: grant.id, clientId: session.clientId, userId: session.userId }
}

/** POST /oauth/introspect: by a confidential client, or by any client with its own access token as Bearer. */
export async function introspect(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const form = await formOf(exchange)
  refuseRepeated(form)
  const requester = await authenticateRequester(exchange, form, context)
  const token = form.require('token')
  sendPrivate(exchange, 200, (await describeToken(token, requester, context)) ?? { active: false })
}

interface Requester {
  readonly clientId: string
  /** Set when the requester is a user's token: then only that user's tokens are told about. */
  readonly userId: string | undefined
}

async function authenticateRequester(
  exchange: Exchange,
  form: Parameters,
  context: AuthServerContext,
): Promise<Requester> {
  const presented = bearerToken(exchange)
  if (presented !== undefined) {
    const claims = await verifyAccessToken(presented, context)
    if (claims) return { clientId: claims.client_id, userId: claims.sub }
    throw new OAuthError('invalid_token', 'the access token is not valid', {
      headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
    })
  }
  const client = await context.clients.authenticate(clientCredentials(exchange, form))
  if (client.authMethod !== 'none') return { clientId: client.id, userId: undefined }
  // A public client proves nothing: anybody could ask in its name.
  throw new OAuthError(
    'invalid_client',
    'introspection needs a client secret, or an access token as Bearer',
    {
      headers: { 'WWW-Authenticate': 'Bearer' },
    },
  )
}

async function describeToken(
  token: string,
  requester: Requester,
  context: AuthServerContext,
): Promise<Record<string, unknown> | undefined> {
  const mine = (clientId: string, userId: string): boolean =>
    clientId === requester.clientId && (requester.userId === undefined || requester.userId === userId)
  const refresh = await context.grants.inspectRefreshToken(token)
  if (refresh) {
    const { family, isCurrent } = refresh
    if (!isCurrent || !mine(family.clientId, family.userId)) return undefined
    return {
      active: true,
      client_id: family.clientId,
      sub: family.userId,
      scope: family.scopes.join(' '),
      iss: context.config.issuer,
      exp: Math.floor(family.expiresAtMs / 1000),
      iat: Math.floor(family.rotatedAtMs / 1000),
    }
  }
  const claims = await verifyAccessToken(token, context)
  if (!claims || claims.exp <= nowSec(context) || !mine(claims.client_id, claims.sub)) return undefined
  const { client_id, sub, scope, aud, exp, iat, jti } = claims
  return {
    active: true,
    token_type: 'Bearer',
    iss: context.config.issuer,
    client_id,
    sub,
    scope,
    aud,
    exp,
    iat,
    jti,
  }
}

/** GET or POST /oauth/userinfo. */
export async function userinfo(exchange: Exchange, context: AuthServerContext): Promise<void> {
  await readBodyIfAny(exchange)
  const claims = await bearerClaims(exchange, context)
  const scopes = claims.scope.split(' ')
  if (!scopes.includes('openid')) {
    throw new OAuthError('insufficient_scope', 'the scope openid is required', {
      headers: { 'WWW-Authenticate': 'Bearer error="insufficient_scope", scope="openid"' },
    })
  }
  const session = await context.sessions.get(claims.tsid)
  sendPrivate(exchange, 200, { sub: claims.sub, ...personal(scopes, session ?? {}) })
}

async function bearerClaims(exchange: Exchange, context: AuthServerContext): Promise<AccessTokenClaims> {
  const presented = bearerToken(exchange)
  const claims = presented === undefined ? undefined : await verifyAccessToken(presented, context)
  if (claims) return claims
  throw new OAuthError('invalid_token', 'a valid access token is required as Bearer', {
    headers: { 'WWW-Authenticate': presented === undefined ? 'Bearer' : 'Bearer error="invalid_token"' },
  })
}
