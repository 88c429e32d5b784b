/**
 * Valid examples with one error each, and the expected message.
 *
 * `words` is the message of our own rule (CEL), which the API server repeats. Without `cel`, the error comes from the
 * plain schema, and the API server words it itself.
 */
import type { Operation } from 'fast-json-patch'

export interface BadManifest {
  readonly title: string
  /** Example folder, and kind of the changed document (the first one of that kind). */
  readonly of: readonly [example: string, kind: string]
  readonly patch: readonly Operation[]
  readonly words: string
  readonly cel: boolean
}

const set = (path: string, value: unknown): Operation => ({ op: 'add', path, value })
const drop = (path: string): Operation => ({ op: 'remove', path })

function rule(title: string, of: BadManifest['of'], patch: readonly Operation[], words: string): BadManifest {
  return { title, of, patch, words, cel: true }
}

function schema(
  title: string,
  of: BadManifest['of'],
  patch: readonly Operation[],
  words: string,
): BadManifest {
  return { title, of, patch, words, cel: false }
}

const vmcp = ['quickstart', 'VirtualMCPServer'] as const
const login = ['oidc', 'VirtualMCPServer'] as const
const everyone = ['redis-sessions', 'VirtualMCPServer'] as const
const server = ['redis-sessions', 'MCPServer'] as const
const entrance = ['embedded-auth-server', 'VirtualMCPServer'] as const
const machines = ['machine-clients', 'VirtualMCPServer'] as const
const exchange = ['token-exchange', 'MCPExternalAuthConfig'] as const
const cloud = ['cloud-sts', 'MCPExternalAuthConfig'] as const
const search = ['optimizer', 'VirtualMCPServer'] as const
const oidc = ['oidc', 'MCPOIDCConfig'] as const
const otel = ['authz', 'MCPTelemetryConfig'] as const
const entry = ['remote-entry', 'MCPServerEntry'] as const
const provider = '/spec/authServerConfig/upstreamProviders'
const clients = '/spec/authServerConfig/clients'
const github = `${provider}/1/oauth2Config`

