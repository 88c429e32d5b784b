/** Traces of a virtual server, as a real collector receives them. */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { openSession, stateless } from '../../helpers/mcp/wire.ts'
import { type CollectedSpan, type Collector, startCollector } from '../../helpers/otlp.ts'
import { proves } from '../../helpers/proves.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { makeCertificates } from '../../helpers/redis.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const INTERNAL = 1
const SERVER = 2
const CLIENT = 3

interface Rig {
  readonly url: string
  readonly backend: Awaited<ReturnType<typeof startRawBackend>>
  readonly collector: Collector
  /** Stops the server, which sends pending spans. */
  spans(): Promise<CollectedSpan[]>
}

async function rig(
  t: Test,
  telemetry: Record<string, unknown> = {},
  env: Record<string, string> = {},
): Promise<Rig> {
  const collector = await startCollector()
  const backend = await startRawBackend({
    capabilities: '{"tools":{},"resources":{}}',
    responses: {
      'resources/list': () => '{"resources":[{"uri":"test://a?key=s3cr3t","name":"a"}]}',
      'resources/templates/list': () => '{"resourceTemplates":[]}',
      'resources/read': () => '{"contents":[]}',
    },
  })
  const vmcp = await startTestVmcp(
    { one: backend.url },
    {
      aggregation: bareNames('one'),
      telemetry: { endpoint: collector.url, tracingEnabled: true, samplingRate: '1.0', ...telemetry },
    },
    { env },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), collector.close()]))
  return {
    url: vmcp.url,
    backend,
    collector,
    async spans() {
      await vmcp.close()
      return collector.spans()
    },
  }
}

function only(t: Test, spans: readonly CollectedSpan[], name: string, kind: number): CollectedSpan {
  const found = spans.filter((span) => span.name === name && span.kind === kind)
  t.equal(found.length, 1, `one span ${name} of kind ${kind}`)
  const [span] = found
  if (!span) throw new Error(`no span ${name}`)
  return span
}

const traceId = '0af7651916cd43dd8448eb211c80319c'
const parent = `00-${traceId}-b7ad6b7169203331-01`

await t.test('traces: a tool call is a server span that contains the backend call', async (t) => {
  proves('3.config.telemetry.tracingEnabled', '3.config.telemetry.endpoint')
  const { url, spans } = await rig(t)
  const session = await openSession(url, { headers: { 'user-agent': 'wire/1' } })
  await session.request('tools/call', { name: 'echo', arguments: { a: 1 } })
  const all = await spans()
  const server = only(t, all, 'tools/call echo', SERVER)
  const client = only(t, all, 'tools/call echo', CLIENT)
  t.equal(server.parentSpanId, undefined)
  t.equal(client.parentSpanId, server.spanId)
  t.equal(client.traceId, server.traceId)
  t.match(server.attributes, {
    'http.request.method': 'POST',
    'url.path': '/mcp',
    'http.response.status_code': 200,
    'mcp.method.name': 'tools/call',
    'jsonrpc.request.id': /^\d+$/,
    'jsonrpc.protocol.version': '2.0',
    'gen_ai.tool.name': 'echo',
    'gen_ai.operation.name': 'execute_tool',
    'mcp.protocol.version': '2025-11-25',
    'mcp.client.name': 'wire',
    'mcp.server.name': 'test-vmcp',
    'mcp.session.id': /^[0-9a-f]{12}$/,
    'client.address': '127.0.0.1',
    'network.transport': 'tcp',
    'network.protocol.name': 'http',
    'user_agent.original': 'wire/1',
    'target.workload_name': 'one',
  })
  t.notMatch(JSON.stringify(server.attributes), session.id)
  t.match(client.attributes, {
    'mcp.method.name': 'tools/call',
    'gen_ai.tool.name': 'echo',
    'target.workload_name': 'one',
    'target.transport_type': 'streamable-http',
    'auth.authenticated': false,
  })
  t.equal(server.status, 0)
  only(t, all, 'initialize', SERVER)
  only(t, all, 'notifications/initialized', SERVER)
})

