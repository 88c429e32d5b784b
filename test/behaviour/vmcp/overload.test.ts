/**
 * More requests than the virtual server can handle: the rejections in both eras, and the traffic that is not affected.
 */
import t from 'tap'
import { systemClock } from '../../../runtime/vmcp/model/time/clock.ts'
import { startRawBackend, textResult } from '../../helpers/mcp/raw-backend.ts'
import { crowd, crowdedLoad, pipelined } from '../../helpers/mcp/pipelined.ts'
import { openSession, stateless, statelessRequest } from '../../helpers/mcp/wire.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const telemetry = { enablePrometheusMetricsPath: true }

async function start(t: Tap) {
  const late: (() => void)[] = []
  const backend = await startRawBackend({ responses: { 'tools/call': () => textResult('done') } })
  const vmcp = await startTestVmcp(
    { big: backend.url },
    { aggregation: bareNames('big'), telemetry },
    {
      load: crowdedLoad,
      clock: {
        now: systemClock.now,
        after(ms, work) {
          if (ms !== 5_000) return systemClock.after(ms, work)
          late.push(work)
          return () => {}
        },
      },
    },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  return { vmcp, late }
}

type Tap = Pick<typeof t, 'teardown'>
const call = { name: 'echo', arguments: {} }

/** One call with its own id. */
function requestOf(era: 'session' | 'stateless', session: string, id: number) {
  const { body, headers } = statelessRequest('tools/call', call)
  if (era === 'stateless') return { headers, body: JSON.stringify({ ...(JSON.parse(body) as object), id }) }
  return {
    headers: { 'mcp-session-id': session },
    body: JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: call }),
  }
}

async function statusOf(origin: string): Promise<{ problem_details: { type: string; fix: string }[] }> {
  const response = await fetch(`${origin}/status`)
  return (await response.json()) as { problem_details: { type: string; fix: string }[] }
}

for (const era of ['session', 'stateless'] as const) {
  t.test(`${era} era: some calls succeed, the other calls get 503 with Retry-After`, async (t) => {
    const { vmcp, late } = await start(t)
    const session = await openSession(vmcp.url)
    const ask = () =>
      era === 'session' ? session.request('tools/call', call) : stateless(vmcp.url, 'tools/call', call)
    t.match((await ask()).text, 'done', 'one call is not load')
    t.same((await statusOf(vmcp.origin)).problem_details, [])

    const requests = Array.from({ length: crowd }, (_, i) => requestOf(era, session.id, 1_000 + i))
    const asked = pipelined(vmcp.url, requests)
    const probes = await Promise.all(['/health', '/readyz'].map((path) => fetch(vmcp.origin + path)))
    t.same(
      probes.map(({ status }) => status),
      [200, 200],
      'probes get responses meanwhile, and the server stays ready',
    )
    const responses = await asked
    const refused = responses.filter(({ status }) => status === 503)
    const taken = responses.filter(({ status }) => status === 200)
    t.equal(taken.length + refused.length, crowd)
    t.ok(taken.length > 0 && taken.every(({ text }) => text.includes('done')))
    t.ok(refused.length > 0)
    for (const [i, { status, head, text }] of responses.entries()) {
      if (status === 200) continue
      if (!/^retry-after: [123]$/im.test(head)) t.fail(head)
      const { id, error } = JSON.parse(text) as { id?: unknown; error: { code: number; message: string } }
      if (error.code !== -32603 || !error.message.includes('overloaded')) t.fail(text)
      if (id !== undefined && id !== 1_000 + i) t.fail(`the id of another request: ${text}`)
    }

    const [problem] = (await statusOf(vmcp.origin)).problem_details
    t.match(problem, { type: 'server_overloaded', fix: /operational\.workers/ })
    const metrics = await (await fetch(`${vmcp.origin}/metrics`)).text()
    t.match(metrics, new RegExp(`gatehouse_overload_refusals_total ${refused.length}\\b`))
    t.match(metrics, /gatehouse_requests_waiting 0\b/)
    while (late.length > 0) late.shift()?.()
    t.same(
      (await statusOf(vmcp.origin)).problem_details,
      [],
      'and it ends when no request was rejected for a while',
    )
    t.match((await ask()).text, 'done')
  })
}

t.test('open streams do not count as load, and a session with many of them can make calls', async (t) => {
  const { vmcp } = await start(t)
  const session = await openSession(vmcp.url)
  const streams = await Promise.all(Array.from({ length: 20 }, () => session.listen()))
  for (let i = 0; i < 20; i++) t.match((await session.request('tools/call', call)).text, 'done')
  for (const stream of streams) stream.close()
})
