/** MCPServer and MCPRemoteProxy: the proxy, its references, and the server behind it. */
import t from 'tap'
import { parse } from 'yaml'
import { needsVirtualServer, virtualServerOf } from '../../../../../runtime/config/index.ts'
import { validateRuntime } from '../../../../../schemas/index.ts'
import { proves } from '../../../../helpers/proves.ts'
import {
  auth,
  authzConfig,
  configMap,
  oidcConfig,
  policy,
  remote,
  server,
  telemetryConfig,
  toolConfig,
  world,
} from '../../../../hooks/resources.ts'
import type { World } from '../../../../hooks/world.ts'
import { condition, fileOf, podOf, statusOf } from './proxy-response.ts'

t.test('MCPServer: a proxy that only forwards has no file', async (t) => {
  const w = world(server('files')).settle()
  t.strictSame(podOf(w, 'Deployment', 'mcp-files-proxy').spec.containers[0]?.args, [
    'proxy',
    '--target-uri=http://mcp-files-server.team.svc.cluster.local:8080',
    '--host=0.0.0.0',
    '--port=8080',
    '--',
    'files',
  ])
  t.equal(w.find('ConfigMap', 'mcp-files-proxy-config'), undefined)
  t.equal(podOf(w, 'Deployment', 'mcp-files-proxy').spec.automountServiceAccountToken, false)
  t.match(statusOf(w, 'MCPServer', 'files'), {
    url: 'http://mcp-files-proxy.team.svc.cluster.local:8080/mcp',
    phase: 'Pending',
  })
})

t.test('MCPServer: the address contains the path of the transport and the configured port', async (t) => {
  const w = world(server('files', { transport: 'sse' })).settle()
  t.match(statusOf(w, 'MCPServer', 'files').url, /:8080\/sse$/)
  w.apply(server('files', { proxyPort: 9000 })).settle()
  t.match(statusOf(w, 'MCPServer', 'files').url, /:9000\/mcp$/)
})

t.test('MCPServer: stdio runs behind a bridge in the server’s own container', async (t) => {
  const podTemplateSpec = { spec: { containers: [{ name: 'mcp', command: ['node', 'server.js'] }] } }
  const w = world(
    server('files', { transport: 'stdio', args: ['/data'], proxyMode: 'sse', podTemplateSpec }),
  ).settle()
  t.strictSame(fileOf(w, 'mcp-files-server-config'), {
    name: 'files',
    stdio: { command: 'node', args: ['server.js', '/data'] },
    proxyMode: 'sse',
    host: '0.0.0.0',
    port: 8080,
  })
  const named = { name: 'mcp', command: ['node', '$(FILE)'], args: ['--token', '$(TOKEN)'] }
  const pod = world(
    server('files', {
      transport: 'stdio',
      args: ['ignored'],
      podTemplateSpec: { spec: { containers: [named] } },
    }),
  ).settle()
  const literal = world(server('files', { transport: 'stdio', args: ['$(TOKEN)'], podTemplateSpec })).settle()
  t.match(
    [fileOf(pod, 'mcp-files-server-config'), fileOf(literal, 'mcp-files-server-config')],
    [
      { stdio: { command: 'node', args: ['$(FILE)', '--token', '$(TOKEN)'] } },
      { stdio: { command: 'node', args: ['server.js', '$$(TOKEN)'] } },
    ],
    'values of the pod template may contain variables, values of the resource are literal',
  )
  const { spec } = podOf(w, 'StatefulSet', 'mcp-files-server')
  t.strictSame(spec.initContainers?.[0]?.args, ['unpack', '/gatehouse'])
  t.equal(spec.containers[0]?.command?.[0], '/gatehouse/ld.so')
  t.match(statusOf(w, 'MCPServer', 'files').url, /\/sse$/)
})

t.test(
  'MCPServer: only the proxy can reach the server, and the profile limits outgoing connections',
  async (t) => {
    const policyOf = (w: World) =>
      w.get('NetworkPolicy', 'mcp-files-server')['spec'] as {
        policyTypes: string[]
        egress?: { ports: object[] }[]
      }
    const plain = world(server('files')).settle()
    t.match(policyOf(plain), {
      policyTypes: ['Ingress'],
      ingress: [{ from: [{ podSelector: { matchLabels: { 'app.kubernetes.io/component': 'proxy' } } }] }],
    })
    const none = world(server('files', { permissionProfile: { type: 'builtin', name: 'none' } })).settle()
    t.strictSame(policyOf(none).policyTypes, ['Ingress', 'Egress'])
    t.notOk('egress' in policyOf(none))
    const profile = { permissionProfile: { type: 'configmap', name: 'p', key: 'k' } }
    const ports = world(
      configMap('p', { k: '{"network":{"outbound":{"allowPort":[443],"allowHost":["x"]}},"read":["/a"]}' }),
      server('files', profile),
    ).settle()
    t.match(policyOf(ports).egress, [{ ports: [{ port: 53 }, { port: 53 }, { port: 443 }] }])
    t.match(condition(ports, 'MCPServer', 'files', 'PermissionProfileApplied'), {
      status: 'False',
      message: /allowHost, read and write/,
    })
    const broken = world(configMap('p', { k: 'no json' }), server('files', profile)).settle()
    t.match(statusOf(broken, 'MCPServer', 'files'), { phase: 'Failed', message: /not a JSON object/ })
  },
)

