/**
 * The token endpoint: authorization_code and refresh_token.
 *
 * Source: RFC 6749 sections 3.2, 4.1.3, 5 and 6; RFC 7636 section 4.5; RFC 8707 section 2.2; RFC 9700; RFC 9068;
 * OpenID Connect Core section 3.1.3.
 */
import type { Exchange } from '../../net/index.ts'
import { parseScope, supportedScopes } from '../model/scopes.ts'
import { type AuthServerContext, nowSec } from '../login/context.ts'
import { sessionHash } from '../../observe/index.ts'
import { shownClient } from '../model/events.ts'
import type { RegisteredClient } from '../model/records.ts'
import type { TokenRequester, Granted, Narrowing } from '../tokens/grants.ts'
import { type IdTokenRequest, signAccessToken, signIdToken } from '../tokens/jwt.ts'
import { sendPrivate } from './responses.ts'
import { resourcesOf } from './authorize.ts'
import { clientCredentials, formOf, type Parameters, refuseRepeated } from './form.ts'
import { OAuthError } from '../model/oauth-error.ts'

type GrantHandler = (form: Parameters, by: TokenRequester, context: AuthServerContext) => Promise<Granted>

/** Every grant this server knows; anything else is unsupported_grant_type. */
const handlers: ReadonlyMap<string, GrantHandler> = new Map([
  ['authorization_code', redeemCode],
  ['refresh_token', useRefreshToken],
])

export const grantTypesSupported: readonly string[] = [...handlers.keys()]

export async function token(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const form = await formOf(exchange)
  refuseRepeated(form)
  const grantType = form.require('grant_type')
  const handler = handlers.get(grantType)
  const client = await context.clients.authenticate(clientCredentials(exchange, form))
  if (!handler) throw new OAuthError('unsupported_grant_type', 'this grant type is not supported')
  if (client.kind === 'dcr' && !client.grantTypes.includes(grantType)) {
    throw new OAuthError('unauthorized_client', 'the client is not registered for this grant type')
  }
  const by = { clientId: client.id, source: context.addressOf(exchange) }
  const granted = stillRegistered(await handler(form, by, context), client)
  await context.clients.renew(client)
  sendPrivate(exchange, 200, await tokenResponse(granted, context))
  const { grant } = granted
  context.emit({
    type: grantType === 'refresh_token' ? 'token_refreshed' : 'token_issued',
    outcome: 'success',
    clientId: shownClient(grant.clientId),
    userId: grant.userId,
    sessionHash: sessionHash(grant.sessionId),
  })
}

/** Scopes that the client gave up meanwhile are not issued any more. */
function stillRegistered(granted: Granted, client: RegisteredClient): Granted {
  if (client.kind !== 'dcr') return granted
  return { ...granted, scopes: granted.scopes.filter((scope) => client.scopes.includes(scope)) }
}

async function redeemCode(
  form: Parameters,
  requester: TokenRequester,
  context: AuthServerContext,
): Promise<Granted> {
  const code = form.require('code')
  const codeVerifier = form.require('code_verifier')
  if (!/^[\w.~-]{43,128}$/.test(codeVerifier)) {
    throw new OAuthError('invalid_grant', 'code_verifier must be 43 to 128 unreserved characters')
  }
  const by = { ...requester, redirectUri: form.get('redirect_uri'), codeVerifier }
  // The scope of a code is settled; the parameter has no meaning here (RFC 6749 section 4.1.3).
  return context.grants.redeem(code, by, { scopes: undefined, resources: resourcesOf(form, context) })
}

async function useRefreshToken(
  form: Parameters,
  by: TokenRequester,
  context: AuthServerContext,
): Promise<Granted> {
  // Clients repeat the scopes of their authorization request, which ignored the unsupported ones.
  const scopes = supportedScopes(parseScope(form.get('scope') ?? ''), context.config)
  const wanted: Narrowing = {
    scopes: scopes.length === 0 ? undefined : scopes,
    resources: resourcesOf(form, context),
  }
  return context.grants.refresh(form.require('refresh_token'), by, wanted)
}

/** RFC 6749 section 5.1. */
async function tokenResponse(granted: Granted, context: AuthServerContext): Promise<Record<string, unknown>> {
  const { grant, scopes, audience, refreshToken } = granted
  const lifeSec = Math.floor(context.config.accessTokenMs / 1000)
  const common = { grant, scopes, issuer: context.config.issuer, nowSec: nowSec(context), lifeSec }
  const accessToken = await signAccessToken(context.keys(), { ...common, audience })
  return {
    access_token: accessToken,
    token_type: 'Bearer',
    expires_in: lifeSec,
    scope: scopes.join(' '),
    ...(refreshToken === undefined ? {} : { refresh_token: refreshToken }),
    ...(scopes.includes('openid') ? { id_token: await idToken(granted, accessToken, common, context) } : {}),
  }
}

async function idToken(
  granted: Granted,
  accessToken: string,
  common: Pick<IdTokenRequest, 'grant' | 'scopes' | 'issuer' | 'nowSec' | 'lifeSec'>,
  context: AuthServerContext,
): Promise<string> {
  const personal = granted.scopes.includes('profile') || granted.scopes.includes('email')
  const session = personal ? await context.sessions.get(granted.grant.sessionId) : undefined
  return signIdToken(context.keys(), {
    ...common,
    accessToken,
    nonce: granted.nonce,
    name: session?.name,
    email: session?.email,
  })
}
