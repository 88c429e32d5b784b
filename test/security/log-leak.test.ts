/**
 * Secrets of a client, a backend or the configuration never appear in logs, audit lines, metrics or spans. A proxy and
 * a virtual server run with planted secrets everywhere, and all of their output is searched.
 *
 * Each secret is planted where it belongs (a credential's header, query, member or form). A secret in a field that
 * looks like data cannot be recognized once an operator records bodies; here bodies are recorded.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { makeLog } from '../../runtime/observe/index.ts'
import { openSession, post, stateless, stream } from '../helpers/mcp/wire.ts'
import { startCollector } from '../helpers/otlp.ts'
import { proves } from '../helpers/proves.ts'
import { rpc, startRig, startUpstream } from '../helpers/proxy/rig.ts'
import { startRawBackend } from '../helpers/mcp/raw-backend.ts'
import { startTokenIssuer } from '../helpers/authserver/token-issuer.ts'
import { bareNames, startTestVmcp } from '../helpers/vmcp/vmcp.ts'

/** Creates distinguishable secrets, and finds them again. */
function planter() {
  const planted = new Map<string, string>()
  function plant(where: string): string {
    const secret = `s3cr3t-${planted.size}-${'q'.repeat(12)}`
    planted.set(where, secret)
    return secret
  }
  return {
    plant,
    /** Adds a secret that another component created. */
    also(where: string, secret: string): void {
      planted.set(where, secret)
    },
    search(t: Test, output: string, what: string): void {
      for (const [where, secret] of planted) {
        if (output.includes(secret)) t.fail(`${what} shows the secret planted in ${where}`)
      }
      t.notMatch(output, /s3cr3t-/, `${what} shows no planted secret`)
    },
  }
}

function debugLog(lines: string[]) {
  return makeLog({ level: 'debug', destination: { write: (line) => void lines.push(line) } })
}

/** Headers that a careless client sends without need. */
function headersFull(plant: (where: string) => string): Record<string, string> {
  return {
    cookie: `sid=${plant('Cookie')}; other=${plant('second Cookie')}`,
    'proxy-authorization': `Basic ${plant('Proxy-Authorization')}`,
    'x-api-key': plant('X-Api-Key'),
    'x-auth-token': plant('X-Auth-Token'),
    'x-custom': plant('a header of unknown meaning'),
    'user-agent': `careless/1 (Bearer ${plant('User-Agent')})`,
    referer: `https://u:${plant('userinfo of Referer')}@h.example/?q=${plant('query of Referer')}`,
    'x-request-id': `Bearer ${plant('X-Request-Id')}`,
    'x-forwarded-for': plant('X-Forwarded-For'),
    traceparent: plant('traceparent'),
    tracestate: `a=b ${plant('tracestate')}`,
    baggage: `token=${plant('baggage')}`,
    'last-event-id': plant('Last-Event-ID'),
    'x-mcp-server-name': plant('X-MCP-Server-Name'),
  }
}

function argumentsFull(plant: (where: string) => string): Record<string, unknown> {
  return {
    note: `use Bearer ${plant('a bearer value in an argument')}`,
    password: plant('the argument password'),
    api_key: plant('the argument api_key'),
    nested: [
      { client_secret: plant('a nested argument'), deep: { accessToken: [plant('a list of tokens')] } },
    ],
    url: `https://u:${plant('userinfo in an argument')}@h.example/p?sig=${plant('a query in an argument')}`,
    json: JSON.stringify({ refresh_token: plant('JSON in an argument') }),
    form: `client_secret=${plant('a form in an argument')}&x=1`,
  }
}

