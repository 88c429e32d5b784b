/** Kinds that the specification mentions but does not define. */
import { dpopRows } from './dpop.ts'
import {
  absent,
  booleanRow,
  document,
  durations,
  notInteger,
  notName,
  notString,
  secretRef,
  secretRows,
  type Table,
  type Json,
} from './table.ts'

const ref = { name: 'x' }
const refs = (fields: string): Table['rows'] =>
  fields.split(' ').map((field) => ({
    id: '',
    at: `spec.${field}`,
    good: [absent, ref],
    bad: [{}, { name: '' }, 'x', { name: 'A' }, { ...ref, namespace: 'y' }],
    failure: '*',
  }))

const ports = (at: string, value?: number): Table['rows'][number] => ({
  id: '',
  at,
  ...(value === undefined ? {} : { default: value }),
  good: [1, 65535],
  bad: [0, 65536, '8080'],
})

const group: Table = {
  name: 'MCPGroup',
  base: document('MCPGroup', {}),
  rows: [
    { id: '', at: 'spec', default: {} },
    { id: '', at: 'spec.description', good: [absent, '', 'x'], bad: notString },
  ],
}

const headers = (at: string): Table['rows'] => [
  {
    id: '',
    at: `${at}.addPlaintextHeaders`,
    good: [absent, { 'X-Tenant': 'a' }, { a: '' }],
    bad: [
      { 'a b': 'x' },
      { a: 'x\ny' },
      { Host: 'x' },
      { 'x-forwarded-for': 'x' },
      { 'Mcp-Session-Id': 'x' },
      { a: 1 },
    ],
    failure: '*',
  },
  {
    id: '',
    at: `${at}.addHeadersFromSecret`,
    good: [absent, [{ headerName: 'A', valueSecretRef: secretRef }]],
    bad: [
      [{ headerName: 'A' }],
      [{ headerName: '', valueSecretRef: secretRef }],
      [{ headerName: 'Connection', valueSecretRef: secretRef }],
      [{ headerName: 'x'.repeat(256), valueSecretRef: secretRef }],
      [
        { headerName: 'A', valueSecretRef: secretRef },
        { headerName: 'A', valueSecretRef: secretRef },
      ],
    ],
    failure: '*',
  },
]

const bundle: Table['rows'] = [
  {
    id: '',
    at: 'spec.caBundleRef',
    good: [absent, { configMapRef: { name: 'ca' } }],
    bad: [
      {},
      { configMapRef: {} },
      { configMapRef: { name: '' } },
      { configMapRef: { name: 'ca', key: '' } },
    ],
    failure: '*',
  },
]

const entry: Table = {
  name: 'MCPServerEntry',
  base: document('MCPServerEntry', {
    remoteUrl: 'https://x.example.com/mcp',
    transport: 'streamable-http',
    groupRef: ref,
  }),
  rows: [
    { id: '', at: 'spec.remoteUrl', required: true, good: ['http://x'], bad: ['x', 'ftp://x', ''] },
    { id: '', at: 'spec.transport', required: true, good: ['sse'], bad: ['stdio', ''] },
    { id: '', at: 'spec.groupRef', required: true },
    booleanRow('', 'spec.allowPrivateEndpoint', false),
    ...refs('externalAuthConfigRef'),
    ...headers('spec.headerForward'),
    ...bundle,
  ],
}
const entryBundle: Table = {
  name: 'caBundleRef',
  base: document('MCPServerEntry', {
    remoteUrl: 'https://x.example.com/mcp',
    transport: 'sse',
    groupRef: ref,
    caBundleRef: { configMapRef: { name: 'ca' } },
  }),
  rows: [
    { id: '', at: 'spec.caBundleRef.configMapRef.key', default: 'ca.crt', good: ['root.pem'], bad: ['a/b'] },
  ],
}

