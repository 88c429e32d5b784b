/** Scrapes each real program: its metrics must match the table of metrics. */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startSdk } from '../../../runtime/observe/telemetry/sdk.ts'
import { respondToScrape } from '../../../runtime/observe/telemetry/prometheus.ts'
import { telemetrySettings } from '../../../runtime/observe/telemetry/settings.ts'
import { Exchange, silentLog } from '../../../runtime/net/index.ts'
import {
  type MetricRow,
  type Program,
  processMetrics,
  logMetrics,
  programMetrics,
  prometheusName,
  serverMetrics,
} from '../../../schemas/metrics/index.ts'
import { startGatehouse } from '../../helpers/gatehouse.ts'
import { startHooksProcess } from '../../helpers/hooks/process.ts'
import { openSession } from '../../helpers/mcp/wire.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { type Family, familiesOf, labelsOf } from '../../helpers/prometheus.ts'
import { freePort } from '../../helpers/gatehouse.ts'
import { vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

const { processFiles: _linuxOnly, ...processRows } = processMetrics
const everywhere: readonly MetricRow[] = Object.values(processRows)

async function scrape(url: string): Promise<ReadonlyMap<string, Family>> {
  return familiesOf(await (await fetch(url)).text())
}

/** Fails if the server exposes a metric that is missing in the table, or lacks one of `expected`. */
function compare(
  t: Test,
  program: Program,
  families: ReadonlyMap<string, Family>,
  expected: readonly MetricRow[],
): void {
  const rows = new Map(programMetrics[program].map((row) => [prometheusName(row), row]))
  for (const [name, family] of families) {
    if (name === 'target_info') continue
    const row = rows.get(name)
    t.ok(row, `${name} is in the table`)
    if (!row) continue
    t.equal(family.type, row.kind === 'up_down_counter' ? 'gauge' : row.kind, `${name}: kind`)
    const labels = new Set(row.labels.map((label) => label.replaceAll('.', '_')))
    for (const label of labelsOf(family)) t.ok(labels.has(label), `${name}: label ${label}`)
  }
  for (const row of expected) {
    const family = families.get(prometheusName(row))
    t.ok(family && family.series.length > 0, `${prometheusName(row)} is served`)
  }
}

t.test('the virtual server exposes the metrics in the table', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-metrics-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const backend = await startRawBackend()
  t.teardown(() => backend.close())
  const file = join(folder, 'vmcp.json')
  writeFileSync(
    file,
    JSON.stringify({
      name: 'front',
      groupRef: 'g',
      incomingAuth: {
        type: 'anonymous',
        authz: { type: 'cedar', policies: ['permit(principal, action, resource);'] },
      },
      outgoingAuth: { source: 'inline' },
      aggregation: {
        conflictResolution: 'prefix',
        conflictResolutionConfig: { prefixFormat: '{workload}_' },
      },
      telemetry: { enablePrometheusMetricsPath: true },
      operational: { failureHandling: { circuitBreaker: { enabled: true } } },
      backends: [
        { name: 'up', url: backend.url, transport: 'streamable-http' },
        { name: 'down', url: 'http://127.0.0.1:9/mcp', transport: 'streamable-http' },
      ],
    }),
  )
  const program = startGatehouse(['vmcp', 'serve', '--config', file, '--port', '0'])
  t.teardown(() => program.interrupt())
  const [, url = ''] = await program.waitFor(/"url":"(http:[^"]+)"/)
  await program.waitFor(/"backend":"down"[^\n]*"after":"unhealthy"/)
  const session = await openSession(url)
  await session.request('tools/list')
  await session.request('tools/call', { name: 'up_echo' })
  await session.request('tools/call', { name: 'nothing' })
  await fetch(url, { method: 'DELETE', headers: { 'mcp-session-id': session.id } })
  const families = await scrape(url.replace('/mcp', '/metrics'))
  const { mcpRequests, sessions, backendHealth, backendCircuit, problems, events } = serverMetrics
  const { authorizationDecisions, serverSessionDuration, backendRequests } = serverMetrics
  const { serverOperationDuration, clientOperationDuration, backendsDiscovered } = serverMetrics
  compare(t, 'vmcp', families, [
    ...everywhere,
    ...[mcpRequests, sessions, backendHealth, backendCircuit, problems, events],
    ...[authorizationDecisions, serverSessionDuration, backendRequests],
    ...[serverOperationDuration, clientOperationDuration, backendsDiscovered],
  ])
  const has = (name: string, text: string) =>
    t.ok(
      families.get(name)?.series.some((line) => line.includes(text)),
      `${name} ${text}`,
    )
  has('gatehouse_vmcp_backend_health', '{target_workload_name="down",status="unhealthy"} 1')
  has('gatehouse_vmcp_backend_health', '{target_workload_name="up",status="healthy"} 1')
  has('gatehouse_problems', '{type="backend_health"} 1')
  has('gatehouse_vmcp_sessions', 'gatehouse_vmcp_sessions 0')
})

t.test('the proxy exposes the metrics in the table', async (t) => {
  const backend = await startRawBackend()
  t.teardown(() => backend.close())
  const metricsPort = await freePort()
  const target = backend.url.replace('/mcp', '')
  const program = startGatehouse([
    ...['proxy', '--target-uri', target, '--port', '0', '--metrics-port', String(metricsPort), 'front'],
  ])
  t.teardown(() => program.interrupt())
  const [, port] = await program.waitFor(/on port (\d+)/)
  await (await openSession(`http://127.0.0.1:${port}/mcp`)).request('tools/list')
  const families = await scrape(`http://127.0.0.1:${metricsPort}/metrics`)
  const hosted = new Set<MetricRow>(programMetrics.authserver)
  compare(
    t,
    'proxy',
    families,
    programMetrics.proxy.filter((row) => !hosted.has(row) && row !== processMetrics.processFiles),
  )
})

t.test('the hooks expose the metrics in the table', async (t) => {
  const hooks = await startHooksProcess(t)
  const url = `http://127.0.0.1:${hooks.port}`
  await fetch(`${url}/hooks/mcpservers/customize`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  compare(t, 'hooks', await scrape(`${url}/metrics`), everywhere)
})

t.test('every row of a server can be recorded and scraped under its name', async (t) => {
  const { telemetry } = vmcpConfig({}, { telemetry: { enablePrometheusMetricsPath: true } })
  const settings = telemetrySettings(telemetry, { serverName: 's', version: '1', env: {} })
  if (!settings) throw new Error('no settings')
  const sdk = startSdk(settings, { version: '1', log: silentLog, exportIntervalMs: 60_000 })
  t.teardown(() => sdk.shutdown())
  for (const [name, row] of Object.entries({ ...serverMetrics, ...logMetrics, ...processMetrics } as Record<
    string,
    MetricRow
  >)) {
    const labels = Object.fromEntries(row.labels.map((label) => [label, 'x']))
    const record = sdk.metrics[name as keyof typeof sdk.metrics] as (...given: unknown[]) => void
    if (row.observed) record(() => [[1, labels]])
    else record(1, labels)
  }
  const server = createServer(
    (req, res) => void (sdk.prometheus && respondToScrape(new Exchange(req, res), sdk.prometheus)),
  )
  t.teardown(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const families = await scrape(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  for (const row of programMetrics.vmcp) t.ok(families.has(prometheusName(row)), prometheusName(row))
})
