/**
 * An OpenID Connect provider: endpoints by discovery, identity from a verified ID token.
 *
 * The subject is the configured claim and never falls back to another one: two users must not become one, nor one two.
 * The userinfo endpoint is asked only when `userInfoOverride` names it, after the ID token was verified, and only for
 * name and e-mail; its subject must be the ID token's (OpenID Connect Core section 5.3.2).
 * Source: docs/specification/external-auth.md#oidcConfig, oidcConfig; OpenID Connect Core sections 3.1.2 and 3.1.3, RFC 9207.
 */
import { decodeJwt, type JWTPayload } from 'jose'
import type { OidcUpstreamConfig } from '../../config/index.ts'
import type { Fetch, Log } from '../../net/index.ts'
import {
  authorizationUrl,
  codeGrant,
  discoverServer,
  hintedClient,
  hintedParams,
  hintedScopes,
  hintFor,
  type OAuthClient,
  OAuthClientError,
  readAuthorizationCode,
  refreshGrant,
  RemoteKeys,
  type ServerMetadata,
  skewSec,
  TokenRefused,
  type TokenSet,
  verifyIdToken,
} from '../../oauth/index.ts'
import type { UpstreamTokensRecord } from '../storage/records.ts'
import { notDiscovered, Retried } from './retry.ts'
import { toUpstreamTokens } from './tokens.ts'
import type { Identity, LoginProof, Upstream } from './upstream.ts'
import { fetchUserInfo } from './user-info.ts'

export interface UpstreamParts {
  readonly fetch: Fetch
  readonly now: () => number
  readonly log: Log
}

type OidcMetadata = ServerMetadata & {
  readonly authorization_endpoint: string
  readonly token_endpoint: string
  readonly jwks_uri: string
}

/** Endpoints move rarely; an hour is soon enough to follow. */
const freshMs = 3_600_000

