/** Status and log contain the error text of a backend, truncated and without credentials, with the next step. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import t from 'tap'
import { makeLog } from '../../../runtime/observe/index.ts'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { openSession, stateless } from '../../helpers/mcp/wire.ts'
import { until } from '../../helpers/redis.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

interface Status {
  readonly backends: readonly {
    readonly health: string
    readonly last_error?: { readonly category: string; readonly message: string; readonly detail?: string }
  }[]
  readonly problem_details: readonly {
    readonly type: string
    readonly message: string
    readonly fix: string
  }[]
}

type Before = (req: IncomingMessage, res: ServerResponse, body: string) => boolean

const secret = 'hunter2-key'

async function start(t: { teardown(work: () => unknown): void }, before: Before) {
  const lines: string[] = []
  const raw = await startRawBackend({ capabilities: '{"tools":{},"prompts":{}}', before })
  const vmcp = await startTestVmcp(
    { b: raw.url },
    {
      operational: { failureHandling: { unhealthyThreshold: 1, healthCheckInterval: '1s' } },
      outgoingAuth: {
        source: 'inline',
        backends: {
          b: {
            type: 'header_injection',
            headerInjection: { headerName: 'x-api-key', headerValueEnv: 'OWN_WORDS_KEY' },
          },
        },
      },
    },
    {
      log: makeLog({ level: 'info', destination: { write: (line: string) => void lines.push(line) } }),
      env: { OWN_WORDS_KEY: secret },
    },
  )
  t.teardown(() => Promise.all([vmcp.close(), raw.close()]))
  const status = async () => (await (await fetch(`${vmcp.origin}/status`)).json()) as Status
  return { vmcp, lines, status }
}

const on =
  (method: string, answer: (res: ServerResponse, id: unknown) => void): Before =>
  (_req, res, body) => {
    if (!body.includes(`"${method}"`)) return false
    answer(res, (JSON.parse(body) as { id: unknown }).id)
    return true
  }
const send = (res: ServerResponse, status: number, type: string, body: string) =>
  res.writeHead(status, { 'content-type': type }).end(body)
const rpcError = (id: unknown, message: string) =>
  JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_000, message } })

const page =
  '<!DOCTYPE html><html><head><title>Sign in | Corp</title><style>b{}</style></head><body>Hello</body></html>'

const cases: readonly {
  readonly name: string
  readonly answer: (res: ServerResponse, id: unknown) => void
  readonly category: string
  readonly detail: RegExp | undefined
  readonly fix: RegExp
}[] = [
  {
    name: 'a JSON-RPC error',
    answer: (res, id) => send(res, 200, 'application/json', rpcError(id, 'license expired\u0007\nask sales')),
    category: 'request_rejected',
    detail: /^license expired ask sales$/,
    fix: /correct the problem that the error from b describes/,
  },
  {
    name: 'a JSON-RPC error with HTTP 400',
    answer: (res, id) => send(res, 400, 'application/json', rpcError(id, 'tenant is missing')),
    category: 'request_rejected',
    detail: /^tenant is missing$/,
    fix: /correct the problem that the error from b describes/,
  },
  {
    name: 'a 421 body',
    answer: (res) => send(res, 421, 'text/plain', 'Invalid Host header'),
    category: 'host_rejected',
    detail: /^Invalid Host header$/,
    fix: /allow the host name from its url/,
  },
  {
    name: 'a 403 for the host',
    answer: (res, id) => send(res, 403, 'application/json', rpcError(id, 'Invalid Host: b.internal')),
    category: 'host_rejected',
    detail: /^Invalid Host: b\.internal$/,
    fix: /allow the host name from its url/,
  },
  {
    name: 'a web page',
    answer: (res) => send(res, 200, 'text/html', page),
    category: 'web_page',
    detail: /^Sign in \| Corp/,
    fix: /a web page, not an MCP server/,
  },
  {
    name: 'a web page for 404',
    answer: (res) => send(res, 404, 'text/html', '<html><h1>Not Found</h1></html>'),
    category: 'wrong_path',
    detail: /^Not Found$/,
    fix: /check the path/,
  },
  {
    name: 'an empty 404',
    answer: (res) => res.writeHead(404).end(),
    category: 'wrong_path',
    detail: undefined,
    fix: /check the path/,
  },
  {
    name: 'a problem document with HTTP 500',
    answer: (res) => send(res, 500, 'application/problem+json', '{"title":"x","detail":"database is down"}'),
    category: 'backend_unavailable',
    detail: /^database is down$/,
    fix: /check the log of b/,
  },
  {
    name: 'text of another protocol',
    answer: (res) => send(res, 200, 'text/plain', 'pong'),
    category: 'health_check_failed',
    detail: /^pong$/,
    fix: /check that the url of b points to an MCP server/,
  },
]

for (const { name, answer, category, detail, fix } of cases) {
  t.test(`initialize: ${name} is shown in status and log`, async (t) => {
    const { lines, status } = await start(t, on('initialize', answer))
    await until(async () => (await status()).backends[0]?.health === 'unhealthy')
    const { backends, problem_details } = await status()
    t.match(backends[0]?.last_error, { category, detail })
    if (detail === undefined) t.equal(backends[0]?.last_error?.detail, undefined)
    const problem = problem_details.find(({ type }) => type === 'backend_health')
    t.match(problem, { fix })
    if (detail !== undefined) {
      const text = backends[0]?.last_error?.detail ?? ''
      t.ok(problem?.message.endsWith(`: ${text}`), 'the problem')
      t.ok(
        lines.some(
          (line) => line.includes('"backend_health"') && line.includes(JSON.stringify(text).slice(1, -1)),
        ),
        'the log',
      )
    }
  })
}

t.test(
  'tools/list: the error of the backend is shown in status and log, and clients do not see it',
  async (t) => {
    const before = on('tools/list', (res, id) =>
      send(res, 200, 'application/json', rpcError(id, 'quota of workspace used up')),
    )
    const { vmcp, lines, status } = await start(t, before)
    const session = await openSession(vmcp.url)
    t.notMatch((await session.request('tools/list')).text, 'workspace')
    await until(async () => (await status()).problem_details.some(({ type }) => type === 'list_problem'))
    const problem = (await status()).problem_details.find(({ type }) => type === 'list_problem')
    t.match(problem?.message, /tools\/list on backend b failed: .*: quota of workspace used up$/)
    t.ok(lines.some((line) => line.includes('"list_problem"') && line.includes('quota of workspace used up')))
  },
)

t.test('credentials and session ids that a backend repeats are masked', async (t) => {
  const token = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.c2ln'
  const { lines, status } = await start(t, (req, res, body) => {
    if (!body.includes('"ping"')) return false
    const id = String(req.headers['mcp-session-id'])
    const given = String(req.headers['x-api-key'])
    send(
      res,
      500,
      'text/plain',
      `no access for ${given} in session ${id} with ${token} \u202eend ${'x'.repeat(5_000)}`,
    )
    return true
  })
  await until(async () => (await status()).backends[0]?.health === 'unhealthy')
  const { backends } = await status()
  const detail = backends[0]?.last_error?.detail ?? ''
  t.match(detail, /^no access for \[redacted\] in session \[redacted\] with \S+ end /)
  t.ok(detail.length <= 320, 'bounded')
  const shown = `${JSON.stringify(await status())}${lines.join('')}`
  for (const hidden of [secret, token, '\u202e']) t.notOk(shown.includes(hidden))
  t.notMatch(shown, /in session [0-9a-f]{8}-/)
})

t.test('the text of a failed call stays out of status and log', async (t) => {
  const before = on('tools/call', (res) => send(res, 500, 'text/plain', 'canary of the caller'))
  const { vmcp, lines, status } = await start(t, before)
  const session = await openSession(vmcp.url)
  t.notMatch((await session.request('tools/call', { name: 'b_echo' })).text, 'canary')
  await until(() => lines.some((line) => line.includes('"backend_call_failed"')))
  t.notMatch(`${JSON.stringify(await status())}${lines.join('')}`, 'canary')
})

for (const era of ['session', 'stateless'] as const)
  t.test(`${era} era: the text of an error for one caller is not shown to other callers`, async (t) => {
    const canary = 'owes 300 dollars'
    let isDown = false
    const backend = await startFixture({
      era,
      before(req, res) {
        const isAlice = req.headers['x-tenant'] === 'alice'
        if (isAlice || isDown) send(res, 500, 'text/plain', isAlice ? canary : 'the disk is full')
        return isAlice || isDown
      },
    })
    const vmcp = await startTestVmcp(
      { b: backend.url },
      {
        passthroughHeaders: ['x-tenant'],
        operational: { failureHandling: { unhealthyThreshold: 1, healthCheckInterval: '1s' } },
      },
    )
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const as = async (tenant: string, method: string, params = {}) =>
      (await stateless(vmcp.url, method, params, { headers: { 'x-tenant': tenant } })).text
    const status = async () => (await fetch(`${vmcp.origin}/status`)).text()
    const shown = async () => [
      await as('bob', 'tools/list'),
      await as('bob', 'tools/call', { name: 'b_test_simple_text' }),
      await as('bob', 'tools/call', { name: 'b_unknown' }),
      await status(),
    ]
    await until(async () => (await as('bob', 'tools/list')).includes('b_test_simple_text'))
    await as('alice', 'tools/list')
    await as('alice', 'tools/call', { name: 'b_test_simple_text' })
    await until(async () => (await status()).includes('lists_failed'))
    for (const text of await shown()) t.notMatch(text, canary)
    isDown = true
    await Promise.all([as('alice', 'tools/list'), as('bob', 'tools/list')])
    await until(async () => (await status()).includes('the disk is full'))
    for (const text of await shown()) t.notMatch(text, canary)
  })
