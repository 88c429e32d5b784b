/** Metrics of a virtual server: scraped at /metrics, and pushed to a real collector. */
import t, { type Test } from 'tap'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { openSession, post, stateless } from '../../helpers/mcp/wire.ts'
import { startCollector } from '../../helpers/otlp.ts'
import { proves } from '../../helpers/proves.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Parses the text format. Every line must be a comment or a sample. */
function parse(text: string): Sample[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const match = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line)
      if (!match) throw new Error(`not a sample: ${line}`)
      const [, name = '', labels = '', value = ''] = match
      const pairs = [...labels.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)].map(
        ([, key = '', text = '']) => [key, text] as const,
      )
      return { name, labels: Object.fromEntries(pairs), value: Number(value) }
    })
}

async function rig(t: Test, telemetry: Record<string, unknown>) {
  const backend = await startFixture()
  const vmcp = await startTestVmcp({ one: backend.url }, { aggregation: bareNames('one'), telemetry })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const metricsUrl = `${vmcp.origin}/metrics`
  const scrape = async () => parse(await (await fetch(metricsUrl)).text())
  /** Returns the value of the only sample with these labels, or 0 if there is none. */
  async function value(name: string, labels: Record<string, string> = {}): Promise<number> {
    const found = (await scrape()).filter(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([key, text]) => sample.labels[key] === text),
    )
    return found.reduce((sum, sample) => sum + sample.value, 0)
  }
  return { vmcp, metricsUrl, scrape, value }
}

await t.test('metrics: requests, tool calls, operations and calls of backends are counted', async (t) => {
  proves('3.endpoint.metrics', '3.config.telemetry.enablePrometheusMetricsPath', '3.config.telemetry')
  const { vmcp, metricsUrl, scrape, value } = await rig(t, { enablePrometheusMetricsPath: true })
  const session = await openSession(vmcp.url)
  await session.request('tools/list')
  for (let i = 0; i < 3; i++) await session.request('tools/call', { name: 'test_simple_text' })
  await session.request('tools/call', { name: 'test_error_handling' })
  await session.request('resources/read', { uri: 'test://static-text' })
  await session.request('prompts/get', { name: 'test_simple_prompt' })
  const response = await fetch(metricsUrl)
  t.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  const server = 'test-vmcp'
  const ok = { server, status: 'success', method: 'POST', status_code: '200', transport: 'streamable-http' }
  t.equal(await value('gatehouse_mcp_requests_total', { ...ok, mcp_method: 'tools/call' }), 3)
  t.equal(await value('gatehouse_mcp_requests_total', { mcp_method: 'tools/call', status: 'error' }), 1)
  t.equal(await value('gatehouse_mcp_requests_total', { status_code: '202' }), 1, 'the notification')
  t.equal(await value('gatehouse_mcp_request_duration_seconds_count', { mcp_method: 'tools/call' }), 4)
  t.equal(
    await value('gatehouse_mcp_tool_calls_total', { server, tool: 'test_simple_text', status: 'success' }),
    3,
  )
  t.equal(await value('gatehouse_mcp_tool_calls_total', { tool: 'test_error_handling', status: 'error' }), 1)
  const operation = {
    mcp_method_name: 'tools/call',
    gen_ai_tool_name: 'test_simple_text',
    network_transport: 'tcp',
  }
  t.equal(await value('mcp_server_operation_duration_seconds_count', operation), 3)
  t.equal(await value('mcp_server_operation_duration_seconds_count', { error_type: 'tool_error' }), 1)
  t.equal(await value('gatehouse_vmcp_backends_discovered'), 1)
  const call = { target_workload_name: 'one', action: 'call_tool', target_transport_type: 'streamable-http' }
  t.equal(await value('gatehouse_vmcp_backend_requests_total', call), 4)
  t.equal(await value('gatehouse_vmcp_backend_errors_total', call), 1)
  t.equal(
    await value('gatehouse_vmcp_backend_requests_duration_seconds_count', { action: 'read_resource' }),
    1,
  )
  t.equal(await value('gatehouse_vmcp_backend_requests_total', { action: 'get_prompt' }), 1)
  t.ok((await value('gatehouse_vmcp_backend_requests_total', { action: 'list_capabilities' })) >= 4)
  t.ok((await value('mcp_client_operation_duration_seconds_count', { mcp_method_name: 'tools/call' })) >= 4)
  const buckets = (await scrape())
    .filter(
      ({ name, labels }) =>
        name === 'gatehouse_mcp_request_duration_seconds_bucket' && labels['mcp_method'] === 'initialize',
    )
    .map(({ labels }) => labels['le'])
  t.same(buckets, '0.01 0.02 0.05 0.1 0.2 0.5 1 2 5 10 30 60 120 300 +Inf'.split(' '))
  t.match(
    (await scrape()).find(({ name }) => name === 'target_info')?.labels,
    { service_name: 'test-vmcp', service_version: '0.0.0' },
    'the server’s own name is the default of serviceName',
  )
})