await t.test('virtual server: log, audit, metrics and spans contain no planted secret', async (t) => {
  proves('3.config.audit.includeRequestData', '3.config.audit.includeResponseData')
  const { plant, also, search } = planter()
  const issuer = await startTokenIssuer()
  const collector = await startCollector()
  const backend = await startRawBackend({
    capabilities: '{"tools":{},"resources":{}}',
    tools: () =>
      ['"echo"', '"fails"', '"breaks"'].map((name) => `{"name":${name},"inputSchema":{"type":"object"}}`),
    responses: {
      'resources/list': () => '{"resources":[]}',
      'resources/templates/list': () => '{"resourceTemplates":[{"uriTemplate":"test://{+x}","name":"t"}]}',
      'resources/read': () =>
        `{"contents":[{"uri":"test://x","text":"{\\"access_token\\":\\"${plant('a resource')}\\"}"}]}`,
      'tools/call': ({ id, params, res }) => {
        if (params['name'] === 'breaks') {
          res
            .writeHead(500, { 'x-debug': plant('a header of a backend') })
            .end(plant('the body of a failing backend'))
          return undefined
        }
        if (params['name'] === 'fails') {
          const message = `the token Bearer ${plant('an error message of a backend')} was refused`
          const body = { jsonrpc: '2.0', id: JSON.parse(id) as unknown, error: { code: -32000, message } }
          res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
          return undefined
        }
        const text = JSON.stringify({
          access_token: plant('the result of a tool'),
          args: params['arguments'],
        })
        return JSON.stringify({ content: [{ type: 'text', text }], _meta: { sessionToken: plant('_meta') } })
      },
    },
  })
  const lines: string[] = []
  const logFile = join(t.testdir({}), 'audit.log')
  const vmcp = await startTestVmcp(
    {
      one: backend.url,
      dead: `http://u:${plant('the URL of a backend')}@127.0.0.1:9/mcp?key=${plant('its query')}`,
    },
    {
      aggregation: bareNames('one'),
      operational: { failureHandling: { partialFailureMode: 'best_effort' } },
      incomingAuth: issuer.incomingAuth,
      passthroughHeaders: ['x-api-key'],
      outgoingAuth: {
        source: 'inline',
        default: {
          type: 'header_injection',
          headerInjection: { headerName: 'x-backend-key', headerValueEnv: 'BACKEND_KEY' },
        },
      },
      audit: {
        enabled: true,
        logFile,
        includeRequestData: true,
        includeResponseData: true,
        maxDataSize: 4096,
      },
      telemetry: {
        endpoint: collector.url,
        tracingEnabled: true,
        metricsEnabled: true,
        samplingRate: '1',
        enablePrometheusMetricsPath: true,
        headers: { authorization: 'Bearer ${OTEL_TOKEN}' },
        environmentVariables: ['BACKEND_KEY', 'OTEL_TOKEN', 'POD_NAME'],
      },
    },
    {
      log: debugLog(lines),
      env: {
        BACKEND_KEY: plant('the secret of the backend'),
        OTEL_TOKEN: plant('the token of the collector'),
        POD_NAME: 'pod-1',
        GATEHOUSE_TELEMETRY_TOOL_ARGUMENTS: 'true',
      },
    },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), issuer.close(), collector.close()]))

  const token = await issuer.token('alice')
  also('the access token', token.split('.')[2] ?? '')
  const headers = { ...headersFull(plant), authorization: `Bearer ${token}` }
  const url = `${vmcp.url}?access_token=${plant('the query')}&${plant('a name in the query')}`
  const session = await openSession(url, { headers })
  also('the session id', session.id)
  await session.request('tools/list')
  for (const name of ['echo', 'fails', 'breaks', `gone-Bearer ${plant('the name of a tool')}`])
    await session.request('tools/call', {
      name,
      arguments: argumentsFull(plant),
      _meta: { authToken: plant('request _meta') },
    })
  await session.request('resources/read', { uri: `test://x?key=${plant('the query of a resource')}` })
  const events = await stream(url, { headers: session.headers })
  events.close()
  await stateless(url, 'tools/call', { name: 'echo', arguments: argumentsFull(plant) }, { headers })
  // Requests that are rejected in every possible way.
  const bad = { ...headers, authorization: `Bearer ${plant('an invalid token')}` }
  await post(url, rpc(1, 'tools/call', argumentsFull(plant)), bad)
  await post(url, rpc(1), { ...headers, authorization: `Basic ${plant('another scheme')}` })
  await post(url, `{"token":"${plant('a body that is cut')}`, headers)
  await post(url, `password=${plant('a form as body')}`, {
    ...headers,
    'content-type': 'application/x-www-form-urlencoded',
  })
  await post(url, rpc(1), { ...session.headers, 'mcp-session-id': plant('an unknown session id') })
  await post(url, rpc(1), { ...headers, origin: `https://${plant('Origin')}.example` })
  await fetch(`${vmcp.origin}/nothing?token=${plant('the query of an unknown path')}`, { headers })
  const scraped = await (await fetch(`${vmcp.origin}/metrics`)).text()
  const status = await (await fetch(`${vmcp.origin}/status`)).text()
  await session.end()
  await vmcp.close()

  const audit = readFileSync(logFile, 'utf8')
  const collected = JSON.stringify([collector.spans(), collector.points()])
  t.match(audit, /"type":"mcp_tool_call"/)
  t.match(audit, /"data":\{"request"/)
  t.match(scraped, /gatehouse_mcp_tool_calls_total/)
  t.match(collected, /tools\/call echo/)
  t.match(collected, /"gen_ai.tool.call.arguments":"note=use Bearer \[redacted\]/)
  t.match(collected, /"environment.POD_NAME":"pod-1"/)
  t.ok(lines.length > 5, 'the log at debug level is not empty')
  search(t, lines.join(''), 'the log')
  search(t, audit, 'the audit log')
  search(t, scraped, '/metrics')
  search(t, status, '/status')
  search(t, collected, 'telemetry')
})