const catalogueClients = { type: 'oidc', oidcConfigRef: { name: 'x', audience: 'https://x.example.com' } }
const catalogue: Table = {
  name: 'MCPCatalogue',
  base: document('MCPCatalogue', { incomingAuth: catalogueClients }),
  rows: [
    { id: '', at: 'spec.incomingAuth', required: true, bad: [{}, 'oidc'], failure: '*' },
    { id: '', at: 'spec.incomingAuth.type', required: true, bad: ['', 'local', 'OIDC'] },
    { id: '', at: 'spec.incomingAuth.oidcConfigRef', required: true, bad: [{ name: 'x' }], failure: '*' },
    { id: '', at: 'spec.incomingAuth.authzConfigRef', good: [absent, ref], bad: [{}, 'x'], failure: '*' },
    {
      id: '',
      at: 'spec.selector',
      good: [absent, {}, { matchLabels: { a: 'b' } }],
      bad: [{ matchLabels: { a: 1 } }, { matchExpressions: [] }],
      failure: '*',
    },
    { id: '', at: 'spec.replicas', good: [absent, 0, 3], bad: [-1, ...notInteger] },
    { id: '', at: 'spec.podTemplateSpec', good: [absent, {}], bad: ['x'] },
    { id: '', at: 'spec.namespaces', bad: [['other']] },
  ],
}

const digest = '0'.repeat(64)
const openApiDocument = { configMapRef: { name: 'x', key: 'openapi.yaml' } }
const openApi: Table = {
  name: 'MCPOpenAPIServer',
  base: document('MCPOpenAPIServer', {
    baseUrl: 'https://x.example.com/v1',
    document: openApiDocument,
    groupRef: ref,
  }),
  rows: [
    {
      id: '',
      at: 'spec.baseUrl',
      required: true,
      good: ['https://x'],
      bad: ['x', 'ftp://x', '', 'http://x', 'https://x/?a=b', 'https://x/#a'],
      failure: '*',
    },
    { id: '', at: 'spec.groupRef', required: true },
    booleanRow('', 'spec.allowPrivateEndpoint', false),
    ...refs('externalAuthConfigRef clientCertificateSecretRef'),
    ...headers('spec.headerForward'),
    ...bundle,
    {
      id: '',
      at: 'spec.document',
      required: true,
      good: [openApiDocument, { url: 'https://x/openapi.json', sha256: digest }],
      bad: [
        {},
        { configMapRef: { name: 'x' } },
        { configMapRef: { key: 'x' } },
        { configMapRef: { name: 'x', key: 'a/b' } },
        { ...openApiDocument, url: 'https://x/openapi.json', sha256: digest },
        { ...openApiDocument, sha256: digest },
        { url: 'https://x/openapi.json' },
        { sha256: digest },
        { url: 'file:///etc/passwd', sha256: digest },
        { url: 'https://x/openapi.json', sha256: digest.toUpperCase().replace('0', 'A') },
      ],
      failure: '*',
    },
    {
      id: '',
      at: 'spec.operations',
      good: [absent, {}, { include: [{ methods: ['GET', 'POST'], tags: ['pets'] }] }],
      bad: [
        { include: [{}] },
        { include: [{ methods: ['TRACE'] }] },
        { include: [{ paths: ['pets'] }] },
        { exclude: [{ operationIds: [] }] },
      ],
      failure: '*',
    },
    {
      id: '',
      at: 'spec.apiKeyQuery',
      good: [absent, { header: 'X-Key', parameter: 'api_key' }],
      bad: [{}, { header: 'X-Key' }, { parameter: 'a' }, { header: 'X-Key', parameter: 'a=b' }],
      failure: '*',
    },
    {
      id: '',
      at: 'spec.overrides',
      good: [absent, {}, { listPets: { name: 'pets', set: { 'query.api-version': '7' } } }],
      bad: [{ listPets: {} }, { listPets: { name: 'a b' } }, { listPets: { set: {} } }],
      failure: '*',
    },
    {
      id: '',
      at: 'spec.response',
      good: [absent, {}, { maxBytes: 1024, timeout: '5s', fields: ['data.id'], output: 'off' }],
      bad: [{ maxBytes: 0 }, { timeout: '0s' }, { fields: ['.'] }, { output: 'on' }],
      failure: '*',
    },
  ],
}

