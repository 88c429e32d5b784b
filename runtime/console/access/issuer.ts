/**
 * An OpenID Connect provider for console logins, used with a confidential or public client, PKCE and a nonce. The
 * provider's documents are loaded on the first login and refreshed after an hour.
 * Source: OpenID Connect Core sections 3.1.2 and 3.1.3, RFC 7636, RFC 9207.
 */
import type { JWTPayload } from 'jose'
import type { Fetch } from '../../net/index.ts'
import {
  authorizationUrl,
  codeGrant,
  discoverServer,
  type LoginSecrets,
  OAuthClientError,
  readAuthorizationCode,
  RemoteKeys,
  type ServerMetadata,
  TokenRefused,
  verifyIdToken,
} from '../../oauth/index.ts'

const freshMs = 60 * 60_000

export interface IssuerOptions {
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: (() => string | undefined) | undefined
  readonly scopes: readonly string[]
  readonly redirectUri: string
  readonly allowHttp: boolean
  readonly fetch: Fetch
  readonly now: () => number
}

export interface SignedInUser {
  readonly claims: JWTPayload
  readonly subject: string
  readonly idToken: string
  readonly accessToken: string
}

export class Issuer {
  readonly #options: IssuerOptions
  readonly #keys: RemoteKeys
  #server: { readonly metadata: ServerMetadata; readonly at: number } | undefined

  constructor(options: IssuerOptions) {
    const { fetch, now } = options
    this.#options = options
    this.#keys = new RemoteKeys({
      fetch,
      now,
      locate: async () => required((await this.#metadata()).jwks_uri, 'a key set'),
    })
  }

  async #metadata(): Promise<ServerMetadata> {
    const { issuer, fetch, now, allowHttp } = this.#options
    if (this.#server && now() - this.#server.at < freshMs) return this.#server.metadata
    const metadata = await discoverServer(issuer, { fetch, need: 'jwks_uri', allowHttp })
    this.#server = { metadata, at: now() }
    return metadata
  }

  /** Returns the URL to send the browser to. With `again`, the issuer must prompt the user even during a session. */
  async begin(secrets: LoginSecrets, { again }: { readonly again: boolean }): Promise<string> {
    const server = await this.#metadata()
    const { clientId, redirectUri, scopes } = this.#options
    const { state, codeChallenge, nonce } = secrets
    return authorizationUrl({
      endpoint: required(server.authorization_endpoint, 'an authorization endpoint'),
      clientId,
      redirectUri,
      scopes,
      state,
      codeChallenge,
      nonce,
      ...(again ? { extra: { max_age: '0', prompt: 'login' } } : {}),
    }).href
  }

  /** Returns the user for a redirect whose state has already been checked. Rejects with OAuthClientError. */
  async finish(callback: URLSearchParams, { codeVerifier, nonce }: LoginSecrets): Promise<SignedInUser> {
    const { issuer, clientId, clientSecret, redirectUri, fetch, now } = this.#options
    const server = await this.#metadata()
    const secret = clientSecret?.()
    const tokens = await codeGrant({
      server,
      client: { clientId, ...(secret === undefined ? {} : { clientSecret: secret }) },
      fetch,
      now,
      redirectUri,
      code: readAuthorizationCode(callback, server),
      codeVerifier,
    })
    const { idToken, accessToken } = tokens
    if (idToken === undefined) throw new OAuthClientError('protocol', 'the issuer did not return an ID token')
    const rules = { keys: this.#keys, issuer, clientId, now, nonce, accessToken }
    const claims = await verifyIdToken(idToken, rules).catch((error: unknown) => {
      if (!(error instanceof TokenRefused)) throw error
      throw new OAuthClientError('protocol', 'the ID token is invalid', { cause: error })
    })
    const { sub: subject } = claims
    if (typeof subject !== 'string' || subject === '')
      throw new OAuthClientError('protocol', 'the ID token has no sub')
    return { claims, subject, idToken, accessToken }
  }

  /** Returns the issuer's logout URL; undefined when the issuer has no logout URL or is unreachable. */
  async logoutUrl(idToken: string, returnTo: string): Promise<string | undefined> {
    const server = await this.#metadata().catch(() => undefined)
    const endpoint = server?.['end_session_endpoint']
    if (typeof endpoint !== 'string' || !/^https?:/i.test(endpoint)) return undefined
    const url = new URL(endpoint)
    url.searchParams.set('id_token_hint', idToken)
    url.searchParams.set('client_id', this.#options.clientId)
    url.searchParams.set('post_logout_redirect_uri', returnTo)
    return url.href
  }
}

function required(endpoint: string | undefined, what: string): string {
  if (endpoint !== undefined) return endpoint
  throw new OAuthClientError('protocol', `the issuer's discovery document does not contain ${what}`)
}
