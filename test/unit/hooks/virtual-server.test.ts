/**
 * VirtualMCPServer: what its fields become in the pod, in the file and in the status.
 */
import t from 'tap'
import { parse } from 'yaml'
import { virtualServerViolations } from '../../../hooks/kinds/virtualmcpserver/validate.ts'
import { formatViolations, withDefaults } from '../../../schemas/index.ts'
import { proves } from '../../helpers/proves.ts'
import {
  auth,
  authzConfig,
  configMap,
  embedded,
  entry,
  oidc,
  oidcConfig,
  policy,
  resource,
  server,
  telemetryConfig,
  toolConfig,
  virtual,
  world,
} from '../../hooks/resources.ts'
import type { Stored, World } from '../../hooks/world.ts'

type Json = Record<string, never>

const dataOf = (w: World, name = 'door-vmcp-config') =>
  w.get('ConfigMap', name)['data'] as Record<string, string>
const configOf = (w: World) => parse(dataOf(w)['config.yaml'] ?? '') as Record<string, Json>
const statusOf = (w: World) =>
  w.get('VirtualMCPServer', 'door')['status'] as Record<string, unknown> & { conditions: Condition[] }
interface Condition {
  type: string
  status: string
  reason: string
  message: string
}
const condition = (w: World, type: string) => statusOf(w).conditions.find((item) => item.type === type)
const door = (spec: object, ...others: Stored[]) => world(virtual(spec), ...others).ready()

t.test(
  'aggregation: no override gives a tool the name of a tool of the server itself, while its feature is on',
  (t) => {
    const tools = [
      { workload: 'a', overrides: { x: { name: 'find_tool' }, y: { name: 'execute_tool_script' } } },
    ]
    const manual = { conflictResolution: 'manual', tools }
    const kind = 'VirtualMCPServer' as const
    const said = (more: object) => {
      const doc = { kind, spec: { groupRef: { name: 'g' }, incomingAuth: { type: 'anonymous' }, ...more } }
      return formatViolations(virtualServerViolations(withDefaults<typeof kind>(doc)))
    }
    const at = 'spec.config.aggregation.tools[0].overrides'
    const find = `${at}.x.name: find_tool is the name of a tool of the server itself`
    const script = `${at}.y.name: execute_tool_script is the name of a tool of the server itself`
    const optimizer = { embeddingService: 'http://e:1' }
    t.equal(said({ config: { aggregation: manual } }), '')
    t.equal(said({ config: { aggregation: manual, optimizer } }), find)
    t.equal(
      said({ config: { aggregation: manual }, embeddingServerRef: { name: 'e' } }),
      find,
      'the reference switches it on',
    )
    t.equal(said({ config: { aggregation: manual, codeMode: { enabled: true } } }), script)
    t.equal(said({ config: { aggregation: manual, codeMode: {} } }), '')
    t.equal(said({ config: { aggregation: { tools }, optimizer } }), '', 'names have a prefix')
    const overrides = { x: { name: 'tool' } }
    const prefixed = { aggregation: { tools: [{ workload: 'find', overrides }] }, optimizer }
    t.equal(said({ config: prefixed }), find, 'the prefix may make such a name')
    t.end()
  },
)

