/** Tool search by meaning: a real embedding service with both protocols, and its failures. */
import { inspect } from 'node:util'
import t, { type Test } from 'tap'
import type { Log } from '../../../../runtime/net/index.ts'
import { type EmbeddingService, startEmbeddingService } from '../../../helpers/vmcp/embedding-service.ts'
import { connect } from '../../../helpers/mcp/clients.ts'
import { openSession, stateless, type WireAnswer } from '../../../helpers/mcp/wire.ts'
import { proves } from '../../../helpers/proves.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { startCollector } from '../../../helpers/otlp.ts'
import { bareNames, startTestVmcp, vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'

proves(
  '3.config.optimizer.embeddingProvider',
  '3.config.optimizer.embeddingModel',
  '3.config.optimizer.apiKey',
  '3.config.optimizer.hybridSearchSemanticRatio',
  '3.config.optimizer.semanticDistanceThreshold',
  '3.config.optimizer.embeddingServiceTimeout',
)

const KEY = 'sk-of-the-embedding-service'
const tool = (name: string, description: string) =>
  JSON.stringify({ name, description, inputSchema: { type: 'object' } })
const TOOLS = [
  tool('create_issue', 'Opens a new issue in a repository'),
  tool('send_email', 'Sends a message to somebody'),
  tool('weather', 'Forecast for a place'),
  tool('tides', 'Height of the water in a port'),
  tool('convert', 'Changes money of one currency into another'),
  tool('translate', 'Says a text in another language'),
]
const synonyms = { rain: 'forecast', umbrella: 'weather', mail: 'email', bug: 'issue', euros: 'money' }

interface Rig {
  readonly url: string
  readonly origin: string
  readonly service: EmbeddingService
  problems(): Promise<unknown>
}

async function start(
  t: Test,
  optimizer: Record<string, unknown> = {},
  options: {
    env?: Record<string, string>
    before?: (service: EmbeddingService) => void
    more?: Record<string, unknown>
  } = {},
): Promise<Rig> {
  const service = await startEmbeddingService({ synonyms })
  options.before?.(service)
  const raw = await startRawBackend({ tools: () => TOOLS })
  const base = optimizer['embeddingProvider'] === 'compat' ? `${service.url}/v1/` : service.url
  const vmcp = await startTestVmcp(
    { raw: raw.url },
    { aggregation: bareNames('raw'), optimizer: { embeddingService: base, ...optimizer }, ...options.more },
    { env: options.env ?? {} },
  )
  t.teardown(() => Promise.all([vmcp.close(), raw.close(), service.close()]))
  return {
    url: vmcp.url,
    origin: vmcp.origin,
    service,
    problems: async () =>
      ((await (await fetch(`${vmcp.origin}/status`)).json()) as { problems: unknown }).problems,
  }
}

const find = (url: string, tool_description: string, tool_keywords?: unknown) =>
  stateless(url, 'tools/call', { name: 'find_tool', arguments: { tool_description, tool_keywords } })

function names(response: WireAnswer): string[] {
  const found = response.response?.result?.['structuredContent'] as { tools: { name: string }[] } | undefined
  return found?.tools.map(({ name }) => name) ?? [response.text]
}

t.test('tei, the default: tools are found by meaning', async (t) => {
  const { url, service } = await start(
    t,
    { embeddingModel: 'ignored' },
    { env: { GATEHOUSE_EMBEDDING_API_KEY: KEY } },
  )
  t.equal(names(await find(url, 'will there be rain'))[0], 'weather')
  t.equal(names(await find(url, 'exchange euros'))[0], 'convert')
  const tools = service.requests.filter(({ texts }) => texts[0]?.startsWith('name: '))
  t.same(
    tools.map(({ texts }) => texts.length),
    [4, 2],
    'batches as large as the service accepts',
  )
  t.ok(tools[0]?.texts.includes('name: create_issue description: Opens a new issue in a repository'))
  t.same(Object.keys(tools[0]?.body ?? {}), ['inputs', 'truncate'])
  t.equal(tools[0]?.body['truncate'], true)
  t.equal(tools[0]?.path, '/embed')
  t.same(
    service.texts().filter((text) => !text.startsWith('name: ')),
    ['will there be rain', 'exchange euros'],
  )
  t.ok(
    service.requests.every(({ headers }) => headers.authorization === undefined),
    'no key for this protocol',
  )
})

t.test('compat: model, key and headers are sent, and vectors are matched by index', async (t) => {
  const embeddingHeaders = { 'x-tenant': 'team a' }
  const { url, service } = await start(
    t,
    { embeddingProvider: 'compat', embeddingModel: 'small', embeddingHeaders },
    { env: { GATEHOUSE_EMBEDDING_API_KEY: KEY } },
  )
  t.equal(names(await find(url, 'will there be rain'))[0], 'weather')
  t.equal(names(await find(url, 'exchange euros'))[0], 'convert')
  for (const { path, headers, body } of service.requests) {
    t.equal(path, '/embeddings')
    t.equal(headers.authorization, `Bearer ${KEY}`)
    t.equal(headers['x-tenant'], 'team a')
    t.equal(headers['content-type'], 'application/json')
    t.match(body, { model: 'small', encoding_format: 'float' })
  }
  t.equal(service.requests.filter(({ texts }) => texts.length > 1).length, 1)
})

t.test('compat without a key: no Authorization is sent', async (t) => {
  const { url, service } = await start(
    t,
    { embeddingProvider: 'compat', embeddingModel: 'small' },
    { env: { GATEHOUSE_EMBEDDING_API_KEY: '' } },
  )
  t.equal(names(await find(url, 'umbrella'))[0], 'weather')
  t.ok(service.requests.every(({ headers }) => headers.authorization === undefined))
})

t.test('one index serves all sessions and both eras', async (t) => {
  const { url, service } = await start(t)
  for (const kind of ['sdk1', 'sdk2-session', 'sdk2-stateless'] as const) {
    const client = await connect(kind, url)
    await client.listTools()
    const { structuredContent } = await client.call('find_tool', { tool_description: 'a bug' })
    t.match(structuredContent, { tools: [{ name: 'create_issue' }] }, kind)
    await client.close()
  }
  const tools = service.texts().filter((text) => text.startsWith('name: '))
  t.same(tools.toSorted(), [...new Set(tools)].toSorted(), 'every tool was embedded once')
})

t.test(
  'hybridSearchSemanticRatio: 0 uses words only, 1 uses meaning only, and values between combine both',
  async (t) => {
    proves('3.limit.optimizer.hybridSearchSemanticRatio')
    const words = await start(t, { hybridSearchSemanticRatio: '0.0' })
    t.same(names(await find(words.url, 'will there be rain')), [])
    t.same(names(await find(words.url, 'exchange euros', ['forecast'])), ['weather'])
    t.equal(words.service.requests.length, 0, 'the service gets no request')
    const near = { semanticDistanceThreshold: '0.9' }
    const meaning = await start(t, { hybridSearchSemanticRatio: '1.0', ...near })
    t.same(names(await find(meaning.url, 'exchange euros', ['forecast'])), ['convert'])
    const both = await start(t, near)
    t.same(names(await find(both.url, 'exchange euros', ['forecast'])), ['convert', 'weather'])
  },
)

t.test('semanticDistanceThreshold: drops matches by meaning, never matches by words', async (t) => {
  const { url } = await start(t, { semanticDistanceThreshold: '0' })
  t.same(names(await find(url, 'exchange euros', ['forecast'])), ['weather'])
  t.same(
    names(await find(url, 'name: tides description: Height of the water in a port', ['forecast'])),
    ['tides', 'weather'],
    'identical texts have distance 0',
  )
  const all = await start(t, { semanticDistanceThreshold: '2' })
  t.equal(names(await find(all.url, 'exchange euros')).length, TOOLS.length, 'everything is near enough')
  const usual = await start(t, { maxToolsToReturn: 3, semanticDistanceThreshold: '2' })
  t.equal(names(await find(usual.url, 'exchange money, email', ['money', 'email'])).length, 3, 'filled up')
})

t.test(
  'a service that is down at the start: search works by words, and by meaning once the service is up',
  async (t) => {
    const { url, service, problems } = await start(
      t,
      {},
      { before: (service) => (service.onRequest = () => ({ kind: 'cut' })) },
    )
    const session = await openSession(url)
    const search = (text: string) =>
      session.request('tools/call', { name: 'find_tool', arguments: { tool_description: text } })
    t.same(await problems(), [])
    t.equal((await session.request('tools/list')).status, 200)
    t.same(names(await search('forecast')), ['weather'])
    t.match(await problems(), [/tool search: the embedding service is failing/])
    const asked = service.requests.length
    t.same(names(await search('forecast again')), ['weather'])
    t.equal(service.requests.length, asked, 'no request waits for it')
    service.onRequest = () => undefined
    await service.next()
    for (;;) {
      const found = names(await search('umbrella'))
      if (found.includes('weather')) break
    }
    t.same(await problems(), [])
  },
)

t.test('a service that exceeds embeddingServiceTimeout is not waited for', async (t) => {
  let release = (): void => {}
  const until = new Promise<void>((resolve) => (release = resolve))
  const { url, problems } = await start(
    t,
    { embeddingServiceTimeout: '50ms' },
    { before: (service) => (service.onRequest = () => ({ kind: 'slow', until })) },
  )
  t.same(names(await find(url, 'forecast')), ['weather'])
  t.match(await problems(), [/tool search/])
  release()
})

t.test('error text of a failing service reaches no client', async (t) => {
  const { url, service, problems } = await start(t)
  t.equal(names(await find(url, 'umbrella'))[0], 'weather')
  service.onRequest = () => ({ kind: 'status', status: 500 })
  const response = await find(url, 'forecast')
  t.same(names(response), ['weather'])
  t.notMatch(response.text, 'a text of the service')
  t.notMatch(JSON.stringify(await problems()), 'a text of the service')
  t.notMatch(JSON.stringify(await problems()), service.url)
})

t.test(
  'a query that the service rejects is searched by words, and other queries still use the service',
  async (t) => {
    const { url, service, problems } = await start(t)
    t.equal(names(await find(url, 'umbrella'))[0], 'weather')
    service.onRequest = ({ texts }) =>
      texts[0] === 'forecast !' ? { kind: 'status', status: 413 } : undefined
    t.same(names(await find(url, 'forecast !')), ['weather'])
    t.same(await problems(), [])
    t.equal(names(await find(url, 'umbrella'))[0], 'weather')
  },
)

t.test('metrics: searches, calls and savings, and labels only contain names of existing tools', async (t) => {
  const { url, origin, service } = await start(
    t,
    {},
    { more: { telemetry: { enablePrometheusMetricsPath: true } } },
  )
  const call = (tool_name: string) =>
    stateless(url, 'tools/call', { name: 'call_tool', arguments: { tool_name, parameters: {} } })
  await find(url, 'umbrella')
  await call('weather')
  await call('made_up_by_a_client')
  service.onRequest = () => ({ kind: 'status', status: 429 })
  await find(url, 'forecast')
  const text = await (await fetch(`${origin}/metrics`)).text()
  const value = (series: string) =>
    text
      .split('\n')
      .find((line) => line.startsWith(series))
      ?.split(' ')
      .at(-1)
  const prefix = 'gatehouse_vmcp_optimizer_'
  t.equal(value(`${prefix}find_tool_requests_total`), '2')
  t.equal(value(`${prefix}find_tool_errors_total`), '1', 'the search by words alone')
  t.equal(value(`${prefix}find_tool_duration_seconds_count`), '2')
  t.equal(value(`${prefix}find_tool_results_count`), '2')
  t.equal(value(`${prefix}token_savings_percent_count`), '2')
  t.match(text, new RegExp(`${prefix}call_tool_requests_total{[^}]*tool_name="weather"[^}]*} 1`))
  t.equal(value(`${prefix}call_tool_not_found_total`), '1')
  t.match(text, new RegExp(`${prefix}call_tool_duration_seconds_count{[^}]*tool_name="weather"[^}]*} 1`))
  t.notMatch(text, 'made_up_by_a_client')
})

t.test('a changed configuration with the same settings keeps the index', async (t) => {
  const service = await startEmbeddingService({ synonyms })
  const raw = await startRawBackend({ tools: () => TOOLS })
  const config = (more: Record<string, unknown>) => ({
    aggregation: bareNames('raw'),
    optimizer: { embeddingService: service.url },
    ...more,
  })
  const vmcp = await startTestVmcp({ raw: raw.url }, config({}))
  t.teardown(() => Promise.all([vmcp.close(), raw.close(), service.close()]))
  t.equal(names(await find(vmcp.url, 'umbrella'))[0], 'weather')
  const made = service.requests.length
  vmcp.reload(vmcpConfig({ raw: raw.url }, config({ passthroughHeaders: ['x-team'] })))
  t.equal(names(await find(vmcp.url, 'umbrella'))[0], 'weather')
  t.equal(service.requests.length, made + 1, 'the query alone')
})

t.test('no log contains the key of the service, whatever happens', async (t) => {
  const lines: string[] = []
  const write = (message: string, fields?: unknown) =>
    void lines.push(inspect({ message, fields }, { depth: 9 }))
  const log: Log = {
    debugEnabled: true,
    infoEnabled: true,
    debug: write,
    info: write,
    warn: write,
    error: write,
    child: () => log,
  }
  const service = await startEmbeddingService({})
  service.onRequest = () => ({ kind: 'cut' })
  const raw = await startRawBackend({ tools: () => TOOLS })
  const optimizer = {
    embeddingProvider: 'compat',
    embeddingModel: 'm',
    embeddingService: `${service.url}/v1`,
  }
  const vmcp = await startTestVmcp(
    { raw: raw.url },
    { aggregation: bareNames('raw'), optimizer },
    { log, env: { GATEHOUSE_EMBEDDING_API_KEY: KEY } },
  )
  t.teardown(() => Promise.all([vmcp.close(), raw.close(), service.close()]))
  t.same(names(await find(vmcp.url, 'forecast')), ['weather'])
  t.equal(service.requests[0]?.headers.authorization, `Bearer ${KEY}`)
  const said = lines.join('\n')
  t.match(said, 'the embedding service is failing')
  t.notMatch(said, KEY)
})

t.test('spans: searches and calls, and the query only if arguments are recorded', async (t) => {
  const collector = await startCollector()
  const telemetry = { endpoint: collector.url, insecure: true, tracingEnabled: true, samplingRate: '1.0' }
  const spansOf = async (env: Record<string, string>) => {
    const raw = await startRawBackend({ tools: () => TOOLS })
    const vmcp = await startTestVmcp(
      { raw: raw.url },
      { aggregation: bareNames('raw'), optimizer: {}, telemetry },
      { env },
    )
    await find(vmcp.url, 'forecast of the day')
    const args = { tool_name: 'weather', parameters: {} }
    await stateless(vmcp.url, 'tools/call', { name: 'call_tool', arguments: args })
    await Promise.all([vmcp.close(), raw.close()])
    return collector.spans().splice(0)
  }
  t.teardown(() => collector.close())
  const spans = await spansOf({})
  const found = spans.find(({ name }) => name === 'optimizer.FindTool')
  t.match(found?.attributes, { 'optimizer.results': 1, 'optimizer.degraded': false })
  t.notOk(found?.attributes['optimizer.query'])
  const called = spans.find(({ name }) => name === 'optimizer.CallTool')
  t.equal(called?.attributes['gen_ai.tool.name'], 'weather')
  t.ok(
    spans.some(({ name, kind }) => name === 'tools/call weather' && kind === 2),
    'the span of the request',
  )
  const more = await spansOf({ GATEHOUSE_TELEMETRY_TOOL_ARGUMENTS: 'true' })
  t.ok(more.some(({ attributes }) => attributes['optimizer.query'] === 'forecast of the day'))
})