const oidcRef = { name: 'corp', audience: 'a' }
const bucket = { maxTokens: 1, refillPeriod: '1s' }
const redis = { provider: 'redis', address: 'r:6379' }
const policies = { type: 'inline', inline: { policies: ['permit(principal, action, resource);'] } }

/** Rows of `oidcConfigRefs`. */
export function issuerRows(at: string): Table['rows'] {
  const second = (more: Record<string, Json>): Json => [oidcRef, { name: 'other', audience: 'b', ...more }]
  const all = { subjectPrefix: 'b:', groupPrefix: '', advertise: true }
  const many = (count: number): Json =>
    Array.from({ length: count }, (_, i) => ({ name: `n${i}`, audience: 'a' }))
  return [
    {
      id: '',
      at,
      good: [
        absent,
        [oidcRef],
        [{ ...oidcRef, resourceUrl: 'https://me.example/mcp', scopes: ['x'], advertise: false }],
        second(all),
        second({ subjectPrefix: 'https://b.example/users#', groupPrefix: 'b/' }),
        many(16),
      ],
      bad: [
        [],
        many(17),
        [oidcRef, oidcRef],
        [{ name: 'corp' }],
        [{ audience: 'a' }],
        ...['', 'b', ':', 'ä:', 'b :', 'client:', 'client:x:', `${'b'.repeat(256)}:`].map((subjectPrefix) =>
          second({ subjectPrefix }),
        ),
        second({ groupPrefix: 'b'.repeat(257) }),
        second({ advertise: 'yes' }),
      ],
      failure: '*',
    },
  ]
}

const proxyRows: Table['rows'] = [
  { id: '', at: 'spec.dpop', good: [absent], bad: [{}], failure: '*' },
  ports('spec.proxyPort', 8080),
  { id: '', at: 'spec.oidcConfigRef', good: [absent, oidcRef], bad: [ref, { audience: 'a' }], failure: '*' },
  ...issuerRows('spec.oidcConfigRefs'),
  {
    id: '',
    at: 'spec.authzConfig',
    good: [absent, policies],
    bad: [{}, { ...policies, type: 'configMap' }],
    failure: '*',
  },
  { id: '', at: 'spec.authzConfigRef', good: [absent, ref], bad: [{}], failure: '*' },
  { id: '', at: 'spec.audit', good: [absent, {}, { enabled: true }], bad: [{ enable: true }], failure: '*' },
  ...refs('toolConfigRef externalAuthConfigRef groupRef webhookConfigRef'),
  {
    id: '',
    at: 'spec.telemetryConfigRef',
    good: [absent, ref, { ...ref, serviceName: 's' }],
    bad: [{}],
    failure: '*',
  },
  {
    id: '2.shape.SecretRef',
    at: 'spec.sessionStorage',
    good: [{ ...redis, passwordRef: secretRef }, { provider: 'memory' }],
    bad: [{ provider: 'redis' }, { ...redis, passwordRef: { name: 'x' } }],
    failure: '*',
  },
  booleanRow('', 'spec.trustProxyHeaders', false),
  { id: '', at: 'spec.sessionAffinity', default: 'ClientIP', good: ['None'], bad: [''] },
  { id: '', at: 'spec.replicas', good: [absent, 0], bad: [-1, ...notInteger] },
  { id: '', at: 'spec.serviceAccount', good: [absent, 'sa'], bad: notName },
  {
    id: '',
    at: 'spec.resources',
    good: [absent, { limits: { cpu: '500m', memory: '1.5Gi' }, requests: { cpu: '2', memory: '1e9' } }],
    bad: [{ limits: { cpu: '500 m' } }, { limits: { memory: '1gb' } }, { limits: { cpu: 1 } }, { limit: {} }],
    failure: '*',
  },
  {
    id: '',
    at: 'spec.resourceOverrides',
    good: [
      {
        proxyDeployment: {
          annotations: { a: 'b' },
          labels: { a: 'b' },
          podTemplateMetadataOverrides: { annotations: {}, labels: {} },
          env: [{ name: 'A', value: '' }],
          imagePullSecrets: [{ name: 'x' }],
        },
        proxyService: { annotations: {}, labels: {} },
      },
    ],
    bad: [
      { service: {} },
      { proxyDeployment: { env: [{ name: 'A' }] } },
      { proxyService: { annotations: { a: 1 } } },
    ],
    failure: '*',
  },
]