t.test('MCPServer: every reference is in the proxy’s file', async (t) => {
  const w = world(
    oidcConfig(),
    authzConfig(),
    telemetryConfig(),
    toolConfig(),
    auth.header,
    server('files', {
      oidcConfigRef: { name: 'login', audience: 'a' },
      authzConfigRef: { name: 'policies' },
      telemetryConfigRef: { name: 'otel' },
      toolConfigRef: { name: 'readonly' },
      externalAuthConfigRef: { name: 'header' },
      audit: { enabled: true },
      endpointPrefix: '/files',
    }),
  ).settle()
  t.match(fileOf(w, 'mcp-files-proxy-config'), {
    targetUri: 'http://mcp-files-server.team.svc.cluster.local:8080',
    oidc: { issuer: 'https://login.example.com', audience: 'a' },
    authz: { type: 'cedar', policies: [policy] },
    telemetry: { serviceName: 'gatehouse-files' },
    tools: { filter: ['say'] },
    outgoingAuth: { type: 'header_injection' },
    audit: { enabled: true },
    endpointPrefix: '/files',
  })
  for (const type of [
    'OIDCConfigRefValidated',
    'AuthzConfigRefValidated',
    'TelemetryConfigRefValidated',
    'ToolConfigValidated',
    'ExternalAuthConfigValidated',
  ]) {
    t.match(condition(w, 'MCPServer', 'files', type), { status: 'True' }, type)
  }
  t.match(w.get('MCPServer', 'files')['status'], {
    oidcConfigHash: /./,
    authzConfigHash: /./,
    toolConfigHash: /./,
    telemetryConfigHash: /./,
    externalAuthConfigHash: /./,
  })
})

t.test(
  'MCPServer: a missing reference of any kind stops the rollout, a missing group does not',
  async (t) => {
    const gone = { name: 'nowhere' }
    const references = {
      oidcConfigRef: [{ ...gone, audience: 'a' }, 'OIDCConfigRefValidated', 'OIDCConfigRefNotFound'],
      authzConfigRef: [gone, 'AuthzConfigRefValidated', 'AuthzConfigRefNotFound'],
      telemetryConfigRef: [gone, 'TelemetryConfigRefValidated', 'TelemetryConfigRefNotFound'],
      toolConfigRef: [gone, 'ToolConfigValidated', 'ToolConfigNotFound'],
      externalAuthConfigRef: [gone, 'ExternalAuthConfigValidated', 'ExternalAuthConfigNotFound'],
      authServerRef: [
        { ...gone, kind: 'MCPExternalAuthConfig' },
        'AuthServerRefValidated',
        'AuthServerRefNotFound',
      ],
    } as const
    for (const [field, [reference, type, reason]] of Object.entries(references)) {
      for (const [kind, make] of [
        ['MCPServer', server],
        ['MCPRemoteProxy', remote],
      ] as const) {
        const w = world(make('files', { [field]: reference })).settle()
        t.match(condition(w, kind, 'files', type), { status: 'False', reason }, `${kind} ${field}`)
        t.equal(statusOf(w, kind, 'files').phase, 'Failed')
      }
    }
    const w = world(server('files', { groupRef: gone })).ready()
    t.match(condition(w, 'MCPServer', 'files', 'GroupRefValidated'), {
      status: 'False',
      reason: 'GroupRefNotFound',
    })
    t.equal(statusOf(w, 'MCPServer', 'files').phase, 'Ready')
  },
)

t.test(
  'authorization: the inline primaryUpstreamProvider is ignored here, with an advisory condition',
  async (t) => {
    proves('3.event.AuthzPrimaryUpstreamProviderIgnored')
    const authzConfig = { type: 'inline', inline: { policies: [policy], primaryUpstreamProvider: 'corp' } }
    const w = world(server('files', { authzConfig }), remote('crm', { authzConfig })).settle()
    for (const [kind, name] of [
      ['MCPServer', 'files'],
      ['MCPRemoteProxy', 'crm'],
    ] as const) {
      t.match(condition(w, kind, name, 'AuthzPrimaryUpstreamProviderIgnored'), {
        status: 'True',
        reason: 'PrimaryUpstreamProviderIgnored',
      })
    }
    t.notOk('primaryUpstreamProvider' in (fileOf(w, 'mcp-files-proxy-config')['authz'] as object))
  },
)

