/**
 * The token endpoint: authorization_code and refresh_token.
 * Source: RFC 6749 sections 3.2, 4.1.3, 5 and 6; RFC 7636 section 4.5; RFC 8707 section 2.2; RFC 9700; RFC 9068;
 * OpenID Connect Core section 3.1.3.
 */
import type { Exchange } from '../../net/index.ts'
import { type AuthServerContext, nowSec } from '../login/context.ts'
import { makeEvent } from '../model/events.ts'
import { OAuthError } from '../model/oauth-error.ts'
import type { RegisteredClient } from '../model/records.ts'
import { parseScope, supportedScopes } from '../model/scopes.ts'
import type { IssuedGrant, TokenRequester } from '../tokens/grants.ts'
import { signAccessToken, signIdToken } from '../tokens/jwt.ts'
import { readResources } from './authorize.ts'
import { type Parameters, readClientCredentials, readUniqueForm } from './form.ts'
import { sendPrivate } from './responses.ts'

type GrantHandler = (form: Parameters, by: TokenRequester, context: AuthServerContext) => Promise<IssuedGrant>

/** Every supported grant type. */
const handlers: ReadonlyMap<string, GrantHandler> = new Map([
  ['authorization_code', redeemCode],
  ['refresh_token', redeemRefreshToken],
])

export const grantTypesSupported: readonly string[] = [...handlers.keys()]

export async function issueTokens(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const form = await readUniqueForm(exchange)
  const grantType = form.require('grant_type')
  const client = await context.clients.authenticate(readClientCredentials(exchange, form))
  const handler = handlers.get(grantType)
  if (!handler) throw new OAuthError('unsupported_grant_type', 'this grant type is not supported')
  if (client.kind === 'dcr' && !client.grantTypes.includes(grantType))
    throw new OAuthError('unauthorized_client', 'the client is not registered for this grant type')
  const by = { clientId: client.id, source: context.addressOf(exchange) }
  const issued = withoutDroppedScopes(await handler(form, by, context), client)
  await context.clients.renew(client)
  sendPrivate(exchange, await makeTokenResponse(issued, context))
  context.emit(makeEvent(grantType === 'refresh_token' ? 'token_refreshed' : 'token_issued', issued.grant))
}

/** Removes scopes for which the client is no longer registered. */
function withoutDroppedScopes(issued: IssuedGrant, client: RegisteredClient): IssuedGrant {
  if (client.kind !== 'dcr') return issued
  return { ...issued, scopes: issued.scopes.filter((scope) => client.scopes.includes(scope)) }
}

async function redeemCode(
  form: Parameters,
  by: TokenRequester,
  context: AuthServerContext,
): Promise<IssuedGrant> {
  const code = form.require('code')
  const codeVerifier = form.require('code_verifier')
  if (!/^[\w.~-]{43,128}$/.test(codeVerifier))
    throw new OAuthError('invalid_grant', 'code_verifier must be 43 to 128 unreserved characters')
  const redemption = { ...by, redirectUri: form.get('redirect_uri'), codeVerifier }
  // The code determines the scope, so the parameter has no meaning here (RFC 6749 section 4.1.3).
  return context.grants.redeem(code, redemption, {
    scopes: undefined,
    resources: readResources(form, context),
  })
}

async function redeemRefreshToken(
  form: Parameters,
  by: TokenRequester,
  context: AuthServerContext,
): Promise<IssuedGrant> {
  // Clients repeat the scopes of their authorization request, which ignored the unsupported ones.
  const scopes = supportedScopes(parseScope(form.get('scope') ?? ''), context.config)
  const wanted = {
    scopes: scopes.length === 0 ? undefined : scopes,
    resources: readResources(form, context),
  }
  return context.grants.refresh(form.require('refresh_token'), by, wanted)
}

/** RFC 6749 section 5.1. */
async function makeTokenResponse(issued: IssuedGrant, context: AuthServerContext): Promise<object> {
  const { grant, scopes, audience, refreshToken, nonce } = issued
  const { config, keys, sessions } = context
  const lifeSec = Math.floor(config.accessTokenMs / 1000)
  const common = { grant, scopes, issuer: config.issuer, nowSec: nowSec(context), lifeSec }
  const accessToken = await signAccessToken(keys(), { ...common, audience })
  const response = {
    access_token: accessToken,
    token_type: 'Bearer',
    expires_in: lifeSec,
    scope: scopes.join(' '),
    refresh_token: refreshToken,
  }
  if (!scopes.includes('openid')) return response
  const isPersonal = scopes.includes('profile') || scopes.includes('email')
  const session = isPersonal ? await sessions.get(grant.sessionId) : undefined
  const user = { name: session?.name, email: session?.email }
  return { ...response, id_token: await signIdToken(keys(), { ...common, accessToken, nonce, ...user }) }
}
