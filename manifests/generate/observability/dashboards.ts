/** Grafana dashboards, one per program. Queries refer to each metric by its row in the metrics table. */
import {
  attachMetrics,
  hooksMetrics,
  type MetricRow,
  processMetrics,
  type Program,
  proxyMetrics,
  prometheusName,
  serverMetrics,
} from '../../../schemas/metrics/index.ts'

type Unit = 'short' | 's' | 'ops' | 'bytes' | 'percentunit'

interface Panel {
  readonly title: string
  readonly query: string
  /** Legend text with labels in double braces. */
  readonly legend: string
  readonly unit?: Unit
}

const rate = (row: MetricRow, by: string): string =>
  `sum by (${by}) (rate(${prometheusName(row)}[$__rate_interval]))`
const quantile = (q: number, row: MetricRow, by = ''): string =>
  `histogram_quantile(${q}, sum by (le${by === '' ? '' : `, ${by}`}) (rate(${prometheusName(row)}_bucket[$__rate_interval])))`

const { processCpu, processMemory, processFiles } = processMetrics
const process: readonly Panel[] = [
  {
    title: 'CPU',
    query: `sum by (instance) (rate(${prometheusName(processCpu)}[$__rate_interval]))`,
    legend: '{{instance}}',
    unit: 'percentunit',
  },
  { title: 'Memory', query: prometheusName(processMemory), legend: '{{instance}}', unit: 'bytes' },
  { title: 'Open files', query: prometheusName(processFiles), legend: '{{instance}}' },
]

