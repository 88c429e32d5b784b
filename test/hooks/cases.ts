/** The scenarios of the golden cases: `<Kind>/<case>` -> the request of one sync. */
import { catalogueCases } from '../helpers/hooks/catalogue-cases.ts'
import { clientCases } from '../helpers/hooks/client-cases.ts'
import { certificateCases } from '../helpers/hooks/certificate-cases.ts'
import { dayTwo } from './day-two-cases.ts'
import { exampleCases } from './example-cases.ts'
import { openApiCases } from '../helpers/hooks/openapi-cases.ts'
import { webhookCases } from './webhook-cases.ts'
import {
  auth,
  authzConfig,
  authzenPoint,
  decisionPoint,
  decisionPointObjects,
  configMap,
  embedded,
  entry,
  oidc,
  oidcConfig,
  remote,
  resource,
  secret,
  server,
  telemetryConfig,
  toolConfig,
  toolLock,
  virtual,
  world,
} from './resources.ts'
import { servingCertificate } from './serving-certificate.ts'
import { type Stored, World } from './world.ts'

type Request = Record<string, unknown>

const files = (world: World) => world.request('MCPServer', 'files')
const door = (world: World) => world.request('VirtualMCPServer', 'door')
const config =
  (object: Stored, ...others: Stored[]) =>
  () =>
    world(object, ...others)
      .settle()
      .request(object.kind, object.metadata.name)
const clientCertificate = secret('remote-client', servingCertificate)
const basicAuth = (more: object = {}) =>
  resource('MCPExternalAuthConfig', 'legacy', {
    type: 'basicAuth',
    basicAuth: { username: 'gateway', passwordSecretRef: { name: 'tokens', key: 'api' }, ...more },
  })
const redis = {
  provider: 'redis',
  address: 'redis.example.com:6379',
  passwordRef: { name: 'redis', key: 'password' },
}
const audienceDoor = {
  type: 'oidc',
  oidcConfigRef: {
    name: 'login',
    audience: 'https://door.example.com',
    resourceUrl: 'https://door.example.com',
    scopes: ['openid', 'tools'],
  },
}

/** The embedded server, another provider with a private authority and a secret, and a ServiceAccount of the cluster. */
const severalIssuers = [
  {
    name: 'login',
    audience: 'https://door.example.com',
    resourceUrl: 'https://door.example.com',
    scopes: ['tools'],
  },
  {
    name: 'partner',
    audience: 'door-at-partner',
    subjectPrefix: 'partner:',
    groupPrefix: 'partner/',
    advertise: true,
  },
  { name: 'jobs', audience: 'door-jobs', groupPrefix: '' },
]
const partnerConfig = (inline: object = {}) =>
  resource('MCPOIDCConfig', 'partner', {
    type: 'inline',
    inline: {
      issuer: 'https://partner.example.org',
      introspectionUrl: 'https://partner.example.org/introspect',
      clientId: 'door',
      clientSecretRef: { name: 'tokens', key: 'client' },
      caBundleRef: { configMapRef: { name: 'partner-ca' } },
      ...inline,
    },
  })
const jobsConfig = resource('MCPOIDCConfig', 'jobs', {
  type: 'kubernetesServiceAccount',
  kubernetesServiceAccount: { serviceAccount: 'nightly' },
})

const filesWithServer = {
  oidcConfigRef: {
    name: 'login',
    audience: 'https://files.example.com',
    resourceUrl: 'https://files.example.com',
  },
  authServerRef: { kind: 'MCPExternalAuthConfig', name: 'server' },
}
/** Upstream providers with a private authority. */
const privateUpstreams = (...maps: object[]) =>
  maps.map((configMapRef, index) => ({
    name: `corp-${index}`,
    type: 'oidc',
    oidcConfig: { issuerUrl: `https://corp-${index}.example.com`, clientId: 'door' },
    caBundleRef: { configMapRef },
  }))
const privateServer = (map: object) =>
  resource('MCPExternalAuthConfig', 'server', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: embedded({ upstreamProviders: privateUpstreams(map) }),
  })
const privateDoor = (...maps: object[]) =>
  virtual({
    incomingAuth: audienceDoor,
    authServerConfig: embedded({ upstreamProviders: privateUpstreams(...maps) }),
  })

const console = (secret = 'tokens') => ({
  enabled: true,
  publicUrl: 'https://console.example.com',
  auth: {
    type: 'oidc',
    issuer: 'https://login.example.com',
    clientId: 'console',
    clientSecretRef: { name: secret, key: 'client' },
  },
  roles: [{ role: 'viewer', claim: 'groups', values: ['everybody'] }],
})