const server: Table = {
  name: 'MCPServer',
  base: document('MCPServer', { image: 'ghcr.io/example/server:1' }),
  rows: [
    { id: '', at: 'spec.image', required: true, bad: ['', 1] },
    { id: '', at: 'spec.transport', default: 'stdio', good: ['streamable-http', 'sse'], bad: ['http', ''] },
    { id: '', at: 'spec.proxyMode', default: 'streamable-http', good: ['sse'], bad: ['stdio'] },
    ports('spec.mcpPort'),
    { id: '', at: 'spec.args', good: [absent, [], ['--x']], bad: ['--x', [1]], failure: '*' },
    {
      id: '',
      at: 'spec.env',
      good: [absent, [{ name: 'A', value: 'b' }]],
      bad: [
        [{ name: 'A' }],
        [{ name: 'A', value: 1 }],
        [{ name: 'A', valueFrom: {} }],
        Array.from({ length: 2 }, () => ({ name: 'A', value: 'b' })),
      ],
      failure: '*',
    },
    {
      id: '',
      at: 'spec.volumes',
      good: [absent, [{ name: 'v', hostPath: '/a', mountPath: '/b', readOnly: true }]],
      bad: [[{ name: 'v', hostPath: '/a' }], [{ name: 'V', hostPath: '/a', mountPath: '/b' }]],
      failure: '*',
    },
    {
      // Keyed by name and key, so two keys of one Secret are two entries.
      id: '',
      at: 'spec.secrets',
      good: [
        absent,
        [
          { name: 's', key: 'a' },
          { name: 's', key: 'b', targetEnvName: 'B' },
        ],
      ],
      bad: [
        [{ name: 's' }],
        Array.from({ length: 2 }, () => ({ name: 's', key: 'a' })),
        [{ name: 's', key: 'a', targetEnvName: '1 2' }],
      ],
      failure: '*',
    },
    {
      id: '',
      at: 'spec.permissionProfile',
      good: [
        absent,
        { name: 'none' },
        { type: 'builtin', name: 'network' },
        { type: 'configmap', name: 'p', key: 'k' },
      ],
      bad: [
        {},
        { type: 'builtin', name: 'root' },
        { type: 'configmap', name: 'p' },
        { type: 'file', name: 'x' },
      ],
      failure: '*',
    },
    { id: '', at: 'spec.podTemplateSpec', good: [absent, { spec: { x: 1 } }], bad: ['x'] },
    {
      id: '',
      at: 'spec.authServerRef',
      good: [absent, ref, { ...ref, kind: 'MCPExternalAuthConfig' }],
      bad: [{}, { ...ref, kind: 'MCPOIDCConfig' }],
      failure: '*',
    },
    { id: '', at: 'spec.endpointPrefix', good: [absent, '/x'], bad: notString },
    { id: '', at: 'spec.backendReplicas', good: [absent, 0], bad: [-1] },
    ...proxyRows,
  ],
}

const authServerRef: Table = {
  name: 'authServerRef',
  base: document('MCPServer', { image: 'x', authServerRef: { name: 'x' } }),
  rows: [{ id: '', at: 'spec.authServerRef.kind', default: 'MCPExternalAuthConfig', bad: ['X'] }],
}

const exclusive: readonly Table[] = [{ image: 'x' }, { remoteUrl: 'https://x.example.com' }].map((spec) => {
  const kind = 'image' in spec ? 'MCPServer' : 'MCPRemoteProxy'
  return {
    name: `${kind} authzConfig`,
    base: document(kind, { ...spec, authzConfig: policies }),
    rows: [{ id: '', at: 'spec.authzConfigRef', bad: [ref] }],
  }
})

