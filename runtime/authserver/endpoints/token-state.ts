/**
 * Three endpoints for existing tokens: revocation, introspection and userinfo.
 *
 * A client can read and revoke only its own tokens. This server reports an unknown token as inactive, and revoking such
 * a token succeeds, so that neither endpoint reveals whether a token exists.
 * Source: RFC 7009, RFC 7662, OpenID Connect Core section 5.3, RFC 6750 section 3.
 */
import type { Exchange } from '../../net/index.ts'
import type { AuthenticatedClient, AuthenticatedMachine } from '../clients/client-directory.ts'
import { type AuthServerContext, nowSec } from '../login/context.ts'
import { makeEvent } from '../model/events.ts'
import { isMachineToken, machineSubject, sha256 } from '../model/identifiers.ts'
import { confirmationClaim } from '../../oauth/index.ts'
import { OAuthError } from '../model/oauth-error.ts'
import type { Grant, RegisteredClient } from '../model/records.ts'
import { isAsserted } from '../tokens/asserted-tokens.ts'
import { checkAuthMethod } from '../tokens/grants.ts'
import { personalClaims, tokenType } from '../tokens/jwt.ts'
import { type AccessTokenClaims, verifyAccessToken } from '../tokens/verify-access-token.ts'
import {
  discardBody,
  type Parameters,
  readBearerToken,
  readClientCredentials,
  readUniqueForm,
} from './form.ts'
import { sendEmpty, sendPrivate } from './responses.ts'

/**
 * POST /oauth/revoke: revoking an access token or a refresh token ends its grant. When the last grant of a session
 * ends, the upstream tokens are deleted. For a declared client, only the token itself is revoked: a token that the
 * client obtained for itself has no grant, and the grant behind a delegated token belongs to another client. The token
 * of a user of another identity provider has no grant either.
 */
export async function revokeToken(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const form = await readUniqueForm(exchange)
  const client = await authenticateClient(exchange, form, context)
  const token = form.require('token')
  if (client.kind === 'declared') await revokeOwnToken(token, requesterOf(client), context)
  else if (!(await revokeGrant(token, client, context)) && client.authMethod !== 'none')
    await revokeOwnToken(token, { clientId: client.id }, context)
  sendEmpty(exchange, 200)
}

function authenticateClient(
  exchange: Exchange,
  form: Parameters,
  context: AuthServerContext,
): Promise<AuthenticatedClient> {
  return context.clients.authenticate(readClientCredentials(exchange, form), context.addressOf(exchange))
}

const revokedByClient = 'revoked by the client'

async function revokeOwnToken(
  token: string,
  requester: Requester,
  context: AuthServerContext,
): Promise<void> {
  const claims = await verifyAccessToken(token, context, { evenExpired: true })
  if (!claims || !isOwn(claims, requester)) return
  const { jti, exp, client_id: clientId, sub: userId } = claims
  await context.machineTokens.revoke(jti, exp)
  context.emit(makeEvent('grant_ended', { clientId, userId, reason: revokedByClient }))
}

/** Returns false when the token belongs to no grant of the client. */
async function revokeGrant(
  token: string,
  client: RegisteredClient,
  context: AuthServerContext,
): Promise<boolean> {
  const found = await findGrant(token, context)
  if (found?.clientId !== client.id) return false
  checkAuthMethod(found, client)
  await context.sessions.endGrant(found.sessionId, found.grantId)
  context.emit(makeEvent('grant_ended', { ...found, reason: revokedByClient }))
  return true
}

type GrantIds = Pick<Grant, 'sessionId' | 'grantId' | 'clientId' | 'userId' | 'authMethod'>

/** Returns the grant of a token. An old refresh token from a live family also identifies the grant. */
async function findGrant(token: string, context: AuthServerContext): Promise<GrantIds | undefined> {
  const refresh = await context.grants.inspectRefreshToken(token)
  if (refresh) return refresh.family
  const claims = await verifyAccessToken(token, context, { evenExpired: true })
  const session = claims?.tsid === undefined ? undefined : await context.sessions.get(claims.tsid)
  const grant = session?.grants.find(({ id }) => sha256(id) === claims?.gid)
  if (!session || !grant) return undefined
  const authMethod = (await context.state.families.get(grant.id))?.authMethod
  const { id: sessionId, clientId, userId } = session
  return { sessionId, grantId: grant.id, clientId, userId, authMethod }
}

/** POST /oauth/introspect: for a confidential client, or for any client with its own access token as Bearer. */
export async function introspectToken(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const form = await readUniqueForm(exchange)
  const requester = await authenticateRequester(exchange, form, context)
  const description = await describeToken(form.require('token'), requester, context)
  sendPrivate(exchange, description ?? { active: false })
}

