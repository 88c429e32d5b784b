/** The status of every kind as hooks may write it. Rows are relative to the document, including `status`. */
import {
  absent,
  type Doc,
  document,
  type Json,
  notInteger,
  notString,
  type Row,
  type Table,
} from './table.ts'
import { virtualServer } from './virtual-server.ts'

const condition: Doc = {
  type: 'Ready',
  status: 'True',
  reason: 'AllGood',
  message: '',
  lastTransitionTime: '2026-01-02T03:04:05Z',
}

const at = 'status.conditions[0]'
const conditionRows: readonly Row[] = [
  {
    id: '2.status.condition.type',
    at: `${at}.type`,
    required: true,
    good: [
      'Valid',
      'BackendAuthConfig-github',
      'example.com/Valid',
      `${'a'.repeat(50)}.com/${'B'.repeat(200)}`,
    ],
    bad: ['', 'a b', '/Valid', '-x', 'ExamPle.com/Valid'],
  },
  { id: '2.limit.condition.type', at: `${at}.type`, good: ['x'.repeat(316)], bad: ['x'.repeat(317)] },
  {
    id: '2.state.condition-values',
    at: `${at}.status`,
    required: true,
    good: ['False', 'Unknown'],
    bad: ['', 'true', true],
  },
  {
    id: '2.status.condition.reason',
    at: `${at}.reason`,
    required: true,
    good: ['A', 'A_b:C,D1'],
    bad: ['', '1A', 'A b', 'A:'],
  },
  {
    id: '2.limit.condition.reason',
    at: `${at}.reason`,
    good: ['x'.repeat(1024)],
    bad: ['', 'x'.repeat(1025)],
  },
  { id: '2.status.condition.message', at: `${at}.message`, required: true, good: ['', 'text'], bad: [1] },
  {
    id: '2.limit.condition.message',
    at: `${at}.message`,
    good: ['x'.repeat(32768)],
    bad: ['x'.repeat(32769)],
  },
  {
    id: '2.status.condition.lastTransitionTime',
    at: `${at}.lastTransitionTime`,
    required: true,
    good: ['2026-01-02T03:04:05+01:00'],
    bad: ['', 'yesterday', '2026-01-02', 1],
  },
  {
    id: '2.status.condition.observedGeneration',
    at: `${at}.observedGeneration`,
    good: [absent, 0, 5],
    bad: [-1, '1'],
  },
  { id: '', at: 'status.conditions[1]', bad: [condition], good: [{ ...condition, type: 'Valid' }] },
]

function withStatus(base: Doc, status: Doc): Doc {
  return { ...base, status }
}

const reference = { kind: 'MCPServer', name: 'x' }
const configRows: readonly Row[] = [
  { id: '2.status.configHash', at: 'status.configHash', good: [absent, 'abc'], bad: notString },
  { id: '2.status.observedGeneration', at: 'status.observedGeneration', good: [absent, 7], bad: notInteger },
  {
    id: '2.status.referenceCount',
    at: 'status.referenceCount',
    good: [absent, 0, 3],
    bad: [...notInteger, 2 ** 31],
  },
  {
    id: '2.status.referencingWorkloads',
    at: 'status.referencingWorkloads',
    good: [absent, [], [reference, { kind: 'VirtualMCPServer', name: 'x' }]],
    bad: [[reference, reference]],
    failure: 'status.referencingWorkloads[1]',
  },
  {
    id: '2.status.referencingWorkloads.kind',
    at: 'status.referencingWorkloads[0].kind',
    required: true,
    good: ['VirtualMCPServer', 'MCPRemoteProxy'],
    bad: ['MCPServerEntry', ''],
  },
  {
    id: '2.status.referencingWorkloads.name',
    at: 'status.referencingWorkloads[0].name',
    required: true,
    bad: ['', 1],
  },
  { id: '', at: 'status.unknown', bad: ['x'] },
]

const specs: { readonly [kind: string]: Doc } = {
  MCPOIDCConfig: { type: 'inline', inline: { issuer: 'https://idp.example.com' } },
  MCPAuthzConfig: { type: 'cedarv1', config: {} },
  MCPExternalAuthConfig: { type: 'unauthenticated' },
  MCPTelemetryConfig: {},
  MCPToolConfig: {},
  MCPWebhookConfig: { validating: [{ name: 'check', url: 'https://hook.example' }] },
}

const bundles = ['anchors/ca.crt', 'anchors/other.pem']
const bundleRow: Row = {
  id: '',
  at: 'status.absentCaBundles',
  good: [absent, bundles],
  bad: [['a', 'a']],
  failure: 'status.absentCaBundles[1]',
}
const noBundleRow: Row = { id: '', at: 'status.absentCaBundles', bad: [bundles] }
const withoutBundles: ReadonlySet<string> = new Set(['MCPToolConfig', 'MCPWebhookConfig'])

const configs: readonly Table[] = Object.entries(specs).map(([kind, spec]) => ({
  name: `${kind} status`,
  base: withStatus(document(kind, spec), { conditions: [condition], referencingWorkloads: [reference] }),
  rows: [...configRows, withoutBundles.has(kind) ? noBundleRow : bundleRow, ...conditionRows],
}))

const phases = (id: string, words: string, fallback?: string): Row => ({
  id,
  at: 'status.phase',
  ...(fallback === undefined ? {} : { default: fallback }),
  good: words.split(' '),
  bad: ['', 'Running'],
})