t.test('incomingAuth: OIDC from the shared configuration with the values of this server', async (t) => {
  proves(
    '3.spec.incomingAuth.oidcConfigRef',
    '3.spec.incomingAuth.oidcConfigRef.audience',
    '3.spec.incomingAuth.oidcConfigRef.resourceUrl',
    '3.spec.incomingAuth.oidcConfigRef.scopes',
    '3.config.incomingAuth',
    '3.config.incomingAuth.oidc.clientSecretEnv',
    '3.status.oidcConfigHash',
    '3.reference.MCPOIDCConfig',
    '3.service.converter',
    '3.auth.incoming.1',
  )
  const config = oidcConfig({
    clientId: 'c',
    clientSecretRef: { name: 'tokens', key: 'client' },
    jwksAllowPrivateIP: true,
  })
  const w = door({ incomingAuth: oidc, config: { incomingAuth: { type: 'anonymous' } } }, config)
  t.match(configOf(w)['incomingAuth'], {
    type: 'oidc',
    oidc: {
      issuer: 'https://login.example.com',
      audience: 'https://door.example.com/mcp',
      resource: 'http://vmcp-door.team.svc.cluster.local:4483/mcp',
      scopes: ['openid'],
      clientSecretEnv: 'VMCP_OIDC_CLIENT_SECRET',
      jwksAllowPrivateIp: true,
    },
  })
  t.match(statusOf(w), { oidcConfigHash: /^[0-9a-f]{64}$/, phase: 'Ready' })
  const own = door(
    {
      incomingAuth: {
        type: 'oidc',
        oidcConfigRef: { name: 'login', audience: 'a', resourceUrl: 'https://d.example.com', scopes: ['x'] },
      },
    },
    config,
  )
  t.match(configOf(own)['incomingAuth'], { oidc: { resource: 'https://d.example.com', scopes: ['x'] } })
  own.apply(virtual()).ready()
  t.notOk('oidcConfigHash' in statusOf(own), 'the hash goes with the reference')
})

t.test('incomingAuth: a service account named in the configuration is the only subject let in', async (t) => {
  const account = { type: 'kubernetesServiceAccount', kubernetesServiceAccount: { serviceAccount: 'agent' } }
  const w = door({ incomingAuth: oidc }, resource('MCPOIDCConfig', 'login', account))
  t.match(configOf(w)['incomingAuth'], {
    oidc: {
      issuer: 'https://kubernetes.default.svc',
      subject: 'system:serviceaccount:team:agent',
      caBundlePath: '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
      jwksAllowPrivateIp: true,
    },
  })
})

t.test('authorization: inline, from a ConfigMap or shared, all become one form', async (t) => {
  proves(
    '3.spec.incomingAuth.authzConfig',
    '3.spec.incomingAuth.authzConfigRef',
    '3.spec.incomingAuth.authzConfig.inline.entitiesJson',
    '3.spec.incomingAuth.authzConfig.groupClaimName',
    '3.spec.incomingAuth.authzConfig.roleClaimName',
    '3.config.incomingAuth.authz.policies',
    '3.config.incomingAuth.authz.entitiesJson',
    '3.config.incomingAuth.authz.groupClaimName',
    '3.config.incomingAuth.authz.roleClaimName',
    '3.status.authzConfigHash',
    '3.reference.MCPAuthzConfig',
    '3.auth.incoming.2',
  )
  const expected = {
    type: 'cedar',
    policies: [policy],
    entitiesJson: '[]',
    groupEntityType: 'ServiceGroup',
    groupClaimName: 'g',
    roleClaimName: 'r',
  }
  const names = { groupClaimName: 'g', roleClaimName: 'r' }
  const envelope = {
    version: '1.0',
    type: 'cedarv1',
    cedar: { policies: [policy], group_claim_name: 'theirs', role_claim_name: 'r' },
  }
  const inline = door({
    incomingAuth: {
      type: 'anonymous',
      authzConfig: { type: 'inline', inline: { policies: [policy] }, ...names },
    },
  })
  const map = door(
    {
      incomingAuth: {
        type: 'anonymous',
        authzConfig: { type: 'configMap', configMap: { name: 'authz' }, groupClaimName: 'g' },
      },
    },
    configMap('authz', { 'authz.json': JSON.stringify(envelope) }),
  )
  const shared = door(
    { incomingAuth: { type: 'anonymous', authzConfigRef: { name: 'policies' } } },
    authzConfig({ group_claim_name: 'g', role_claim_name: 'r' }),
  )
  for (const w of [inline, map, shared]) t.strictSame(configOf(w)['incomingAuth']?.['authz'], expected)
  t.match(statusOf(shared), { authzConfigHash: /^[0-9a-f]{64}$/ })
  t.notOk('authzConfigHash' in statusOf(inline))
})