interface Requester {
  readonly clientId: string
  /**
   * Holders whose tokens the request can use: the user, a declared client, or a workload. Absent for a registered
   * client, which can use all of its own tokens.
   */
  readonly holders?: readonly string[]
}

/** A workload cannot use the tokens of other workloads that have the same client id. */
function requesterOf({ id: clientId, spiffeId }: AuthenticatedMachine): Requester {
  return { clientId, holders: [machineSubject(clientId), ...(spiffeId === undefined ? [] : [spiffeId])] }
}

function isOwn(claims: AccessTokenClaims, { clientId, holders }: Requester): boolean {
  return claims.client_id === clientId && (holders?.includes(holderOf(claims)) ?? true)
}

async function authenticateRequester(
  exchange: Exchange,
  form: Parameters,
  context: AuthServerContext,
): Promise<Requester> {
  const presented = readBearerToken(exchange)
  if (presented !== undefined) {
    if (form.has('client_secret') || form.has('client_assertion'))
      throw new OAuthError('invalid_request', 'the client must use only one authentication method')
    const claims = await verifyBearerToken(presented, context)
    if (claims) return { clientId: claims.client_id, holders: [holderOf(claims)] }
    throw new OAuthError('invalid_token', 'the access token is not valid', {
      headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
    })
  }
  const client = await authenticateClient(exchange, form, context)
  if (client.kind === 'declared') return requesterOf(client)
  if (client.authMethod !== 'none') return { clientId: client.id }
  // A public client cannot prove its identity, because any program could send its id.
  const text = 'introspection requires a client secret or a bearer access token'
  throw new OAuthError('invalid_client', text, { headers: { 'WWW-Authenticate': 'Bearer' } })
}

/** If the user did not sign in here, the token belongs to the client that acts for the user. */
function holderOf(claims: AccessTokenClaims): string {
  const { act, client_id: clientId, sub } = claims
  return act === undefined && !isAsserted(claims) ? sub : machineSubject(clientId)
}

async function describeToken(
  token: string,
  requester: Requester,
  context: AuthServerContext,
): Promise<object | undefined> {
  const { config, grants } = context
  const refresh = await grants.inspectRefreshToken(token)
  if (refresh) {
    const { clientId, userId, scopes, expiresAtMs, rotatedAtMs } = refresh.family
    const isHolder = requester.holders?.includes(userId) ?? true
    if (!refresh.isCurrent || clientId !== requester.clientId || !isHolder) return undefined
    return {
      active: true,
      client_id: clientId,
      sub: userId,
      scope: scopes.join(' '),
      iss: config.issuer,
      exp: Math.floor(expiresAtMs / 1000),
      iat: Math.floor(rotatedAtMs / 1000),
    }
  }
  const claims = await verifyAccessToken(token, context)
  if (!claims || claims.exp <= nowSec(context) || !isOwn(claims, requester)) return undefined
  const { client_id, sub, scope, aud, exp, iat, jti, act, cnf } = claims
  const about = { client_id, sub, scope, aud, exp, iat, jti, act, cnf: confirmationClaim(cnf ?? {}) }
  return { active: true, token_type: tokenType(cnf ?? {}), iss: config.issuer, ...about }
}

/** A bound token is not a bearer token (RFC 9449 section 7.2). */
async function verifyBearerToken(
  token: string,
  context: AuthServerContext,
): Promise<AccessTokenClaims | undefined> {
  const claims = await verifyAccessToken(token, context)
  return claims?.cnf === undefined ? claims : undefined
}

/** GET or POST /oauth/userinfo. */
export async function sendUserInfo(exchange: Exchange, context: AuthServerContext): Promise<void> {
  await discardBody(exchange)
  const presented = readBearerToken(exchange)
  const claims = presented === undefined ? undefined : await verifyBearerToken(presented, context)
  if (!claims || isMachineToken(claims)) {
    throw new OAuthError('invalid_token', 'a valid bearer access token from a user login is required', {
      headers: { 'WWW-Authenticate': presented === undefined ? 'Bearer' : 'Bearer error="invalid_token"' },
    })
  }
  const scopes = claims.scope.split(' ')
  if (!scopes.includes('openid')) {
    throw new OAuthError('insufficient_scope', 'the openid scope is required', {
      headers: { 'WWW-Authenticate': 'Bearer error="insufficient_scope", scope="openid"' },
    })
  }
  const session = claims.tsid === undefined ? undefined : await context.sessions.get(claims.tsid)
  sendPrivate(exchange, { sub: claims.sub, ...personalClaims(scopes, session ?? {}) })
}