await t.test('traces: the lists behind a catalog are internal spans', async (t) => {
  const { url, spans } = await rig(t)
  const session = await openSession(url)
  await session.request('tools/list')
  const all = await spans()
  const names = new Set(all.filter(({ kind }) => kind === INTERNAL).map(({ name }) => name))
  t.same([...names].sort(), [
    'aggregator.AggregateCapabilities',
    'aggregator.MergeCapabilities',
    'aggregator.QueryAllCapabilities',
    'aggregator.QueryCapabilities',
  ])
  const list = all.find(({ name, kind }) => name === 'tools/list' && kind === CLIENT)
  t.ok(
    list &&
      all.some(({ spanId, name }) => spanId === list.parentSpanId && name === 'aggregator.QueryCapabilities'),
  )
})

await t.test('traces: the parent comes from the header, and is forwarded to the backend', async (t) => {
  const { url, backend, spans } = await rig(t)
  const session = await openSession(url)
  const meta = {
    _meta: { traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`, tracestate: 'old=1', keep: true },
  }
  await session.request('tools/call', { name: 'echo', ...meta }, { traceparent: parent, tracestate: 'v=1' })
  const all = await spans()
  const server = only(t, all, 'tools/call echo', SERVER)
  const client = only(t, all, 'tools/call echo', CLIENT)
  t.match(server, { traceId, parentSpanId: 'b7ad6b7169203331', traceState: 'v=1' })
  const expected = `00-${traceId}-${client.spanId}-01`
  const call = backend.requests.find(({ method }) => method === 'tools/call')
  t.match(call?.headers, { traceparent: expected, tracestate: 'v=1' })
  t.match(call?.params, { _meta: { traceparent: expected, tracestate: 'v=1', keep: true } })
})

await t.test(
  'traces: without a header the parent comes from _meta, and is forwarded to the backend',
  async (t) => {
    const { url, backend, spans } = await rig(t)
    const session = await openSession(url)
    await session.request('tools/call', { name: 'echo', _meta: { traceparent: parent } })
    await stateless(url, 'tools/call', { name: 'echo' }, { meta: { traceparent: parent } })
    const all = (await spans()).filter(({ name }) => name === 'tools/call echo')
    t.same(
      all.map((span) => span.traceId),
      [traceId, traceId, traceId, traceId],
    )
    const calls = backend.requests.filter(({ method }) => method === 'tools/call')
    for (const [i, span] of all.filter(({ kind }) => kind === CLIENT).entries()) {
      const traceparent = `00-${traceId}-${span.spanId}-01`
      t.match(calls[i]?.headers, { traceparent })
      t.match(calls[i]?.params, { _meta: { traceparent } })
    }
  },
)

await t.test('traces: with telemetry off, requests to the backend are unchanged', async (t) => {
  const backend = await startRawBackend()
  const vmcp = await startTestVmcp({ one: backend.url }, { aggregation: bareNames('one') })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  await session.request('tools/call', { name: 'echo', arguments: { a: 1 } }, { traceparent: parent })
  const call = backend.requests.find(({ method }) => method === 'tools/call')
  t.equal(call?.headers['traceparent'], undefined)
  t.same(call?.params, { name: 'echo', arguments: { a: 1 } })
})

await t.test('traces: failed spans have a code and no text', async (t) => {
  const { url, collector, spans } = await rig(t)
  const session = await openSession(url)
  await session.request('tools/call', { name: 'no_such_tool' })
  const all = await spans()
  const failed = all.find(({ name }) => name === 'tools/call no_such_tool')
  t.match(failed, { status: 2, attributes: { 'error.type': '-32602' } })
  t.notMatch(collector.text(), /not found/)
})

await t.test(
  'traces: resource URIs are attributes without their query, and not part of span names',
  async (t) => {
    const { url, spans, collector } = await rig(t)
    const session = await openSession(url)
    await session.request('resources/read', { uri: 'test://a?key=s3cr3t' })
    const all = await spans()
    const server = only(t, all, 'resources/read', SERVER)
    t.equal(server.attributes['mcp.resource.uri'], 'test://a?[redacted]')
    t.equal(server.attributes['mcp.resource.id'], 'test://a?[redacted]')
    only(t, all, 'resources/read', CLIENT)
    t.notMatch(collector.text(), /s3cr3t/)
  },
)

await t.test('traces: older attribute names are optional', async (t) => {
  proves('3.config.telemetry.useLegacyAttributes')
  for (const useLegacyAttributes of [undefined, true, false]) {
    const { url, spans } = await rig(t, useLegacyAttributes === undefined ? {} : { useLegacyAttributes })
    const session = await openSession(url)
    await session.request('tools/call', { name: 'echo' })
    const { attributes } = only(t, await spans(), 'tools/call echo', SERVER)
    const older = {
      'http.method': 'POST',
      'http.status_code': 200,
      'mcp.method': 'tools/call',
      'mcp.tool.name': 'echo',
      'mcp.transport': 'streamable-http',
      'rpc.system': 'jsonrpc',
      'rpc.service': 'mcp',
    }
    if (useLegacyAttributes === false)
      for (const name of Object.keys(older)) t.equal(attributes[name], undefined, name)
    else t.match(attributes, older)
    t.match(attributes, { 'http.request.method': 'POST', 'gen_ai.tool.name': 'echo' })
  }
})

await t.test('traces: sampling applies to new traces, and other traces follow their parent', async (t) => {
  proves('3.config.telemetry.samplingRate')
  const { url, backend, spans } = await rig(t, { samplingRate: '0.0' })
  const session = await openSession(url)
  await session.request('tools/call', { name: 'echo', arguments: { n: 1 } })
  await session.request('tools/call', { name: 'echo', arguments: { n: 2 } }, { traceparent: parent })
  const off = `00-${'a'.repeat(32)}-b7ad6b7169203331-00`
  await session.request('tools/call', { name: 'echo', arguments: { n: 3 } }, { traceparent: off })
  const all = await spans()
  t.same([...new Set(all.map((span) => span.traceId))], [traceId])
  const [first, , third] = backend.requests.filter(({ method }) => method === 'tools/call')
  t.match(first?.headers['traceparent'], /-00$/, 'the backend learns that the trace is not sampled')
  t.match(third?.headers['traceparent'], new RegExp(`^00-${'a'.repeat(32)}-[0-9a-f]{16}-00$`))
})

await t.test('traces: sampling is 0.05 by default', async (t) => {
  proves('3.limit.telemetry.samplingRate')
  const collector = await startCollector()
  const telemetry = { endpoint: collector.url, tracingEnabled: true }
  const vmcp = await startTestVmcp({}, { telemetry })
  t.teardown(() => Promise.all([vmcp.close(), collector.close()]))
  const session = await openSession(vmcp.url)
  for (let i = 0; i < 400; i++) await session.request('ping')
  await vmcp.close()
  const pings = collector.spans().filter(({ name }) => name === 'ping').length
  // 20 are expected. A run exceeds these bounds once in a million runs.
  t.ok(pings > 2 && pings < 50, `${pings} of 400`)
})

await t.test('traces: custom attributes, variables and the arguments of tools', async (t) => {
  proves('3.config.telemetry.customAttributes', '3.config.telemetry.environmentVariables')
  const telemetry = {
    customAttributes: { 'deployment.environment': 'test' },
    environmentVariables: ['POD_NAME', 'NOT_SET', 'API_TOKEN'],
  }
  const args = { title: 'hello', api_key: 's3cr3t' }
  const env = { POD_NAME: 'pod-1', API_TOKEN: 's3cr3t', OTHER: 'no' }
  const quiet = await rig(t, telemetry, env)
  await (await openSession(quiet.url)).request('tools/call', { name: 'echo', arguments: args })
  const span = only(t, await quiet.spans(), 'tools/call echo', SERVER)
  t.match(span.resource, { 'deployment.environment': 'test', 'service.name': 'test-vmcp' })
  t.equal(span.attributes['environment.POD_NAME'], 'pod-1')
  t.notOk('environment.API_TOKEN' in span.attributes || 'environment.NOT_SET' in span.attributes)
  t.notMatch(quiet.collector.text(), /hello|s3cr3t/, 'arguments are not recorded by default')
  const open = await rig(t, telemetry, { ...env, GATEHOUSE_TELEMETRY_TOOL_ARGUMENTS: 'true' })
  await (await openSession(open.url)).request('tools/call', { name: 'echo', arguments: args })
  const shown = only(t, await open.spans(), 'tools/call echo', SERVER)
  t.equal(shown.attributes['gen_ai.tool.call.arguments'], 'title=hello, api_key=[redacted]')
  t.notMatch(open.collector.text(), /s3cr3t/)
})

await t.test('traces: all client and backend eras work', async (t) => {
  for (const era of ['session', 'stateless'] as const) {
    const collector = await startCollector()
    const backend = await startFixture({ era })
    const telemetry = { endpoint: collector.url, tracingEnabled: true, samplingRate: '1' }
    const vmcp = await startTestVmcp({ one: backend.url }, { telemetry, aggregation: bareNames('one') })
    t.teardown(() => Promise.all([vmcp.close(), backend.close(), collector.close()]))
    const session = await openSession(vmcp.url)
    await session.request('tools/call', { name: 'test_simple_text' })
    await stateless(vmcp.url, 'tools/call', { name: 'test_simple_text' })
    await vmcp.close()
    const calls = collector.spans().filter(({ name }) => name === 'tools/call test_simple_text')
    t.same(
      calls.map(({ kind }) => kind).sort((a, b) => a - b),
      [SERVER, SERVER, CLIENT, CLIENT],
      `${era} backend`,
    )
    for (const call of calls.filter(({ kind }) => kind === CLIENT))
      t.ok(calls.some(({ spanId, kind }) => kind === SERVER && spanId === call.parentSpanId))
  }
})

await t.test('traces: the encoding is protobuf, or JSON if the standard variable selects it', async (t) => {
  for (const [env, type] of [
    [{}, 'application/x-protobuf'],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, 'application/json'],
  ] as const) {
    const collector = await startCollector()
    t.teardown(() => collector.close())
    const telemetry = {
      endpoint: collector.url,
      tracingEnabled: true,
      metricsEnabled: true,
      samplingRate: '1',
    }
    const vmcp = await startTestVmcp({}, { telemetry }, { env })
    await openSession(vmcp.url)
    await vmcp.close()
    for (const signal of ['traces', 'metrics'] as const)
      t.match(collector.headers(signal), [{ 'content-type': type }], `${signal} ${type}`)
    t.ok(collector.spans().some(({ name, kind }) => name === 'initialize' && kind === 2))
    t.ok(collector.points().some(({ name }) => name === 'mcp.server.operation.duration'))
  }
  const telemetry = { endpoint: 'http://127.0.0.1:1', tracingEnabled: true }
  await t.rejects(startTestVmcp({}, { telemetry }, { env: { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' } }), {
    code: 'INVALID_CONFIG',
    message: /grpc is not supported/,
  })
})

await t.test('traces: sent over TLS to a collector with the configured authority', async (t) => {
  proves('3.config.telemetry.caCertPath', '3.config.telemetry.insecure')
  const certificates = makeCertificates()
  let received = ''
  const server = createServer(
    { cert: readFileSync(certificates.certFile), key: readFileSync(certificates.keyFile) },
    (req, res) => {
      req.setEncoding('utf8').on('data', (text: string) => {
        received += text
      })
      req.on('end', () => res.writeHead(200).end('{}'))
    },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
    certificates.remove()
  })
  const endpoint = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  for (const caCertPath of [undefined, certificates.caFile]) {
    const telemetry = {
      endpoint,
      tracingEnabled: true,
      samplingRate: '1',
      ...(caCertPath ? { caCertPath } : {}),
    }
    const vmcp = await startTestVmcp({}, { telemetry })
    await openSession(vmcp.url)
    await vmcp.close()
    if (caCertPath) t.match(received, 'initialize')
    else t.equal(received, '', 'an unknown authority receives nothing')
  }
  await t.rejects(
    startTestVmcp({}, { telemetry: { endpoint: 'http://collector.example', tracingEnabled: true } }),
    { code: 'INVALID_CONFIG', message: /telemetry\.insecure/ },
  )
})

await t.test('traces: an unreachable collector fails no request and causes one warning', async (t) => {
  const collector = await startCollector()
  collector.answerWith(400)
  const backend = await startRawBackend()
  const warnings: unknown[] = []
  const log = {
    debug() {},
    info() {},
    warn: (message: string, fields?: unknown) => void warnings.push([message, fields]),
    error() {},
    child: () => log,
    debugEnabled: false,
    infoEnabled: false,
  }
  const telemetry = { endpoint: collector.url, tracingEnabled: true, samplingRate: '1' }
  const vmcp = await startTestVmcp(
    { one: backend.url },
    { telemetry, aggregation: bareNames('one') },
    { log },
  )
  t.teardown(() => Promise.all([backend.close(), collector.close()]))
  const session = await openSession(vmcp.url)
  const statuses = new Set<number>()
  for (let i = 0; i < 600; i++) statuses.add((await session.request('ping')).status)
  t.same([...statuses], [200])
  await vmcp.close()
  t.ok(collector.headers('traces').length > 1, 'it was tried more than once')
  t.same(warnings, [['telemetry cannot be sent to the collector', { signal: 'traces', reason: '400' }]])
})