const limits: Table = {
  name: 'MCPServer rateLimiting',
  base: document('MCPServer', { image: 'x', sessionStorage: redis, rateLimiting: { shared: bucket } }),
  rows: [
    { id: '', at: 'spec.sessionStorage', bad: [absent, { provider: 'memory' }] },
    { id: '', at: 'spec.rateLimiting', bad: [{}, { tools: [] }] },
    { id: '', at: 'spec.rateLimiting.perUser', bad: [bucket] },
    {
      id: '',
      at: 'spec.rateLimiting.tools',
      good: [[{ name: 'a', shared: bucket }]],
      bad: [[{ name: 'a', perUser: bucket }], [{ name: 'a' }]],
      failure: '*',
    },
  ],
}
const perUser: readonly Table[] = [{ oidcConfigRef: oidcRef }, { authServerRef: { name: 'x' } }].map(
  (auth) => ({
    name: 'MCPServer rateLimiting per user',
    base: document('MCPServer', {
      image: 'x',
      sessionStorage: redis,
      rateLimiting: { perUser: bucket },
      ...auth,
    }),
    rows: [
      {
        id: '',
        at: 'spec.rateLimiting.perUser.refillPeriod',
        required: true,
        good: durations,
        bad: ['0s', ''],
      },
    ],
  }),
)

const remote: Table = {
  name: 'MCPRemoteProxy',
  base: document('MCPRemoteProxy', { remoteUrl: 'https://x.example.com/mcp' }),
  rows: [
    { id: '', at: 'spec.remoteUrl', required: true, bad: ['x', ''] },
    booleanRow('', 'spec.allowPrivateEndpoint', false),
    { id: '', at: 'spec.transport', default: 'streamable-http', good: ['sse'], bad: ['stdio'] },
    { id: '', at: 'spec.rateLimiting', bad: [{ shared: bucket }] },
    { id: '', at: 'spec.env', bad: [[]] },
    ...headers('spec.headerForward'),
    ...proxyRows,
  ],
}

const oidc: readonly Table[] = [
  {
    name: 'MCPOIDCConfig inline',
    base: document('MCPOIDCConfig', { type: 'inline', inline: { issuer: 'https://idp.example.com' } }),
    rows: [
      { id: '', at: 'spec.type', required: true, bad: ['', 'x'] },
      { id: '', at: 'spec.inline', required: true },
      { id: '', at: 'spec.kubernetesServiceAccount', bad: [{}] },
      { id: '', at: 'spec.inline.issuer', required: true, bad: ['http://idp.example.com', 'x'] },
      { id: '', at: 'spec.inline.jwksUrl', good: [absent, 'https://x/keys'], bad: ['http://x/keys'] },
      { id: '', at: 'spec.inline.clientSecretRef', bad: [secretRef], failure: 'spec.inline.clientId' },
      booleanRow('', 'spec.inline.jwksAllowPrivateIP', false),
      booleanRow('', 'spec.inline.protectedResourceAllowPrivateIP', false),
      booleanRow('', 'spec.inline.insecureAllowHTTP', false),
      {
        id: '',
        at: 'spec.inline',
        good: [{ issuer: 'http://idp:8080', insecureAllowHTTP: true, jwksUrl: 'http://idp:8080/keys' }],
      },
      {
        id: '',
        at: 'spec.inline.caBundleRef',
        good: [absent, { configMapRef: { name: 'ca' } }],
        bad: [{}],
        failure: '*',
      },
      { id: '', at: 'spec.inline.jwksAuthTokenPath', good: [absent, '/var/token'], bad: ['token'] },
      { id: '', at: 'spec.inline.audience', bad: ['x'] },
    ],
  },
  {
    name: 'MCPOIDCConfig kubernetesServiceAccount',
    base: document('MCPOIDCConfig', { type: 'kubernetesServiceAccount', kubernetesServiceAccount: {} }),
    rows: [
      { id: '', at: 'spec.kubernetesServiceAccount', required: true },
      {
        id: '',
        at: 'spec.kubernetesServiceAccount.issuer',
        default: 'https://kubernetes.default.svc',
        bad: ['x'],
      },
      booleanRow('', 'spec.kubernetesServiceAccount.useClusterAuth', true),
      {
        id: '',
        at: 'spec.kubernetesServiceAccount.namespace',
        bad: ['apps'],
        failure: 'spec.kubernetesServiceAccount.serviceAccount',
      },
      { id: '', at: 'spec.kubernetesServiceAccount', good: [{ serviceAccount: 'agent', namespace: 'apps' }] },
    ],
  },
]