t.test('authorization: a ConfigMap that is missing or wrong stops the server with the reason', async (t) => {
  const spec = {
    incomingAuth: { type: 'anonymous', authzConfig: { type: 'configMap', configMap: { name: 'authz' } } },
  }
  t.match(condition(door(spec), 'AuthConfigured'), { status: 'False', reason: 'AuthzConfigMapNotFound' })
  for (const text of ['no json', '{"type":"rego"}', '{"type":"cedarv1","cedar":{"policies":["permit("]}}']) {
    const w = door(spec, configMap('authz', { 'authz.json': text }))
    t.match(condition(w, 'AuthConfigured'), { status: 'False', reason: 'AuthzConfigMapInvalid' }, text)
    t.match(statusOf(w), { phase: 'Failed' })
  }
})

const issued = {
  type: 'oidc',
  oidcConfigRef: { name: 'login', audience: 'https://d.example.com', resourceUrl: 'https://d.example.com' },
}

t.test('authServerConfig: becomes the sibling file; keys are mounted, secrets named', async (t) => {
  proves('3.spec.authServerConfig', '3.auth.incoming.3', '3.spec.authServerConfig.issuer', '2.service.server')
  const w = door({ incomingAuth: issued, authServerConfig: embedded() }, oidcConfig())
  const file = parse(dataOf(w)['authserver-config.yaml'] ?? '') as Record<string, unknown>
  t.match(file, {
    issuer: 'https://login.example.com',
    allowedAudiences: ['https://d.example.com'],
    signingKeyFiles: ['/etc/gatehouse/authserver/keys/0/key.pem', '/etc/gatehouse/authserver/keys/1/key.pem'],
    hmacSecretFiles: ['/etc/gatehouse/authserver/hmac/0/secret'],
    upstreamProviders: [
      {
        oidcConfig: {
          clientSecretEnv: 'GATEHOUSE_UPSTREAM_CLIENT_SECRET_CORP',
          redirectUri: 'https://d.example.com/oauth/callback',
        },
      },
    ],
  })
  const wrong = door(
    { incomingAuth: issued, authServerConfig: embedded({ issuer: 'https://other.example.com' }) },
    oidcConfig(),
  )
  t.match(condition(wrong, 'AuthServerConfigValidated'), {
    status: 'False',
    message: /issuer must be the one of the MCPOIDCConfig/,
  })
  t.match(statusOf(wrong), { phase: 'Failed' })
})

t.test(
  'authServerConfig: an http issuer elsewhere than localhost needs insecureAllowHTTP, at reconcile',
  async (t) => {
    proves(
      '3.spec.authServerConfig.insecureAllowHTTP',
      '3.error.issuer.http',
      '3.event.AuthServerConfigValidated',
    )
    const at = (issuer: string, more: object = {}) =>
      door(
        { incomingAuth: issued, authServerConfig: embedded({ issuer, ...more }) },
        oidcConfig({ issuer, insecureAllowHTTP: true }),
      )
    t.match(condition(at('http://login.example.com'), 'AuthServerConfigValidated'), {
      status: 'False',
      reason: 'AuthServerConfigInvalid',
    })
    t.match(
      condition(at('http://login.example.com', { insecureAllowHTTP: true }), 'AuthServerConfigValidated'),
      { status: 'True' },
    )
    t.match(condition(at('http://localhost:8080'), 'AuthServerConfigValidated'), { status: 'True' })
  },
)

