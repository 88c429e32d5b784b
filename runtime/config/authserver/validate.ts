/**
 * Checks every rule of the authorization server's configuration that needs no network.
 *
 * Returns one sentence per error. Each sentence contains the field name from the specification, never a secret's value.
 * Keys and secrets are checked where they are read (file.ts).
 * Source: docs/reference/specification/external-auth.md#embeddedAuthServer, spec.embeddedAuthServer, Errors and Limits;
 * RFC 8414 section 2; RFC 8707 section 2.
 */
import { isIP } from 'node:net'
import {
  headerNameViolation,
  headerValueViolation,
  upstreamFilterViolations,
} from '../../../schemas/index.ts'
import { isLoopbackHost, unbracket } from '../../net/index.ts'
import { managedParameters } from '../../oauth/index.ts'
import type {
  AuthServerConfig,
  OAuth2UpstreamSettings,
  OidcUpstreamConfig,
  UpstreamConfig,
  UserInfoSettings,
} from './settings.ts'
import { hostName } from '../common/setting-errors.ts'
import { declaredClientViolations } from './clients.ts'
import { parseTokenPath } from './token-path.ts'

const minute = 60_000
const hour = 60 * minute

/**
 * Ranges of accepted lifetimes. A token that never expires is equivalent to a password, and a very short lifetime locks
 * out all users.
 */
const lifetimes = [
  ['tokenLifespans.accessTokenLifespan', 'accessTokenMs', minute, 24 * hour, '1m to 24h'],
  ['tokenLifespans.refreshTokenLifespan', 'refreshTokenMs', hour, 720 * hour, '1h to 720h'],
  ['tokenLifespans.refreshTokenGracePeriod', 'refreshGraceMs', 0, 10 * minute, '0s to 10m'],
  ['tokenLifespans.authCodeLifespan', 'authCodeMs', 30_000, 10 * minute, '30s to 10m'],
] as const

/** Returns all errors of the configuration; empty when the server may start. */
export function authServerViolations(config: AuthServerConfig): readonly string[] {
  return [
    ...baseUrlViolations('issuer', config.issuer, { allowHttp: config.insecureAllowHttp }),
    ...(config.authorizationEndpointBaseUrl === undefined
      ? []
      : baseUrlViolations('authorizationEndpointBaseUrl', config.authorizationEndpointBaseUrl, {
          allowHttp: config.insecureAllowHttp,
        })),
    ...audienceViolations(config.allowedAudiences),
    ...scopeViolations(config),
    ...lifetimes.flatMap(([field, key, min, max, range]) =>
      config[key] >= min && config[key] <= max ? [] : [`${field} must be from ${range}`],
    ),
    ...cimdViolations(config),
    ...proxyViolations(config),
    ...upstreamViolations(config),
    ...filterViolations(config),
    ...declaredClientViolations(config),
  ]
}

function baseUrlViolations(
  field: string,
  value: string,
  { allowHttp }: { readonly allowHttp: boolean },
): readonly string[] {
  const failure = (rule: string): readonly string[] => [`${field} "${shown(value)}" ${rule}`]
  if (!URL.canParse(value)) return failure('must be an absolute URL')
  const url = new URL(value)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return failure('must be an https URL')
  if (url.username !== '' || url.password !== '') return failure('must not contain a user name or password')
  if (value.includes('?')) return failure('must not have a query')
  if (value.includes('#')) return failure('must not have a fragment')
  if (value.endsWith('/')) return failure('must not end with a slash')
  if (url.protocol === 'http:' && !allowHttp && !isLoopbackHost(url.hostname)) {
    return failure('must be https; http is for localhost, or for trusted hosts with insecureAllowHTTP')
  }
  return []
}

/** Returns a configured URL for messages, without user information. */
function shown(value: string): string {
  return value.replace(/\/\/[^/@]*@/, '//…@').slice(0, 200)
}

function audienceViolations(audiences: readonly string[]): readonly string[] {
  if (audiences.length === 0) return ['allowedAudiences must contain at least one resource']
  return audiences.flatMap((audience) => {
    const ok =
      URL.canParse(audience) && /^https?:$/.test(new URL(audience).protocol) && !audience.includes('#')
    return ok
      ? []
      : [`allowedAudiences "${shown(audience)}" must be an absolute http(s) URL without fragment`]
  })
}

const scopeToken = /^[\x21\x23-\x5b\x5d-\x7e]+$/

function scopeViolations(config: AuthServerConfig): readonly string[] {
  const supported = new Set(config.scopesSupported)
  return [
    ...(supported.size === 0 ? ['scopesSupported must not be empty'] : []),
    ...config.scopesSupported
      .filter((scope) => !scopeToken.test(scope))
      .map((scope) => `scopesSupported "${scope}" is not an OAuth scope`),
    ...config.baselineClientScopes
      .filter((scope) => !supported.has(scope))
      .map((scope) => `baselineClientScopes "${scope}" is not in scopesSupported`),
  ]
}

