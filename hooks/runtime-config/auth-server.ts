/**
 * Builds the file for an embedded authorization server from the resource's settings block. Paths and variable names
 * replace Secret references.
 *
 * Each Secret with keys is mounted as a directory, which the kubelet updates. Each server has its own storage prefix.
 * Source: docs/reference/specification/external-auth.md#embeddedAuthServer, "spec.embeddedAuthServer".
 */
import {
  byText,
  type CABundleSource,
  type ClientAuth,
  type DeclaredClient,
  type EmbeddedAuthServerConfig,
  formatViolations,
  type input,
  type ObjectRef,
  type SecretRef,
  type UpstreamFilter,
  type UpstreamProvider,
} from '../../schemas/index.ts'
import type { Conditions, SyncFailure } from '../sync/conditions.ts'
import type { AnyContext } from '../sync/context.ts'
import { caKey } from '../references/resolve.ts'
import { clientAuthPart, type CredentialFiles } from './client-auth.ts'
import { clientPairFailure, clientPairIn } from './client-certificate.ts'
import { variablePart } from './header-forward.ts'
import type { PodNeeds } from './needs.ts'
import { storagePart } from './auth-server-storage.ts'
import { spiffePart } from './config-maps.ts'
import { resourceViolations, trustedIssuersPart } from './trusted-issuers.ts'
import { definedFields } from '../base/kube.ts'

export interface AuthServerTarget {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  /** Resource (audience) of the issued tokens. */
  readonly resource: string
  /** Scopes that the incoming OIDC reference advertises. If empty, the server uses its default set. */
  readonly scopes: readonly string[]
  readonly primaryUpstreamProvider: string | undefined
  readonly upstreamFilter?: UpstreamFilter | undefined
  readonly clusterDomain: string
  /** True when clients connect through a Gateway or an Ingress. */
  readonly behindEdge: boolean
  /** True if the server asks clients for certificates. Otherwise, tokens are not bound to certificates. */
  readonly clientCertificates: boolean
  readonly needs: PodNeeds
}

const directory = '/etc/gatehouse/authserver'

/**
 * Networks of the cluster's proxies. The server trusts these proxies to report the client address, which the login
 * limits use.
 */
const privateNetworks = '10.0.0.0/8,100.64.0.0/10,172.16.0.0/12,192.168.0.0/16,fc00::/7'

export function authServerPart(
  config: EmbeddedAuthServerConfig,
  target: AuthServerTarget,
): input.AuthServerFile {
  const { needs } = target
  if (target.behindEdge) needs.literal('GATEHOUSE_AUTH_SERVER_TRUSTED_PROXIES', privateNetworks)
  return definedFields({
    issuer: config.issuer,
    authorizationEndpointBaseUrl: config.authorizationEndpointBaseUrl,
    insecureAllowHTTP: config.insecureAllowHTTP,
    allowedAudiences: [target.resource],
    scopesSupported: target.scopes.length > 0 ? target.scopes : undefined,
    allowConfidentialClientRegistration: config.allowConfidentialClientRegistration,
    baselineClientScopes: config.baselineClientScopes,
    cimd: config.cimd,
    disableUpstreamTokenInjection: config.disableUpstreamTokenInjection,
    signingKeyFiles: keyFiles(needs, config.signingKeySecretRefs, {
      volume: 'signing-key',
      folder: 'keys',
      file: 'key.pem',
    }),
    hmacSecretFiles: keyFiles(needs, config.hmacSecretRefs, {
      volume: 'hmac-secret',
      folder: 'hmac',
      file: 'secret',
    }),
    primaryUpstreamProvider: target.primaryUpstreamProvider,
    upstreamFilter: target.upstreamFilter,
    tokenLifespans: config.tokenLifespans,
    clients: clientsPart(config.clients, target),
    trustedIssuers: trustedIssuersPart(config, needs),
    spiffeTrustDomains: spiffePart(config, needs),
    inboundGrants: config.inboundGrants,
    dpop: config.dpop,
    tlsClientCertificateBoundAccessTokens: target.clientCertificates
      ? config.tlsClientCertificateBoundAccessTokens
      : undefined,
    storage: storagePart(config, target),
    upstreamProviders: config.upstreamProviders.map((upstream, index) =>
      upstreamPart(upstream, index, target),
    ),
  })
}

function keyFiles(
  needs: PodNeeds,
  refs: readonly SecretRef[] | undefined,
  { volume, folder, file }: { readonly volume: string; readonly folder: string; readonly file: string },
): readonly string[] | undefined {
  return refs?.map(({ name, key }, index) => {
    const path = `${directory}/${folder}/${index}`
    needs.secretFiles(`authserver-${volume}-${index}`, path, name, [{ key, path: file }])
    return `${path}/${file}`
  })
}

/**
 * Builds the declared clients. A secret's path depends only on its Secret and key: a running server rereads the list of
 * clients before its pod is replaced. The server must not find another client's secret at that path.
 */