t.test(
  'MCPRemoteProxy: addresses are checked again when they are dialed, and headers come from Secrets',
  async (t) => {
    const headerForward = {
      addPlaintextHeaders: { 'X-Team': 'a' },
      addHeadersFromSecret: [{ headerName: 'X-Key', valueSecretRef: { name: 'tokens', key: 'api' } }],
    }
    const w = world(remote('crm', { headerForward, resources: { limits: { cpu: '1' } } })).ready()
    t.match(fileOf(w, 'mcp-crm-remote-proxy-config'), {
      targetUri: 'https://crm.example.com/mcp',
      targetAddresses: 'public',
      headerForward: {
        addPlaintextHeaders: { 'X-Team': 'a' },
        addHeadersFromSecret: { 'X-Key': 'HEADER_FORWARD_X_KEY_CRM' },
      },
    })
    const env = podOf(w, 'Deployment', 'mcp-crm-remote-proxy').spec.containers[0]?.env
    t.match(
      env?.find(({ name }) => name === 'GATEHOUSE_SECRET_HEADER_FORWARD_X_KEY_CRM'),
      {
        valueFrom: { secretKeyRef: { name: 'tokens', key: 'api' } },
      },
    )
    t.match(statusOf(w, 'MCPRemoteProxy', 'crm'), {
      phase: 'Ready',
      url: 'http://mcp-crm-remote-proxy.team.svc.cluster.local:8080/mcp',
    })
    const inside = world(
      remote('crm', { remoteUrl: 'http://10.0.0.1/mcp', allowPrivateEndpoint: true }),
    ).settle()
    t.match(fileOf(inside, 'mcp-crm-remote-proxy-config'), { targetAddresses: 'private' })
    const refused = world(remote('crm', { remoteUrl: 'http://10.0.0.1/mcp' })).settle()
    t.match(condition(refused, 'MCPRemoteProxy', 'crm', 'ConfigurationValid'), {
      status: 'False',
      reason: 'RemoteURLInvalid',
    })
  },
)

t.test('MCPServer: deletion sets Terminating, and a restart request rolls both pods', async (t) => {
  const w = world(server('files')).ready()
  const stored = w.get('MCPServer', 'files')
  w.apply({ ...stored, metadata: { ...stored.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }).settle()
  t.equal(statusOf(w, 'MCPServer', 'files').phase, 'Terminating')
  const restarted = world(server('files', {})).settle()
  const object = restarted.get('MCPServer', 'files')
  const annotations = { 'mcpserver.gatehouse.dev/restarted-at': '2026-01-01T00:00:00Z' }
  restarted.apply({ ...object, metadata: { ...object.metadata, annotations } }).settle()
  for (const [kind, name] of [
    ['Deployment', 'mcp-files-proxy'],
    ['StatefulSet', 'mcp-files-server'],
  ] as const) {
    t.match(restarted.get(kind, name), { spec: { template: { metadata: { annotations } } } })
  }
})

t.test(
  'MCPRemoteProxy with a section that reads every message: the proxy starts with its file and checks addresses',
  async (t) => {
    for (const allowPrivateEndpoint of [false, true]) {
      const w = world(remote('crm', { audit: { enabled: true }, allowPrivateEndpoint })).ready()
      const files = w.get('ConfigMap', 'mcp-crm-remote-proxy-config')['data'] as Record<string, string>
      const { config: file } = validateRuntime('proxy', parse(files['proxy.yaml'] ?? ''))
      if (!file) return t.fail('the file fits its schema')
      t.ok(needsVirtualServer(file).length > 0)
      t.match(virtualServerOf(file, {}).config.backends, [
        { name: 'crm', addresses: allowPrivateEndpoint ? 'private' : 'public' },
      ])
    }
    return undefined
  },
)

t.test('MCPServer: both Services follow sessionAffinity', async (t) => {
  for (const sessionAffinity of ['ClientIP', 'None', undefined]) {
    const w = world(server('files', { backendReplicas: 3, sessionAffinity })).settle()
    for (const name of ['mcp-files-server', 'mcp-files-proxy'])
      t.match(w.get('Service', name)['spec'], { sessionAffinity: sessionAffinity ?? 'ClientIP' }, name)
  }
})
