/**
 * The proxy's configuration file, which hooks write for MCPServer and MCPRemoteProxy and `--config` reads.
 *
 * The file contains no secrets. This module reads the variables and files that the file refers to. Flags take
 * precedence over the file.
 *
 * The transparent proxy cannot serve features that inspect every message (policies, tool filters, rate limits, audit,
 * telemetry, webhooks). `needsVirtualServer` detects a file that uses these features, and from-proxy.ts converts it to
 * a virtual server file with one backend.
 * Source: `schemas/runtime/proxy.json`; docs/reference/specification/proxy-command.md.
 */
import { type AddressPolicy, GatehouseError, type ProxyFile } from '../../../schemas/index.ts'
import { Secret } from '../../observe/index.ts'
import { parseConfig, readConfigText } from '../common/config-file.ts'
import type { Environment } from './env.ts'
import { type ProxySettings, resolveProxyConfig } from './settings.ts'
import { proxyFlags, type ProxyInput } from './flags.ts'
import type { IncomingIssuer, IncomingOidc } from './oidc.ts'
import { parseTarget } from './target.ts'
import { readSecretFile } from '../common/secrets.ts'

/** Reads and checks a file. Throws INVALID_CONFIG with the path and all errors. */
export function loadProxyFile(path: string): ProxyFile {
  return parseConfig('proxy', readConfigText(path), path)
}

/** Sections that require inspecting every message. */
const messageSections = ['authz', 'audit', 'telemetry', 'rateLimiting', 'tools', 'webhooks'] as const

type FileOidc = NonNullable<ProxyFile['oidc']>
type FileIssuer = NonNullable<ProxyFile['issuers']>[number]

/** Returns the enabled sections of this file that the transparent proxy cannot serve. */
export function needsVirtualServer(file: ProxyFile): readonly string[] {
  return messageSections.filter((section) => {
    if (section === 'audit') return file.audit?.enabled
    if (section === 'webhooks') return Object.values(file.webhooks ?? {}).some((list) => list.length > 0)
    return file[section] !== undefined
  })
}

/**
 * Returns the settings of a transparent proxy. Throws INVALID_CONFIG. A stdio target has no transparent proxy settings.
 */
export function resolveProxyFile(
  name: string,
  file: ProxyFile,
  flags: ProxyInput,
  env: Environment,
  { debug = false }: { readonly debug?: boolean } = {},
): ProxySettings {
  const { targetUri } = file
  if (targetUri === undefined)
    throw new GatehouseError('INVALID_CONFIG', { detail: 'targetUri: is required' })
  const target = parseTarget(flags.targetUri ?? targetUri, { withPath: flags.targetUri === undefined })
  const bare = target.origin + (target.query === '' ? '' : `?${target.query}`)
  const config = resolveProxyConfig(
    name,
    { ...toFlagInput(file, env), ...withoutUndefined(flags), targetUri: bare },
    env,
    { debug: debug || file.logLevel === 'debug' },
  )
  return {
    ...config,
    targetUri,
    target: { ...target, transport: file.transport },
    // A flag for the issuer replaces all issuers in the file.
    oidc: config.oidc ?? (file.oidc && { ...oidcOf(file.oidc, 'oidc', env), resource: file.oidc.resource }),
    issuers: config.oidc ? undefined : file.issuers?.map((issuer, index) => issuerOf(issuer, index, env)),
    // The DPoP check is configured only in the file, because flags must not weaken it.
    dpop: file.dpop,
    targetAddresses: addressPolicy(file.targetAddresses),
    targetTls: file.targetTls,
    strategy: file.outgoingAuth?.type === 'unauthenticated' ? undefined : file.outgoingAuth,
    unauthenticated: file.outgoingAuth?.type === 'unauthenticated',
    endpointPrefix: file.endpointPrefix,
    trustProxyHeaders: file.trustProxyHeaders,
    identifyCallers: file.identifyCallers,
    sessionStorage: file.sessionStorage,
  }
}

function addressPolicy(value: ProxyFile['targetAddresses']): AddressPolicy | undefined {
  return value === 'any' ? undefined : value
}

/** Converts the file to flag values. */
function toFlagInput(file: ProxyFile, env: Environment): ProxyInput {
  const { headerForward, remoteAuth } = file
  const login = remoteAuth?.enabled === true || remoteAuth?.clientId !== undefined
  return withoutUndefined({
    host: file.host,
    port: String(file.port),
    allowedOrigins: file.allowedOrigins,
    resourceUrl: file.resourceUrl,
    remoteCaBundle: file.targetCaBundlePath,
    remoteForwardHeaders: Object.entries(headerForward?.addPlaintextHeaders ?? {}).map((pair) =>
      pair.join('='),
    ),
    remoteForwardHeadersSecret: Object.entries(headerForward?.addHeadersFromSecret ?? {}).map((pair) =>
      pair.join('='),
    ),
    remoteAuthBearerToken: fromVariable('remoteAuth.bearerTokenEnv', remoteAuth?.bearerTokenEnv, env),
    remoteAuthBearerTokenFile: remoteAuth?.bearerTokenFile,
    ...(remoteAuth && login ? loginInput(remoteAuth, env) : {}),
  })
}