export function makeOidcUpstream(given: OidcUpstreamConfig, parts: UpstreamParts): Upstream {
  const hint = hintFor(given.provider)
  const config = { ...given, scopes: hintedScopes(hint, given.scopes) }
  const { fetch, now } = parts
  const log = parts.log.child({ upstream: config.name })
  const subjectClaim = config.subjectClaim === '' ? 'sub' : config.subjectClaim
  const metadata = new Retried<OidcMetadata>({
    find: async () => complete(await discoverServer(config.issuerUrl, { fetch, need: 'jwks_uri' })),
    freshMs,
    now,
    log,
    what: 'discovery of the upstream provider',
  })
  const keys = new RemoteKeys({ fetch, now, locate: async () => (await metadata.get()).jwks_uri })

  function client(): OAuthClient {
    const secret = config.clientSecret?.()
    const { clientId } = config
    return hintedClient(hint, { clientId, ...(secret === undefined ? {} : { clientSecret: secret }) })
  }

  async function verify(
    idToken: string | undefined,
    rules: { nonce?: string; accessToken: string },
  ): Promise<JWTPayload> {
    if (idToken === undefined)
      throw new OAuthClientError('protocol', 'the upstream provider sent no ID token')
    try {
      return await verifyIdToken(idToken, {
        keys,
        issuer: config.issuerUrl,
        clientId: config.clientId,
        now,
        ...rules,
      })
    } catch (error) {
      if (!(error instanceof TokenRefused)) throw error
      throw new OAuthClientError(
        'protocol',
        'the upstream provider sent an ID token that cannot be accepted',
        {
          cause: error,
        },
      )
    }
  }

  function subjectOf(claims: JWTPayload): string {
    const subject = claims[subjectClaim]
    if (typeof subject === 'string' && subject !== '') return subject
    throw new OAuthClientError('protocol', `the ID token has no ${subjectClaim}`)
  }

  /** Name and e-mail by the override, else by the ID token. A silent userinfo endpoint costs only these. */
  async function describe(claims: JWTPayload, tokens: TokenSet): Promise<{ name?: string; email?: string }> {
    const { userInfoOverride } = config
    if (!userInfoOverride) return { ...text('name', claims['name']), ...text('email', claims['email']) }
    try {
      const info = await fetchUserInfo(userInfoOverride, tokens.accessToken, fetch)
      if (info.subject !== claims.sub && info.subject !== claims[subjectClaim]) {
        throw new OAuthClientError('protocol', 'the userinfo endpoint speaks of another user')
      }
      return { ...text('name', info.name), ...text('email', info.email) }
    } catch (error) {
      if (!(error instanceof OAuthClientError) || error.kind !== 'unreachable') throw error
      log.warn('userinfo is not available, going on without name and e-mail', { err: error })
      return {}
    }
  }

  async function finish(callback: URLSearchParams, proof: LoginProof) {
    const server = await metadata.get()
    const code = readAuthorizationCode(callback, server)
    const request = { server, client: client(), fetch, now, redirectUri: config.redirectUri }
    const tokens = await codeGrant({ ...request, code, codeVerifier: proof.codeVerifier })
    const claims = await verify(tokens.idToken, { nonce: proof.nonce, accessToken: tokens.accessToken })
    const subject = subjectOf(claims)
    const authTimeSec = checkAge(claims, proof, now)
    const identity: Identity = {
      subject,
      synthesized: false,
      ...(authTimeSec === undefined ? {} : { authTimeSec }),
      ...(await describe(claims, tokens)),
    }
    return { identity, tokens: toUpstreamTokens(config.name, subject, tokens, now()) }
  }

  /**
   * The provider has rotated by now: its response is thrown away only when a verified ID token speaks of another user.
   * One that cannot be verified counts as none, which a refresh may lack (OpenID Connect Core section 12.2): the tokens
   * came from the provider's own endpoint, in response to what only this user's login gave.
   */
  async function check(fresh: TokenSet, old: UpstreamTokensRecord): Promise<TokenSet> {
    const { idToken, ...without } = fresh
    if (idToken === undefined) return fresh
    let claims: JWTPayload
    try {
      claims = await verify(idToken, { accessToken: fresh.accessToken })
    } catch (error) {
      if (!(error instanceof OAuthClientError)) throw error
      log.warn('a refreshed ID token cannot be verified, the previous one stays', { err: error })
      return without
    }
    const subject = text('subject', claims[subjectClaim]).subject
    const same =
      subject === undefined
        ? old.idToken === undefined || decodeJwt(old.idToken).sub === claims.sub
        : subject === old.subject
    if (same) return fresh
    throw new OAuthClientError('refused', 'the refreshed ID token speaks of another user', {
      error: 'invalid_grant',
    })
  }

  return {
    name: config.name,
    type: 'oidc',
    issuer: config.issuerUrl,
    host: new URL(config.issuerUrl).host,
    get origin() {
      const known = metadata.current
      return known && new URL(known.authorization_endpoint).origin
    },
    get notReady() {
      return metadata.current === undefined ? notDiscovered : undefined
    },
    start: () => metadata.start(),
    close: () => metadata.close(),

    async begin(login) {
      const server = await metadata.get()
      const asked = {
        prompt: login.prompt,
        login_hint: login.loginHint,
        max_age: login.maxAgeSec?.toString(),
      }
      return authorizationUrl({
        endpoint: server.authorization_endpoint,
        clientId: config.clientId,
        redirectUri: config.redirectUri,
        scopes: config.scopes,
        scopeParamName: hint?.scopeParamName,
        state: login.state,
        codeChallenge: login.codeChallenge,
        nonce: login.nonce,
        // What the operator wrote counts more than what a client asks for.
        extra: { ...hintedParams(hint, defined(asked)), ...config.additionalAuthorizationParams },
      }).href
    },

    finish,

    async refresh(tokens) {
      const { refreshToken } = tokens
      if (refreshToken === undefined)
        throw new OAuthClientError('refused', 'there is no refresh token', { error: 'invalid_grant' })
      const server = await metadata.get()
      const fresh = await refreshGrant({ server, client: client(), fetch, now, refreshToken })
      const accepted = await check(fresh, tokens)
      return toUpstreamTokens(config.name, tokens.subject, accepted, now(), tokens)
    },
  } satisfies Upstream
}

function complete(server: ServerMetadata): OidcMetadata {
  const { authorization_endpoint, token_endpoint, jwks_uri } = server
  if (authorization_endpoint === undefined || token_endpoint === undefined || jwks_uri === undefined) {
    throw new OAuthClientError(
      'protocol',
      'the discovery document lacks an authorization, token or key set endpoint',
    )
  }
  return { ...server, authorization_endpoint, token_endpoint, jwks_uri }
}

/** The time of authentication; refuses one that is older than the client allows. */
function checkAge(
  claims: JWTPayload,
  { maxAgeSec, notBeforeSec }: LoginProof,
  now: () => number,
): number | undefined {
  const authTime = claims['auth_time']
  const known = typeof authTime === 'number' && Number.isFinite(authTime) ? Math.floor(authTime) : undefined
  const before = known !== undefined && notBeforeSec !== undefined && known < notBeforeSec - skewSec
  const tooOld =
    maxAgeSec !== undefined && (known === undefined || now() / 1000 - known > maxAgeSec + skewSec)
  if (before || tooOld) {
    throw new OAuthClientError('refused', 'the login at the upstream provider is too old', {
      error: 'login_required',
    })
  }
  return known
}

function text<K extends string>(name: K, value: unknown): { readonly [P in K]?: string } {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the computed key is exactly K
  return (typeof value === 'string' && value !== '' ? { [name]: value } : {}) as {
    readonly [P in K]?: string
  }
}

function defined(values: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).filter((pair): pair is [string, string] => pair[1] !== undefined),
  )
}