const telemetry: Table = {
  name: 'MCPTelemetryConfig',
  base: document('MCPTelemetryConfig', { openTelemetry: { tracing: {} }, prometheus: {} }),
  rows: [
    { id: '', at: 'spec', default: {} },
    booleanRow('', 'spec.openTelemetry.enabled', false),
    { id: '', at: 'spec.openTelemetry.endpoint', good: [absent, ''], bad: ['collector:4318'] },
    {
      id: '',
      at: 'spec.openTelemetry',
      good: [
        { endpoint: 'c:4318', tracing: { enabled: true } },
        { endpoint: 'c:4318', metrics: { enabled: true } },
      ],
    },
    {
      id: '',
      at: 'spec.openTelemetry',
      bad: [{ insecure: true, caBundleRef: { configMapRef: { name: 'ca' } } }],
      failure: 'spec.openTelemetry.caBundleRef',
    },
    {
      id: '',
      at: 'spec.openTelemetry',
      bad: [{ headers: { a: 'b' }, sensitiveHeaders: [{ name: 'a', secretKeyRef: secretRef }] }],
      failure: 'spec.openTelemetry.sensitiveHeaders',
    },
    booleanRow('', 'spec.openTelemetry.insecure', false),
    booleanRow('', 'spec.openTelemetry.useLegacyAttributes', true),
    booleanRow('', 'spec.openTelemetry.tracing.enabled', false),
    {
      id: '',
      at: 'spec.openTelemetry.tracing.samplingRate',
      default: '0.05',
      good: ['0', '1.0', '0.25'],
      bad: ['1.5', '.5', 0.5],
    },
    booleanRow('', 'spec.prometheus.enabled', false),
  ],
}

const tools: Table = {
  name: 'MCPToolConfig',
  base: document('MCPToolConfig', {}),
  rows: [
    { id: '', at: 'spec.toolsFilter', good: [absent, [], ['a']], bad: ['a', ['a', 'a'], ['']], failure: '*' },
    {
      id: '',
      at: 'spec.toolsOverride',
      good: [absent, { a: { name: 'b' } }],
      bad: [{ a: {} }, { a: { title: 'x' } }],
      failure: '*',
    },
  ],
}

const lockedTool = { name: 'read', definition: { name: 'read', inputSchema: { type: 'object' } } }
const lockedText = { name: 'read', definitionText: '{"name":"read","maximum":9007199254740993}' }

const toolLock: Table = {
  name: 'MCPToolLock',
  base: document('MCPToolLock', { backendRef: { kind: 'MCPServer', name: 'files' } }),
  rows: [
    { id: '', at: 'spec.backendRef', required: true },
    {
      id: '',
      at: 'spec.backendRef.kind',
      required: true,
      good: ['MCPServer', 'MCPRemoteProxy', 'MCPServerEntry', 'MCPOpenAPIServer', 'Backend'],
      bad: ['MCPGroup', ''],
    },
    { id: '', at: 'spec.backendRef.name', required: true, good: ['files'], bad: [''] },
    { id: '', at: 'spec.scheme', default: 'gatehouse.pin.v1', bad: ['gatehouse.pin.v2', ''] },
    {
      id: '',
      at: 'spec.tools',
      good: [absent, [], [lockedTool], [lockedText]],
      bad: [[lockedTool, lockedTool]],
      failure: '*',
    },
    { id: '', at: 'spec.tools', bad: [[{ name: 'read' }], [{ ...lockedTool, ...lockedText }]], failure: '*' },
    {
      id: '',
      at: 'spec.tools',
      good: [[{ ...lockedTool, variants: [{ definition: lockedTool.definition }], note: 'reviewed' }]],
      bad: [[{ ...lockedTool, variants: [{}] }]],
      failure: '*',
    },
    {
      id: '',
      at: 'spec.pages',
      good: [absent, [], [{ uri: 'ui://a/b', digest: `sha256:${'a'.repeat(64)}` }]],
      bad: [
        [{ uri: 'https://a', digest: `sha256:${'a'.repeat(64)}` }],
        [{ uri: 'ui://a/b', digest: 'a'.repeat(64) }],
        [{ uri: 'ui://a/b' }],
      ],
      failure: '*',
    },
    {
      id: '',
      at: 'spec.ignore',
      good: [['/_meta/build']],
      bad: [['/description'], ['/_meta/a/b']],
      failure: '*',
    },
    { id: '', at: 'spec.accept', good: [['schemaNarrower', 'icons']], bad: [['text']], failure: '*' },
    { id: '', at: 'spec.onChanged', good: [absent, 'freeze'], bad: ['deny'] },
    { id: '', at: 'spec.onNew', good: [absent, 'block'], bad: ['freeze'] },
    { id: '', at: 'spec.onRemoved', good: [absent, 'warn'], bad: ['block'] },
  ],
}

