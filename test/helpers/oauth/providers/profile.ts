/**
 * Type of a provider profile: the differences between one identity provider and a plain OAuth 2.1 server, as data.
 * provider.ts simulates all profiles.
 */
import type { AuthServerConfig, ProxyInput } from '../../../../runtime/config/index.ts'
import type { PeerResponse } from '../../loopback.ts'

export const clientId = 'our-client'
export const clientSecret = 'our-secret'

type Upstream = AuthServerConfig['upstreams'][number]
type Json = Readonly<Record<string, unknown>>
/** The parts of an upstream that differ between providers. */
export type UpstreamPart = Upstream extends infer Each
  ? Each extends unknown
    ? Omit<Each, 'name' | 'redirectUri' | 'additionalAuthorizationParams'>
    : never
  : never

/** Addresses of a running provider. */
export interface Place {
  readonly issuer: string
  readonly authorize: string
  readonly token: string
  /** Origin of the provider's own API (user information). */
  readonly api: string
}

export interface IssuedTokens {
  readonly access_token: string
  readonly refresh_token?: string | undefined
  readonly id_token?: string | undefined
  readonly expires_in: number
  readonly scope: string
}

export interface ProviderProfile {
  readonly id: string
  /** Page of the provider that documents the differences. */
  readonly docs: string
  /** Path of the issuer as the provider writes it. */
  readonly issuerPath: string
  /** Paths that serve the metadata document; empty when the provider has none. */
  readonly metadataPaths: readonly string[]
  /** Paths that serve the metadata of a template, with the path of the issuer in it. */
  readonly templates?: Readonly<Record<string, string>>
  /** Members that the metadata adds to issuer and endpoints. `undefined` removes a member. */
  readonly metadata: Json
  readonly authorizePath: string
  readonly tokenPath: string
  /** The endpoints are on another host than the issuer. */
  readonly hasOtherHost?: true
  /** How clients authenticate at the token endpoint. `none`: clients register themselves and have no secret. */
  readonly clientAuth: 'basic' | 'body' | 'either' | 'none'
  /** Name of the scope parameter. Default: `scope`. */
  readonly scopeParam?: string
  /** Returns the parameters of the error redirect when the provider rejects an authorization request. */
  readonly refuses?: (query: URLSearchParams) => Readonly<Record<string, string>> | undefined
  /** True when a login with this authorization request gets a refresh token. */
  readonly isOffline: (query: URLSearchParams) => boolean
  /** Each refresh issues another refresh token, and reuse of the old one revokes the login. */
  readonly rotates: boolean
  /** The provider ignores PKCE. */
  readonly ignoresPkce?: true
  readonly lifeSec: number
  /** Claims of access tokens in addition to times; undefined for opaque tokens. */
  readonly accessClaims?: (place: Place, query: URLSearchParams) => Json
  /** Claims of ID tokens in addition to the required ones; undefined when the provider issues no ID tokens. */
  readonly idClaims?: Json
  /** Body of the token response. Default: the standard members with `token_type`. */
  readonly body?: (tokens: IssuedTokens, grantType: string) => Json
  /** The token endpoint uses form encoding unless the client asks for JSON. */
  readonly prefersForm?: true
  /** Response to a revoked or unknown refresh token. */
  readonly revoked: PeerResponse
  /** Text of that response that must appear in the log. */
  readonly revokedText: string
  /** Response to a refresh during an outage, in the provider's own form. */
  readonly outage: PeerResponse
  /** Response of the user information endpoint, `/user` of the API host. */
  readonly user?: Json
  /** Flags of `gatehouse proxy`, in addition to the target. */
  readonly proxy: (place: Place) => ProxyInput
  /** The provider as an upstream of the embedded authorization server. */
  readonly upstream: (place: Place) => UpstreamPart
  readonly doctor: DoctorRow
}

/** Expected results of `gatehouse doctor --login`, which signs in like an ordinary MCP client. */
export interface DoctorRow {
  /** First failure; undefined when the login of an ordinary client succeeds. */
  readonly code?: string
  /** A warning that must be reported. */
  readonly warning?: string
  /** Text of the fix of that failure, otherwise of that warning. */
  readonly fix: RegExp
  /** True when the login reaches the renewal of the token. */
  readonly renews: boolean
}