t.test(
  'primaryUpstreamProvider: the spec field wins, the deprecated inline field is consumed with an event, else the first',
  async (t) => {
    proves(
      '3.event.AuthzPrimaryUpstreamProviderDeprecated',
      '3.spec.incomingAuth.authzConfig.inline.primaryUpstreamProvider',
      '3.config.incomingAuth.authz.primaryUpstreamProvider',
    )
    const base = embedded() as { upstreamProviders: { name: string }[] }
    const upstreamProviders = [...base.upstreamProviders, { ...base.upstreamProviders[0], name: 'other' }]
    const at = (server: object, inline: object) =>
      door(
        {
          incomingAuth: {
            ...issued,
            authzConfig: { type: 'inline', inline: { policies: [policy], ...inline } },
          },
          authServerConfig: { ...base, upstreamProviders, ...server },
        },
        oidcConfig(),
      )
    const primary = (w: World) => configOf(w)['incomingAuth']?.['authz']?.['primaryUpstreamProvider']
    const events = (w: World) =>
      w.hooks.byKind('VirtualMCPServer')?.events?.(w.request('VirtualMCPServer', 'door')) ?? []
    const deprecated = at({}, { primaryUpstreamProvider: 'other' })
    t.equal(primary(deprecated), 'other')
    t.match(events(deprecated), [{ type: 'Warning', reason: 'AuthzPrimaryUpstreamProviderDeprecated' }])
    t.match(condition(deprecated, 'AuthzPrimaryUpstreamProviderDeprecated'), { status: 'True' })
    const both = at({ primaryUpstreamProvider: 'corp' }, { primaryUpstreamProvider: 'other' })
    t.equal(primary(both), 'corp')
    t.strictSame(events(both), [], 'not consumed, no event')
    const neither = at({}, {})
    t.equal(primary(neither), 'corp')
    t.match(condition(neither, 'AuthzUpstreamSelectionWarning'), {
      status: 'True',
      reason: 'AuthzUpstreamAutoSelected',
    })
  },
)

t.test('service: type, affinity, account and address are as asked for', async (t) => {
  proves('3.spec.serviceAccount', '3.status.url')
  const plain = door({})
  t.match(plain.get('Service', 'vmcp-door')['spec'], {
    type: 'ClusterIP',
    sessionAffinity: 'ClientIP',
    ports: [{ port: 4483 }],
  })
  t.equal(statusOf(plain)['url'], 'http://vmcp-door.team.svc.cluster.local:4483/mcp')
  t.ok(plain.find('ServiceAccount', 'door-vmcp'))
  const own = door({ serviceAccount: 'mine', serviceType: 'NodePort', sessionAffinity: 'None' })
  t.match(own.get('Service', 'vmcp-door')['spec'], { type: 'NodePort', sessionAffinity: 'None' })
  for (const kind of ['ServiceAccount', 'Role', 'RoleBinding'])
    t.equal(own.find(kind, 'door-vmcp'), undefined, kind)
  t.match(own.get('Deployment', 'vmcp-door'), {
    spec: { template: { spec: { serviceAccountName: 'mine' } } },
  })
})

t.test('access: a pod may read and patch its own report, and nothing else', async (t) => {
  const w = door({})
  t.strictSame(w.get('Role', 'door-vmcp')['rules'], [
    {
      apiGroups: [''],
      resources: ['configmaps'],
      resourceNames: ['door-vmcp-status'],
      verbs: ['get', 'patch'],
    },
  ])
  t.notOk('data' in w.get('ConfigMap', 'door-vmcp-status'))
  t.match(w.get('Deployment', 'vmcp-door'), {
    spec: {
      template: {
        spec: {
          securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
          containers: [
            {
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                capabilities: { drop: ['ALL'] },
              },
            },
          ],
        },
      },
    },
  })
})