const workflow = {
  name: 'report',
  description: 'Searches and summarises',
  parameters: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
  steps: [
    { id: 'find', tool: 'search.find', arguments: { q: '{{.params.query}}' } },
    {
      id: 'sum',
      tool: 'files.sum',
      dependsOn: ['find'],
      arguments: { text: '{{json .steps.find.output.items}}' },
    },
  ],
  output: { properties: { text: { type: 'string', value: '{{.steps.sum.output.text}}' } } },
}

const groups: Record<string, () => Request> = {
  'MCPGroup/empty': () => world().request('MCPGroup', 'tools'),
  'MCPGroup/members': () =>
    world(server('files'), server('everything'), remote('crm'), entry('search')).request('MCPGroup', 'tools'),
  'MCPGroup/duplicate-names': () => world(server('files'), entry('files')).request('MCPGroup', 'tools'),
}

const entries: Record<string, () => Request> = {
  'MCPServerEntry/valid': config(
    entry('search', {
      externalAuthConfigRef: { name: 'header' },
      caBundleRef: { configMapRef: { name: 'anchors' } },
      headerForward: {
        addHeadersFromSecret: [{ headerName: 'X-Key', valueSecretRef: { name: 'tokens', key: 'api' } }],
      },
    }),
    auth.header,
    configMap('anchors', { 'ca.crt': 'pem' }),
  ),
  'MCPServerEntry/group-missing': () =>
    new World().apply(entry('search')).request('MCPServerEntry', 'search'),
  'MCPServerEntry/loopback-address': config(entry('search', { remoteUrl: 'http://127.0.0.1/mcp' })),
  'MCPServerEntry/everything-missing': config(
    entry('search', {
      externalAuthConfigRef: { name: 'nowhere' },
      caBundleRef: { configMapRef: { name: 'nowhere' } },
      headerForward: {
        addHeadersFromSecret: [{ headerName: 'X-Key', valueSecretRef: { name: 'nowhere', key: 'api' } }],
      },
    }),
  ),
}