function loginInput(remoteAuth: NonNullable<ProxyFile['remoteAuth']>, env: Environment): ProxyInput {
  return withoutUndefined({
    remoteAuth: remoteAuth.enabled,
    remoteAuthIssuer: remoteAuth.issuer,
    remoteAuthAuthorizeUrl: remoteAuth.authorizeUrl,
    remoteAuthTokenUrl: remoteAuth.tokenUrl,
    remoteAuthClientId: remoteAuth.clientId,
    // The file of a secret takes precedence over its variable. For flags, a value takes precedence over a file.
    remoteAuthClientSecret:
      remoteAuth.clientSecretFile === undefined
        ? fromVariable('remoteAuth.clientSecretEnv', remoteAuth.clientSecretEnv, env)
        : undefined,
    remoteAuthClientSecretFile: remoteAuth.clientSecretFile,
    remoteAuthGrant: remoteAuth.grant,
    remoteAuthPrivateKeyFile: remoteAuth.privateKeyFile,
    remoteAuthSigningAlg: remoteAuth.signingAlg,
    remoteAuthAssertionFile: remoteAuth.assertionFile,
    remoteAuthIdpTokenUrl: remoteAuth.idpTokenUrl,
    remoteAuthIdpClientId: remoteAuth.idpClientId,
    remoteAuthIdpClientSecretFile: remoteAuth.idpClientSecretFile,
    remoteAuthIdpPrivateKeyFile: remoteAuth.idpPrivateKeyFile,
    remoteAuthIdTokenFile: remoteAuth.idTokenFile,
    remoteAuthDpop: remoteAuth.dpop,
    remoteAuthCallbackPort: unlessDefault(
      String(remoteAuth.callbackPort),
      proxyFlags.remoteAuthCallbackPort.default,
    ),
    remoteAuthResource: remoteAuth.resource,
    remoteAuthScopes: remoteAuth.scopes,
    remoteAuthScopeParamName: remoteAuth.scopeParamName,
    remoteAuthSkipBrowser: remoteAuth.skipBrowser,
    remoteAuthTimeout: unlessDefault(remoteAuth.timeout, proxyFlags.remoteAuthTimeout.default),
  })
}

/** Omits a default from the schema, because a login without a user rejects the setting. */
function unlessDefault(value: string, byDefault: string): string | undefined {
  return value === byDefault ? undefined : value
}

function issuerOf(issuer: FileIssuer, index: number, env: Environment): IncomingIssuer {
  const { audience, subjectPrefix, groupPrefix } = issuer
  return {
    ...oidcOf(issuer, `issuers[${index}]`, env),
    issuer: issuer.issuer,
    audience,
    subjectPrefix,
    groupPrefix,
  }
}

function oidcOf(oidc: FileOidc | FileIssuer, field: string, env: Environment): IncomingOidc {
  const secret =
    oidc.clientSecretFile === undefined
      ? fromVariable(`${field}.clientSecretEnv`, oidc.clientSecretEnv, env)
      : readSecretFile(oidc.clientSecretFile).reveal()
  return {
    issuer: oidc.issuer,
    audience: oidc.audience,
    clientId: oidc.clientId,
    clientSecret: secret === undefined ? undefined : new Secret(secret),
    introspectionUrl: oidc.introspectionUrl,
    jwksUrl: oidc.jwksUrl,
    scopes: 'scopes' in oidc ? oidc.scopes : undefined,
    caBundlePath: oidc.caBundlePath,
    caBundleSetting: `${field}.caBundlePath`,
    allowPrivateIp: oidc.jwksAllowPrivateIp,
    introspectionAllowPrivateIp: oidc.protectedResourceAllowPrivateIp,
    insecureAllowHttp: oidc.insecureAllowHttp,
    jwksAuthTokenPath: oidc.jwksAuthTokenPath,
    subject: oidc.subject,
    advertise: oidc.advertise,
  }
}

function fromVariable(field: string, name: string | undefined, env: Environment): string | undefined {
  if (name === undefined) return undefined
  const value = env[name]
  if (value !== undefined && value !== '') return value
  throw new GatehouseError('INVALID_CONFIG', { detail: `${field}: the variable ${name} is not set` })
}

/** Removes undefined members. */
function withoutUndefined(
  input: { readonly [K in keyof ProxyInput]?: ProxyInput[K] | undefined },
): ProxyInput {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined))
}
