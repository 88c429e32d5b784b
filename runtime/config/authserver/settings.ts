/**
 * The parsed configuration of the embedded authorization server: typed, with defaults, and with functions that read
 * secrets.
 *
 * `authServerViolations` checks every rule that does not require network access, and returns all errors at once. Any
 * error prevents the server from starting. Network errors (an unreachable upstream or store) affect readiness, not
 * startup.
 * Source: docs/reference/specification/external-auth.md#embeddedAuthServer, spec.embeddedAuthServer and Limits; RFC
 * 8414 section 2 (issuer).
 */
import type {
  Dpop,
  FederatedIdentity,
  RuntimeClientAuth,
  SpiffeClientAuth,
  UpstreamFilter,
} from '../../../schemas/index.ts'
import type { AssertionAlg, JsonRecord, ProviderId } from '../../oauth/index.ts'
import type { RedisStoreConfig } from '../../store/index.ts'
import type {
  AssertionPolicySettings,
  ExchangePolicySettings,
  TrustedIssuerSettings,
} from './trusted-issuers.ts'

/**
 * Reads a secret. Called on every use, so a rotated file takes effect immediately. Throws INVALID_CONFIG if there is no
 * value.
 */
export type SecretSource = () => string

export interface AuthServerSecrets {
  /** PEM private keys. The first key signs. If the list is empty, the server generates an ephemeral key. */
  readonly signingKeys: readonly string[]
  /** HMAC secrets. The first secret is current. If the list is empty, the server generates an ephemeral secret. */
  readonly hmacSecrets: readonly Uint8Array[]
}

export interface AuthServerConfig {
  readonly issuer: string
  /** Base URL for the advertised authorization endpoint only. */
  readonly authorizationEndpointBaseUrl?: string
  readonly insecureAllowHttp: boolean
  /** Resources for which tokens may be issued. */
  readonly allowedAudiences: readonly string[]
  readonly scopesSupported: readonly string[]
  readonly baselineClientScopes: readonly string[]
  readonly registration: ClientRegistrationConfig
  /** Settings for metadata documents. Without these settings, the server accepts only registered clients. */
  readonly cimd?: CimdSettings
  /** If false, a login with the upstream provider starts without the consent page. For headless tests only. */
  readonly consent: boolean
  readonly accessTokenMs: number
  readonly refreshTokenMs: number
  /** Time for which a rotated refresh token returns its successor again, while the successor is unused. */
  readonly refreshGraceMs: number
  readonly authCodeMs: number
  /** Maximum lifetime of a grant, regardless of refreshes. */
  readonly grantMs: number
  /**
   * Upstream providers. If the list is empty, users cannot sign in, and only declared clients and bound subjects can
   * obtain tokens.
   */
  readonly upstreams: readonly UpstreamConfig[]
  /** Clients that obtain tokens for themselves. */
  readonly clients?: readonly DeclaredClientSettings[]
  /** Settings for token exchange. Without these settings, no client can exchange tokens. */
  readonly tokenExchange?: TokenExchangeSettings
  /** Issuers whose users' tokens can be exchanged. */
  readonly exchangePolicies?: readonly ExchangePolicySettings[]
  /** Issuers whose assertions are grants. */
  readonly assertionPolicies?: readonly AssertionPolicySettings[]
  readonly primaryUpstreamProvider?: string
  /** Selects upstreams by the user's groups. Without a filter, every user signs in to all upstreams. */
  readonly upstreamFilter?: UpstreamFilter
  /**
   * If true, requests to the backend contain neither the client's credential nor an upstream credential. The host
   * applies this setting.
   */
  readonly disableUpstreamTokenInjection: boolean
  /** Access tokens that are bound to a key. Default: off. */
  readonly dpop?: Dpop | undefined
  /** Binds access tokens to the certificates of clients that present one. Default: false. */
  readonly bindsCertificates?: boolean
  readonly storage: StorageSettings
  /** Addresses and networks (CIDR) of proxies whose X-Forwarded-For is trusted. By default, no proxy is trusted. */
  readonly trustedProxies?: readonly string[]
  /**
   * Returns the current keys. Called at start and on every reload. Throws an INVALID_CONFIG error that lists all
   * unreadable files.
   */
  readonly secrets: () => AuthServerSecrets
}

/**
 * A client that authenticates with secrets, with the keys in `jwks` or at `jwksUri`, with tokens of a trusted issuer,
 * or with JWT-SVIDs.
 */
export interface DeclaredClientSettings {
  readonly clientId: string
  /** Accepted secrets. Several secrets allow rotation. */
  readonly secrets?: readonly SecretSource[]
  readonly jwks?: { readonly keys: readonly JsonRecord[] }
  readonly jwksUri?: string
  readonly federated?: FederatedSettings
  readonly spiffe?: SpiffeSettings
  readonly signingAlg: AssertionAlg
  readonly scopes: readonly string[]
  readonly resources: readonly string[]
  readonly tokenMs: number
  /** Clients whose users' tokens this client may exchange; `*` means all clients. Default: none. */
  readonly subjectClients?: readonly string[]
  /** Issues only tokens that are bound to a key. Default: false. */
  readonly isBound?: boolean
  /** Issues only tokens that are bound to the client's certificate. Default: false. */
  readonly isCertificateBound?: boolean
}

/** Identity of a client at a trusted issuer. Exactly one of `subject` and `matcher` (CEL) is set. */
export interface FederatedSettings {
  readonly issuer: TrustedIssuerSettings
  readonly subject?: string
  readonly matcher?: string
  readonly maxAgeMs: number
  readonly replay: FederatedIdentity['replay']
}

/** Workloads of a SPIFFE trust domain. */
export interface SpiffeSettings {
  readonly trustDomain: string
  readonly bundlePath: string
  readonly principalPattern: string
  readonly maxAgeMs: number
  readonly replay: SpiffeClientAuth['replay']
}

/** Token exchange (RFC 8693). */
interface TokenExchangeSettings {
  /** Maximum lifetime of an exchanged token. */
  readonly lifeMs: number
  /** Maximum number of clients in an `act` chain. */
  readonly maxDelegationDepth: number
}

export interface ClientRegistrationConfig {
  /** If false, /oauth/register is not served, and the metadata omits it. */
  readonly enabled: boolean
  /** If true, clients that request a secret receive one. If false, such clients are registered as public clients. */
  readonly confidentialClients: boolean
}

export interface CimdSettings {
  readonly cacheMaxSize: number
  readonly cacheTtlMs: number
  /** Hosts of accepted documents. Default: all hosts. */
  readonly allowedHosts?: readonly string[]
  /** If true, http documents on loopback addresses are accepted. For development. */
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
  /** File with trust anchors to use in addition to the system's trust anchors. Reloaded when it changes. */
  readonly caBundlePath?: string
  /** Files of the client certificate for mutual TLS. Reloaded when they change. */
  readonly clientCertificatePath?: string
  readonly clientKeyPath?: string
  /** Authentication at the token endpoint. Default: the client secret, if one is set. */
  readonly clientAuth?: RuntimeClientAuth
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
  /** Takes precedence over the document at dcr.discoveryUrl. */
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

/** Default values, with the field names of docs/reference/specification/external-auth.md. */
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