t.test('telemetryConfigRef: the shared settings with the name of this server', async (t) => {
  proves(
    '3.spec.telemetryConfigRef',
    '3.spec.telemetryConfigRef.serviceName',
    '3.status.telemetryConfigHash',
    '3.reference.MCPTelemetryConfig',
    '3.config.telemetry',
  )
  const w = door(
    { telemetryConfigRef: { name: 'otel' }, config: { telemetry: { serviceName: 'superseded' } } },
    telemetryConfig(),
  )
  t.match(configOf(w)['telemetry'], {
    endpoint: 'https://collector.example.com:4318',
    serviceName: 'gatehouse-door',
    samplingRate: '0.1',
    tracingEnabled: true,
    enablePrometheusMetricsPath: true,
    headers: { 'x-api-key': '${GATEHOUSE_OTEL_HEADER_X_API_KEY}' },
  })
  t.match(statusOf(w), { telemetryConfigHash: /^[0-9a-f]{64}$/ })
  const standalone = door({ config: { telemetry: { serviceName: 'own', endpoint: 'https://c' } } })
  t.match(
    configOf(standalone)['telemetry'],
    { serviceName: 'own' },
    'without a reference the field of config counts',
  )
})

t.test('sessionStorage: redis with its password from the environment; none by default', async (t) => {
  proves(
    '3.spec.sessionStorage',
    '3.spec.sessionStorage.db',
    '3.spec.sessionStorage.keyPrefix',
    '3.spec.sessionStorage.passwordRef',
    '3.config.sessionStorage.address',
    '3.config.sessionStorage.db',
    '3.config.sessionStorage.keyPrefix',
    '3.config.sessionStorage.password',
    '3.config.sessionStorage.provider',
  )
  t.notOk('sessionStorage' in configOf(door({})))
  const redis = { provider: 'redis', address: 'r:6379', passwordRef: { name: 'redis', key: 'password' } }
  const w = door({ sessionStorage: { ...redis, db: 3, keyPrefix: 'mine:' }, replicas: 2 })
  t.strictSame(configOf(w)['sessionStorage'], {
    provider: 'redis',
    address: 'r:6379',
    db: 3,
    keyPrefix: 'mine:',
  })
  const { template } = w.get('Deployment', 'vmcp-door')['spec'] as {
    template: { spec: { containers: { env: { name: string }[] }[] } }
  }
  t.match(
    template.spec.containers[0]?.env.find(({ name }) => name === 'GATEHOUSE_SESSION_REDIS_PASSWORD'),
    {
      valueFrom: { secretKeyRef: { name: 'redis', key: 'password' } },
    },
  )
  t.match(configOf(door({ sessionStorage: redis }))['sessionStorage'], {
    db: 0,
    keyPrefix: 'gatehouse:vmcp:team:door:',
  })
  t.match(condition(door({ replicas: 2 }), 'SessionStorageWarning'), {
    status: 'True',
    reason: 'SessionStorageMissingForReplicas',
  })
})

t.test('config: what the resource says arrives in the file, references resolved', async (t) => {
  proves(
    '3.spec.config',
    '3.config.metadata',
    '3.config.groupRef',
    '3.config.codeMode',
    '3.config.operational',
    '3.config.audit',
    '3.config.audit.component',
    '3.config.rateLimiting',
    '3.config.compositeToolRefs',
    '3.config.aggregation.tools.toolConfigRef',
    '3.config.aggregation.tools.filter.toolConfigRef',
    '3.config.aggregation.tools.overrides.toolConfigRef',
    '3.reference.MCPToolConfig',
    '3.reference.VirtualMCPCompositeToolDefinition',
    '3.reference.MCPGroup',
  )
  const step = { id: 'a', tool: 'files.read' }
  const w = door(
    {
      incomingAuth: oidc,
      sessionStorage: { provider: 'redis', address: 'r:6379' },
      config: {
        metadata: { team: 'a' },
        audit: { enabled: true },
        codeMode: { enabled: true },
        compositeToolRefs: [{ name: 'shared' }],
        compositeTools: [{ name: 'own', description: 'd', steps: [step] }],
        operational: { timeouts: { perWorkload: { files: '5s' } } },
        rateLimiting: { perUser: { maxTokens: 1, refillPeriod: '1s' } },
        aggregation: {
          tools: [
            {
              workload: 'files',
              toolConfigRef: { name: 'readonly' },
              filter: ['x'],
              overrides: { x: { name: 'y' } },
            },
          ],
        },
      },
    },
    oidcConfig(),
    toolConfig(),
    server('files'),
    resource('VirtualMCPCompositeToolDefinition', 'shared', {
      name: 'shared',
      description: 'd',
      steps: [step],
    }),
  )
  t.match(configOf(w), {
    name: 'door',
    groupRef: 'tools',
    metadata: { team: 'a' },
    audit: { enabled: true, component: 'door' },
    codeMode: { enabled: true },
    compositeTools: [{ name: 'own' }, { name: 'shared' }],
    operational: { timeouts: { perWorkload: { files: '5s' } } },
    rateLimiting: { perUser: { maxTokens: 1 } },
  })
  t.strictSame(configOf(w)['aggregation']?.['tools'], [
    {
      workload: 'files',
      excludeAll: false,
      filter: ['say'],
      overrides: { echo: { name: 'say', description: 'Says it' } },
    },
  ])
})