const servers: Record<string, () => Request> = {
  'MCPServer/minimal': () => files(world(server('files'))),
  'MCPServer/running': () => files(world(server('files')).ready()),
  'MCPServer/stdio': () =>
    files(
      world(
        server('files', {
          transport: 'stdio',
          replicas: 3,
          args: ['/projects'],
          podTemplateSpec: { spec: { containers: [{ name: 'mcp', command: ['node', 'dist/index.js'] }] } },
        }),
      ).settle(),
    ),
  'MCPServer/stdio-without-command': () => files(world(server('files', { transport: 'stdio' })).settle()),
  'MCPServer/stdio-attach-refused': () => {
    const w = world(server('files', { transport: 'stdio', replicas: 2, backendReplicas: 2 })).ready()
    const report = { attached: false, reason: 'AccessRefused', message: 'the API server rejected create' }
    return files(w.setData('mcp-files-attach-status', { 'attach.json': JSON.stringify(report) }))
  },
  'MCPServer/sse': () =>
    files(world(server('files', { transport: 'sse', mcpPort: 9000, proxyPort: 80 })).settle()),
  'MCPServer/everything-set': () =>
    files(
      world(
        oidcConfig(),
        auth.exchange,
        telemetryConfig(),
        toolConfig(),
        configMap('profile', {
          p: '{"network":{"outbound":{"allowPort":[443],"allowHost":["example.com"]}}}',
        }),
        server('files', {
          env: [{ name: 'MODE', value: 'x' }],
          secrets: [{ name: 'tokens', key: 'api', targetEnvName: 'API_KEY' }],
          volumes: [{ name: 'data', hostPath: '/srv/data', mountPath: '/data', readOnly: true }],
          resources: { limits: { cpu: '1000m', memory: '1024Mi' } },
          permissionProfile: { type: 'configmap', name: 'profile', key: 'p' },
          oidcConfigRef: { name: 'login', audience: 'files' },
          authzConfig: { type: 'inline', inline: { policies: ['permit(principal, action, resource);'] } },
          audit: { enabled: true },
          toolConfigRef: { name: 'readonly' },
          externalAuthConfigRef: { name: 'exchange' },
          telemetryConfigRef: { name: 'otel' },
          sessionStorage: redis,
          rateLimiting: { perUser: { maxTokens: 10, refillPeriod: '1m' } },
          replicas: 2,
          backendReplicas: 2,
          trustProxyHeaders: true,
          resourceOverrides: {
            proxyDeployment: {
              labels: { team: 'a' },
              env: [
                { name: 'EXTRA', value: '1' },
                { name: 'HOME', value: '/x' },
              ],
            },
            proxyService: { annotations: { 'example.com/expose': 'yes' } },
          },
        }),
      ).ready(),
    ),
  'MCPServer/embedded-auth-server': () =>
    files(world(oidcConfig(), auth.server, server('files', filesWithServer)).settle()),
  'MCPServer/upstream-ca-bundle': () =>
    files(
      world(
        oidcConfig(),
        configMap('corp-ca', { 'corp.pem': 'pem' }),
        privateServer({ name: 'corp-ca', key: 'corp.pem' }),
        server('files', filesWithServer),
      ).settle(),
    ),
  'MCPServer/upstream-ca-bundle-optional': () =>
    files(
      world(
        oidcConfig(),
        privateServer({ name: 'nowhere', optional: true }),
        server('files', filesWithServer),
      ).settle(),
    ),
  'MCPServer/several-issuers': () =>
    files(
      world(
        oidcConfig(),
        partnerConfig(),
        configMap('partner-ca', { 'ca.crt': 'pem' }),
        jobsConfig,
        server('files', { oidcConfigRefs: severalIssuers }),
      ).settle(),
    ),
  'MCPServer/bound-tokens': () =>
    files(
      world(
        oidcConfig(),
        server('files', {
          oidcConfigRef: { name: 'login', audience: 'files' },
          dpop: { mode: 'required', requireNonce: true, proofMaxAge: '30s' },
        }),
      ).settle(),
    ),
  'MCPServer/missing-reference-keeps-children': () =>
    files(
      world(oidcConfig(), server('files', { oidcConfigRef: { name: 'login', audience: 'files' } }))
        .ready()
        .remove('MCPOIDCConfig', 'login'),
    ),
  'MCPServer/bad-pod-template-keeps-children': () =>
    files(
      world(server('files'))
        .ready()
        .apply(server('files', { podTemplateSpec: { spec: { containers: 'none' } } })),
    ),
  'MCPServer/unmanaged-service': () =>
    files(
      world(server('files'), {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'mcp-files-proxy', namespace: 'team' },
        spec: { ports: [{ port: 80 }] },
      }).settle(),
    ),
}

const proxies: Record<string, () => Request> = {
  'MCPRemoteProxy/minimal': () => world(remote('crm')).settle().request('MCPRemoteProxy', 'crm'),
  'MCPRemoteProxy/running': () =>
    world(
      auth.bearer,
      remote('crm', {
        externalAuthConfigRef: { name: 'bearer' },
        headerForward: {
          addPlaintextHeaders: { 'X-Team': 'a' },
          addHeadersFromSecret: [{ headerName: 'X-Key', valueSecretRef: { name: 'tokens', key: 'api' } }],
        },
      }),
    )
      .ready()
      .request('MCPRemoteProxy', 'crm'),
  'MCPRemoteProxy/private-address': () =>
    world(remote('crm', { remoteUrl: 'http://10.1.2.3/mcp' }))
      .settle()
      .request('MCPRemoteProxy', 'crm'),
  'MCPRemoteProxy/missing-secret': () =>
    world(
      remote('crm', {
        headerForward: {
          addHeadersFromSecret: [{ headerName: 'X-Key', valueSecretRef: { name: 'nowhere', key: 'k' } }],
        },
      }),
    )
      .settle()
      .request('MCPRemoteProxy', 'crm'),
}

