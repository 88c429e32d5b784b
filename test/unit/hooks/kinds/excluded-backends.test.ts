/** A problem with one backend of a virtual server excludes and reports only that backend. */
import t from 'tap'
import { parse } from 'yaml'
import { proves } from '../../../helpers/proves.ts'
import {
  auth,
  configMap,
  embedded,
  entry,
  oidcConfig,
  resource,
  server,
  virtual,
  world,
} from '../../../hooks/resources.ts'
import type { Condition, World } from '../../../hooks/world.ts'

interface Status {
  readonly phase: string
  readonly conditions: readonly Condition[]
  readonly discoveredBackends: readonly {
    readonly name: string
    readonly status: string
    readonly message?: string
  }[]
}
interface EnvEntry {
  readonly name: string
  readonly valueFrom?: { readonly secretKeyRef?: { readonly name: string; readonly optional?: boolean } }
}
interface PodVolume {
  readonly name: string
  readonly configMap?: { readonly name: string; readonly optional?: boolean }
  readonly secret?: { readonly secretName: string; readonly optional?: boolean }
}

const statusOf = (w: World) => w.get('VirtualMCPServer', 'door')['status'] as Status
const condition = (w: World, type: string) => statusOf(w).conditions.find((one) => one.type === type)
const configOf = (w: World) =>
  parse((w.get('ConfigMap', 'door-vmcp-config')['data'] as Record<string, string>)['config.yaml'] ?? '') as {
    backends: { name: string }[]
    aggregation: { tools?: { workload: string }[] }
  }
const namesOf = (w: World) => configOf(w).backends.map(({ name }) => name)
const podOf = (w: World) => {
  const { template } = w.get('Deployment', 'vmcp-door')['spec'] as {
    template: { spec: { containers: { env: EnvEntry[] }[]; volumes: PodVolume[] } }
  }
  return { env: template.spec.containers[0]?.env ?? [], volumes: template.spec.volumes }
}
const url = 'https://door.example.com'
const oidcConfigRef = { name: 'login', audience: url, resourceUrl: url }
const own = (name: string) => ({ externalAuthConfigRef: { name } })
const tools = (...entries: object[]) => ({
  config: { aggregation: { conflictResolution: 'prefix', tools: entries } },
})

t.test(
  'pod: references of a single backend are optional, references of the server are required',
  async (t) => {
    const w = world(
      virtual({
        incomingAuth: { type: 'oidc', oidcConfigRef },
        authServerConfig: embedded(),
        outgoingAuth: { source: 'discovered', default: { type: 'externalAuthConfigRef', ...own('bearer') } },
      }),
      oidcConfig({ clientId: 'c', clientSecretRef: { name: 'tokens', key: 'client' } }),
      auth.bearer,
      auth.header,
      configMap('anchors', { 'ca.crt': 'pem' }),
      server('files', own('header')),
      server('plain'),
      entry('search', {
        caBundleRef: { configMapRef: { name: 'anchors' } },
        headerForward: {
          addHeadersFromSecret: [{ headerName: 'X-Key', valueSecretRef: { name: 'tokens', key: 'api' } }],
        },
      }),
    ).ready()
    const { env, volumes } = podOf(w)
    const fromSecrets = env.flatMap(({ name, valueFrom }) => {
      const ref = valueFrom?.secretKeyRef
      return ref ? [[name, ref.optional === true]] : []
    })
    t.strictSame(Object.fromEntries(fromSecrets), {
      GATEHOUSE_BEARER_TOKEN_BEARER: true,
      GATEHOUSE_HEADER_INJECTION_VALUE_HEADER: true,
      GATEHOUSE_SECRET_HEADER_FORWARD_X_KEY_SEARCH: true,
      GATEHOUSE_UPSTREAM_CLIENT_SECRET_CORP: false,
      VMCP_OIDC_CLIENT_SECRET: false,
    })
    const mounted = volumes.flatMap(({ name, configMap: map, secret }) =>
      map || secret ? [[name, (map ?? secret)?.optional === true]] : [],
    )
    t.strictSame(Object.fromEntries(mounted), {
      'authserver-hmac-secret-0': false,
      'authserver-signing-key-0': false,
      'authserver-signing-key-1': false,
      'ca-bundle-search': true,
      'vmcp-config': false,
    })
  },
)