function clientsPart(
  clients: readonly DeclaredClient[] | undefined,
  { needs, clientCertificates }: AuthServerTarget,
): input.AuthServerFile['clients'] {
  const keys = new Map<string, Set<string>>()
  for (const { name, key } of clientSecrets(clients)) keys.set(name, (keys.get(name) ?? new Set()).add(key))
  const at = (name: string): string => `${directory}/clients/${name}`
  for (const [name, names] of keys) {
    const items = [...names].sort(byText).map((key) => ({ key, path: key }))
    needs.secretFiles(`authserver-client-${name}`, at(name), name, items)
  }
  return clients?.map(({ clientSecretRefs, tlsClientCertificateBoundAccessTokens: isBound, ...rest }) => ({
    ...rest,
    ...(clientCertificates && isBound !== undefined && { tlsClientCertificateBoundAccessTokens: isBound }),
    ...(clientSecretRefs && {
      clientSecretFiles: clientSecretRefs.map(({ name, key }) => `${at(name)}/${key}`),
    }),
  }))
}

function clientSecrets(clients: readonly DeclaredClient[] | undefined): readonly SecretRef[] {
  return clients?.flatMap(({ clientSecretRefs }) => clientSecretRefs ?? []) ?? []
}

function upstreamPart(upstream: UpstreamProvider, index: number, target: AuthServerTarget) {
  const { name, type, oidcConfig, oauth2Config, caBundleRef, clientCertificateSecretRef } = upstream
  const { needs } = target
  const auth = (audience: string) =>
    clientAuthPart((oidcConfig ?? oauth2Config)?.clientAuth, 'client', audience, upstreamFiles(name, needs))
  return {
    name,
    type,
    ...(oidcConfig && {
      oidcConfig: definedFields({
        ...withSecret(oidcConfig, name, target),
        clientAuth: auth(oidcConfig.issuerUrl),
      }),
    }),
    ...(oauth2Config && {
      oauth2Config: definedFields({
        ...withDcr(withSecret(oauth2Config, name, target), name, needs),
        clientAuth: auth(oauth2Config.tokenEndpoint),
      }),
    }),
    ...(caBundleRef && { caBundlePath: bundlePath(caBundleRef, index, needs) }),
    ...(clientCertificateSecretRef && certificatePaths(name, clientCertificateSecretRef, needs)),
  }
}

function upstreamFiles(upstream: string, needs: PodNeeds): CredentialFiles {
  return {
    needs,
    volume: (file) => `authserver-upstream-${file}-${upstream}`,
    directory: (file) => `${directory}/upstreams/${upstream}/${file}`,
  }
}

function certificatePaths(upstream: string, secret: ObjectRef, needs: PodNeeds) {
  const files = upstreamFiles(upstream, needs)
  const path = files.directory('certificate')
  const items = Object.values(clientPairIn(secret)).map(({ key }) => ({ key, path: key }))
  needs.secretFiles(files.volume('certificate'), path, secret.name, items)
  return { clientCertificatePath: `${path}/tls.crt`, clientKeyPath: `${path}/tls.key` }
}

/** Returns the failure of the first upstream whose client certificate and key exist, but cannot be used together. */
export function upstreamPairFailure(
  context: AnyContext,
  { upstreamProviders }: EmbeddedAuthServerConfig,
  path: string,
): SyncFailure | undefined {
  for (const [index, { clientCertificateSecretRef: secret }] of upstreamProviders.entries()) {
    const field = `${path}.upstreamProviders[${index}].clientCertificateSecretRef`
    const failure = secret && clientPairFailure(context, clientPairIn(secret), field)
    if (failure) return failure
  }
  return undefined
}

/** Mounts the whole ConfigMap, because the kubelet updates only whole directories. */
function bundlePath({ configMapRef }: CABundleSource, index: number, needs: PodNeeds): string {
  const path = `${directory}/upstream-ca/${index}`
  needs.configFiles(`authserver-upstream-ca-${index}`, path, configMapRef.name)
  return `${path}/${caKey(configMapRef.key)}`
}

function withSecret<
  T extends {
    readonly redirectUri?: string
    readonly clientSecretRef?: SecretRef
    readonly clientAuth?: ClientAuth
  },
>(
  given: T,
  upstream: string,
  target: AuthServerTarget,
): Omit<T, 'clientSecretRef' | 'clientAuth'> & { readonly redirectUri: string } {
  const { clientSecretRef, clientAuth: _, ...rest } = given
  const variable = `GATEHOUSE_UPSTREAM_CLIENT_SECRET_${variablePart(upstream)}`
  return {
    ...rest,
    redirectUri: given.redirectUri ?? defaultCallback(target),
    ...(clientSecretRef && { clientSecretEnv: target.needs.secretEnv(variable, clientSecretRef) }),
  }
}