export const badManifests: readonly BadManifest[] = [
  // MCPExternalAuthConfig
  rule(
    'two blocks',
    exchange,
    [set('/spec/headerInjection', { headerName: 'X-A', valueSecretRef: { name: 'a', key: 'b' } })],
    'headerInjection must be set exactly when type is headerInjection',
  ),
  rule(
    'no block',
    exchange,
    [drop('/spec/tokenExchange')],
    'tokenExchange must be set exactly when type is tokenExchange',
  ),
  rule(
    'a block with type unauthenticated',
    exchange,
    [set('/spec/type', 'unauthenticated')],
    'tokenExchange must be set exactly when type is tokenExchange',
  ),
  rule(
    'cloudSts without any role',
    cloud,
    [drop('/spec/cloudSts/fallbackRoleArn'), drop('/spec/cloudSts/roleMappings')],
    'at least one of fallbackRoleArn and roleMappings must be set',
  ),
  rule(
    'claim and matcher',
    cloud,
    [set('/spec/cloudSts/roleMappings/0/matcher', 'true')],
    'exactly one of claim and matcher must be set',
  ),
  schema('sessionDuration below 900', cloud, [set('/spec/cloudSts/sessionDuration', 899)], '900'),
  schema('sessionDuration above 43200', cloud, [set('/spec/cloudSts/sessionDuration', 43201)], '43200'),
  schema('no ARN', cloud, [set('/spec/cloudSts/fallbackRoleArn', 'admin')], 'fallbackRoleArn'),
  schema('no region', cloud, [set('/spec/cloudSts/region', 'Frankfurt')], 'region'),
  schema('negative priority', cloud, [set('/spec/cloudSts/roleMappings/0/priority', -1)], 'priority'),
  schema('unknown type', exchange, [set('/spec/type', 'kerberos')], 'spec.type'),
  schema(
    'subjectTokenType',
    exchange,
    [set('/spec/tokenExchange/subjectTokenType', 'saml2')],
    'subjectTokenType',
  ),
  schema(
    'empty headerName',
    ['header-injection', 'MCPExternalAuthConfig'],
    [set('/spec/headerInjection/headerName', '')],
    'headerName',
  ),
  // embedded authorization server
  rule(
    'primaryUpstreamProvider is not an upstream',
    entrance,
    [set('/spec/authServerConfig/primaryUpstreamProvider', 'gitlab')],
    'primaryUpstreamProvider must be the name of one of upstreamProviders',
  ),
  rule(
    'neither clients nor upstreams',
    machines,
    [drop(clients)],
    'upstreamProviders needs at least one provider unless clients, inboundGrants.jwtBearer or inboundGrants.spiffeClientAuth is set',
  ),
  rule(
    'a client with a secret and keys',
    machines,
    [set(`${clients}/0/jwksUri`, 'https://ci.example.com/jwks')],
    'exactly one of clientSecretRefs, jwks, jwksUri and federated must be set',
  ),
  rule(
    'a client secret without https',
    machines,
    [set('/spec/authServerConfig/issuer', 'http://reports.ns.svc')],
    'clients with clientSecretRefs need an https issuer, because their secrets are sent to it',
  ),
  rule(
    'a client scope that needs a user',
    machines,
    [set(`${clients}/0/scopes`, ['openid'])],
    'must not contain openid, profile, email or offline_access, which need a user',
  ),
  schema('two clients with one id', machines, [set(`${clients}/1/clientId`, 'nightly-report')], 'clients'),
  rule(
    'redis block with memory',
    entrance,
    [
      set('/spec/authServerConfig/storage', {
        type: 'memory',
        redis: { addr: 'r:6379', aclUserConfig: { passwordSecretRef: { name: 'a', key: 'b' } } },
      }),
    ],
    'redis must be set exactly when type is redis',
  ),
  rule(
    'redis without its block',
    entrance,
    [set('/spec/authServerConfig/storage', { type: 'redis' })],
    'redis must be set exactly when type is redis',
  ),
  rule(
    'addr and sentinelConfig',
    entrance,
    [
      set('/spec/authServerConfig/storage', {
        type: 'redis',
        redis: {
          addr: 'r:6379',
          sentinelConfig: { masterName: 'm', sentinelAddrs: ['s:26379'] },
          aclUserConfig: { passwordSecretRef: { name: 'a', key: 'b' } },
        },
      }),
    ],
    'exactly one of addr and sentinelConfig must be set',
  ),
  rule(
    'sentinelAddrs and sentinelService',
    entrance,
    [
      set('/spec/authServerConfig/storage', {
        type: 'redis',
        redis: {
          sentinelConfig: { masterName: 'm', sentinelAddrs: ['s:26379'], sentinelService: { name: 's' } },
          aclUserConfig: { passwordSecretRef: { name: 'a', key: 'b' } },
        },
      }),
    ],
    'exactly one of sentinelAddrs and sentinelService must be set',
  ),
  rule(
    'oidcConfig with oauth2',
    entrance,
    [set(`${provider}/0/type`, 'oauth2')],
    'oidcConfig must be set exactly when type is oidc',
  ),
  rule(
    'clientId and dcrConfig',
    entrance,
    [set(`${github}/dcrConfig`, { discoveryUrl: 'https://github.com/d' })],
    'exactly one of clientId and dcrConfig must be set',
  ),
  rule(
    'managed parameter',
    entrance,
    [set(`${provider}/0/oidcConfig/additionalAuthorizationParams`, { state: 'x' })],
    'a parameter managed by the server cannot be set',
  ),
  schema('no upstream', entrance, [set(provider, [])], 'upstreamProviders'),
  schema('two upstreams of one name', entrance, [set(`${provider}/1/name`, 'company')], 'upstreamProviders'),
  schema(
    'issuer with a trailing slash',
    entrance,
    [set('/spec/authServerConfig/issuer', 'https://mcp.example.com/')],
    'issuer',
  ),
  schema(
    'cimd cache of size 0',
    entrance,
    [set('/spec/authServerConfig/cimd', { enabled: true, cacheMaxSize: 0 })],
    'cacheMaxSize',
  ),
  // VirtualMCPServer
  rule(
    'oidc without a reference',
    login,
    [drop('/spec/incomingAuth/oidcConfigRef')],
    'oidcConfigRef or oidcConfigRefs is required when type is oidc',
  ),
  rule(
    'authzConfig and authzConfigRef',
    ['authz', 'VirtualMCPServer'],
    [
      set('/spec/incomingAuth/authzConfig', {
        type: 'inline',
        inline: { policies: ['permit(principal, action, resource);'] },
      }),
    ],
    'authzConfig and authzConfigRef are mutually exclusive',
  ),
  rule(
    'authzConfig of the wrong shape',
    login,
    [set('/spec/incomingAuth/authzConfig', { type: 'inline', configMap: { name: 'a' } })],
    'inline must be set exactly when type is inline',
  ),
  rule(
    'rate limits without Redis',
    everyone,
    [drop('/spec/sessionStorage')],
    'config.rateLimiting needs sessionStorage with provider redis',
  ),
  rule(
    'rate limits per user, but anonymous',
    everyone,
    [set('/spec/incomingAuth', { type: 'anonymous' })],
    'config.rateLimiting.perUser needs incomingAuth of type oidc',
  ),
  rule(
    'redis without an address',
    everyone,
    [drop('/spec/sessionStorage/address')],
    'address is required when provider is redis',
  ),
  rule(
    'compat with an embedding server',
    search,
    [
      set('/spec/config/optimizer', {
        embeddingProvider: 'compat',
        embeddingService: 'https://e.example.com',
        embeddingModel: 'm',
      }),
    ],
    'embeddingServerRef cannot be combined with config.optimizer.embeddingProvider compat',
  ),
  rule(
    'semantic ratio above one',
    search,
    [set('/spec/config/optimizer/hybridSearchSemanticRatio', '1.5')],
    'hybridSearchSemanticRatio must be between 0.0 and 1.0',
  ),
  rule(
    'health check longer than its interval',
    vmcp,
    [
      set('/spec/config/operational/failureHandling', {
        healthCheckInterval: '5s',
        healthCheckTimeout: '5s',
      }),
    ],
    'healthCheckTimeout must be less than healthCheckInterval',
  ),
  rule(
    'circuit breaker timeout below a second',
    everyone,
    [set('/spec/config/operational/failureHandling/circuitBreaker/timeout', '500ms')],
    'timeout must be at least 1s',
  ),
  rule(
    'restricted pass-through header',
    vmcp,
    [set('/spec/passthroughHeaders', ['X-Forwarded-For'])],
    'a restricted header cannot be passed through',
  ),
  rule(
    'outgoing auth without its reference',
    ['token-exchange', 'VirtualMCPServer'],
    [set('/spec/outgoingAuth/default', { type: 'externalAuthConfigRef' })],
    'externalAuthConfigRef is required when type is externalAuthConfigRef',
  ),
  rule(
    'priority without an order',
    vmcp,
    [set('/spec/config/aggregation', { conflictResolution: 'priority' })],
    'conflictResolutionConfig.priorityOrder needs at least one workload',
  ),
  schema(
    'maxToolsToReturn above 50',
    search,
    [set('/spec/config/optimizer/maxToolsToReturn', 51)],
    'maxToolsToReturn',
  ),
  schema('negative replicas', vmcp, [set('/spec/replicas', -1)], 'replicas'),
  schema('no group', vmcp, [drop('/spec/groupRef')], 'groupRef'),
  schema('empty group name', vmcp, [set('/spec/groupRef/name', '')], 'groupRef.name'),
  schema('no incomingAuth', vmcp, [drop('/spec/incomingAuth')], 'incomingAuth'),
  schema('unknown service type', vmcp, [set('/spec/serviceType', 'Headless')], 'serviceType'),
  schema('a misspelt field', vmcp, [set('/spec/config/agregation', {})], 'agregation'),
  schema(
    'a rate limit without tokens',
    everyone,
    [set('/spec/config/rateLimiting/shared/maxTokens', 0)],
    'maxTokens',
  ),
  // MCPServer, MCPServerEntry, MCPOIDCConfig, MCPTelemetryConfig, workflows
  rule(
    'server: rate limits without Redis',
    server,
    [
      drop('/spec/sessionStorage'),
      set('/spec/rateLimiting', { shared: { maxTokens: 1, refillPeriod: '1s' } }),
    ],
    'rateLimiting needs sessionStorage with provider redis',
  ),
  rule(
    'server: limits per user without authentication',
    server,
    [set('/spec/rateLimiting', { perUser: { maxTokens: 1, refillPeriod: '1s' } })],
    'rateLimiting.perUser needs authenticated callers',
  ),
  schema('server: no image', server, [drop('/spec/image')], 'image'),
  schema('server: port 0', server, [set('/spec/proxyPort', 0)], 'proxyPort'),
  schema('entry: no URL', entry, [set('/spec/remoteUrl', 'warehouse.corp')], 'remoteUrl'),
  rule(
    'entry: restricted header',
    entry,
    [set('/spec/headerForward/addPlaintextHeaders', { Host: 'a' })],
    'a restricted header cannot be set',
  ),
  rule(
    'OIDC: two sources',
    oidc,
    [set('/spec/kubernetesServiceAccount', {})],
    'kubernetesServiceAccount must be set exactly when type is kubernetesServiceAccount',
  ),
  rule(
    'OIDC: plain http',
    oidc,
    [set('/spec/inline/issuer', 'http://login.example.com')],
    'issuer must be https unless insecureAllowHTTP is true',
  ),
  rule(
    'telemetry: an endpoint without tracing and metrics',
    otel,
    [drop('/spec/openTelemetry/tracing'), drop('/spec/openTelemetry/metrics')],
    'endpoint needs tracing or metrics to be enabled',
  ),
  schema(
    'telemetry: sampling above one',
    otel,
    [set('/spec/openTelemetry/tracing/samplingRate', '1.5')],
    'samplingRate',
  ),
  rule(
    'tool config: an empty override',
    ['remote-entry', 'MCPToolConfig'],
    [set('/spec/toolsOverride/query_v2', {})],
    'an override must set at least one of name, description and annotations',
  ),
  rule(
    'workflow: retry without a count',
    ['composite-tools', 'VirtualMCPCompositeToolDefinition'],
    [drop('/spec/steps/0/onError/retryCount')],
    'retryCount must be at least 1 when action is retry',
  ),
  schema(
    'workflow: forEach beyond the cap',
    ['composite-tools', 'VirtualMCPCompositeToolDefinition'],
    [set('/spec/steps/3/maxIterations', 1001)],
    'maxIterations',
  ),
  schema('tls: no Secret', ['tls', 'VirtualMCPServer'], [set('/spec/tls', {})], 'secretName'),
  schema(
    'tls: no name of a Secret',
    ['tls', 'MCPRemoteProxy'],
    [set('/spec/tls/secretName', 'Inside_TLS')],
    'secretName',
  ),
]
