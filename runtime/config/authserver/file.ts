/**
 * Reads the configuration file of an embedded authorization server: strict YAML or JSON, checked by its schema, with
 * defaults filled in. Reports all errors at once.
 *
 * The file never contains secrets, only paths of mounted files and names of environment variables. The server reads
 * mounted files on every use, so rotation does not require a restart. Variables keep their value for the lifetime of
 * the process. A missing variable or file prevents startup. Some switches are not part of the resource and are
 * available only as environment variables.
 * Source: docs/reference/specification/external-auth.md#embeddedAuthServer, spec.embeddedAuthServer;
 * `schemas/runtime/authserver.json`.
 */
import { readFileSync } from 'node:fs'
import {
  type AuthServerFile,
  type AuthServerRedisFile,
  GatehouseError,
  isSwitchedOn,
  type OAuth2UpstreamFile,
  type OIDCUpstreamFile,
  parseDuration,
  timerMs,
  type RedisTlsFile,
  type UpstreamProviderFile,
  type UserInfoConfig as UserInfoFile,
} from '../../../schemas/index.ts'
import type { RedisStoreConfig, RedisTlsConfig } from '../../store/index.ts'
import {
  type AuthServerConfig,
  authServerDefaults,
  type AuthServerSecrets,
  type SecretSource,
  type UpstreamConfig,
  type UserInfoSettings,
} from './settings.ts'
import { declaredClientsOf, tokenExchangeOf } from './clients.ts'
import {
  assertionPoliciesOf,
  exchangePoliciesOf,
  trustedIssuerViolations,
  trustFiles,
} from './trusted-issuers.ts'
import { spiffeFileViolations } from './spiffe.ts'
import { authServerViolations } from './validate.ts'
import { invalidConfig, parseConfig, readConfigText } from '../common/config-file.ts'
import { systemReason } from '../common/system-reason.ts'
import type { Environment } from '../proxy/env.ts'

/** Variables that an authorization server reads in addition to the variables in its file. */
export const authServerEnvironment = {
  /** If false, a login with the upstream provider starts without the consent page. For headless tests only. */
  consent: 'GATEHOUSE_AUTH_SERVER_CONSENT',
  /** If false, dynamic client registration is disabled. */
  registration: 'GATEHOUSE_AUTH_SERVER_REGISTRATION',
  /** If true, clients that request a secret receive one, unless allowConfidentialClientRegistration is set. */
  confidentialClients: 'GATEHOUSE_AUTH_SERVER_CONFIDENTIAL_CLIENTS',
  /** Comma-separated host names. The server accepts only metadata documents from these hosts. */
  cimdHosts: 'GATEHOUSE_AUTH_SERVER_CIMD_HOSTS',
  /** If true, http metadata documents on loopback addresses are accepted. For development. */
  cimdLoopback: 'GATEHOUSE_AUTH_SERVER_CIMD_LOOPBACK',
  /** Comma-separated addresses and networks of proxies whose X-Forwarded-For is trusted. */
  trustedProxies: 'GATEHOUSE_AUTH_SERVER_TRUSTED_PROXIES',
} as const

/** Reads and checks a file. Throws INVALID_CONFIG; the message contains the path and all errors. */
export function loadAuthServerConfig(path: string, env: Environment): AuthServerConfig {
  return parseAuthServerConfig(readConfigText(path), env, path)
}

/** Checks configuration text. Throws an INVALID_CONFIG error that lists all errors, and the source if given. */
export function parseAuthServerConfig(text: string, env: Environment, source?: string): AuthServerConfig {
  const file = parseConfig('authserver', text, source)
  const reader = new Reader(env)
  const config = convert(file, reader)
  reader.probeSecrets(config)
  for (const { field, path } of trustFiles(file)) reader.file(field, path)
  const violations = [
    ...reader.violations,
    ...authServerViolations(config),
    ...trustedIssuerViolations(file),
    ...spiffeFileViolations(file),
  ]
  if (violations.length > 0) {
    throw invalidConfig(
      violations.map((message) => ({ path: '', message })),
      source,
    )
  }
  return config
}

/** Checks that files and variables exist, and returns functions that read them later. */
class Reader {
  readonly env: Environment
  readonly violations: string[] = []

  constructor(env: Environment) {
    this.env = env
  }

