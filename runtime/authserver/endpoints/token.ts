/**
 * The token endpoint: authorization_code, refresh_token, client_credentials, token exchange and jwt-bearer.
 * Source: RFC 6749 sections 3.2, 4.1.3, 4.4, 5 and 6; RFC 7636 section 4.5; RFC 8707 section 2.2; RFC 9700; RFC 9068;
 * OpenID Connect Core section 3.1.3.
 */
import type { Exchange } from '../../net/index.ts'
import type { TokenBinding } from '../../oauth/index.ts'
import { isIdentityAssertion } from '../clients/identity-assertion.ts'
import { type AuthServerContext, canSignIn, nowSec } from '../login/context.ts'
import { makeEvent } from '../model/events.ts'
import { machineSubject } from '../model/identifiers.ts'
import { OAuthError } from '../model/oauth-error.ts'
import type { RegisteredClient } from '../model/records.ts'
import { parseScope, supportedScopes } from '../model/scopes.ts'
import type { IssuedGrant, TokenRequester } from '../tokens/grants.ts'
import { grantClaims, signAccessToken, signIdToken, tokenType } from '../tokens/jwt.ts'
import { readResources } from './authorize.ts'
import { type Parameters, readClientCredentials, readUniqueForm } from './form.ts'
import { acceptsAssertions, issueForAssertion, issueForUser, jwtBearerGrant } from './jwt-bearer.ts'
import { sendPrivate } from './responses.ts'
import { canExchangeTokens, exchangeToken, tokenExchangeGrant } from './token-exchange.ts'
import { bindToken, markTokenProof, readTokenProof } from './token-proof.ts'
import {
  type AnyRequest,
  type ClientRequest,
  readMachineResource,
  readMachineScopes,
  type TokenResponse,
} from './token-request.ts'

type ClientGrant = (request: ClientRequest, context: AuthServerContext) => Promise<TokenResponse>

interface GrantType {
  /** True when at least one client can use the grant. */
  readonly isOffered: (context: AuthServerContext) => boolean
  readonly issue: (request: AnyRequest, context: AuthServerContext) => Promise<TokenResponse>
}

/** Every supported grant type. */
const grants: ReadonlyMap<string, GrantType> = new Map([
  ['authorization_code', { isOffered: canSignIn, issue: forUser('token_issued', redeemCode) }],
  ['refresh_token', { isOffered: canSignIn, issue: forUser('token_refreshed', redeemRefreshToken) }],
  ['client_credentials', { isOffered: hasMachines, issue: forClient(issueToMachine) }],
  [tokenExchangeGrant, { isOffered: canExchangeTokens, issue: forClient(exchangeToken) }],
  [jwtBearerGrant, { isOffered: acceptsAssertions, issue: redeemAssertion }],
])

function hasMachines({ declared }: AuthServerContext): boolean {
  return declared.all().length > 0
}

/** Returns the grant types that a client can use. */
export function grantTypesSupported(context: AuthServerContext): readonly string[] {
  return [...grants].filter(([, { isOffered }]) => isOffered(context)).map(([type]) => type)
}

export async function issueTokens(exchange: Exchange, context: AuthServerContext): Promise<void> {
  const form = await readUniqueForm(exchange)
  const grant = grants.get(form.require('grant_type'))
  if (grant?.isOffered(context) !== true)
    throw new OAuthError('unsupported_grant_type', 'this grant type is not supported')
  const source = context.addressOf(exchange)
  const { body, event } = await grant.issue({ exchange, form, source }, context)
  sendPrivate(exchange, body)
  context.emit(event)
}

/** Returns a grant that requires an authenticated client. */
function forClient(grant: ClientGrant): GrantType['issue'] {
  return async ({ exchange, form, source }, context) => {
    const credentials = readClientCredentials(exchange, form)
    const proof = await readTokenProof(exchange, context)
    const client = await context.clients.authenticate(credentials, source)
    if (client.kind === 'dcr' && !client.grantTypes.includes(form.require('grant_type')))
      throw new OAuthError('unauthorized_client', 'the client is not registered for this grant type')
    const rules = client.kind === 'declared' ? client : {}
    const proved = bindToken(exchange, { ...rules, proof }, context)
    const response = await grant({ form, client, source, ...proved }, context)
    if (proof) await markTokenProof(proof, client.id, context)
    return response
  }
}