function cimdViolations({ cimd }: AuthServerConfig): readonly string[] {
  if (!cimd) return []
  return [
    ...(Number.isInteger(cimd.cacheMaxSize) && cimd.cacheMaxSize >= 1
      ? []
      : ['cimd.cacheMaxSize must be at least 1']),
    ...(cimd.cacheTtlMs > 0 ? [] : ['cimd.cacheFallbackTtl must be greater than zero']),
    ...(cimd.allowedHosts ?? [])
      .filter((host) => !hostName.test(host) && isIP(unbracket(host)) === 0)
      .map(
        (host) =>
          `hosts of metadata documents: "${shown(host)}" must be a host name, without scheme, port or wildcard`,
      ),
  ]
}

function proxyViolations({ trustedProxies = [] }: AuthServerConfig): readonly string[] {
  return trustedProxies
    .filter((text) => parseNetwork(text) === undefined)
    .map((text) => `trusted proxies: "${shown(text)}" is not an address or a network such as 10.0.0.0/8`)
}

/**
 * Parses an address, or a network in CIDR form. Returns undefined for anything else, including a network of length 0.
 */
export function parseNetwork(
  text: string,
): { readonly address: string; readonly bits: number; readonly family: 'ipv4' | 'ipv6' } | undefined {
  const [address = '', length, ...more] = text.split('/')
  const version = isIP(address)
  if (version === 0 || more.length > 0 || address.includes('%')) return undefined
  const most = version === 4 ? 32 : 128
  if (length !== undefined && !/^[1-9]\d{0,2}$/.test(length)) return undefined
  const bits = length === undefined ? most : Number(length)
  return bits <= most ? { address, bits, family: version === 4 ? 'ipv4' : 'ipv6' } : undefined
}

const providerName = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

function upstreamViolations(config: AuthServerConfig): readonly string[] {
  const { upstreams, primaryUpstreamProvider } = config
  if (upstreams.length === 0 && [...(config.clients ?? []), ...(config.assertionPolicies ?? [])].length === 0)
    return [
      'upstreamProviders must contain at least one provider unless clients, inboundGrants.jwtBearer or inboundGrants.spiffeClientAuth is set',
    ]
  const names = upstreams.map((upstream) => upstream.name)
  const origins = new Set(upstreams.map(({ redirectUri }) => originOf(redirectUri)))
  return [
    ...names.flatMap((name, index) =>
      names.indexOf(name) === index ? [] : [`upstreamProviders name "${name}" is used twice`],
    ),
    ...(names.length > 1 && names.includes('default')
      ? ['upstreamProviders name "default" is reserved when there are several providers']
      : []),
    ...upstreams.flatMap((upstream) =>
      oneUpstreamViolations(upstream, { allowHttp: config.insecureAllowHttp }),
    ),
    // A cookie binds the login to the browser, and this cookie belongs to one host.
    ...(origins.size > 1 ? ['upstreamProviders: every redirectUri must be on the same host'] : []),
    ...(primaryUpstreamProvider === undefined || names.includes(primaryUpstreamProvider)
      ? []
      : [`primaryUpstreamProvider "${primaryUpstreamProvider}" is not the name of an upstream provider`]),
  ]
}

function filterViolations({ upstreamFilter: filter, upstreams }: AuthServerConfig): readonly string[] {
  if (filter === undefined) return []
  const known = upstreams.map((upstream) => ({
    name: upstream.name,
    hasIdentity: upstream.type === 'oidc' || Boolean(upstream.userInfo ?? upstream.identityFromToken),
  }))
  return upstreamFilterViolations(filter, known).map(
    ({ path, message }) => `upstreamFilter.${path} ${message}`,
  )
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url
}

/** Parameters that the server sets itself, and parameters that change how the response is returned. */
const reservedParameters: ReadonlySet<string> = new Set([
  ...managedParameters,
  'response_mode',
  'request',
  'request_uri',
  'client_secret',
])

function oneUpstreamViolations(
  upstream: UpstreamConfig,
  { allowHttp }: { readonly allowHttp: boolean },
): readonly string[] {
  const at = `upstreamProviders[${upstream.name}]`
  return [
    ...(providerName.test(upstream.name)
      ? []
      : [`upstreamProviders name "${upstream.name}" must be 1 to 63 lowercase letters, digits and hyphens`]),
    ...urlViolations(`${at}.redirectUri`, upstream.redirectUri, { allowHttp }),
    ...Object.keys(upstream.additionalAuthorizationParams)
      .filter((name) => reservedParameters.has(name))
      .map((name) => `${at}.additionalAuthorizationParams must not set ${name}`),
    ...(upstream.type === 'oidc' ? oidcViolations(at, upstream) : oauth2Violations(at, upstream)),
  ]
}