  /** A file takes precedence over a variable. Trims files, because editors and kubectl add newlines. */
  secret(field: string, file: string | undefined, variable: string | undefined): SecretSource | undefined {
    if (file !== undefined) {
      const source = (): string => readText(`${field}File`, file).trim()
      this.#probe(() => {
        if (source() === '') throw emptyError(`${field}File ${file}`)
      })
      return source
    }
    if (variable === undefined) return undefined
    const value = this.env[variable]
    if (value === undefined || value === '')
      this.violations.push(`${field}Env refers to the variable ${variable}, which is not set`)
    return () => value ?? ''
  }

  /** Checks the secrets of the declared clients. */
  probeSecrets({ clients = [] }: AuthServerConfig): void {
    for (const { secrets = [] } of clients) for (const secret of secrets) this.#probe(secret)
  }

  /** Reads a variable that must exist but may be empty. */
  variable(field: string, name: string): string {
    const value = this.env[name]
    if (value === undefined) this.violations.push(`${field} refers to the variable ${name}, which is not set`)
    return value ?? ''
  }

  /** Reads a boolean variable. */
  switch(name: string, { fallback }: { readonly fallback: boolean }): boolean {
    let on = fallback
    this.#probe(() => {
      on = isSwitchedOn(this.env, name, { fallback })
    })
    return on
  }

  file(field: string, path: string): string {
    let text = ''
    this.#probe(() => {
      text = readText(field, path)
    })
    return text
  }

  #probe(read: () => void): void {
    try {
      read()
    } catch (error) {
      if (!(error instanceof GatehouseError)) throw error
      this.violations.push(error.message)
    }
  }
}

function emptyError(what: string): GatehouseError {
  return new GatehouseError('INVALID_CONFIG', { detail: `${what} is empty` })
}

function readText(field: string, path: string): string {
  return readBytes(field, path).toString('utf8')
}

function readBytes(field: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `${field} ${path} cannot be read: ${systemReason(cause)}`,
      cause,
    })
  }
}

function convert(file: AuthServerFile, reader: Reader): AuthServerConfig {
  const { cimd, tokenLifespans } = file
  const { env } = reader
  const hosts = env[authServerEnvironment.cimdHosts]?.split(',').map((host) => host.trim().toLowerCase())
  const proxies = env[authServerEnvironment.trustedProxies]?.split(',').map((text) => text.trim())
  const allowLoopback = reader.switch(authServerEnvironment.cimdLoopback, { fallback: false })
  return {
    issuer: file.issuer,
    insecureAllowHttp: file.insecureAllowHTTP,
    allowedAudiences: file.allowedAudiences,
    scopesSupported: file.scopesSupported,
    baselineClientScopes: file.baselineClientScopes ?? [],
    registration: {
      enabled: reader.switch(authServerEnvironment.registration, { fallback: true }),
      confidentialClients:
        file.allowConfidentialClientRegistration ??
        reader.switch(authServerEnvironment.confidentialClients, { fallback: false }),
    },
    consent: reader.switch(authServerEnvironment.consent, { fallback: true }),
    accessTokenMs: parseDuration(tokenLifespans.accessTokenLifespan),
    refreshTokenMs: parseDuration(tokenLifespans.refreshTokenLifespan),
    refreshGraceMs: parseDuration(tokenLifespans.refreshTokenGracePeriod),
    authCodeMs: parseDuration(tokenLifespans.authCodeLifespan),
    grantMs: authServerDefaults.grantMs,
    upstreams: file.upstreamProviders.map((upstream, index) => upstreamOf(upstream, index, file, reader)),
    clients: declaredClientsOf(file),
    ...tokenExchangeOf(file),
    assertionPolicies: assertionPoliciesOf(file),
    exchangePolicies: exchangePoliciesOf(file),
    dpop: file.dpop,
    bindsCertificates: file.tlsClientCertificateBoundAccessTokens ?? false,
    disableUpstreamTokenInjection: file.disableUpstreamTokenInjection,
    storage:
      file.storage.redis === undefined
        ? { type: 'memory' }
        : { type: 'redis', redis: redisOf(file.storage.redis, file.issuer, reader) },
    secrets: () => readSecrets(file),
    ...(proxies === undefined ? {} : { trustedProxies: proxies.filter((text) => text !== '') }),
    ...(file.authorizationEndpointBaseUrl === undefined
      ? {}
      : { authorizationEndpointBaseUrl: file.authorizationEndpointBaseUrl }),
    ...(file.primaryUpstreamProvider === undefined
      ? {}
      : { primaryUpstreamProvider: file.primaryUpstreamProvider }),
    ...(file.upstreamFilter && { upstreamFilter: file.upstreamFilter }),
    ...(cimd?.enabled
      ? {
          cimd: {
            cacheMaxSize: cimd.cacheMaxSize,
            cacheTtlMs: parseDuration(cimd.cacheFallbackTtl),
            allowLoopback,
            ...(hosts === undefined ? {} : { allowedHosts: hosts }),
          },
        }
      : {}),
  }
}