const virtualServers: Record<string, () => Request> = {
  'VirtualMCPServer/minimal': () => door(world(virtual()).settle()),
  'VirtualMCPServer/discovered': () =>
    door(world(server('files'), remote('crm'), entry('search'), virtual()).ready()),
  'VirtualMCPServer/inline': () =>
    door(
      world(
        server('files'),
        virtual({
          outgoingAuth: { source: 'inline' },
          config: {
            backends: [
              {
                name: 'legacy',
                url: 'https://legacy.example.com/sse',
                transport: 'sse',
                metadata: { group: 'x' },
              },
            ],
          },
        }),
      ).ready(),
    ),
  'VirtualMCPServer/outgoing-strategies': () =>
    door(
      world(
        auth.bearer,
        auth.header,
        auth.exchange,
        auth.sts,
        auth.none,
        auth.obo,
        auth.inject,
        ...['bearer', 'header', 'exchange', 'sts', 'none', 'obo', 'inject'].map((name) =>
          entry(`with-${name}`, { externalAuthConfigRef: { name } }),
        ),
        entry('overridden', { externalAuthConfigRef: { name: 'exchange' } }),
        entry('plain'),
        virtual({
          outgoingAuth: {
            default: { type: 'externalAuthConfigRef', externalAuthConfigRef: { name: 'bearer' } },
            backends: {
              overridden: { type: 'externalAuthConfigRef', externalAuthConfigRef: { name: 'header' } },
            },
          },
        }),
      ).ready(),
    ),
  'VirtualMCPServer/client-certificate': () =>
    door(
      world(
        entry('search', { clientCertificateSecretRef: { name: 'remote-client' } }),
        clientCertificate,
        virtual(),
      ).ready(),
    ),
  'VirtualMCPServer/upstream-filter': () =>
    door(
      world(
        oidcConfig(),
        virtual({
          incomingAuth: {
            type: 'oidc',
            oidcConfigRef: {
              name: 'login',
              audience: 'https://door.example.com',
              resourceUrl: 'https://door.example.com',
            },
          },
          authServerConfig: embedded({
            upstreamProviders: ['corp', 'crm', 'wiki'].map((name) => ({
              name,
              type: 'oidc',
              oidcConfig: { issuerUrl: `https://${name}.example.com`, clientId: 'door' },
            })),
          }),
          authServerUpstreamFilter: {
            rules: [{ groups: ['sales', 'support'], upstreamProviders: ['crm', 'wiki'] }],
            defaultUpstreams: ['wiki'],
          },
        }),
      ).ready(),
    ),
  'VirtualMCPServer/upstream-credentials': () =>
    door(
      world(
        oidcConfig(),
        clientCertificate,
        virtual({
          incomingAuth: {
            type: 'oidc',
            oidcConfigRef: {
              name: 'login',
              audience: 'https://door.example.com',
              resourceUrl: 'https://door.example.com',
            },
          },
          authServerConfig: embedded({
            upstreamProviders: [
              {
                name: 'corp',
                type: 'oidc',
                oidcConfig: {
                  issuerUrl: 'https://corp.example.com',
                  clientId: 'door',
                  clientAuth: { method: 'privateKeyJwt', privateKeyRef: { name: 'tokens', key: 'api' } },
                },
                clientCertificateSecretRef: { name: 'remote-client' },
              },
              {
                name: 'hub',
                type: 'oauth2',
                oauth2Config: {
                  authorizationEndpoint: 'https://hub.example.com/authorize',
                  tokenEndpoint: 'https://hub.example.com/token',
                  clientId: 'door',
                  clientAuth: { method: 'federated', serviceAccountToken: {} },
                },
              },
            ],
          }),
        }),
      ).ready(),
    ),
  'VirtualMCPServer/client-auth': () =>
    door(
      world(
        resource('MCPExternalAuthConfig', 'own', {
          type: 'clientCredentials',
          clientCredentials: {
            tokenUrl: 'https://login.example.com/token',
            clientId: 'door',
            clientSecretRef: { name: 'tokens', key: 'client' },
            resource: 'https://search.example.com',
          },
        }),
        resource('MCPExternalAuthConfig', 'exchange', {
          type: 'tokenExchange',
          tokenExchange: {
            tokenUrl: 'https://login.example.com/token',
            audience: 'backend',
            clientId: 'door',
            clientAuth: { method: 'federated', serviceAccountToken: { audience: 'api://exchange' } },
          },
        }),
        resource('MCPExternalAuthConfig', 'xaa', {
          type: 'xaa',
          xaa: {
            idpTokenUrl: 'https://login.example.com/token',
            idpClientId: 'door',
            idpClientAuth: {
              method: 'privateKeyJwt',
              privateKeyRef: { name: 'tokens', key: 'api' },
              signingAlg: 'PS256',
              assertionAudience: 'https://login.example.com',
            },
            targetTokenUrl: 'https://target.example.com/token',
            targetAudience: 'https://target.example.com',
            targetClientId: 'door',
            targetClientAuth: { method: 'federated', serviceAccountToken: { expirationSeconds: 600 } },
          },
        }),
        ...['own', 'exchange', 'xaa'].map((name) =>
          entry(`with-${name}`, { externalAuthConfigRef: { name } }),
        ),
        virtual(),
      ).ready(),
    ),
  'VirtualMCPServer/several-issuers': () =>
    door(
      world(
        oidcConfig(),
        partnerConfig(),
        configMap('partner-ca', { 'ca.crt': 'pem' }),
        jobsConfig,
        entry('plain'),
        virtual({
          incomingAuth: { type: 'oidc', oidcConfigRefs: severalIssuers },
          authServerConfig: embedded(),
        }),
      ).settle(),
    ),
  'VirtualMCPServer/bound-tokens': () =>
    door(
      world(
        oidcConfig(),
        entry('plain'),
        virtual({
          incomingAuth: {
            type: 'oidc',
            oidcConfigRef: {
              name: 'login',
              audience: 'https://door.example.com/mcp',
              resourceUrl: 'https://door.example.com/mcp',
            },
            dpop: { mode: 'optional', replay: 'none' },
          },
          authServerConfig: embedded({ dpop: { mode: 'optional', requireNonce: true } }),
        }),
      ).settle(),
    ),
  'VirtualMCPServer/several-issuers-broken': () =>
    door(
      world(
        oidcConfig(),
        jobsConfig,
        entry('plain'),
        virtual({
          incomingAuth: {
            type: 'oidc',
            oidcConfigRefs: [...severalIssuers, { name: 'nowhere', audience: 'x' }],
          },
        }),
      ).settle(),
    ),
  'VirtualMCPServer/several-issuers-conflict': () =>
    door(
      world(
        oidcConfig({ introspectionUrl: 'https://login.example.com/introspect' }),
        partnerConfig(),
        configMap('partner-ca', { 'ca.crt': 'pem' }),
        resource('MCPOIDCConfig', 'again', {
          type: 'inline',
          inline: { issuer: 'https://login.example.com' },
        }),
        entry('plain'),
        virtual({
          incomingAuth: {
            type: 'oidc',
            oidcConfigRefs: [...severalIssuers.slice(0, 2), { name: 'again', audience: 'x' }],
          },
        }),
      ).settle(),
    ),
  'VirtualMCPServer/identity-providers': () =>
    door(
      world(
        oidcConfig(),
        entry('plain'),
        virtual({
          incomingAuth: audienceDoor,
          authServerConfig: embedded({
            upstreamProviders: [
              {
                name: 'staff',
                type: 'oidc',
                oidcConfig: {
                  issuerUrl: 'https://accounts.google.com',
                  clientId: 'door',
                  clientSecretRef: { name: 'tokens', key: 'client' },
                  provider: 'google',
                },
              },
              {
                name: 'chat',
                type: 'oauth2',
                oauth2Config: {
                  authorizationEndpoint: 'https://slack.com/oauth/v2_user/authorize',
                  tokenEndpoint: 'https://slack.com/api/oauth.v2.user.access',
                  clientId: 'door',
                  clientSecretRef: { name: 'tokens', key: 'client' },
                  scopes: ['channels:history'],
                  provider: 'slack',
                },
              },
            ],
          }),
        }),
      ).ready(),
    ),
  'VirtualMCPServer/embedded-auth-server': () =>
    door(
      world(
        oidcConfig(),
        auth.exchange,
        auth.inject,
        entry('exchanged', { externalAuthConfigRef: { name: 'exchange' } }),
        entry('injected', { externalAuthConfigRef: { name: 'inject' } }),
        virtual({
          incomingAuth: {
            ...audienceDoor,
            authzConfig: {
              type: 'inline',
              inline: { policies: ['permit(principal, action, resource);'], primaryUpstreamProvider: 'corp' },
            },
          },
          authServerConfig: embedded({
            cimd: { enabled: true },
            storage: {
              type: 'redis',
              redis: {
                sentinelConfig: { masterName: 'main', sentinelService: { name: 'sentinel' } },
                aclUserConfig: {
                  passwordSecretRef: { name: 'redis', key: 'password' },
                  usernameSecretRef: { name: 'redis', key: 'user' },
                },
                tls: { caCertSecretRef: { name: 'keys', key: 'ca.crt' } },
              },
            },
          }),
        }),
      ).ready(),
    ),
  'VirtualMCPServer/upstream-ca-bundles': () =>
    door(
      world(
        oidcConfig(),
        configMap('corp-ca', { 'ca.crt': 'pem', 'other.pem': 'pem' }),
        privateDoor(
          { name: 'corp-ca' },
          { name: 'corp-ca', key: 'other.pem' },
          { name: 'nowhere', optional: true },
        ),
      ).ready(),
    ),
  'VirtualMCPServer/upstream-ca-bundle-missing': () =>
    door(world(oidcConfig(), privateDoor({ name: 'nowhere' })).ready()),
  'VirtualMCPServer/everything-set': () =>
    door(
      world(
        oidcConfig({
          clientId: 'door',
          clientSecretRef: { name: 'tokens', key: 'client' },
          caBundleRef: { configMapRef: { name: 'anchors' } },
        }),
        authzConfig(),
        telemetryConfig(),
        toolConfig(),
        configMap('anchors', { 'ca.crt': 'pem' }),
        resource('EmbeddingServer', 'embed', { modelCache: {} }),
        resource('VirtualMCPCompositeToolDefinition', 'report', workflow),
        server('files'),
        entry('search', {
          caBundleRef: { configMapRef: { name: 'anchors' } },
          headerForward: {
            addPlaintextHeaders: { 'X-Team': 'a' },
            addHeadersFromSecret: [{ headerName: 'X-Key', valueSecretRef: { name: 'tokens', key: 'api' } }],
          },
        }),
        virtual({
          incomingAuth: { ...oidc, authzConfigRef: { name: 'policies' } },
          embeddingServerRef: { name: 'embed' },
          telemetryConfigRef: { name: 'otel', serviceName: 'front' },
          sessionStorage: redis,
          replicas: 2,
          serviceType: 'LoadBalancer',
          sessionAffinity: 'None',
          imagePullSecrets: [{ name: 'pull' }],
          passthroughHeaders: ['X-Request-Id'],
          podTemplateSpec: {
            spec: {
              nodeSelector: { disk: 'ssd' },
              containers: [{ name: 'vmcp', resources: { limits: { cpu: '2000m' } } }],
            },
          },
          config: {
            aggregation: {
              conflictResolution: 'priority',
              conflictResolutionConfig: { priorityOrder: ['files', 'search'] },
              tools: [{ workload: 'files', toolConfigRef: { name: 'readonly' }, filter: ['ignored'] }],
            },
            audit: { enabled: true },
            codeMode: { enabled: true },
            compositeToolRefs: [{ name: 'report' }],
            operational: { logLevel: 'debug' },
            rateLimiting: { perUser: { maxTokens: 5, refillPeriod: '10s' } },
          },
        }),
      ).ready(),
    ),
  'VirtualMCPServer/reported-health': () => {
    const w = world(server('files'), entry('search'), virtual()).ready()
    const checksum = (
      w.get('ConfigMap', 'door-vmcp-config').metadata['annotations'] as Record<string, string>
    )['gatehouse.dev/content-checksum']
    const report = {
      observedAt: '2026-01-01T01:00:00Z',
      configChecksum: checksum,
      backends: [
        {
          name: 'files',
          status: 'ready',
          lastHealthCheck: '2026-01-01T01:00:00.123Z',
          consecutiveFailures: 0,
        },
        {
          name: 'search',
          status: 'unavailable',
          message: 'Connection failed (failures: 3)',
          lastHealthCheck: '2026-01-01T01:00:00Z',
          consecutiveFailures: 3,
          circuitBreakerState: 'open',
          circuitLastChanged: '2026-01-01T00:59:00Z',
        },
      ],
    }
    return door(w.setData('door-vmcp-status', { 'vmcp-door-1.json': JSON.stringify(report) }))
  },
  'VirtualMCPServer/group-missing-keeps-children': () =>
    door(world(server('files'), virtual()).ready().remove('MCPGroup', 'tools')),
  'VirtualMCPServer/broken-default-closes': () =>
    door(
      world(
        entry('plain'),
        virtual({
          outgoingAuth: {
            default: { type: 'externalAuthConfigRef', externalAuthConfigRef: { name: 'nowhere' } },
          },
        }),
      ).ready(),
    ),
  'VirtualMCPServer/every-reference-missing': () =>
    door(
      world(
        virtual({
          groupRef: { name: 'nowhere' },
          incomingAuth: {
            type: 'oidc',
            oidcConfigRef: { name: 'nowhere', audience: 'x' },
            authzConfigRef: { name: 'nowhere' },
          },
          embeddingServerRef: { name: 'nowhere' },
          telemetryConfigRef: { name: 'nowhere' },
          sessionStorage: { ...redis, passwordRef: { name: 'nowhere', key: 'x' } },
          config: {
            compositeToolRefs: [{ name: 'nowhere' }],
            aggregation: { tools: [{ workload: 'files', toolConfigRef: { name: 'nowhere' } }] },
          },
        }),
      ).settle(),
    ),
}

