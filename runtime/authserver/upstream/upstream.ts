/**
 * What an upstream identity provider does for this server, whatever protocol it speaks.
 *
 * `begin` and `finish` are one login (upstream step); `refresh` renews its tokens later. All reject with
 * OAuthClientError, whose meaning is in oauth/refusals/token-refusal.ts. Nothing here stores anything.
 */
import type { UpstreamTokensRecord } from '../model/records.ts'

export interface Identity {
  /** Stable at the provider, or `tk-…` when it was made from the access token. */
  readonly subject: string
  readonly name?: string
  readonly email?: string
  /** When the user proved to the provider who they are; absent when it does not say. */
  readonly authTimeSec?: number
  /** No stable identity exists: another login gives another subject. */
  readonly synthesized: boolean
}

export interface UpstreamLogin {
  readonly state: string
  readonly nonce: string
  readonly codeVerifier: string
  readonly codeChallenge: string
  /** OpenID Connect `prompt` values to pass on. */
  readonly prompt?: string
  readonly loginHint?: string
  readonly maxAgeSec?: number
}

export interface LoginProof extends Pick<UpstreamLogin, 'nonce' | 'codeVerifier' | 'maxAgeSec'> {
  /** The user had to sign in again: a time of authentication before this refuses the login. */
  readonly notBeforeSec?: number
}

/** What a login at a provider gave. */
export interface Finished {
  readonly tokens: UpstreamTokensRecord
  readonly identity: Identity
}

export interface Upstream {
  readonly name: string
  readonly type: 'oidc' | 'oauth2'
  /** Host of the provider, for users; its name until the host is known. */
  readonly host: string
  /** Issuer identifier, where one is known. */
  readonly issuer: string | undefined
  /** Origin of the authorization endpoint once known; for the content security policy. */
  readonly origin: string | undefined
  /** What is still missing for a login there, as the rest of a sentence about the provider; undefined: nothing. */
  readonly notReady: string | undefined
  /** Starts to find out what is needed, in the background, with retries. */
  start(): void
  /** Where to send the browser. */
  begin(login: UpstreamLogin): Promise<string>
  /** Takes the callback's parameters; verifies everything the provider said. */
  finish(callback: URLSearchParams, proof: LoginProof): Promise<Finished>
  /** New tokens for old; the subject stays the same. */
  refresh(tokens: UpstreamTokensRecord): Promise<UpstreamTokensRecord>
  close(): void
}