/** Requires https, or http on a loopback host. `allowHttp` allows http everywhere. */
function urlViolations(
  field: string,
  value: string,
  { allowHttp }: { readonly allowHttp: boolean },
): readonly string[] {
  if (!URL.canParse(value)) return [`${field} must be an absolute URL`]
  const url = new URL(value)
  if (url.username !== '' || url.password !== '') return [`${field} must not contain a user name or password`]
  if (url.hash !== '' || value.includes('#')) return [`${field} must not have a fragment`]
  if (url.protocol === 'https:') return []
  if (url.protocol === 'http:' && (allowHttp || isLoopbackHost(url.hostname))) return []
  return [`${field} must be https; http is for localhost`]
}

function oidcViolations(at: string, upstream: OidcUpstreamConfig): readonly string[] {
  const okClaim = upstream.subjectClaim === '' || /^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(upstream.subjectClaim)
  return [
    ...urlViolations(`${at}.oidcConfig.issuerUrl`, upstream.issuerUrl, { allowHttp: false }),
    ...(upstream.clientId === '' ? [`${at}.oidcConfig.clientId is required`] : []),
    ...(upstream.scopes.includes('openid') ? [] : [`${at}.oidcConfig.scopes must contain openid`]),
    ...(okClaim ? [] : [`${at}.oidcConfig.subjectClaim must be a claim name of at most 128 characters`]),
    ...userInfoViolations(`${at}.oidcConfig.userInfoOverride`, upstream.userInfoOverride),
  ]
}

function oauth2Violations(at: string, upstream: OAuth2UpstreamSettings): readonly string[] {
  const field = `${at}.oauth2Config`
  const { dcr } = upstream
  const bothOrNone = (upstream.clientId === undefined) === (dcr === undefined)
  return [
    ...endpointViolations(
      `${field}.authorizationEndpoint`,
      upstream.authorizationEndpoint,
      dcr?.discoveryUrl,
    ),
    ...endpointViolations(`${field}.tokenEndpoint`, upstream.tokenEndpoint, dcr?.discoveryUrl),
    ...(bothOrNone ? [`${field}: exactly one of clientId and dcrConfig is required`] : []),
    ...(dcr && upstream.clientSecret
      ? [`${field}: clientSecretRef and dcrConfig are mutually exclusive`]
      : []),
    ...(dcr && (dcr.discoveryUrl === undefined) === (dcr.registrationEndpoint === undefined)
      ? [`${field}.dcrConfig: exactly one of discoveryUrl and registrationEndpoint is required`]
      : []),
    ...(dcr?.registrationEndpoint !== undefined && upstream.scopes.length === 0
      ? [`${field}.scopes must be set when dcrConfig.registrationEndpoint is set`]
      : []),
    ...[dcr?.discoveryUrl, dcr?.registrationEndpoint]
      .filter((url) => url !== undefined)
      .flatMap((url) => urlViolations(`${field}.dcrConfig URL`, url, { allowHttp: false })),
    ...userInfoViolations(`${field}.userInfo`, upstream.userInfo),
    ...pathViolations(`${field}.identityFromToken`, upstream.identityFromToken),
    ...pathViolations(`${field}.tokenResponseMapping`, upstream.tokenResponseMapping),
  ]
}

function pathViolations(field: string, paths: object | undefined): readonly string[] {
  return Object.entries(paths ?? {}).flatMap(([name, path]: [string, unknown]) => {
    if (typeof path !== 'string' || path.length < 1 || path.length > 256) {
      return [`${field}.${name} must have 1 to 256 characters`]
    }
    const parsed = parseTokenPath(path)
    return typeof parsed === 'string' ? [`${field}.${name} ${parsed}`] : []
  })
}

function endpointViolations(
  field: string,
  value: string | undefined,
  discoveryUrl: string | undefined,
): readonly string[] {
  if (value === undefined) return discoveryUrl === undefined ? [`${field} is required`] : []
  const ok = URL.canParse(value) && /^https?:$/.test(new URL(value).protocol) && !value.includes('#')
  return ok ? [] : [`${field} must be an absolute http(s) URL without fragment`]
}

function userInfoViolations(field: string, userInfo: UserInfoSettings | undefined): readonly string[] {
  if (!userInfo) return []
  const ok = URL.canParse(userInfo.endpointUrl) && /^https?:$/.test(new URL(userInfo.endpointUrl).protocol)
  return [
    ...(ok ? [] : [`${field}.endpointUrl must be an absolute http(s) URL`]),
    ...Object.entries(userInfo.additionalHeaders).flatMap(([name, value]) => {
      const valueViolation = headerValueViolation(value)
      const problem =
        headerNameViolation(name, 'service') ?? (valueViolation && `the value of ${name} ${valueViolation}`)
      return problem === undefined ? [] : [`${field}.additionalHeaders: ${problem}`]
    }),
  ]
}