t.test('toolConfigRef: a missing MCPToolConfig excludes only its backend', async (t) => {
  proves('3.config.aggregation.tools.toolConfigRef')
  const spec = tools(
    { workload: 'files', toolConfigRef: { name: 'gone' } },
    { workload: 'search', filter: ['find'] },
  )
  const w = world(virtual(spec), server('files'), entry('search')).ready()
  t.strictSame(namesOf(w), ['search'], 'without its filter it would list all tools')
  t.match(configOf(w).aggregation.tools, [{ workload: 'search', filter: ['find'] }])
  t.match(condition(w, 'ToolConfigValidated'), {
    status: 'False',
    reason: 'ToolConfigNotFound',
    message: /MCPToolConfig gone does not exist/,
  })
  t.match(condition(w, 'BackendsValidated'), {
    status: 'False',
    reason: 'BackendsExcluded',
    message: /^files: MCPToolConfig gone does not exist$/,
  })
  t.match(statusOf(w), {
    phase: 'Degraded',
    discoveredBackends: [
      { name: 'files', status: 'unavailable', message: /^MCPToolConfig gone/ },
      { name: 'search', status: 'ready' },
    ],
  })
})

t.test('toolConfigRef: an override that reuses the name of a built-in tool is reported', async (t) => {
  const config = resource('MCPToolConfig', 'named', { toolsOverride: { read: { name: 'find_tool' } } })
  const entries = [{ workload: 'files', toolConfigRef: { name: 'named' } }]
  const door = (optimizer?: object) =>
    virtual({ config: { aggregation: { conflictResolution: 'manual', tools: entries }, optimizer } })
  const w = world(door(), config, server('files')).ready()
  t.match(condition(w, 'ToolConfigValidated'), { status: 'True' })
  w.apply(door({ embeddingService: 'http://embed:8080' })).settle()
  t.match(condition(w, 'ToolConfigValidated'), {
    status: 'False',
    reason: 'ToolConfigNotValid',
    message:
      "MCPToolConfig named: spec.toolsOverride for files: find_tool is reserved for one of the server's own tools; the tool is skipped",
  })
  t.strictSame(namesOf(w), ['files'], 'the server excludes only that tool')
})

t.test('config.yaml: a value that violates its schema excludes the backend that it belongs to', async (t) => {
  const w = world(virtual(), server('files'), entry('search')).ready()
  const status = w.get('MCPServer', 'files')['status'] as object
  w.setStatus('MCPServer', 'files', { ...status, url: 'http://files,80/mcp' })
  w.sync('VirtualMCPServer', 'door')
  t.strictSame(namesOf(w), ['search'])
  t.match(condition(w, 'Valid'), { status: 'True' })
  t.match(condition(w, 'BackendsValidated'), {
    status: 'False',
    reason: 'BackendsExcluded',
    message: /^files: .*url/,
  })
  t.match(statusOf(w).discoveredBackends, [{ name: 'files', status: 'unavailable' }, { name: 'search' }])
})

t.test('report: a condition lists the backends that the running server excludes', async (t) => {
  const w = world(virtual(), server('files'), entry('search')).ready()
  t.match(condition(w, 'BackendsValidated'), { status: 'True', reason: 'AllBackendsValid' })
  const checksum = () =>
    (w.get('ConfigMap', 'door-vmcp-config').metadata['annotations'] as Record<string, string>)[
      'gatehouse.dev/content-checksum'
    ]
  const problem =
    'outgoingAuth.backends.files.headerInjection.headerValueEnv: the variable K is not set or empty'
  const report = (message: string, { excluded }: { readonly excluded: boolean }) =>
    JSON.stringify({
      observedAt: '2026-01-01T00:00:00Z',
      configChecksum: checksum(),
      replica: 'a',
      backends: [
        { name: 'files', status: excluded ? 'unavailable' : 'ready', message, ...(excluded && { excluded }) },
        { name: 'search', status: 'ready', lastHealthCheck: '2026-01-01T00:00:00Z' },
      ],
    })
  w.setData('door-vmcp-status', { 'a.json': report(`Excluded: ${problem}`, { excluded: true }) }).settle()
  const excluded = { status: 'False', reason: 'BackendsExcluded', message: `files: ${problem}` }
  t.match(condition(w, 'BackendsValidated'), excluded)
  t.match(statusOf(w).discoveredBackends, [
    { name: 'files', status: 'unavailable', message: `Excluded: ${problem}` },
    {},
  ])
  w.apply(server('third')).settle()
  t.match(condition(w, 'BackendsValidated'), excluded, 'kept until a pod reports on the new configuration')
  w.setData('door-vmcp-status', { 'a.json': report('Healthy', { excluded: false }) }).settle()
  t.match(condition(w, 'BackendsValidated'), { status: 'True' })
})