await t.test('metrics: open connections go up and down', async (t) => {
  const { vmcp, value } = await rig(t, { enablePrometheusMetricsPath: true })
  const session = await openSession(vmcp.url)
  const name = 'gatehouse_mcp_active_connections'
  const stream = await session.listen()
  t.equal(await value(name, { connection_type: 'stream' }), 1)
  await session.end()
  await stream.ended
  // The server notices the end of a connection shortly after the client.
  for (let i = 0; i < 1_000 && (await value(name)) > 0; i++);
  t.equal(await value(name), 0)
})

await t.test('metrics: a client cannot create new series', async (t) => {
  const { vmcp, scrape, value } = await rig(t, { enablePrometheusMetricsPath: true })
  const session = await openSession(vmcp.url)
  for (let i = 0; i < 20; i++) {
    await session.request(`made/up-${i}`)
    await session.request('tools/call', { name: `made-up-${i}` })
    await session.request('resources/read', { uri: `made-up://${i}` })
    await session.request('prompts/get', { name: `made-up-${i}` })
    await stateless(vmcp.url, 'tools/call', { name: `made-up-${i}` })
    await post(`${vmcp.url}?made-up-${i}`, 'made-up', {
      'x-mcp-server-name': `made-up-${i}`,
      'user-agent': `made-up-${i}`,
    })
  }
  const samples = await scrape()
  t.notMatch(JSON.stringify(samples), /made-up|made\/up/)
  t.equal(await value('gatehouse_mcp_tool_calls_total', { tool: 'other', status: 'error' }), 40)
  t.equal(await value('gatehouse_mcp_requests_total', { mcp_method: 'other' }), 20)
})

await t.test('metrics: /metrics accepts GET and HEAD, and exists only when enabled', async (t) => {
  const on = await rig(t, { enablePrometheusMetricsPath: true })
  t.equal((await fetch(on.metricsUrl, { method: 'POST' })).status, 405)
  const head = await fetch(on.metricsUrl, { method: 'HEAD' })
  t.same([head.status, await head.text()], [200, ''])
  t.equal(head.headers.get('cache-control'), 'no-store')
  const off = await rig(t, {})
  t.equal((await fetch(off.metricsUrl)).status, 404)
})

await t.test('metrics: pushed to the collector with its headers, at shutdown at the latest', async (t) => {
  proves(
    '3.config.telemetry.metricsEnabled',
    '3.config.telemetry.endpoint',
    '3.config.telemetry.headers',
    '3.config.telemetry.serviceName',
    '3.config.telemetry.serviceVersion',
  )
  const collector = await startCollector()
  const backend = await startFixture()
  t.teardown(() => Promise.all([collector.close(), backend.close()]))
  const vmcp = await startTestVmcp(
    { one: backend.url },
    {
      telemetry: {
        endpoint: collector.url,
        metricsEnabled: true,
        headers: { 'x-team': 'a', authorization: 'Bearer ${COLLECTOR_TOKEN}' },
        serviceName: 'front',
        serviceVersion: '7',
      },
    },
    { env: { COLLECTOR_TOKEN: 'collector-token' } },
  )
  t.equal((await fetch(`${vmcp.origin}/metrics`)).status, 404, 'pushing does not open the path')
  const session = await openSession(vmcp.url)
  await session.request('tools/call', { name: 'one_test_simple_text' })
  await vmcp.close()
  t.match(collector.headers('metrics')[0], { 'x-team': 'a', authorization: 'Bearer collector-token' })
  t.match(collector.text(), /"service.name","value":\{"stringValue":"front"\}/)
  t.match(collector.text(), /"service.version","value":\{"stringValue":"7"\}/)
  const calls = collector.points().filter(({ name }) => name === 'gatehouse_mcp_tool_calls')
  t.match(calls, [
    { value: 1, attributes: { server: 'test-vmcp', tool: 'one_test_simple_text', status: 'success' } },
  ])
  const durations = collector.points().filter(({ name }) => name === 'mcp.server.operation.duration')
  t.ok(durations.length > 0)
  t.same(durations[0]?.bounds?.slice(0, 3), [0.01, 0.02, 0.05])
  t.equal(collector.headers('traces').length, 0)
})

await t.test('metrics: labels have older names when useLegacyAttributes is on', async (t) => {
  for (const useLegacyAttributes of [true, false]) {
    const { vmcp, scrape } = await rig(t, { enablePrometheusMetricsPath: true, useLegacyAttributes })
    const session = await openSession(vmcp.url)
    await session.request('tools/call', { name: 'test_simple_text' })
    const sample = (await scrape()).find(
      ({ name, labels }) =>
        name === 'gatehouse_vmcp_backend_requests_total' && labels['action'] === 'call_tool',
    )
    t.equal(sample?.labels['gen_ai_tool_name'], 'test_simple_text')
    t.equal(sample?.labels['tool_name'], useLegacyAttributes ? 'test_simple_text' : undefined)
  }
})
