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
import type { UpstreamTokensRecord } from '../model/records.ts'
import { notDiscovered, Retried } from './background-lookup.ts'
import { toUpstreamTokens } from './tokens.ts'
import type { Finished, Identity, LoginProof, Upstream, UpstreamLogin } from './upstream.ts'
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

export class OidcUpstream implements Upstream {
  readonly type = 'oidc'
  readonly #config: OidcUpstreamConfig
  readonly #parts: UpstreamParts
  readonly #log: Log
  readonly #hint: ReturnType<typeof hintFor>
  readonly #subjectClaim: string
  readonly #metadata: Retried<OidcMetadata>
  readonly #keys: RemoteKeys

  constructor(given: OidcUpstreamConfig, parts: UpstreamParts) {
    const { fetch, now } = parts
    this.#parts = parts
    this.#hint = hintFor(given.provider)
    this.#config = { ...given, scopes: hintedScopes(this.#hint, given.scopes) }
    this.#log = parts.log.child({ upstream: given.name })
    this.#subjectClaim = given.subjectClaim === '' ? 'sub' : given.subjectClaim
    this.#metadata = new Retried<OidcMetadata>({
      find: async () => complete(await discoverServer(given.issuerUrl, { fetch, need: 'jwks_uri' })),
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
    const asked = {
      prompt: login.prompt,
      login_hint: login.loginHint,
      max_age: login.maxAgeSec?.toString(),
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
      // What the operator wrote counts more than what a client asks for.
      extra: { ...hintedParams(this.#hint, defined(asked)), ...this.#config.additionalAuthorizationParams },
    }).href
  }

  async finish(callback: URLSearchParams, proof: LoginProof): Promise<Finished> {
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
      ...(authTimeSec === undefined ? {} : { authTimeSec }),
      ...(await this.#describe(claims, tokens)),
    }
    return { identity, tokens: toUpstreamTokens(this.#config.name, subject, tokens, now()) }
  }

  async refresh(tokens: UpstreamTokensRecord): Promise<UpstreamTokensRecord> {
    const { refreshToken } = tokens
    if (refreshToken === undefined)
      throw new OAuthClientError('refused', 'there is no refresh token', { error: 'invalid_grant' })
    const { fetch, now } = this.#parts
    const server = await this.#metadata.get()
    const fresh = await refreshGrant({ server, client: this.#client(), fetch, now, refreshToken })
    const accepted = await this.#check(fresh, tokens)
    return toUpstreamTokens(this.#config.name, tokens.subject, accepted, now(), tokens)
  }

  #client(): OAuthClient {
    const secret = this.#config.clientSecret?.()
    const { clientId } = this.#config
    return hintedClient(this.#hint, { clientId, ...(secret === undefined ? {} : { clientSecret: secret }) })
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
      throw new OAuthClientError(
        'protocol',
        'the upstream provider sent an ID token that cannot be accepted',
        {
          cause: error,
        },
      )
    }
  }

  #subjectOf(claims: JWTPayload): string {
    const subject = claims[this.#subjectClaim]
    if (typeof subject === 'string' && subject !== '') return subject
    throw new OAuthClientError('protocol', `the ID token has no ${this.#subjectClaim}`)
  }

  /** Name and e-mail by the override, else by the ID token. A silent userinfo endpoint costs only these. */
  async #describe(claims: JWTPayload, tokens: TokenSet): Promise<{ name?: string; email?: string }> {
    const { userInfoOverride } = this.#config
    if (!userInfoOverride) return { ...text('name', claims['name']), ...text('email', claims['email']) }
    try {
      const info = await fetchUserInfo(userInfoOverride, tokens.accessToken, this.#parts.fetch)
      if (info.subject !== claims.sub && info.subject !== claims[this.#subjectClaim]) {
        throw new OAuthClientError('protocol', 'the userinfo endpoint speaks of another user')
      }
      return { ...text('name', info.name), ...text('email', info.email) }
    } catch (error) {
      if (!(error instanceof OAuthClientError) || error.kind !== 'unreachable') throw error
      this.#log.warn('userinfo is not available, going on without name and e-mail', { err: error })
      return {}
    }
  }

  /**
   * Checks whose tokens a refresh returned. The old ones are gone, so the new ones are refused only when a verified ID
   * token names another user. An ID token that cannot be verified is ignored, since a refresh may come without one
   * (OpenID Connect Core section 12.2): the tokens came from the provider's own endpoint, for this user's refresh token.
   */
  async #check(fresh: TokenSet, old: UpstreamTokensRecord): Promise<TokenSet> {
    const { idToken, ...without } = fresh
    if (idToken === undefined) return fresh
    let claims: JWTPayload
    try {
      claims = await this.#verify(idToken, { accessToken: fresh.accessToken })
    } catch (error) {
      if (!(error instanceof OAuthClientError)) throw error
      this.#log.warn('a refreshed ID token cannot be verified, the previous one stays', { err: error })
      return without
    }
    const subject = text('subject', claims[this.#subjectClaim]).subject
    const same =
      subject === undefined
        ? old.idToken === undefined || decodeJwt(old.idToken).sub === claims.sub
        : subject === old.subject
    if (same) return fresh
    throw new OAuthClientError('refused', 'the refreshed ID token speaks of another user', {
      error: 'invalid_grant',
    })
  }
}

function complete(server: ServerMetadata): OidcMetadata {
  const { authorization_endpoint, token_endpoint, jwks_uri } = server
  if (authorization_endpoint === undefined) throw missingEndpoint(server, 'authorization_endpoint')
  if (token_endpoint === undefined) throw missingEndpoint(server, 'token_endpoint')
  if (jwks_uri === undefined) throw missingEndpoint(server, 'jwks_uri')
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