function withDcr<T extends { readonly dcrConfig?: { readonly initialAccessTokenRef?: SecretRef } }>(
  given: T,
  upstream: string,
  needs: PodNeeds,
) {
  if (!given.dcrConfig) return given
  const { initialAccessTokenRef, ...dcrConfig } = given.dcrConfig
  const variable = `GATEHOUSE_UPSTREAM_DCR_INITIAL_ACCESS_TOKEN_${variablePart(upstream)}`
  return {
    ...given,
    dcrConfig: {
      ...dcrConfig,
      ...(initialAccessTokenRef && {
        initialAccessTokenEnv: needs.secretEnv(variable, initialAccessTokenRef),
      }),
    },
  }
}

/** Returns the default redirect URI for providers: `{resourceUrl}/oauth/callback`. */
function defaultCallback({ resource }: AuthServerTarget): string {
  return `${resource.replace(/\/+$/, '')}/oauth/callback`
}

/** Lists all Secrets that the block refers to. */
export function authServerSecrets(config: EmbeddedAuthServerConfig): readonly SecretRef[] {
  return [...restartSecrets(config), ...rereadSecrets(config)]
}

/** Lists the Secrets that the running server rereads. */
export function rereadSecrets(config: EmbeddedAuthServerConfig): readonly SecretRef[] {
  const upstream = config.upstreamProviders.flatMap(
    ({ oidcConfig, oauth2Config, clientCertificateSecretRef: certificate }) => [
      ...[(oidcConfig ?? oauth2Config)?.clientAuth?.privateKeyRef].filter((ref) => ref !== undefined),
      ...(certificate ? Object.values(clientPairIn(certificate)) : []),
    ],
  )
  return [...clientSecrets(config.clients), ...upstream]
}

/**
 * Lists the Secrets that require new pods when they change. The running server rereads the other Secrets, so rotating a
 * job's secret does not end any session.
 */
export function restartSecrets(config: EmbeddedAuthServerConfig): readonly SecretRef[] {
  const redis = config.storage?.redis
  const upstream = config.upstreamProviders.flatMap(({ oidcConfig, oauth2Config }) => [
    oidcConfig?.clientSecretRef,
    oauth2Config?.clientSecretRef,
    oauth2Config?.dcrConfig?.initialAccessTokenRef,
  ])
  const all = [
    ...(config.signingKeySecretRefs ?? []),
    ...(config.hmacSecretRefs ?? []),
    ...upstream,
    redis?.aclUserConfig.passwordSecretRef,
    redis?.aclUserConfig.usernameSecretRef,
    redis?.tls?.caCertSecretRef,
    redis?.sentinelTls?.caCertSecretRef,
  ]
  return all.filter((ref) => ref !== undefined)
}

/** Returns an error when a client or a binding refers to a resource for which this server issues no tokens. */
export function resourceFailure(
  config: EmbeddedAuthServerConfig,
  served: string | undefined,
): string | undefined {
  const violations = resourceViolations(config, served)
  return violations.length === 0 ? undefined : formatViolations(violations).replaceAll('\n', '; ')
}

/**
 * Returns an error when a server with machine clients would run several replicas without a shared store. Such replicas
 * share neither used assertions nor the removal of clients and bindings. `replicas` is the number that the resource
 * declares.
 */
export function machineReplicaFailure(
  { clients = [], inboundGrants, storage }: EmbeddedAuthServerConfig,
  replicas: number,
): string | undefined {
  const { jwtBearer, spiffeClientAuth } = inboundGrants ?? {}
  const hasMachines = clients.length > 0 || jwtBearer !== undefined || spiffeClientAuth !== undefined
  if (!hasMachines || storage?.type === 'redis' || replicas < 2) return undefined
  return 'storage of type memory allows only one replica with clients, inboundGrants.jwtBearer or inboundGrants.spiffeClientAuth, because each replica would accept the same assertion; set storage to type redis'
}

/**
 * Returns a warning when replicas would not share grants or keys; undefined with shared storage or a single replica.
 */
export function replicaFailure(
  { storage, signingKeySecretRefs, hmacSecretRefs }: EmbeddedAuthServerConfig,
  replicas: number,
): SyncFailure | undefined {
  if (replicas < 2) return undefined
  if (storage?.type !== 'redis') {
    const message =
      'replicas do not share clients, codes, tokens or used assertions: a login that starts on one replica fails on ' +
      'another, and each replica accepts the same assertion'
    return { reason: 'MemoryStorageWithReplicas', message: `${message}; set storage to type redis` }
  }
  const missing = [
    ...(signingKeySecretRefs?.length ? [] : ['signingKeySecretRefs']),
    ...(hmacSecretRefs?.length ? [] : ['hmacSecretRefs']),
  ]
  if (missing.length === 0) return undefined
  const message = 'each replica generates its own keys and rejects tokens from the other replicas'
  return { reason: 'EphemeralKeysWithReplicas', message: `${message}; set ${missing.join(' and ')}` }
}

/** Sets the warning condition. Omits the condition when there is no failure. */
export function checkAuthServerReplicas(
  conditions: Conditions,
  server: EmbeddedAuthServerConfig,
  replicas: number,
): void {
  const failure = replicaFailure(server, replicas)
  if (failure) conditions.set('AuthServerReplicasWarning', 'True', failure.reason, failure.message)
}
