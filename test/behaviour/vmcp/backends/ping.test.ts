/** What the response to a ping shows about a backend. A real backend is checked as by the health monitor. */
import t from 'tap'
import { makeDispatcher, silentLog } from '../../../../runtime/net/index.ts'
import { makeEvents } from '../../../../runtime/observe/index.ts'
import { Backend } from '../../../../runtime/vmcp/backends/backend.ts'
import { Deviations } from '../../../../runtime/vmcp/backends/deviations.ts'
import { type OddBackend, type Oddity, startOddBackend } from '../../../helpers/mcp/odd-backend.ts'
import { pingOddities } from '../../../helpers/mcp/oddities.ts'

const ignore = (): void => {}

async function start(t: { teardown(work: () => unknown): void }, oddities: readonly Oddity[]) {
  const odd = await startOddBackend(oddities)
  const dispatcher = makeDispatcher()
  const events = makeEvents()
  const backend = new Backend(
    {
      name: 'odd',
      transport: 'streamable-http',
      target: {
        url: new URL(odd.url),
        dispatcher,
        credentials: undefined,
        headers: {},
        deviations: new Deviations('odd', events),
      },
      timeoutMs: 10_000,
      perCaller: false,
      fingerprint: '',
      authType: 'unauthenticated',
    },
    {
      events,
      links: {
        listChanged: ignore,
        announcementsLost: ignore,
        resourceUpdated: ignore,
        listener: (_backend, session) => session,
        eraChanged: ignore,
      },
      health: {
        monitor: {
          admit: ignore,
          admitCall: () => true,
          isAvailable: () => true,
          report: ignore,
          release: ignore,
        },
      },
      info: '{"name":"test","version":"1"}',
      log: silentLog,
      now: () => 0,
    },
  )
  t.teardown(async () => {
    await backend.close()
    await dispatcher.destroy()
    await odd.close()
  })
  return {
    odd,
    check: () => backend.check(AbortSignal.timeout(10_000)),
    problems: () => events.problems().map(({ message }) => message),
  }
}

function count({ requests }: OddBackend, method: string): number {
  return requests.filter((request) => request.method === method).length
}

for (const oddity of pingOddities) {
  t.test(`${oddity.name}: ${oddity.code ?? 'alive'}`, async (t) => {
    const { odd, check, problems } = await start(t, [oddity])
    for (let n = 0; n < 2; n++) {
      if (oddity.code === undefined) await t.resolves(check())
      else await t.rejects(check(), { code: oddity.code })
    }
    t.equal(problems().length, oddity.reported === undefined ? 0 : 1)
    if (oddity.reported !== 'ping_unanswered') return
    t.match(problems(), [/the response to ping is not a JSON-RPC response/])
    t.equal(count(odd, 'tools/list'), 2, 'a list is requested instead')
    t.ok(count(odd, 'initialize') <= 2, 'a session is reopened at most once')
  })
}

t.test('a page that is served for every request is not an MCP server', async (t) => {
  let isPage = false
  const page: Oddity = {
    name: 'a page for everything',
    area: 'ping',
    change(reply) {
      if (isPage) Object.assign(reply, { headers: { 'content-type': 'text/html' }, body: '<p>hello</p>' })
    },
  }
  const { check } = await start(t, [page])
  await check()
  isPage = true
  await t.rejects(check(), { code: 'BACKEND_PROTOCOL' })
  isPage = false
  await t.resolves(check())
})

t.test('one list that gets a response proves that a server is alive', async (t) => {
  const odd: Oddity = {
    name: 'text for ping and tools/list',
    area: 'ping',
    change(reply, { method }) {
      if (method === 'initialize')
        reply.body = String(reply.body).replace('"capabilities":{', '"capabilities":{"prompts":{},')
      if (method === 'ping' || method === 'tools/list') reply.body = 'pong'
      if (method === 'prompts/list')
        reply.body = String(reply.body).replace(/"error":.*/, '"result":{"prompts":[]}}')
    },
  }
  const { odd: backend, check } = await start(t, [odd])
  await t.resolves(check())
  t.equal(count(backend, 'prompts/list'), 1)
})

t.test('a lost session is reopened, and ping is used there', async (t) => {
  let isLost = false
  const loss: Oddity = {
    name: 'a lost session',
    area: 'ping',
    change(reply, { method }) {
      if (method === 'initialize') isLost = false
      else if (isLost && method !== 'server/discover')
        Object.assign(reply, { status: 404, headers: {}, body: '' })
    },
  }
  const { odd, check, problems } = await start(t, [loss])
  await check()
  isLost = true
  await t.resolves(check())
  t.equal(count(odd, 'initialize'), 2)
  t.equal(count(odd, 'tools/list'), 0)
  t.same(problems(), [])
})
