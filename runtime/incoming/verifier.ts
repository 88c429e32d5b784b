/**
 * Verifies access tokens: as a JWT using the issuer's keys, or by introspection at the issuer.
 *
 * A token that looks like a JWT is verified locally when keys are available. Other tokens are introspected when an
 * endpoint is configured. Rejects with TokenRefused for an invalid token, and with OAuthClientError when the check
 * itself fails. Scopes are not enforced.
 * Source: RFC 7519, RFC 9068, RFC 7662, docs/reference/specification/proxy-command.md#authentication (authentication).
 */
import { decodeProtectedHeader } from 'jose'
import type { Caller } from '../net/index.ts'
import {
  accessTokenTypes,
  discoverServer,
  type Fetch,
  hasIdTokenClaims,
  introspect,
  type JsonRecord,
  type Keys,
  maxTokenLength,
  OAuthClientError,
  RemoteKeys,
  skewSec,
  TokenRefused,
  verifyJwt,
} from '../oauth/index.ts'
import { type OidcConfig, requiredAudience } from './config.ts'
import { callerOf, type IdentityRules } from './identity.ts'
import { VerifiedTokens } from './verified-tokens.ts'

export interface VerifierParts {
  readonly keysFetch: Fetch
  readonly introspectionFetch: Fetch
  /** This process's keys, used instead of fetched keys (embedded authorization server). */
  readonly keys?: Keys | undefined
  readonly now: () => number
  /** Cache of verified tokens that the verifiers of several issuers share. */
  readonly verified?: VerifiedTokens | undefined
  readonly identity?: Pick<IdentityRules, 'rename' | 'reserved'> | undefined
}

/** The embedded authorization server sets this type in every access token, and in no other token. */
const embeddedTypes = ['at+jwt'] as const

/**
 * Maximum number of concurrent checks. Without this limit, untrusted clients could exhaust memory when the issuer is
 * slow.
 */
const maxInFlight = 1_000

export class TokenVerifier {
  readonly #config: OidcConfig
  readonly #parts: VerifierParts
  readonly #keys: Keys | undefined
  readonly #verified: VerifiedTokens
  readonly #identity: IdentityRules
  readonly #flights = new Map<string, Promise<Caller>>()

  constructor(config: OidcConfig, parts: VerifierParts) {
    this.#config = config
    this.#parts = parts
    this.#keys = parts.keys ?? remoteKeys(config, parts)
    this.#verified = parts.verified ?? new VerifiedTokens(parts.now)
    this.#identity = {
      ...parts.identity,
      issuer: config.issuer ?? config.introspectionUrl ?? config.jwksUrl ?? '',
      origin: parts.keys ? 'embedded' : 'external',
    }
  }

  /**
   * Verifies a token. If the token is cached, returns the caller directly instead of a promise. Concurrent requests
   * with the same new token share one check.
   */
  verify(token: string): Caller | Promise<Caller> {
    if (token.length > maxTokenLength) throw new TokenRefused('too_long')
    const key = VerifiedTokens.key(token)
    const known = this.#verified.get(key, this.#keys?.version ?? 0)
    if (known) return known
    const flight = this.#flights.get(key)
    if (flight) return flight
    if (this.#flights.size >= maxInFlight) {
      throw new OAuthClientError('unreachable', 'too many access tokens are being checked', {
        retryAfterSec: 1,
      })
    }
    const fresh = this.#check(token, key).finally(() => this.#flights.delete(key))
    this.#flights.set(key, fresh)
    return fresh
  }

  async #check(token: string, key: string): Promise<Caller> {
    const claims = await this.#claims(token)
    const { subject } = this.#config
    if (subject !== undefined && claims['sub'] !== subject) throw new TokenRefused('subject')
    const caller = callerOf(claims, token, this.#identity)
    const exp = typeof claims['exp'] === 'number' ? claims['exp'] : undefined
    const bytes = token.length + JSON.stringify(claims).length
    this.#verified.set(key, caller, this.#keys?.version ?? 0, exp, bytes)
    return caller
  }

  async #claims(token: string): Promise<JsonRecord> {
    const { introspectionUrl } = this.#config
    if (this.#keys !== undefined && looksLikeJwt(token)) {
      try {
        const claims = await verifyJwt(token, {
          keys: this.#keys,
          issuer: this.#config.issuer,
          audience: requiredAudience(this.#config),
          types: this.#parts.keys ? embeddedTypes : accessTokenTypes,
          now: this.#parts.now,
        })
        if (hasIdTokenClaims(claims)) throw new TokenRefused('id_token')
        return claims
      } catch (error) {
        // An issuer that publishes no keys can still introspect the token.
        const keyless = error instanceof OAuthClientError && error.kind === 'absent'
        if (!keyless || introspectionUrl === undefined) throw error
      }
    }
    if (introspectionUrl === undefined) throw new TokenRefused('malformed')
    return this.#introspected(token, introspectionUrl)
  }

  async #introspected(token: string, endpoint: string): Promise<JsonRecord> {
    const { clientId, clientSecret } = this.#config
    const claims = await introspect(endpoint, token, {
      fetch: this.#parts.introspectionFetch,
      client: clientId && clientSecret ? { clientId, clientSecret } : undefined,
    })
    if (claims === undefined) throw new TokenRefused('inactive')
    this.#checkClaims(claims)
    return claims
  }

  /** Applies the JWT rules to the claims from introspection. Rejects a response that has no audience. */
  #checkClaims(claims: JsonRecord): void {
    const nowSec = this.#parts.now() / 1000
    // Treat null as absent: a response may omit all of these except the audience (RFC 7662 section 2.2).
    const { aud } = claims
    const [exp, nbf, iss] = [
      claims['exp'] ?? undefined,
      claims['nbf'] ?? undefined,
      claims['iss'] ?? undefined,
    ]
    if (exp !== undefined && !(typeof exp === 'number' && exp + skewSec > nowSec)) {
      throw new TokenRefused('expired')
    }
    if (nbf !== undefined && !(typeof nbf === 'number' && nbf - skewSec <= nowSec)) {
      throw new TokenRefused('not_yet_valid')
    }
    if (this.#config.issuer !== undefined && iss !== undefined && iss !== this.#config.issuer) {
      throw new TokenRefused('issuer')
    }
    const audience = requiredAudience(this.#config)
    if (!(aud === audience || (Array.isArray(aud) && aud.includes(audience))))
      throw new TokenRefused('audience')
  }
}

/** Returns keys from the configured URL or from discovery; undefined if neither is configured. */
function remoteKeys(config: OidcConfig, parts: VerifierParts): Keys | undefined {
  const { issuer, jwksUrl } = config
  if (jwksUrl !== undefined) {
    return new RemoteKeys({ fetch: parts.keysFetch, now: parts.now, locate: async () => jwksUrl })
  }
  if (issuer === undefined) return undefined
  const locate = async () => {
    const server = await discoverServer(issuer, {
      fetch: parts.keysFetch,
      allowHttp: config.insecureAllowHttp,
      need: 'jwks_uri',
    })
    if (server.jwks_uri !== undefined) return server.jwks_uri
    throw new OAuthClientError('absent', 'the issuer publishes no key set')
  }
  return new RemoteKeys({ fetch: parts.keysFetch, now: parts.now, locate })
}

/** True for a string of three parts, the first of which is a JOSE header with an algorithm. */
export function looksLikeJwt(token: string): boolean {
  if (token.split('.').length !== 3) return false
  try {
    return typeof decodeProtectedHeader(token).alg === 'string'
  } catch {
    return false
  }
}