/** Only an identity assertion requires client authentication. */
async function redeemAssertion(request: AnyRequest, context: AuthServerContext): Promise<TokenResponse> {
  const assertion = request.form.require('assertion')
  const isForUser = context.assertionPolicies.accept('id_jag') && isIdentityAssertion(assertion)
  return isForUser ? forClient(issueForUser)(request, context) : issueForAssertion(request, context)
}

/** RFC 6749 section 4.4. The client does not get a refresh token, because it can authenticate again. */
async function issueToMachine(
  { form, client, binding }: ClientRequest,
  context: AuthServerContext,
): Promise<TokenResponse> {
  if (client.kind !== 'declared')
    throw new OAuthError('unauthorized_client', 'only a declared client can use the client_credentials grant')
  const scopes = readMachineScopes(form, client)
  const audience = readMachineResource(form, client, context)
  const { config, keys } = context
  const lifeSec = Math.floor(client.tokenMs / 1000)
  const { id: clientId, authMethod, spiffeId: subject = machineSubject(clientId) } = client
  const accessToken = await signAccessToken(keys(), {
    issuer: config.issuer,
    subject,
    clientId,
    authMethod,
    scopes,
    audience: [audience],
    nowSec: nowSec(context),
    lifeSec,
    binding,
  })
  return {
    body: {
      access_token: accessToken,
      token_type: tokenType(binding),
      expires_in: lifeSec,
      scope: scopes.join(' '),
    },
    event: makeEvent('token_issued', { clientId, userId: subject }),
  }
}

type UserGrant = (form: Parameters, by: TokenRequester, context: AuthServerContext) => Promise<IssuedGrant>

/** Returns a grant that a user gave to a client. */
function forUser(event: 'token_issued' | 'token_refreshed', grant: UserGrant): GrantType['issue'] {
  return forClient(async ({ form, client, source, binding, certificate }, context) => {
    if (client.kind === 'declared')
      throw new OAuthError('unauthorized_client', 'a declared client cannot use this grant type')
    const by = { clientId: client.id, authMethod: client.authMethod, source, certificate, ...binding }
    const issued = withoutDroppedScopes(await grant(form, by, context), client)
    await context.clients.renew(client)
    return { body: await makeUserResponse(issued, binding, context), event: makeEvent(event, issued.grant) }
  })
}

/** Removes the scopes that the client is no longer registered for. */
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
  // Clients repeat the scopes from their authorization request, where unsupported scopes were ignored.
  const scopes = supportedScopes(parseScope(form.get('scope') ?? ''), context.config)
  const wanted = {
    scopes: scopes.length === 0 ? undefined : scopes,
    resources: readResources(form, context),
  }
  return context.grants.refresh(form.require('refresh_token'), by, wanted)
}

/** RFC 6749 section 5.1. */
async function makeUserResponse(
  issued: IssuedGrant,
  binding: TokenBinding,
  context: AuthServerContext,
): Promise<object> {
  const { grant, scopes, audience, refreshToken, nonce } = issued
  const { config, keys, sessions } = context
  const lifeSec = Math.floor(config.accessTokenMs / 1000)
  const common = { scopes, issuer: config.issuer, nowSec: nowSec(context), lifeSec }
  const accessToken = await signAccessToken(keys(), {
    ...common,
    subject: grant.userId,
    clientId: grant.clientId,
    authMethod: grant.authMethod,
    audience,
    binding,
    more: grantClaims(grant),
  })
  const response = {
    access_token: accessToken,
    token_type: tokenType(binding),
    expires_in: lifeSec,
    scope: scopes.join(' '),
    refresh_token: refreshToken,
  }
  if (!scopes.includes('openid')) return response
  const isPersonal = scopes.includes('profile') || scopes.includes('email')
  const session = isPersonal ? await sessions.get(grant.sessionId) : undefined
  const user = { name: session?.name, email: session?.email }
  return {
    ...response,
    id_token: await signIdToken(keys(), { ...common, grant, accessToken, nonce, ...user }),
  }
}
