/**
 * The interface of an upstream identity provider, for any protocol.
 *
 * `begin` and `finish` are the two halves of a login (upstream step). `refresh` renews the tokens of a login later. All
 * three functions reject with OAuthClientError (oauth/refusals/token-refusal.ts) and store nothing.
 */
import type { Fetch, Log } from '../../net/index.ts'
import type { TokenSet } from '../../oauth/index.ts'
import type { UpstreamTokensRecord } from '../model/records.ts'

/** The values that every provider needs from this server. */
export interface ProviderParts {
  readonly fetch: Fetch
  readonly now: () => number
  readonly log: Log
  /** Claim with the groups of the user. Absent: groups are not read. */
  readonly groupClaim?: string | undefined
}

export interface Identity {
  /** Subject at the provider, or `tk-…` when it is synthesized. */
  readonly subject: string
  readonly name?: string | undefined
  readonly email?: string | undefined
  readonly groups?: readonly string[] | undefined
  /** Time at which the provider authenticated the user. */
  readonly authTimeSec?: number | undefined
  /** True when the subject is derived from the access token and changes with every login. */
  readonly synthesized: boolean
}

export interface UpstreamLogin {
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
  readonly codeChallenge: string
  /** OpenID Connect `prompt` values. */
  readonly prompt?: string | undefined
  readonly loginHint?: string | undefined
  readonly maxAgeSec?: number | undefined
}

export interface LoginProof extends Pick<UpstreamLogin, 'nonce' | 'codeVerifier' | 'maxAgeSec'> {
  /** Rejects an earlier authentication, because the user had to sign in again. */
  readonly notBeforeSec?: number | undefined
}

export interface FinishedLogin {
  readonly tokens: UpstreamTokensRecord
  readonly identity: Identity
}

export interface Upstream {
  readonly name: string
  readonly type: 'oidc' | 'oauth2'
  /** Host of the provider for users, or its name until the host is known. */
  readonly host: string
  readonly issuer: string | undefined
  /** Origin of the authorization endpoint once known, for the content security policy. */
  readonly origin: string | undefined
  /** The reason why no login is possible yet, phrased as the end of a sentence about the provider. */
  readonly notReady: string | undefined
  /** Starts discovery and registration in the background, with retries. */
  start(): void
  /** Returns the address of the authorization request. */
  begin(login: UpstreamLogin): Promise<string>
  /** Verifies the parameters of the callback and redeems the code. */
  finish(callback: URLSearchParams, proof: LoginProof): Promise<FinishedLogin>
  /** Returns renewed tokens for the same subject. */
  refresh(tokens: UpstreamTokensRecord): Promise<UpstreamTokensRecord>
  close(): void
}

/**
 * Creates a record from a token response. On a refresh, `old` supplies the members that the response omits: the refresh
 * token (RFC 6749 section 6), the ID token and the scope.
 */
export function toUpstreamTokens(
  account: Pick<UpstreamTokensRecord, 'provider' | 'subject' | 'obtainedAtMs'>,
  { accessToken, expiresAt, refreshToken, idToken, scope }: TokenSet,
  old?: UpstreamTokensRecord,
): UpstreamTokensRecord {
  const { provider, subject, obtainedAtMs } = account
  return {
    provider,
    subject,
    accessToken,
    refreshToken: refreshToken ?? old?.refreshToken,
    idToken: idToken ?? old?.idToken,
    scope: scope ?? old?.scope,
    expiresAtMs: expiresAt,
    obtainedAtMs,
  }
}