/** Reads the current keys, with HMAC secrets as raw bytes. Throws INVALID_CONFIG, listing unreadable files. */
function readSecrets(file: AuthServerFile): AuthServerSecrets {
  const violations: string[] = []
  const read = (field: string, path: string): Buffer => {
    try {
      return readBytes(field, path)
    } catch (error) {
      if (!(error instanceof GatehouseError)) throw error
      violations.push(error.message)
      return Buffer.alloc(0)
    }
  }
  const signingKeys = (file.signingKeyFiles ?? []).map((path, index) =>
    read(`signingKeyFiles[${index}]`, path).toString('utf8'),
  )
  const hmacSecrets = (file.hmacSecretFiles ?? []).map((path, index) =>
    read(`hmacSecretFiles[${index}]`, path),
  )
  if (violations.length > 0) throw new GatehouseError('INVALID_CONFIG', { detail: violations.join('; ') })
  return { signingKeys, hmacSecrets }
}

function upstreamOf(
  upstream: UpstreamProviderFile,
  index: number,
  file: AuthServerFile,
  reader: Reader,
): UpstreamConfig {
  const at = `upstreamProviders[${index}]`
  const { name, oidcConfig, oauth2Config } = upstream
  // The default is {resourceUrl}/oauth/callback (docs/reference/specification/external-auth.md). Hooks write it
  // explicitly.
  const fallback = `${(file.allowedAudiences[0] ?? '').replace(/\/+$/, '')}/oauth/callback`
  const { clientAuth } = oidcConfig ?? oauth2Config ?? {}
  const shared = { ...tlsOf(upstream, at, reader), ...(clientAuth && { clientAuth }) }
  if (oidcConfig) return { ...oidcOf(name, oidcConfig, `${at}.oidcConfig`, fallback, reader), ...shared }
  if (oauth2Config)
    return { ...oauth2Of(name, oauth2Config, `${at}.oauth2Config`, fallback, reader), ...shared }
  throw new GatehouseError('INVALID_CONFIG', { detail: `${at} has neither oidcConfig nor oauth2Config` })
}

function tlsOf(
  { caBundlePath, clientCertificatePath, clientKeyPath }: UpstreamProviderFile,
  at: string,
  reader: Reader,
): Pick<UpstreamConfig, 'caBundlePath' | 'clientCertificatePath' | 'clientKeyPath'> {
  const paths = Object.entries({ caBundlePath, clientCertificatePath, clientKeyPath }).flatMap(
    ([field, path]) => (path === undefined ? [] : [[field, path] as const]),
  )
  for (const [field, path] of paths) reader.file(`${at}.${field}`, path)
  return Object.fromEntries(paths)
}

function providerPart({ provider }: Pick<OIDCUpstreamFile, 'provider'>): Pick<UpstreamConfig, 'provider'> {
  return provider === undefined ? {} : { provider }
}

function oidcOf(
  name: string,
  from: OIDCUpstreamFile,
  at: string,
  fallback: string,
  reader: Reader,
): UpstreamConfig {
  const clientSecret = reader.secret(`${at}.clientSecret`, from.clientSecretFile, from.clientSecretEnv)
  return {
    name,
    type: 'oidc',
    redirectUri: from.redirectUri ?? fallback,
    ...providerPart(from),
    scopes: from.scopes,
    additionalAuthorizationParams: from.additionalAuthorizationParams ?? {},
    issuerUrl: from.issuerUrl,
    clientId: from.clientId,
    subjectClaim: from.subjectClaim ?? 'sub',
    ...(clientSecret === undefined ? {} : { clientSecret }),
    ...(from.userInfoOverride === undefined ? {} : { userInfoOverride: userInfoOf(from.userInfoOverride) }),
  }
}