t.test('config: the fields of spec supersede their twins', async (t) => {
  proves(
    '3.service.precedence',
    '3.version.supersede',
    '3.spec.passthroughHeaders',
    '3.config.passthroughHeaders',
    '3.auth.passthrough',
  )
  const w = door({
    passthroughHeaders: ['X-Spec'],
    config: {
      passthroughHeaders: ['X-Config'],
      incomingAuth: { type: 'local' },
      outgoingAuth: {
        source: 'inline',
        default: { type: 'header_injection', headerInjection: { headerName: 'X', headerValue: 'v' } },
      },
    },
  })
  t.strictSame(configOf(w)['passthroughHeaders'], ['X-Spec'])
  t.strictSame(configOf(w)['incomingAuth'], { type: 'anonymous' })
  t.strictSame(configOf(w)['outgoingAuth'], { source: 'discovered' })
  t.strictSame(configOf(door({ config: { passthroughHeaders: ['X-Config'] } }))['passthroughHeaders'], [
    'X-Config',
  ])
})

t.test(
  'embeddingServerRef: waits until it is ready, and its address overrides another one with a warning',
  async (t) => {
    proves(
      '3.spec.embeddingServerRef',
      '3.reference.EmbeddingServer',
      '3.error.optimizer.embedding',
      '3.config.optimizer',
      '3.config.optimizer.embeddingService',
    )
    const spec = {
      embeddingServerRef: { name: 'embed' },
      config: { optimizer: { embeddingService: 'https://other.example.com', maxToolsToReturn: 5 } },
    }
    const w = world(virtual(spec), resource('EmbeddingServer', 'embed', {})).settle()
    t.match(statusOf(w), { phase: 'Pending', message: 'Waiting for EmbeddingServer to become ready' })
    t.equal(w.find('Deployment', 'vmcp-door'), undefined)
    w.ready()
    t.match(configOf(w)['optimizer'], {
      embeddingService: 'http://embedding-embed.team.svc.cluster.local:8080',
      maxToolsToReturn: 5,
    })
    t.match(condition(w, 'EmbeddingServiceOverridden'), { status: 'True' })
    t.match(condition(door({ embeddingServerRef: { name: 'nowhere' } }), 'EmbeddingServerReady'), {
      reason: 'EmbeddingServerNotFound',
    })
    t.match(
      configOf(door({ embeddingServerRef: { name: 'embed' } }, resource('EmbeddingServer', 'embed', {})))[
        'optimizer'
      ],
      {
        embeddingProvider: 'tei',
        maxToolsToReturn: 8,
      },
    )
  },
)