const configs: Record<string, () => Request> = {
  'EmbeddingServer/minimal': config(resource('EmbeddingServer', 'embed', {})),
  'EmbeddingServer/running': () =>
    world(
      resource('EmbeddingServer', 'embed', {
        modelCache: { size: '2048Mi' },
        hfTokenSecretRef: { name: 'tokens', key: 'api' },
        replicas: 2,
      }),
    )
      .ready()
      .request('EmbeddingServer', 'embed'),
  'EmbeddingServer/cache-change-needs-recreate': () =>
    world(resource('EmbeddingServer', 'embed', { modelCache: { size: '1Gi' } }))
      .ready()
      .apply(resource('EmbeddingServer', 'embed', { modelCache: { size: '9Gi' } }))
      .request('EmbeddingServer', 'embed'),
  'MCPAuthzConfig/cedar': config(authzConfig(), server('files', { authzConfigRef: { name: 'policies' } })),
  'MCPAuthzConfig/bad-policy': config(authzConfig({ policies: ['permit(principal, action'] })),
  'MCPAuthzConfig/unknown-type': config(resource('MCPAuthzConfig', 'policies', { type: 'rego', config: {} })),
  'MCPAuthzConfig/decision-point': config(
    decisionPoint(),
    ...decisionPointObjects(),
    remote('crm', { authzConfigRef: { name: 'decision-point' } }),
  ),
  'MCPAuthzConfig/decision-point-without-secret': config(decisionPoint()),
  'MCPAuthzConfig/authzen-point': config(
    authzenPoint(),
    ...decisionPointObjects(),
    remote('crm', { authzConfigRef: { name: 'authzen-point' } }),
  ),
  'MCPRemoteProxy/authzen-point': () =>
    world(
      authzenPoint(),
      ...decisionPointObjects(),
      remote('crm', { authzConfigRef: { name: 'authzen-point' } }),
    )
      .settle()
      .request('MCPRemoteProxy', 'crm'),
  'MCPRemoteProxy/decision-point': () =>
    world(
      decisionPoint(),
      ...decisionPointObjects(),
      remote('crm', { authzConfigRef: { name: 'decision-point' } }),
    )
      .settle()
      .request('MCPRemoteProxy', 'crm'),
  'MCPExternalAuthConfig/bearer-token': config(
    auth.bearer,
    remote('crm', { externalAuthConfigRef: { name: 'bearer' } }),
  ),
  'MCPExternalAuthConfig/basic-auth': config(basicAuth()),
  'MCPRemoteProxy/basic-auth': () =>
    world(
      basicAuth({ username: undefined, usernameSecretRef: { name: 'tokens', key: 'client' } }),
      remote('crm', { externalAuthConfigRef: { name: 'legacy' } }),
    )
      .settle()
      .request('MCPRemoteProxy', 'crm'),
  'MCPExternalAuthConfig/missing-secret': config(
    resource('MCPExternalAuthConfig', 'bearer', {
      type: 'bearerToken',
      bearerToken: { tokenSecretRef: { name: 'nowhere', key: 'bearer' } },
    }),
  ),
  'MCPServerEntry/client-certificate': config(
    entry('search', { clientCertificateSecretRef: { name: 'remote-client' } }),
    clientCertificate,
  ),
  'MCPServerEntry/client-certificate-missing': config(
    entry('search', { clientCertificateSecretRef: { name: 'nowhere' } }),
  ),
  'MCPRemoteProxy/client-certificate': config(
    remote('crm', { clientCertificateSecretRef: { name: 'remote-client' } }),
    clientCertificate,
  ),
  'MCPRemoteProxy/client-certificate-missing': () =>
    world(remote('crm', { clientCertificateSecretRef: { name: 'remote-client' } }), clientCertificate)
      .ready()
      .remove('Secret', 'remote-client')
      .settle()
      .request('MCPRemoteProxy', 'crm'),
  'MCPExternalAuthConfig/client-key-missing': config(
    resource('MCPExternalAuthConfig', 'own', {
      type: 'clientCredentials',
      clientCredentials: {
        issuer: 'https://login.example.com',
        clientId: 'door',
        privateKeyRef: { name: 'tokens', key: 'nowhere' },
      },
    }),
  ),
  'MCPExternalAuthConfig/obo-without-handler': config(auth.obo),
  'MCPExternalAuthConfig/embedded-auth-server': config(auth.server),
  'MCPExternalAuthConfig/upstream-ca-bundle-missing': config(privateServer({ name: 'nowhere' })),
  'MCPExternalAuthConfig/found-through-a-member': () =>
    world(auth.header, entry('search', { externalAuthConfigRef: { name: 'header' } }), virtual())
      .ready()
      .request('MCPExternalAuthConfig', 'header'),
  'MCPOIDCConfig/inline': config(
    oidcConfig({ clientId: 'door', clientSecretRef: { name: 'tokens', key: 'client' } }),
    virtual({ incomingAuth: oidc }),
  ),
  'MCPOIDCConfig/http-issuer': config(oidcConfig({ issuer: 'http://login.example.com' })),
  'MCPOIDCConfig/service-account': config(
    resource('MCPOIDCConfig', 'login', {
      type: 'kubernetesServiceAccount',
      kubernetesServiceAccount: { serviceAccount: 'agent', namespace: 'agents' },
    }),
  ),
  'MCPTelemetryConfig/collector': config(
    telemetryConfig(),
    server('files', { telemetryConfigRef: { name: 'otel' } }),
  ),
  'MCPToolLock/not-observed': config(toolLock()),
  'MCPToolLock/wrong-name': config(toolLock({ tools: [{ name: 'find', definition: { name: 'search' } }] })),
  'VirtualMCPServer/console': () => door(world(virtual({ config: { console: console() } })).ready()),
  'VirtualMCPServer/console-secret-missing': () =>
    door(world(virtual({ config: { console: console('nowhere') } })).ready()),
  'VirtualMCPServer/quotas': () =>
    door(
      world(
        oidcConfig(),
        entry('search'),
        virtual({
          incomingAuth: oidc,
          replicas: 2,
          config: {
            quotas: [
              {
                name: 'searches',
                match: { backend: 'search', tool: 'find' },
                per: 'user',
                window: 'day',
                limit: 9,
              },
              { name: 'spending', per: 'group', window: 'month', unit: 'cost', limit: 1000, action: 'warn' },
              { name: 'nobodys', match: { backend: 'serch' }, per: 'server', window: 'hour', limit: 1 },
            ],
            costs: { 'search/find': 25, gone: 1 },
          },
        }),
      ).ready(),
    ),
  'VirtualMCPServer/tool-locks': () =>
    world(entry('search'), toolLock(), virtual({ config: { pinning: {} } }))
      .ready()
      .settle()
      .request('VirtualMCPServer', 'door'),
  'MCPToolConfig/overrides': config(
    toolConfig(),
    virtual({
      config: { aggregation: { tools: [{ workload: 'files', toolConfigRef: { name: 'readonly' } }] } },
    }),
  ),
  'MCPToolConfig/one-name-twice': config(
    toolConfig({ toolsOverride: { echo: { name: 'say' }, say: { description: 'x' } } }),
  ),
  'VirtualMCPCompositeToolDefinition/valid': config(
    resource('VirtualMCPCompositeToolDefinition', 'report', workflow),
    virtual({ config: { compositeToolRefs: [{ name: 'report' }] } }),
  ),
  'VirtualMCPCompositeToolDefinition/circle': config(
    resource('VirtualMCPCompositeToolDefinition', 'report', {
      ...workflow,
      steps: [
        { id: 'a', tool: 'x.a', dependsOn: ['b'] },
        { id: 'b', tool: 'x.b', dependsOn: ['a'] },
      ],
      output: undefined,
    }),
  ),
  'VirtualMCPCompositeToolDefinition/invalid-template': config(
    resource('VirtualMCPCompositeToolDefinition', 'report', {
      ...workflow,
      steps: [{ id: 'a', tool: 'x.a', arguments: { text: '{{ nope .params.topic }}' } }],
      output: undefined,
    }),
  ),
  'VirtualMCPCompositeToolDefinition/invalid-schema': config(
    resource('VirtualMCPCompositeToolDefinition', 'report', {
      ...workflow,
      parameters: { type: 'object', properties: { topic: { type: 'text' } } },
    }),
  ),
}

export const cases: Readonly<Record<string, () => Request>> = {
  ...groups,
  ...entries,
  ...openApiCases,
  ...catalogueCases,
  ...servers,
  ...proxies,
  ...virtualServers,
  ...configs,
  ...dayTwo,
  ...certificateCases,
  ...webhookCases,
  ...clientCases,
  ...exampleCases,
}
