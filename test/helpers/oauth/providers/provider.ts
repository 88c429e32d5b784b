/**
 * Simulates an identity provider from its profile: metadata, registration, authorization without a user, tokens,
 * refresh with rotation and reuse detection. Tests end tokens explicitly.
 */
import { createHash, randomBytes } from 'node:crypto'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { type PeerResponse, type SeenRequest, startLoopback } from '../../loopback.ts'
import { clientId, clientSecret, type IssuedTokens, type Place, type ProviderProfile } from './profile.ts'

export interface FakeProvider extends Place {
  readonly profile: ProviderProfile
  /** True for an access token that is still valid. */
  accepts(authorization: string | undefined): boolean
  /** Ends every access token. */
  expire(): void
  /** Revokes every login. */
  revoke(): void
  /** Response to every refresh, while it is set. */
  outage: PeerResponse | undefined
  /** Lifetime of the tokens that are issued next. */
  lifeSec: number
  /** Called before each refresh. */
  beforeRefresh: (() => Promise<void>) | undefined
  /** Number of completed logins. */
  readonly logins: number
  /** Number of requests with a refresh token. */
  readonly refreshes: number
  /** True when a refresh token was used twice. */
  readonly hasReuse: boolean
  close(): Promise<void>
}

interface Login {
  readonly query: URLSearchParams
  readonly scope: string
  isRevoked: boolean
}

const keys = await generateKeyPair('RS256')
const jwk = { ...(await exportJWK(keys.publicKey)), kid: 'k1', alg: 'RS256', use: 'sig' }