const backendAt = 'status.discoveredBackends[0]'
const virtual: Table = {
  name: 'VirtualMCPServer status',
  base: withStatus(virtualServer(), { discoveredBackends: [{ name: 'a' }], conditions: [condition] }),
  rows: [
    phases('3.status.phase', 'Pending Ready Degraded Failed', 'Pending'),
    { id: '3.status.message', at: 'status.message', good: [absent, ''], bad: notString },
    { id: '', at: 'status.url', good: [absent, 'http://x/mcp'], bad: notString },
    { id: '', at: 'status.backendCount', good: [absent, 0], bad: notInteger },
    { id: '3.status.conditions', at: 'status.conditions', good: [absent, []], bad: [{}] },
    { id: '3.status.discoveredBackends', at: 'status.discoveredBackends', good: [absent, []], bad: [{}] },
    {
      id: '3.status.observedGeneration',
      at: 'status.observedGeneration',
      good: [absent, 1],
      bad: notInteger,
    },
    { id: '', at: 'status.authzConfigHash', good: [absent, 'x'], bad: notString },
    { id: '', at: 'status.oidcConfigHash', good: [absent, 'x'], bad: notString },
    { id: '', at: 'status.telemetryConfigHash', good: [absent, 'x'], bad: notString },
    { id: '', at: 'status.replicas', good: [absent, 2], bad: notInteger },
    { id: '', at: 'status.selector', good: [absent, 'a=b'], bad: notString },
    { id: '3.status.discoveredBackends.name', at: `${backendAt}.name`, required: true, bad: notString },
    {
      id: '3.status.discoveredBackends.status',
      at: `${backendAt}.status`,
      good: [absent, 'ready', 'degraded', 'unavailable', 'unauthenticated', 'unknown'],
      bad: ['', 'healthy'],
    },
    {
      id: '3.status.discoveredBackends.lastHealthCheck',
      at: `${backendAt}.lastHealthCheck`,
      good: [absent, '2026-01-02T03:04:05Z'],
      bad: ['', 'now'],
    },
    { id: '', at: `${backendAt}.consecutiveFailures`, good: [absent, 0], bad: notInteger },
    {
      id: '3.status.discoveredBackends.circuitBreakerState',
      at: `${backendAt}.circuitBreakerState`,
      good: [absent, '', 'closed', 'open', 'half-open'],
      bad: ['halfOpen'],
    },
    {
      id: '3.status.discoveredBackends.circuitLastChanged',
      at: `${backendAt}.circuitLastChanged`,
      good: [absent, '2026-01-02T03:04:05Z'],
      bad: ['x'],
    },
    { id: '', at: `${backendAt}.mcpRevision`, good: [absent, '2025-11-25'], bad: notString },
    ...conditionRows,
  ],
}

const names: Json = ['a', 'b']
const others: readonly Table[] = [
  {
    name: 'MCPGroup status',
    base: withStatus(document('MCPGroup', {}), { conditions: [condition] }),
    rows: [
      phases('', 'Ready Pending Failed', 'Pending'),
      ...['servers', 'remoteProxies', 'entries'].map(
        (field): Row => ({
          id: '',
          at: `status.${field}`,
          good: [absent, names],
          bad: [['a', 'a']],
          failure: `status.${field}[1]`,
        }),
      ),
      ...['serverCount', 'remoteProxyCount', 'entryCount'].map(
        (field): Row => ({
          id: '',
          at: `status.${field}`,
          good: [absent, 1],
          bad: notInteger,
        }),
      ),
    ],
  },
  {
    name: 'MCPServer status',
    base: withStatus(document('MCPServer', { image: 'x' }), {}),
    rows: [
      phases('', 'Pending Ready Failed Terminating Stopped'),
      { id: '', at: 'status.readyReplicas', good: [0], bad: ['0'] },
    ],
  },
  {
    name: 'MCPRemoteProxy status',
    base: withStatus(document('MCPRemoteProxy', { remoteUrl: 'https://x' }), {}),
    rows: [
      phases('', 'Pending Ready Failed Terminating'),
      { id: '', at: 'status.externalUrl', good: ['https://x'] },
    ],
  },
  {
    name: 'MCPServerEntry status',
    base: withStatus(
      document('MCPServerEntry', { remoteUrl: 'https://x', transport: 'sse', groupRef: { name: 'g' } }),
      {},
    ),
    rows: [phases('', 'Valid Pending Failed', 'Pending')],
  },
  {
    name: 'MCPOpenAPIServer status',
    base: withStatus(
      document('MCPOpenAPIServer', {
        baseUrl: 'https://x',
        groupRef: { name: 'g' },
        document: { configMapRef: { name: 'x', key: 'openapi.yaml' } },
      }),
      {},
    ),
    rows: [
      phases('', 'Pending Ready Degraded Failed', 'Pending'),
      { id: '', at: 'status.toolCount', good: [absent, 0], bad: [-1, '1'] },
      {
        id: '',
        at: 'status.skipped',
        good: [absent, [], [{ operation: 'GET /x', reason: 'structure', message: 'x' }]],
        bad: [[{ operation: 'GET /x' }], 'x'],
        failure: '*',
      },
    ],
  },
  {
    name: 'EmbeddingServer status',
    base: withStatus(document('EmbeddingServer', {}), {}),
    rows: [phases('', 'Pending Downloading Ready Failed Terminating')],
  },
  {
    name: 'VirtualMCPCompositeToolDefinition status',
    base: withStatus(
      document('VirtualMCPCompositeToolDefinition', { name: 'x', steps: [{ id: 'a', tool: 'b' }] }),
      {},
    ),
    rows: [
      {
        id: '',
        at: 'status.validationStatus',
        good: [absent, 'Valid', 'Invalid', 'Unknown'],
        bad: ['', 'ok'],
      },
      { id: '', at: 'status.validationErrors', good: [['a', 'a']], bad: ['a'] },
      { id: '', at: 'status.referencingVirtualServers', good: [names], bad: [['a', 'a']], failure: '*' },
    ],
  },
]

export const statusTables: readonly Table[] = [...configs, virtual, ...others]
