/**
 * One read of a backend's lists serves all callers with the same view, in both eras. A list that cannot be reread stays
 * in use for the callers that saw it, marked stale, whichever of the four lists fails.
 */
import t from 'tap'
import { makeLog } from '../../../../runtime/observe/index.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { openSession, stateless, type WireAnswer } from '../../../helpers/mcp/wire.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

const lists = {
  'tools/list': (name: string) => ({ tools: [{ name, inputSchema: { type: 'object' } }] }),
  'prompts/list': (name: string) => ({ prompts: [{ name }] }),
  'resources/list': (name: string) => ({ resources: [{ uri: `test://${name}`, name }] }),
  'resources/templates/list': (name: string) => ({
    resourceTemplates: [{ uriTemplate: `test://${name}/{id}`, name }],
  }),
} as const
type List = keyof typeof lists
const methods = Object.keys(lists) as List[]
const capabilities = '{"tools":{},"prompts":{},"resources":{}}'

/** Requests a list; `team` is a passed-through header. */
type Ask = (method: List, team?: string) => Promise<WireAnswer>

async function clientsOf(url: string): Promise<Readonly<Record<string, Ask>>> {
  const session = await openSession(url, { headers: { 'x-team': 'a' } })
  return {
    session: (method, team = 'a') => session.request(method, {}, { 'x-team': team }),
    stateless: (method, team = 'a') => stateless(url, method, {}, { headers: { 'x-team': team } }),
  }
}

t.test('many clients of both eras, at once and in sequence: each list is read once', async (t) => {
  let open = (): void => {}
  const gate = new Promise<void>((resolve) => (open = resolve))
  const backend = await startRawBackend({
    capabilities,
    responses: Object.fromEntries(
      methods.map((method) => [
        method,
        async () => {
          await gate
          return JSON.stringify(lists[method]('one'))
        },
      ]),
    ),
  })
  const vmcp = await startTestVmcp({ b: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const clients = await Promise.all([clientsOf(vmcp.url), clientsOf(vmcp.url), clientsOf(vmcp.url)])
  const all = () =>
    clients.flatMap((eras) => Object.values(eras).flatMap((ask) => methods.map((method) => ask(method))))
  const waiting = all()
  await new Promise((resolve) => setTimeout(resolve, 50))
  open()
  for (const { text } of [...(await Promise.all(waiting)), ...(await Promise.all(all()))])
    t.match(text, /one/)
  t.same(
    methods.map((wanted) => backend.requests.filter(({ method }) => method === wanted).length),
    [1, 1, 1, 1],
  )
})

for (const failing of methods) {
  t.test(`${failing} fails when it is reread: each caller keeps its last items`, async (t) => {
    let now = Date.parse('2026-01-01T00:00:00Z')
    let version = 1
    /** Status code by team. */
    const broken = new Map<string, number>()
    const backend = await startRawBackend({
      capabilities,
      before: (req, res, body) => {
        const status = body.includes(`"${failing}"`) ? broken.get(String(req.headers['x-team'])) : undefined
        if (status !== undefined) res.writeHead(status).end()
        return status !== undefined
      },
      responses: Object.fromEntries(
        methods.map((method) => [
          method,
          ({ headers }) => JSON.stringify(lists[method](`${String(headers['x-team'])}${version}`)),
        ]),
      ),
    })
    const lines: string[] = []
    const log = makeLog({ level: 'info', destination: { write: (line) => void lines.push(line) } })
    const vmcp = await startTestVmcp(
      { b: backend.url },
      { passthroughHeaders: ['x-team'], telemetry: { enablePrometheusMetricsPath: true } },
      { clock: { now: () => now, after: () => () => {} }, log },
    )
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const get = async (path: string) => (await fetch(`${vmcp.origin}${path}`)).text()
    const clients = Object.entries(await clientsOf(vmcp.url))
    const seen = async (team: string, expected: string, why: string, others = expected) => {
      for (const [era, ask] of clients)
        for (const method of methods)
          t.match(
            (await ask(method, team)).text,
            method === failing ? expected : others,
            `${why}: ${era} ${method}`,
          )
    }
    await seen('a', 'a1', 'at first')
    await seen('b', 'b1', 'at first')

    version = 2
    broken.set('a', 500)
    now += 31_000
    await seen('a', 'a1', 'the last good list', 'a2')
    await seen('b', 'b2', 'what another caller is shown is read again')
    t.match(JSON.parse(await get('/api/backends/health')), {
      backends: { b: { status: 'healthy', lists_stale_since: '2026-01-01T00:00:31.000Z' } },
    })
    t.match(await get('/status'), /backend b: its lists have been unreadable since 2026-01-01T00:00:31/)
    t.match(
      await get('/metrics'),
      /gatehouse_vmcp_list_read_failures_total\{target_workload_name="b"\} [1-9]/,
    )
    t.ok(lines.some((line) => line.includes('its last known items stay in use')))

    broken.set('a', 401)
    now += 5_000
    const offered = async () => (await stateless(vmcp.url, failing, {}, { headers: { 'x-team': 'a' } })).text
    // No client waits for the attempt that detects the failure.
    while (/a1/.test(await offered())) await new Promise((resolve) => setTimeout(resolve, 10))
    for (const [era, ask] of clients)
      for (const method of methods) {
        const { text } = await ask(method, 'a')
        if (method === failing) t.notMatch(text, /a[12]/, `nothing that is refused by now: ${era}`)
        else t.match(text, /a2/, `the other lists: ${era} ${method}`)
      }
    await seen('b', 'b2', 'others keep theirs')

    broken.clear()
    now += 31_000
    await seen('a', 'a2', 'once it can be read')
    t.notMatch(await get('/status'), /unreadable since/)
    t.notMatch(await get('/api/backends/health'), /lists_stale_since/)
    t.ok(lines.some((line) => line.includes("the problem with one of the backend's lists is resolved")))
  })
}
