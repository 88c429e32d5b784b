/**
 * The configuration of the embedded authorization server after reading: typed, defaulted, secrets behind functions.
 *
 * `authServerViolations` is every rule that needs no network, all errors at once; the server refuses to start on any.
 * Errors of the network (an upstream or the store that does not answer) are readiness, not start-up failures.
 * Source: docs/reference/specification/external-auth.md#embeddedAuthServer, spec.embeddedAuthServer and Limits; RFC 8414 section 2 (issuer).
 */
import type { ProviderId } from '../../oauth/index.ts'
import type { RedisStoreConfig } from '../../store/index.ts'

/** Reads a secret at the moment of use, so that a rotated file counts at once. Throws INVALID_CONFIG without a value. */
export type SecretSource = () => string

export interface AuthServerSecrets {
  /** PEM private keys, the signing one first. Empty: one ephemeral key. */
  readonly signingKeys: readonly string[]
  /** The current one first. Empty: one ephemeral secret. */
  readonly hmacSecrets: readonly Uint8Array[]
}

export interface AuthServerConfig {
  readonly issuer: string
  /** Moves only the advertised authorization endpoint. */
  readonly authorizationEndpointBaseUrl?: string
  readonly insecureAllowHttp: boolean
  /** Resources that tokens may be issued for. */
  readonly allowedAudiences: readonly string[]
  readonly scopesSupported: readonly string[]
  readonly baselineClientScopes: readonly string[]
  readonly registration: ClientRegistrationConfig
  /** Absent: only registered clients are accepted. */
  readonly cimd?: CimdSettings
  /** False for headless tests only: nobody is asked before a login goes upstream. */
  readonly consent: boolean
  readonly accessTokenMs: number
  readonly refreshTokenMs: number
  /** How long a rotated refresh token yields its successor again while the successor is unused. */
  readonly refreshGraceMs: number
  readonly authCodeMs: number
  /** After this a grant ends however often it was refreshed. */
  readonly grantMs: number
  readonly upstreams: readonly UpstreamConfig[]
  readonly primaryUpstreamProvider?: string
  /** For the host: requests to the backend carry neither the client's nor an upstream credential. */
  readonly disableUpstreamTokenInjection: boolean
  readonly storage: StorageSettings
  /** Addresses and networks (CIDR) of proxies whose X-Forwarded-For is believed. Absent: nobody's is. */
  readonly trustedProxies?: readonly string[]
  /** Called at start and at every reload. Throws INVALID_CONFIG naming each unreadable file. */
  readonly secrets: () => AuthServerSecrets
}

export interface ClientRegistrationConfig {
  /** False: no /oauth/register, and none advertised. */
  readonly enabled: boolean
  /** Clients that ask for a secret get one; otherwise they are registered as public clients. */
  readonly confidentialClients: boolean
}

export interface CimdSettings {
  readonly cacheMaxSize: number
  readonly cacheTtlMs: number
  /** When set, only documents from these hosts are accepted. */
  readonly allowedHosts?: readonly string[]
  /** Development: http documents on loopback addresses are accepted. */
  readonly allowLoopback: boolean
}

export type StorageSettings =
  | { readonly type: 'memory' }
  | { readonly type: 'redis'; readonly redis: RedisStoreConfig }

interface UpstreamBase {
  readonly name: string
  readonly redirectUri: string
  readonly scopes: readonly string[]
  readonly provider?: ProviderId
  readonly additionalAuthorizationParams: Readonly<Record<string, string>>
  /** File with trust anchors in addition to the system's. Reloaded when it changes. */
  readonly caBundlePath?: string
}

export interface OidcUpstreamConfig extends UpstreamBase {
  readonly type: 'oidc'
  readonly issuerUrl: string
  readonly clientId: string
  readonly clientSecret?: SecretSource
  readonly subjectClaim: string
  readonly userInfoOverride?: UserInfoSettings
}

export interface OAuth2UpstreamSettings extends UpstreamBase {
  readonly type: 'oauth2'
  /** Wins over what dcr.discoveryUrl says. */
  readonly authorizationEndpoint?: string
  readonly tokenEndpoint?: string
  readonly clientId?: string
  readonly clientSecret?: SecretSource
  readonly dcr?: UpstreamRegistrationConfig
  readonly tokenResponseMapping?: TokenResponsePaths
  readonly identityFromToken?: IdentityPaths
  readonly userInfo?: UserInfoSettings
}

export type UpstreamConfig = OidcUpstreamConfig | OAuth2UpstreamSettings

export interface UpstreamRegistrationConfig {
  readonly discoveryUrl?: string
  readonly registrationEndpoint?: string
  readonly initialAccessToken?: SecretSource
  readonly softwareId?: string
  readonly softwareStatement?: string
}

export interface TokenResponsePaths {
  readonly accessTokenPath: string
  readonly expiresInPath: string
  readonly refreshTokenPath: string
  readonly scopePath: string
}

export interface IdentityPaths {
  readonly subjectPath: string
  readonly namePath?: string
  readonly emailPath?: string
}

export interface UserInfoSettings {
  readonly endpointUrl: string
  readonly httpMethod: 'GET' | 'POST'
  readonly additionalHeaders: Readonly<Record<string, string>>
  readonly subjectFields: readonly string[]
  readonly nameFields: readonly string[]
  readonly emailFields: readonly string[]
}

const minute = 60_000
const hour = 60 * minute

/** Values of absent fields, by the names of docs/reference/specification/external-auth.md. */
export const authServerDefaults = {
  accessTokenMs: hour,
  refreshTokenMs: 168 * hour,
  refreshGraceMs: minute,
  authCodeMs: 10 * minute,
  grantMs: 720 * hour,
  cimdCacheTtlMs: 5 * minute,
  cimdCacheMaxSize: 256,
  oidcScopes: ['openid', 'offline_access'],
} as const