t.test(
  'rollout: backends come and go without new pods; what the running server cannot reload rolls them',
  async (t) => {
    const w = world(server('files'), virtual()).ready()
    const template = () =>
      JSON.stringify((w.get('Deployment', 'vmcp-door')['spec'] as { template: unknown }).template)
    const before = template()
    w.apply(server('more')).ready()
    t.match(dataOf(w)['config.yaml'], /name: more/)
    t.ok(template() === before, 'a new backend')
    w.apply(
      virtual({ config: { aggregation: { conflictResolution: 'manual', tools: [{ workload: 'files' }] } } }),
    ).ready()
    t.ok(template() === before, 'other aggregation')
    w.apply(
      virtual({
        incomingAuth: {
          type: 'anonymous',
          authzConfig: { type: 'inline', inline: { policies: ['permit(principal, action, resource);'] } },
        },
        passthroughHeaders: ['x-tenant'],
        config: {
          codeMode: { enabled: true },
          compositeTools: [{ name: 'twice', steps: [{ id: 'a', tool: 'files.read' }] }],
        },
      }),
    ).ready()
    t.match(dataOf(w)['config.yaml'], /twice[^]*permit/)
    t.ok(template() === before, 'policies, workflows, scripts, headers')
    w.apply(virtual()).ready()
    w.apply(auth.header, entry('keyed', { externalAuthConfigRef: { name: 'header' } })).ready()
    t.ok(template() !== before, 'new environment')
    const withKey = template()
    w.apply(virtual({ config: { audit: { enabled: true } } })).ready()
    t.ok(template() !== withKey, 'audit is set up at start')
  },
)

t.test('headerForward: each entry has variables of its own, and ambiguous names are left out', async (t) => {
  const headers = {
    headerForward: {
      addHeadersFromSecret: [{ headerName: 'X-Key', valueSecretRef: { name: 'tokens', key: 'api' } }],
    },
  }
  const w = door({}, entry('a-b', headers), entry('a.b'), entry('c', headers))
  const names = (configOf(w)['backends'] as unknown as { name: string }[]).map(({ name }) => name)
  t.strictSame(names, ['a.b', 'c'], 'a-b would share its headers with a.b')
  const { discoveredBackends } = statusOf(w) as unknown as {
    discoveredBackends: { name: string; message?: string }[]
  }
  t.match(
    discoveredBackends.find(({ name }) => name === 'a-b'),
    { status: 'unavailable', message: /punctuation/ },
  )
})

t.test('headerForward: an entry that is not valid whatever its status says is left out alone', async (t) => {
  const w = door({}, entry('good'), entry('bad'))
  const request = JSON.parse(JSON.stringify(w.request('VirtualMCPServer', 'door'))) as {
    related: Record<string, Record<string, { spec: Record<string, unknown> }>>
  }
  const bad = request.related['MCPServerEntry.gatehouse.dev/v1beta1']?.['team/bad']
  t.ok(bad)
  for (const headerForward of [{ addHeadersFromSecret: ['x'] }, 5, { addPlaintextHeaders: { Host: 'x' } }]) {
    if (bad) bad.spec['headerForward'] = headerForward
    const { status } = w.hooks.byKind('VirtualMCPServer')?.sync(request) ?? {}
    t.match(status, {
      discoveredBackends: [
        {
          name: 'bad',
          status: 'unavailable',
          message: /MCPServerEntry bad is not valid: spec\.headerForward/,
        },
        { name: 'good' },
      ],
    })
    t.notMatch(status, { phase: 'Failed' })
  }
})

t.test('size: a configuration that no ConfigMap can hold keeps what runs', async (t) => {
  const w = world(server('files'), virtual()).ready()
  const policies = Array.from(
    { length: 250 },
    (_, i) => `permit(principal, action, resource == Tool::"${'€'.repeat(900)}${i}");`,
  )
  w.apply(
    virtual({ incomingAuth: { type: 'anonymous', authzConfig: { type: 'inline', inline: { policies } } } }),
  ).settle()
  t.match(statusOf(w), { phase: 'Failed', message: /ConfigMap door-vmcp-config would have \d+ bytes/ })
  t.ok(w.find('Deployment', 'vmcp-door'))
})