const authzConfig: Table = {
  name: 'MCPAuthzConfig',
  base: document('MCPAuthzConfig', {
    type: 'cedarv1',
    config: { policies: ['permit(principal, action, resource);'] },
  }),
  rows: [
    { id: '', at: 'spec.type', required: true, good: ['anything'], bad: [''] },
    { id: '', at: 'spec.config', required: true, good: [{}, { a: { b: [1] } }], bad: ['x', []] },
  ],
}

const embedding: Table = {
  name: 'EmbeddingServer',
  base: document('EmbeddingServer', { modelCache: {} }),
  rows: [
    { id: '', at: 'spec.model', default: 'BAAI/bge-small-en-v1.5', bad: [''] },
    { id: '', at: 'spec.image', default: 'ghcr.io/huggingface/text-embeddings-inference:cpu-1.9', bad: [''] },
    { id: '', at: 'spec.imagePullPolicy', default: 'IfNotPresent', good: ['Always', 'Never'], bad: ['x'] },
    ports('spec.port', 8080),
    { id: '', at: 'spec.replicas', default: 1, good: [3], bad: [0, '1'] },
    { id: '', at: 'spec.hfTokenSecretRef', good: [absent, secretRef] },
    booleanRow('', 'spec.modelCache.enabled', true),
    { id: '', at: 'spec.modelCache.size', default: '10Gi', good: ['1Ti'], bad: ['10GB', ''] },
    {
      id: '',
      at: 'spec.modelCache.accessMode',
      default: 'ReadWriteOnce',
      good: ['ReadWriteMany'],
      bad: ['ReadOnlyMany'],
    },
    {
      id: '',
      at: 'spec.resourceOverrides',
      good: [
        { statefulSet: { labels: { a: 'b' } }, service: {}, persistentVolumeClaim: { annotations: {} } },
      ],
      bad: [{ deployment: {} }],
      failure: '*',
    },
  ],
}

const embeddingSecret: Table = {
  name: 'EmbeddingServer hfTokenSecretRef',
  base: document('EmbeddingServer', { hfTokenSecretRef: secretRef }),
  rows: secretRows('spec.hfTokenSecretRef'),
}

const boundTokens: readonly Table[] = [
  document('MCPServer', { image: 'x', oidcConfigRef: oidcRef, dpop: {} }),
  document('MCPRemoteProxy', { remoteUrl: 'https://x.example.com', oidcConfigRefs: [oidcRef], dpop: {} }),
].map((base, index) => ({
  name: `dpop of ${['MCPServer', 'MCPRemoteProxy'][index]}`,
  base,
  rows: dpopRows('spec.dpop'),
}))

export const otherKindTables: readonly Table[] = [
  ...boundTokens,
  catalogue,
  group,
  entry,
  entryBundle,
  openApi,
  server,
  authServerRef,
  ...exclusive,
  limits,
  ...perUser,
  remote,
  ...oidc,
  telemetry,
  tools,
  toolLock,
  authzConfig,
  embedding,
  embeddingSecret,
]
