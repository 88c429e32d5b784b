/** VirtualMCPServer: how its fields appear in the pod, the file and the status. */
import t from 'tap'
import { defaultSettings } from '../../../../hooks/base/settings.ts'
import { virtualServerViolations } from '../../../../hooks/kinds/virtualmcpserver/validate.ts'
import { formatViolations, withDefaults } from '../../../../schemas/index.ts'
import { condition, configOf, dataOf, door, statusOf } from '../../../hooks/rendered.ts'
import { proves } from '../../../helpers/proves.ts'
import {
  authzConfig,
  auth,
  entry,
  oidc,
  oidcConfig,
  resource,
  server,
  telemetryConfig,
  toolConfig,
  virtual,
  world,
} from '../../../hooks/resources.ts'

t.test(
  'aggregation: an override cannot reuse the name of a built-in tool while its feature is enabled',
  (t) => {
    const tools = [
      { workload: 'a', overrides: { x: { name: 'find_tool' }, y: { name: 'execute_tool_script' } } },
    ]
    const manual = { conflictResolution: 'manual', tools }
    const kind = 'VirtualMCPServer' as const
    const said = (more: object) => {
      const doc = { kind, spec: { groupRef: { name: 'g' }, incomingAuth: { type: 'anonymous' }, ...more } }
      return formatViolations(virtualServerViolations(withDefaults<typeof kind>(doc), defaultSettings))
    }
    const at = 'spec.config.aggregation.tools[0].overrides'
    const find = `${at}.x.name: find_tool is reserved for one of the server's own tools`
    const script = `${at}.y.name: execute_tool_script is reserved for one of the server's own tools`
    const optimizer = { embeddingService: 'http://e:1' }
    t.equal(said({ config: { aggregation: manual } }), '')
    t.equal(said({ config: { aggregation: manual, optimizer } }), find)
    t.equal(
      said({ config: { aggregation: manual }, embeddingServerRef: { name: 'e' } }),
      find,
      'the reference enables it',
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

t.test('aggregation: without settings, the file contains the defaults of the schema', async (t) => {
  proves(
    '3.config.aggregation.conflictResolution',
    '3.config.aggregation.conflictResolutionConfig.prefixFormat',
  )
  const found = configOf(door({}))['aggregation']
  t.match(found, { conflictResolution: 'prefix', conflictResolutionConfig: { prefixFormat: '{workload}_' } })
  t.same(found, configOf(door({ config: { aggregation: {} } }))['aggregation'])
})

t.test('service: has the requested type, affinity, account and address', async (t) => {
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

t.test('access: a pod may only read and patch its own report', async (t) => {
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

t.test("telemetryConfigRef: the shared settings with this server's name", async (t) => {
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
    'without a reference, the field of config applies',
  )
})

t.test(
  'sessionStorage: redis gets its password from the environment; by default there is no storage',
  async (t) => {
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
  },
)

t.test("config: the file contains the resource's settings with resolved references", async (t) => {
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
        extensions: { apps: { enabled: false } },
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
    extensions: { apps: { enabled: false } },
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

t.test('config: fields of spec override the same fields of spec.config', async (t) => {
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
  const redis = (address: string) => ({ provider: 'redis', address })
  const stored = door({
    sessionStorage: redis('spec:6379'),
    config: { sessionStorage: redis('config:6379') },
  })
  t.match(configOf(stored)['sessionStorage'], { address: 'spec:6379' })
  t.match(configOf(door({ config: { sessionStorage: redis('config:6379') } }))['sessionStorage'], {
    address: 'config:6379',
  })
  t.strictSame(configOf(w)['passthroughHeaders'], ['X-Spec'])
  t.strictSame(configOf(w)['incomingAuth'], { type: 'anonymous' })
  t.strictSame(configOf(w)['outgoingAuth'], { source: 'discovered' })
  t.strictSame(configOf(door({ config: { passthroughHeaders: ['X-Config'] } }))['passthroughHeaders'], [
    'X-Config',
  ])
})

t.test(
  'embeddingServerRef: waits until the server is ready, and its address overrides another one with a warning',
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
  'rollout: backends change without new pods; settings that the running server cannot reload roll the pods',
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

t.test('size: a configuration that is too large for a ConfigMap keeps the running objects', async (t) => {
  const w = world(server('files'), virtual()).ready()
  const policies = Array.from(
    { length: 250 },
    (_, i) => `permit(principal, action, resource == Tool::"${'€'.repeat(900)}${i}");`,
  )
  w.apply(
    authzConfig({ policies }),
    virtual({ incomingAuth: { type: 'anonymous', authzConfigRef: { name: 'policies' } } }),
  ).settle()
  t.match(statusOf(w), { phase: 'Failed', message: /ConfigMap door-vmcp-config has \d+ bytes/ })
  t.ok(w.find('Deployment', 'vmcp-door'))
})
