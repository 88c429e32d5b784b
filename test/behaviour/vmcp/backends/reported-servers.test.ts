/**
 * Behavior of servers that users of other gateways and clients have reported: redirects, servers without a GET stream,
 * structured results that violate their own schema, state that belongs to one session.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { type RawBackend, startRawBackend, textResult } from '../../../helpers/mcp/raw-backend.ts'
import { openSession, type WireSession } from '../../../helpers/mcp/wire.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

async function toolNames(session: WireSession): Promise<string[]> {
  const { response } = await session.request('tools/list')
  return ((response?.result?.['tools'] ?? []) as { name: string }[]).map(({ name }) => name)
}

async function callText(session: WireSession, name: string, args: unknown = {}): Promise<unknown> {
  const { response } = await session.request('tools/call', { name, arguments: args })
  const content = (response?.result?.['content'] ?? []) as { text?: string }[]
  return content[0]?.text ?? response?.error
}

async function startBackend(
  t: Test,
  options: Parameters<typeof startRawBackend>[0] = {},
): Promise<RawBackend> {
  const backend = await startRawBackend(options)
  t.teardown(() => backend.close())
  return backend
}

const bestEffort = { operational: { failureHandling: { partialFailureMode: 'best_effort' } } }

for (const status of [307, 308]) {
  t.test(`a backend that redirects /mcp to /mcp/ with ${status} gets method and body there`, async (t) => {
    const backend = await startBackend(t, {
      before(req, res) {
        if (req.url !== '/mcp') return false
        res.writeHead(status, { location: '/mcp/' }).end()
        return true
      },
    })
    const vmcp = await startTestVmcp({ raw: backend.url })
    t.teardown(() => vmcp.close())
    const session = await openSession(vmcp.url)
    t.same(await toolNames(session), ['raw_echo'])
    t.equal(await callText(session, 'raw_echo', { n: 1 }), '{"n":1}')
  })
}

t.test('a backend that redirects to itself affects no other backend', async (t) => {
  const server = createServer((_req, res) => res.writeHead(307, { location: '/mcp' }).end())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close())
  const other = await startBackend(t)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  const vmcp = await startTestVmcp({ loop: url, other: other.url }, bestEffort)
  t.teardown(() => vmcp.close())
  const session = await openSession(vmcp.url)
  t.same(await toolNames(session), ['other_echo'])
  const { response } = await session.request('tools/call', { name: 'loop_echo' })
  t.match(response?.error?.message, /backend loop/)
})

for (const status of [200, 400, 404, 405, 406, 500]) {
  t.test(`a backend that answers GET with ${status} serves its tools`, async (t) => {
    const backend = await startBackend(t, {
      before(req, res) {
        if (req.method !== 'GET') return false
        res.writeHead(status, { 'content-type': 'text/plain' }).end('no stream here')
        return true
      },
    })
    const vmcp = await startTestVmcp({ raw: backend.url })
    t.teardown(() => vmcp.close())
    const session = await openSession(vmcp.url)
    t.same(await toolNames(session), ['raw_echo'])
    t.equal(await callText(session, 'raw_echo', { n: 1 }), '{"n":1}')
    const report = (await (await fetch(`${new URL(vmcp.url).origin}/api/backends/health`)).json()) as object
    t.match(report, { backends: { raw: { status: 'healthy', consecutive_failures: 0 } } })
  })
}

t.test('a structured result that violates its schema keeps its content and opens no circuit', async (t) => {
  const structured = ['{"n":"text"}', 'null', '[1]', '"text"', undefined]
  const results = structured.map((value) =>
    value === undefined
      ? textResult('fine')
      : textResult('fine').replace(/}$/, `,"structuredContent":${value}}`),
  )
  const schema = '{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}'
  const backend = await startBackend(t, {
    tools: () => [`{"name":"count","inputSchema":{"type":"object"},"outputSchema":${schema}}`],
    responses: { 'tools/call': () => results.shift() },
  })
  const circuitBreaker = { enabled: true, failureThreshold: 1, timeout: '60s' }
  const vmcp = await startTestVmcp(
    { raw: backend.url },
    { operational: { failureHandling: { circuitBreaker } } },
  )
  t.teardown(() => vmcp.close())
  const session = await openSession(vmcp.url)
  for (const value of structured) t.equal(await callText(session, 'raw_count'), 'fine', value ?? 'absent')
  t.same(await toolNames(session), ['raw_count'])
})

t.test("a backend's counter counts the calls of one client session", async (t) => {
  const counts = new Map<string, number>()
  const backend = await startBackend(t, {
    responses: {
      'tools/call': ({ headers }) => {
        const session = String(headers['mcp-session-id'])
        counts.set(session, (counts.get(session) ?? 0) + 1)
        return textResult(String(counts.get(session)))
      },
    },
  })
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => vmcp.close())
  const sessions = [await openSession(vmcp.url), await openSession(vmcp.url)]
  for (const n of ['1', '2', '3'])
    for (const session of sessions) t.equal(await callText(session, 'raw_echo'), n)
})