const server = serverMetrics
const operations = prometheusName(server.serverOperationDuration)
const panelTable: Readonly<Record<Program, readonly Panel[]>> = {
  vmcp: [
    { title: 'Current problems', query: prometheusName(server.problems), legend: '{{type}}' },
    {
      title: 'Backend health',
      query: `${prometheusName(server.backendHealth)} == 1`,
      legend: '{{target_workload_name}}: {{status}}',
    },
    {
      title: 'Circuits',
      query: `${prometheusName(server.backendCircuit)} == 1`,
      legend: '{{target_workload_name}}: {{state}}',
    },
    {
      title: 'Requests',
      query: rate(server.mcpRequests, 'status_code'),
      legend: '{{status_code}}',
      unit: 'ops',
    },
    {
      title: 'Failed operations',
      query: `sum by (error_type) (rate(${operations}_count{error_type!=""}[$__rate_interval]))`,
      legend: '{{error_type}}',
      unit: 'ops',
    },
    {
      title: 'Operation duration, 95th percentile',
      query: quantile(0.95, server.serverOperationDuration, 'mcp_method_name'),
      legend: '{{mcp_method_name}}',
      unit: 's',
    },
    {
      title: 'Backend duration, 95th percentile',
      query: quantile(0.95, server.backendRequestsDuration, 'target_workload_name'),
      legend: '{{target_workload_name}}',
      unit: 's',
    },
    {
      title: 'Backend errors',
      query: rate(server.backendErrors, 'target_workload_name'),
      legend: '{{target_workload_name}}',
      unit: 'ops',
    },
    { title: 'Sessions', query: prometheusName(server.sessions), legend: '{{instance}}' },
    {
      title: 'Open requests and streams',
      query: `sum by (connection_type) (${prometheusName(server.mcpActiveConnections)})`,
      legend: '{{connection_type}}',
    },
    {
      title: 'Policy decisions',
      query: rate(server.authorizationDecisions, 'decision'),
      legend: '{{decision}}',
      unit: 'ops',
    },
    {
      title: 'Rate limit decisions',
      query: rate(server.rateLimitDecisions, 'decision'),
      legend: '{{decision}}',
      unit: 'ops',
    },
    {
      title: 'Credentials for backends',
      query: rate(server.tokenExchanges, 'strategy, outcome'),
      legend: '{{strategy}}: {{outcome}}',
      unit: 'ops',
    },
    { title: 'Events', query: rate(server.events, 'type'), legend: '{{type}}', unit: 'ops' },
    ...process,
  ],
  proxy: [
    {
      title: 'Requests',
      query: rate(proxyMetrics.proxyRequests, 'status'),
      legend: '{{status}}',
      unit: 'ops',
    },
    {
      title: 'Messages',
      query: rate(proxyMetrics.proxyRpcRequests, 'method'),
      legend: '{{method}}',
      unit: 'ops',
    },
    {
      title: 'Request duration, 95th percentile',
      query: quantile(0.95, proxyMetrics.proxyRequestDuration),
      legend: 'p95',
      unit: 's',
    },
    { title: 'Workers', query: prometheusName(proxyMetrics.proxyWorkers), legend: '{{instance}}' },
    ...process,
  ],
  attach: [
    { title: 'Attached', query: prometheusName(attachMetrics.attachUp), legend: '{{server}}' },
    {
      title: 'Requests',
      query: `sum by (server, state) (${prometheusName(attachMetrics.attachRequests)})`,
      legend: '{{server}}: {{state}}',
    },
    {
      title: 'Ended attachments',
      query: rate(attachMetrics.attachDetachments, 'server, cause'),
      legend: '{{server}}: {{cause}}',
      unit: 'ops',
    },
    {
      title: 'Initialized server runs',
      query: rate(attachMetrics.attachInitializations, 'server'),
      legend: '{{server}}',
      unit: 'ops',
    },
    {
      title: 'Container restarts',
      query: prometheusName(attachMetrics.attachServerRestarts),
      legend: '{{server}}',
    },
    {
      title: 'Requests lost when the server stopped',
      query: rate(attachMetrics.attachRequestsLost, 'server'),
      legend: '{{server}}',
      unit: 'ops',
    },
    {
      title: 'Lines over the limit',
      query: rate(attachMetrics.attachLinesTooLong, 'server'),
      legend: '{{server}}',
      unit: 'ops',
    },
    { title: 'Current problems', query: prometheusName(server.problems), legend: '{{type}}' },
    ...process,
  ],
  authserver: [
    {
      title: 'Logins',
      query: `sum by (upstream, action) (rate(${prometheusName(server.authServerEvents)}{action=~"login_.*"}[$__rate_interval]))`,
      legend: '{{upstream}}: {{action}}',
      unit: 'ops',
    },
    {
      title: 'Tokens and other events',
      query: rate(server.authServerEvents, 'action, outcome'),
      legend: '{{action}}: {{outcome}}',
      unit: 'ops',
    },
    {
      title: 'Uses of older HMAC secrets',
      query: prometheusName(server.authServerSecretUses),
      legend: '{{secret}}: {{kind}}',
    },
  ],
  hooks: [
    {
      title: 'Hook calls',
      query: rate(hooksMetrics.hooksRequests, 'kind, hook, code'),
      legend: '{{kind}} {{hook}} {{code}}',
      unit: 'ops',
    },
    {
      title: 'Hook call duration, 95th percentile',
      query: quantile(0.95, hooksMetrics.hooksDuration, 'kind, hook'),
      legend: '{{kind}} {{hook}}',
      unit: 's',
    },
    {
      title: 'Objects refused',
      query: rate(hooksMetrics.hooksDenied, 'kind'),
      legend: '{{kind}}',
      unit: 'ops',
    },
    {
      title: 'Days until the certificate expires',
      query: `(${prometheusName(hooksMetrics.hooksCertificateExpiry)} - time()) / 86400`,
      legend: '{{certificate}}',
    },
    ...process,
  ],
}

const programTitles: Readonly<Record<Program, string>> = {
  vmcp: 'Gatehouse: virtual MCP server',
  proxy: 'Gatehouse: proxy',
  attach: 'Gatehouse: attached stdio servers',
  authserver: 'Gatehouse: authorization server',
  hooks: 'Gatehouse: hooks',
}

const datasourceRef = { type: 'prometheus', uid: '${datasource}' }
const width = 8
const height = 7

/** Dashboards, keyed by file name. */
export function dashboards(): readonly (readonly [string, object])[] {
  return (Object.keys(panelTable) as Program[]).map((program) => [
    `dashboard-${program}.json`,
    {
      uid: `gatehouse-${program}`,
      title: programTitles[program],
      tags: ['gatehouse'],
      schemaVersion: 39,
      editable: true,
      refresh: '30s',
      time: { from: 'now-1h', to: 'now' },
      templating: { list: [{ name: 'datasource', type: 'datasource', query: 'prometheus' }] },
      panels: panelTable[program].map(panel),
    },
  ])
}

function panel({ title, query, legend, unit = 'short' }: Panel, index: number): object {
  return {
    id: index + 1,
    type: 'timeseries',
    title,
    datasource: datasourceRef,
    gridPos: {
      x: (index % (24 / width)) * width,
      y: Math.floor(index / (24 / width)) * height,
      w: width,
      h: height,
    },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: [{ refId: 'A', datasource: datasourceRef, expr: query, legendFormat: legend }],
  }
}
