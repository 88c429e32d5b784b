/**
 * An OpenID Connect provider: endpoints come from discovery, identity from a verified ID token.
 *
 * The subject is the configured claim, with no fallback to another claim, which could merge or split users. The
 * userinfo endpoint is used only when `userInfoOverride` configures it, after the ID token has been verified, and only
 * for the name and email. The subject in its response must match the subject of the ID token (OpenID Connect Core
 * section 5.3.2).
 * Source: docs/reference/specification/external-auth.md#oidcConfig, oidcConfig; OpenID Connect Core sections 3.1.2 and
 * 3.1.3, RFC 9207.
 */
import { decodeJwt, type JWTPayload } from 'jose'
import { fieldsOf } from '../../../schemas/index.ts'
import type { OidcUpstreamConfig } from '../../config/index.ts'
import type { Log } from '../../net/index.ts'
import {
  authorizationUrl,
  codeGrant,
  discoverServer,
  endpointViolation,
  hintedClient,
  hintedParams,
  hintedScopes,
  hintFor,
  missingEndpoint,
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
import { groupsIn } from '../model/offered.ts'
import type { UpstreamTokensRecord } from '../model/records.ts'
import { BackgroundLookup, notDiscovered } from './background-lookup.ts'
import {
  type FinishedLogin,
  type Identity,
  type LoginProof,
  type ProviderParts,
  toUpstreamTokens,
  type Upstream,
  type UpstreamLogin,
} from './upstream.ts'
import { upstreamClient } from './upstream-client.ts'
import { fetchUserInfo } from './user-info.ts'

type OidcMetadata = ServerMetadata & {
  readonly authorization_endpoint: string
  readonly token_endpoint: string
  readonly jwks_uri: string
}

/** Endpoints change rarely, so rediscovering them once an hour is sufficient. */
const freshMs = 3_600_000

export class OidcUpstream implements Upstream {
  readonly type = 'oidc'
  readonly #config: OidcUpstreamConfig
  readonly #parts: ProviderParts
  readonly #log: Log
  readonly #hint: ReturnType<typeof hintFor>
  readonly #subjectClaim: string
  readonly #metadata: BackgroundLookup<OidcMetadata>
  readonly #keys: RemoteKeys
  readonly #readClient: () => OAuthClient

  constructor(given: OidcUpstreamConfig, parts: ProviderParts) {
    const { fetch, now } = parts
    this.#parts = parts
    this.#hint = hintFor(given.provider)
    this.#config = { ...given, scopes: hintedScopes(this.#hint, given.scopes) }
    this.#log = parts.log.child({ upstream: given.name })
    this.#readClient = upstreamClient(given, { now, log: this.#log })
    this.#subjectClaim = given.subjectClaim === '' ? 'sub' : given.subjectClaim
    this.#metadata = new BackgroundLookup<OidcMetadata>({
      find: async () => {
        const server = await discoverServer(given.issuerUrl, { fetch, need: 'jwks_uri' })
        return requireEndpoints(given.clientCertificatePath === undefined ? server : withAlias(server))
      },
      freshMs,
      now,
      log: this.#log,
      what: 'discovery of the upstream provider',
    })
    this.#keys = new RemoteKeys({ fetch, now, locate: async () => (await this.#metadata.get()).jwks_uri })
  }

  get name(): string {
    return this.#config.name
  }

  get issuer(): string {
    return this.#config.issuerUrl
  }

  get host(): string {
    return new URL(this.#config.issuerUrl).host
  }

  get origin(): string | undefined {
    const known = this.#metadata.current
    return known && new URL(known.authorization_endpoint).origin
  }

  get notReady(): string | undefined {
    return this.#metadata.current === undefined ? notDiscovered : undefined
  }

  start(): void {
    this.#metadata.start()
  }

  close(): void {
    this.#metadata.close()
  }

  async begin(login: UpstreamLogin): Promise<string> {
    const server = await this.#metadata.get()
    const { prompt, loginHint, maxAgeSec } = login
    const requested = {
      ...(prompt === undefined ? {} : { prompt }),
      ...(loginHint === undefined ? {} : { login_hint: loginHint }),
      ...(maxAgeSec === undefined ? {} : { max_age: maxAgeSec.toString() }),
    }
    return authorizationUrl({
      endpoint: server.authorization_endpoint,
      clientId: this.#config.clientId,
      redirectUri: this.#config.redirectUri,
      scopes: this.#config.scopes,
      scopeParamName: this.#hint?.scopeParamName,
      state: login.state,
      codeChallenge: login.codeChallenge,
      nonce: login.nonce,
      // Configured parameters override the client's.
      extra: { ...hintedParams(this.#hint, requested), ...this.#config.additionalAuthorizationParams },
    }).href
  }

  async finish(callback: URLSearchParams, proof: LoginProof): Promise<FinishedLogin> {
    const { fetch, now } = this.#parts
    const server = await this.#metadata.get()
    const code = readAuthorizationCode(callback, server)
    const request = { server, client: this.#client(), fetch, now, redirectUri: this.#config.redirectUri }
    const tokens = await codeGrant({ ...request, code, codeVerifier: proof.codeVerifier })
    const claims = await this.#verify(tokens.idToken, { nonce: proof.nonce, accessToken: tokens.accessToken })
    const subject = this.#subjectOf(claims)
    const authTimeSec = checkAge(claims, proof, now)
    const identity: Identity = {
      subject,
      synthesized: false,
      authTimeSec,
      groups: groupsIn(claims, this.#parts.groupClaim),
      ...(await this.#readUser(claims, tokens)),
    }
    const account = { provider: this.#config.name, subject, obtainedAtMs: now() }
    return { identity, tokens: toUpstreamTokens(account, tokens) }
  }

  async refresh(tokens: UpstreamTokensRecord): Promise<UpstreamTokensRecord> {
    const { refreshToken } = tokens
    if (refreshToken === undefined)
      throw new OAuthClientError('refused', 'there is no refresh token', { error: 'invalid_grant' })
    const { fetch, now } = this.#parts
    const server = await this.#metadata.get()
    const fresh = await refreshGrant({ server, client: this.#client(), fetch, now, refreshToken })
    const accepted = await this.#checkUser(fresh, tokens)
    return toUpstreamTokens({ ...tokens, obtainedAtMs: now() }, accepted, tokens)
  }

  #client(): OAuthClient {
    return hintedClient(this.#hint, this.#readClient())
  }

  async #verify(
    idToken: string | undefined,
    rules: { nonce?: string; accessToken: string },
  ): Promise<JWTPayload> {
    if (idToken === undefined)
      throw new OAuthClientError('protocol', 'the upstream provider sent no ID token')
    try {
      return await verifyIdToken(idToken, {
        keys: this.#keys,
        issuer: this.#config.issuerUrl,
        clientId: this.#config.clientId,
        now: this.#parts.now,
        ...rules,
      })
    } catch (error) {
      if (!(error instanceof TokenRefused)) throw error
      const text = 'the upstream provider sent an invalid ID token'
      throw new OAuthClientError('protocol', text, { cause: error })
    }
  }

  #subjectOf(claims: JWTPayload): string {
    const subject = textOf(claims[this.#subjectClaim])
    if (subject !== undefined) return subject
    throw new OAuthClientError('protocol', `the ID token has no ${this.#subjectClaim}`)
  }

  /** Reads the name and email from the userinfo override, otherwise from the ID token. Both are optional. */
  async #readUser(claims: JWTPayload, tokens: TokenSet): Promise<Pick<Identity, 'name' | 'email'>> {
    const { userInfoOverride } = this.#config
    if (!userInfoOverride) return { name: textOf(claims['name']), email: textOf(claims['email']) }
    try {
      const info = await fetchUserInfo(userInfoOverride, tokens.accessToken, this.#parts.fetch)
      if (info.subject !== claims.sub && info.subject !== claims[this.#subjectClaim]) {
        throw new OAuthClientError('protocol', 'the userinfo endpoint returned a different user')
      }
      return { name: info.name, email: info.email }
    } catch (error) {
      if (!(error instanceof OAuthClientError) || error.kind !== 'unreachable') throw error
      this.#log.warn('userinfo is unavailable; continuing without name and email', { err: error })
      return {}
    }
  }

  /**
   * Checks that refreshed tokens belong to the same user. The old tokens are already invalid, so the new tokens are
   * rejected only when a verified ID token identifies another user. An ID token that cannot be verified is ignored,
   * because it is optional here (OpenID Connect Core section 12.2). The provider's own endpoint returned the tokens for
   * this user's refresh token.
   */
  async #checkUser(fresh: TokenSet, old: UpstreamTokensRecord): Promise<TokenSet> {
    const { idToken, ...without } = fresh
    if (idToken === undefined) return fresh
    let claims: JWTPayload
    try {
      claims = await this.#verify(idToken, { accessToken: fresh.accessToken })
    } catch (error) {
      if (!(error instanceof OAuthClientError)) throw error
      this.#log.warn('a refreshed ID token cannot be verified; keeping the previous one', { err: error })
      return without
    }
    const subject = textOf(claims[this.#subjectClaim])
    const isSame =
      subject === undefined
        ? old.idToken === undefined || decodeJwt(old.idToken).sub === claims.sub
        : subject === old.subject
    if (isSame) return fresh
    throw new OAuthClientError('refused', 'the refreshed ID token belongs to a different user', {
      error: 'invalid_grant',
    })
  }
}

/** Selects the token endpoint for clients with a certificate, if there is a separate one (RFC 8705 section 5). */
function withAlias(server: ServerMetadata): ServerMetadata {
  const alias: unknown = fieldsOf(server.mtls_endpoint_aliases)['token_endpoint']
  if (alias === undefined) return server
  const problem = typeof alias === 'string' ? endpointViolation(alias) : 'must be a string'
  if (typeof alias === 'string' && problem === undefined) return { ...server, token_endpoint: alias }
  throw new OAuthClientError('protocol', `token_endpoint in mtls_endpoint_aliases ${problem}`)
}

function requireEndpoints(server: ServerMetadata): OidcMetadata {
  const { authorization_endpoint, token_endpoint, jwks_uri } = server
  if (authorization_endpoint === undefined) throw missingEndpoint(server, 'authorization_endpoint')
  if (token_endpoint === undefined) throw missingEndpoint(server, 'token_endpoint')
  if (jwks_uri === undefined) throw missingEndpoint(server, 'jwks_uri')
  return { ...server, authorization_endpoint, token_endpoint, jwks_uri }
}

/** Returns the authentication time. Rejects an authentication that is older than the client allows. */
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
    throw new OAuthClientError('refused', 'the login with the upstream provider is too old', {
      error: 'login_required',
    })
  }
  return known
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}