await t.test('virtual server: without recorded bodies, no argument and no result appears', async (t) => {
  const collector = await startCollector()
  const backend = await startRawBackend()
  const lines: string[] = []
  const logFile = join(t.testdir({}), 'audit.log')
  const vmcp = await startTestVmcp(
    { one: backend.url },
    {
      aggregation: bareNames('one'),
      audit: { enabled: true, logFile },
      telemetry: { endpoint: collector.url, tracingEnabled: true, metricsEnabled: true, samplingRate: '1' },
    },
    { log: debugLog(lines) },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), collector.close()]))
  const session = await openSession(vmcp.url)
  const response = await session.request('tools/call', {
    name: 'echo',
    arguments: { diagnosis: 'very private' },
  })
  t.match(response.text, 'very private', 'the client gets it')
  await stateless(vmcp.url, 'tools/call', { name: 'echo', arguments: { diagnosis: 'very private' } })
  await vmcp.close()
  const all = [
    readFileSync(logFile, 'utf8'),
    JSON.stringify(collector.spans()),
    collector.text(),
    lines.join(''),
  ]
  for (const output of all) t.notMatch(output, /very private|diagnosis/)
})

await t.test('proxy: the log contains no planted secret', async (t) => {
  const { plant, also, search } = planter()
  const lines: string[] = []
  const sessionId = plant('a session id')
  const upstream = await startUpstream((seen, res) => {
    if (seen.body.includes('"boom"')) {
      res.destroy()
      return
    }
    res.writeHead(seen.url.includes('deny') ? 401 : 200, {
      'content-type': 'application/json',
      'mcp-session-id': sessionId,
      'set-cookie': `sid=${plant('Set-Cookie')}`,
      'www-authenticate': `Bearer error="${plant('WWW-Authenticate')}"`,
      location: `https://elsewhere.example/?code=${plant('Location')}`,
    })
    res.end(`{"jsonrpc":"2.0","id":1,"result":{"token":"${plant('the body of the target')}"}}`)
  })
  const rig = await startRig(`${upstream.url}?key=${plant('the query of the target')}`, {
    log: debugLog(lines),
    inject: [{ name: 'x-target-key', value: plant('an injected header') }],
  })
  const away = await startRig(`http://127.0.0.1:9?key=${plant('the query of a target that is away')}`, {
    log: debugLog(lines),
  })
  t.teardown(() => Promise.all([rig.close(), away.close(), upstream.close()]))
  const headers = { ...headersFull(plant), authorization: `Bearer ${plant('Authorization')}` }
  const query = `?access_token=${plant('the query')}`
  also('the session id of a client', sessionId)
  for (const base of [rig.url, away.url]) {
    await post(`${base}/mcp${query}`, rpc(1, 'initialize', {}), headers).catch(() => {})
    const inSession = { ...headers, 'mcp-session-id': sessionId }
    await post(`${base}/mcp${query}`, rpc(2, 'tools/call', argumentsFull(plant)), inSession).catch(() => {})
    await post(`${base}/mcp${query}`, rpc('boom'), inSession).catch(() => {})
    await post(`${base}/mcp${query}`, `{"token":"${plant('a body that is cut')}`, headers).catch(() => {})
    await post(`${base}/deny${query}`, rpc(3), headers).catch(() => {})
    await post(`${base}/mcp`, rpc(4), { ...headers, 'mcp-session-id': plant('an unknown session id') }).catch(
      () => {},
    )
    await fetch(`${base}/mcp${query}`, { headers: { ...headers, accept: 'text/event-stream' } })
      .then((response) => response.body?.cancel())
      .catch(() => {})
  }
  t.ok(lines.length > 10, 'the log at debug level is not empty')
  t.match(lines.join(''), /"rpc":"tools\/call"/)
  search(t, lines.join(''), 'the log of the proxy')
})