function oauth2Of(
  name: string,
  from: OAuth2UpstreamFile,
  at: string,
  fallback: string,
  reader: Reader,
): UpstreamConfig {
  const { dcrConfig, clientId, tokenResponseMapping, identityFromToken, userInfo } = from
  const clientSecret = reader.secret(`${at}.clientSecret`, from.clientSecretFile, from.clientSecretEnv)
  const initialAccessToken =
    dcrConfig &&
    reader.secret(
      `${at}.dcrConfig.initialAccessToken`,
      dcrConfig.initialAccessTokenFile,
      dcrConfig.initialAccessTokenEnv,
    )
  const { discoveryUrl, registrationEndpoint, softwareId, softwareStatement } = dcrConfig ?? {}
  return {
    name,
    type: 'oauth2',
    redirectUri: from.redirectUri ?? fallback,
    ...providerPart(from),
    scopes: from.scopes ?? [],
    additionalAuthorizationParams: from.additionalAuthorizationParams ?? {},
    authorizationEndpoint: from.authorizationEndpoint,
    tokenEndpoint: from.tokenEndpoint,
    ...(clientId === undefined ? {} : { clientId }),
    ...(clientSecret === undefined ? {} : { clientSecret }),
    ...(dcrConfig === undefined
      ? {}
      : {
          dcr: {
            ...(discoveryUrl === undefined ? {} : { discoveryUrl }),
            ...(registrationEndpoint === undefined ? {} : { registrationEndpoint }),
            ...(initialAccessToken === undefined ? {} : { initialAccessToken }),
            ...(softwareId === undefined ? {} : { softwareId }),
            ...(softwareStatement === undefined ? {} : { softwareStatement }),
          },
        }),
    ...(tokenResponseMapping === undefined ? {} : { tokenResponseMapping }),
    ...(identityFromToken === undefined ? {} : { identityFromToken }),
    ...(userInfo === undefined ? {} : { userInfo: userInfoOf(userInfo) }),
  }
}

function userInfoOf(from: UserInfoFile): UserInfoSettings {
  const { fieldMapping } = from
  const orDefault = (fields: readonly string[] | undefined, name: string): readonly string[] =>
    fields === undefined || fields.length === 0 ? [name] : fields
  return {
    endpointUrl: from.endpointUrl,
    httpMethod: from.httpMethod,
    additionalHeaders: from.additionalHeaders ?? {},
    subjectFields: orDefault(fieldMapping?.subjectFields, 'sub'),
    nameFields: orDefault(fieldMapping?.nameFields, 'name'),
    emailFields: orDefault(fieldMapping?.emailFields, 'email'),
  }
}

function redisOf(from: AuthServerRedisFile, issuer: string, reader: Reader): RedisStoreConfig {
  const at = 'storage.redis'
  const { addr, sentinelConfig, tls, sentinelTls } = from
  const tlsOf = (field: string, part: RedisTlsFile): RedisTlsConfig => ({
    insecureSkipVerify: part.insecureSkipVerify,
    ...(part.caCertFile === undefined ? {} : { ca: reader.file(`${field}.caCertFile`, part.caCertFile) }),
  })
  return {
    keyPrefix: from.keyPrefix ?? `gatehouse:authserver:{${issuer}}:`,
    clusterMode: from.clusterMode,
    password: reader.variable(`${at}.passwordEnv`, from.passwordEnv),
    dialTimeoutMs: timerMs(from.dialTimeout),
    readTimeoutMs: timerMs(from.readTimeout),
    writeTimeoutMs: timerMs(from.writeTimeout),
    ...(from.usernameEnv === undefined
      ? {}
      : { username: reader.variable(`${at}.usernameEnv`, from.usernameEnv) }),
    ...(addr === undefined ? {} : { addr }),
    ...(sentinelConfig === undefined
      ? {}
      : {
          sentinel: { masterName: sentinelConfig.masterName, addrs: sentinelConfig.sentinelAddrs },
          db: sentinelConfig.db,
        }),
    ...(tls === undefined ? {} : { tls: tlsOf(`${at}.tls`, tls) }),
    ...(sentinelTls === undefined ? {} : { sentinelTls: tlsOf(`${at}.sentinelTls`, sentinelTls) }),
  }
}