t.test('condition: names and reasons are bounded', async (t) => {
  const many = Array.from({ length: 60 }, (_, i) => server(`s${i}`, own('gone')))
  const w = world(virtual(), ...many).settle()
  const { message = '' } = condition(w, 'BackendsValidated') ?? {}
  t.ok(message.length < 6_000, `${message.length} characters`)
  t.match(message, /; and 40 more$/)
})

t.test('workflows: a condition reports a step with an unknown backend', async (t) => {
  const compositeTools = ['files.read', 'files_read', 'flies.read', 'flies_read'].map((tool, i) => ({
    name: `w${i}`,
    description: 'd',
    steps: [{ id: 'a', tool }],
  }))
  const w = world(virtual({ config: { compositeTools } }), server('files')).ready()
  t.match(condition(w, 'BackendNamesValidated'), {
    status: 'False',
    reason: 'UnknownBackend',
    message:
      'spec.config.compositeTools[2].steps[0].tool: unknown backend "flies"; did you mean "files"?; ' +
      'spec.config.compositeTools[3].steps[0].tool: unknown backend "flies"; did you mean "files"?',
  })
  const bare = [{ name: 'w', description: 'd', steps: [{ id: 'a', tool: 'files' }] }]
  t.match(
    condition(
      world(virtual({ config: { compositeTools: bare } }), server('files')).ready(),
      'BackendNamesValidated',
    ),
    {
      status: 'False',
      message:
        'spec.config.compositeTools[0].steps[0].tool: "files" is a backend, not a tool: write "files.TOOL"',
    },
  )
  const aggregation = {
    conflictResolution: 'priority',
    conflictResolutionConfig: { priorityOrder: ['files'] },
  }
  w.apply(virtual({ config: { compositeTools, aggregation } })).settle()
  t.match(condition(w, 'BackendNamesValidated'), { status: 'True' }, 'a tool can have any name')
})

t.test(
  'workflows: a condition reports a step with an unknown backend in a referenced definition',
  async (t) => {
    const definition = (tool: string) =>
      resource('VirtualMCPCompositeToolDefinition', 'report', {
        name: 'report',
        description: 'd',
        steps: [
          { id: 'a', tool: 'files.read' },
          { id: 'b', type: 'forEach', collection: '{{json .params.list}}', step: { tool } },
        ],
      })
    const config = { compositeToolRefs: [{ name: 'report' }] }
    const w = world(virtual({ config }), server('files'), definition('flies_read')).ready()
    t.match(condition(w, 'BackendNamesValidated'), {
      status: 'False',
      reason: 'UnknownBackend',
      message:
        'spec.config.compositeToolRefs[0].name: VirtualMCPCompositeToolDefinition report: ' +
        'spec.steps[1].step.tool: unknown backend "flies"; did you mean "files"?',
    })
    w.apply(definition('files_read')).settle()
    t.match(condition(w, 'BackendNamesValidated'), { status: 'True' })
  },
)

t.test('webhooks: every kind that calls webhooks reports a match with an unknown backend', async (t) => {
  const url = 'https://hook.example'
  const shared = (...backends: string[]) =>
    resource('MCPWebhookConfig', 'hooks', { validating: [{ name: 'v', url, match: { backends } }] })
  const webhookConfigRef = { name: 'hooks' }
  const said = (w: World, kind: string, name: string) =>
    (w.get(kind, name)['status'] as Status).conditions.find(({ type }) => type === 'BackendNamesValidated')
  const w = world(
    virtual({ webhookConfigRef }),
    server('files', { webhookConfigRef }),
    shared('flies'),
  ).ready()
  for (const [kind, name] of [
    ['VirtualMCPServer', 'door'],
    ['MCPServer', 'files'],
  ] as const) {
    t.match(said(w, kind, name), {
      status: 'False',
      reason: 'UnknownBackend',
      message:
        'spec.webhookConfigRef.name: MCPWebhookConfig hooks: spec.validating[0].match.backends[0]: ' +
        'unknown backend "flies"; did you mean "files"?',
    })
    t.ok(w.get('Deployment', kind === 'MCPServer' ? 'mcp-files-proxy' : 'vmcp-door'), 'it runs anyway')
  }
  w.apply(shared('files')).settle()
  t.match(said(w, 'VirtualMCPServer', 'door'), { status: 'True' })
  t.match(said(w, 'MCPServer', 'files'), { status: 'True' })
})