export async function startProvider(profile: ProviderProfile): Promise<FakeProvider> {
  const codes = new Map<string, Login>()
  const refreshTokens = new Map<string, { readonly login: Login; isUsed: boolean }>()
  const live = new Set<string>()
  let logins = 0
  let refreshes = 0
  let hasReuse = false

  const issuerHost = await startLoopback((seen) => respond(seen))
  const otherHost = profile.hasOtherHost ? await startLoopback((seen) => respond(seen)) : issuerHost
  const place: Place = {
    issuer: `${issuerHost.url}${profile.issuerPath}`,
    authorize: `${otherHost.url}${profile.authorizePath}`,
    token: `${otherHost.url}${profile.tokenPath}`,
    api: otherHost.url,
  }

  async function respond(seen: SeenRequest): Promise<PeerResponse> {
    const { path, headers } = seen
    if (profile.metadataPaths.includes(path)) return { body: metadata() }
    const template = profile.templates?.[path]
    if (template !== undefined) return { body: { ...metadata(), issuer: `${issuerHost.url}${template}` } }
    if (path === '/keys') return { body: { keys: [jwk] } }
    if (path === '/register')
      return { status: 201, body: { client_id: clientId, token_endpoint_auth_method: 'none' } }
    if (path === profile.authorizePath) return authorize(seen.query)
    if (path === profile.tokenPath) return encoded(await token(seen), headers.accept)
    if (path === '/user' && profile.user)
      return provider.accepts(headers.authorization) ? { body: profile.user } : { status: 401 }
    return { status: 404 }
  }

  function metadata(): Record<string, unknown> {
    return {
      issuer: place.issuer,
      authorization_endpoint: place.authorize,
      token_endpoint: place.token,
      response_types_supported: ['code'],
      ...(profile.idClaims && { jwks_uri: `${issuerHost.url}/keys` }),
      ...(profile.clientAuth === 'none' && { registration_endpoint: `${issuerHost.url}/register` }),
      ...profile.metadata,
    }
  }

  function authorize(query: URLSearchParams): PeerResponse {
    if (query.get('client_id') !== clientId) return { status: 400, body: 'unknown client' }
    const back = new URL(query.get('redirect_uri') ?? '')
    back.searchParams.set('state', query.get('state') ?? '')
    const refusal = profile.refuses?.(query)
    for (const [name, value] of Object.entries(refusal ?? {})) back.searchParams.set(name, value)
    if (refusal === undefined) {
      const code = secret('code')
      codes.set(code, { query, scope: query.get(profile.scopeParam ?? 'scope') ?? '', isRevoked: false })
      back.searchParams.set('code', code)
    }
    return { status: 302, headers: { location: back.href } }
  }

  async function token({ form, headers }: SeenRequest): Promise<PeerResponse> {
    if (!isOurClient(form, headers.authorization)) return { status: 401, body: { error: 'invalid_client' } }
    if (form.get('grant_type') === 'refresh_token') return refresh(form)
    const code = form.get('code') ?? ''
    const login = codes.get(code)
    codes.delete(code)
    if (!login || !isVerified(login.query, form)) return { status: 400, body: { error: 'invalid_grant' } }
    logins += 1
    const next = profile.isOffline(login.query) ? secret('refresh') : undefined
    return issue(login, 'authorization_code', next)
  }

  async function refresh(form: URLSearchParams): Promise<PeerResponse> {
    refreshes += 1
    await provider.beforeRefresh?.()
    if (provider.outage) return provider.outage
    const found = refreshTokens.get(form.get('refresh_token') ?? '')
    if (found?.isUsed) {
      hasReuse = true
      found.login.isRevoked = true
    }
    if (!found || found.login.isRevoked) return profile.revoked
    if (!profile.rotates) return issue(found.login, 'refresh_token', undefined)
    found.isUsed = true
    return issue(found.login, 'refresh_token', secret('refresh'))
  }

  function isOurClient(form: URLSearchParams, authorization: string | undefined): boolean {
    const basic = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`
    const isBasic = authorization === basic
    const isBody = form.get('client_id') === clientId && form.get('client_secret') === clientSecret
    switch (profile.clientAuth) {
      case 'none':
        return form.get('client_id') === clientId && authorization === undefined
      case 'basic':
        return isBasic
      case 'body':
        return isBody
      case 'either':
        return isBasic || isBody
    }
  }

  function isVerified(query: URLSearchParams, form: URLSearchParams): boolean {
    const digest = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    const isProven = profile.ignoresPkce || digest === query.get('code_challenge')
    return isProven && form.get('redirect_uri') === query.get('redirect_uri')
  }

  async function issue(
    login: Login,
    grantType: string,
    refreshToken: string | undefined,
  ): Promise<PeerResponse> {
    const { query, scope } = login
    const { accessClaims, idClaims } = profile
    const claims = accessClaims?.(place, query)
    const access = claims === undefined ? secret('access') : await accessToken(claims)
    if (refreshToken !== undefined) refreshTokens.set(refreshToken, { login, isUsed: false })
    live.add(access)
    const nonce = query.get('nonce')
    const hasIdToken = idClaims && scope.split(' ').includes('openid')
    const tokens: IssuedTokens = {
      access_token: access,
      refresh_token: refreshToken,
      expires_in: provider.lifeSec,
      scope,
      ...(hasIdToken && {
        id_token: await signed({
          iss: place.issuer,
          aud: clientId,
          ...(nonce !== null && { nonce }),
          ...idClaims,
        }),
      }),
    }
    return { body: profile.body?.(tokens, grantType) ?? { ...tokens, token_type: 'Bearer' } }
  }

  async function accessToken(claims: Readonly<Record<string, unknown>>): Promise<string> {
    const jws = await signed({ jti: secret('jti'), ...claims })
    // An encrypted token has five parts.
    return claims['enc'] === undefined ? jws : `${jws}.${secret('text')}.${secret('tag')}`
  }

  function signed(claims: Readonly<Record<string, unknown>>): Promise<string> {
    return new SignJWT({ sub: 'alice', ...claims })
      .setProtectedHeader({ alg: 'RS256', kid: 'k1' })
      .setIssuedAt()
      .setExpirationTime('90 days')
      .sign(keys.privateKey)
  }

  function encoded(response: PeerResponse, accept: string | undefined): PeerResponse {
    if (!profile.prefersForm || accept?.includes('application/json') || response === 'cut') return response
    const form = new URLSearchParams()
    for (const [name, value] of Object.entries(response.body ?? {})) form.set(name, String(value))
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    return { ...response, headers, body: form.toString() }
  }

  const provider: FakeProvider = {
    ...place,
    profile,
    outage: undefined,
    lifeSec: profile.lifeSec,
    beforeRefresh: undefined,
    accepts: (authorization) => live.has(authorization?.replace(/^bearer /i, '') ?? ''),
    expire: () => live.clear(),
    revoke() {
      for (const { login } of refreshTokens.values()) login.isRevoked = true
    },
    get logins() {
      return logins
    },
    get refreshes() {
      return refreshes
    },
    get hasReuse() {
      return hasReuse
    },
    async close() {
      await Promise.all([issuerHost.close(), ...(otherHost === issuerHost ? [] : [otherHost.close()])])
    },
  }
  return provider
}

function secret(kind: string): string {
  return `${kind}-${randomBytes(12).toString('hex')}`
}
