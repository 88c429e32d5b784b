/** The stream for a backend's announcements breaks and comes back. Changes from the meantime are still noticed. */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { GapReporter } from '../../../../runtime/vmcp/backends/session-era/gap-reporter.ts'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { openSession } from '../../../helpers/mcp/wire.ts'
import { bareNames, startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

for (const status of [503, 429, 405]) {
  t.test(`tools that changed while the stream was down (${status}) are announced and listed`, async (t) => {
    const streams = new Set<ServerResponse>()
    const line = { isDown: false }
    const fixture = await startFixture({
      before(req, res) {
        if (req.method !== 'GET') return false
        if (line.isDown) {
          // A response that there is no stream any more is trusted.
          line.isDown = status === 405
          res.writeHead(status).end()
          return true
        }
        streams.add(res)
        return false
      },
    })
    const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture') })
    t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
    const session = await openSession(vmcp.url)
    const told = await session.listen()
    const list = async () => (await session.request('tools/list')).text.includes('extra_tool')
    t.equal(await list(), false)
    line.isDown = true
    for (const stream of streams) stream.destroy()
    fixture.state.toggleTool()
    await told.next(({ method }) => method === 'notifications/tools/list_changed')
    t.equal(await list(), true)
    told.close()
  })
}

t.test('a stream rejected as in use (409) is reopened, and announces changes', async (t) => {
  const tools = ['{"name":"one","inputSchema":{"type":"object"}}']
  // Behind a proxy that cut the connection, a server treats the old stream as open for a while.
  const line = { refusals: 0, reopened: () => {} }
  const backend = await startRawBackend({
    tools: () => tools,
    before(req, res) {
      if (req.method !== 'GET') return false
      if (line.refusals === 0) {
        // The stream is registered once this handler has returned.
        setImmediate(line.reopened)
        return false
      }
      line.refusals--
      res.writeHead(409, { 'content-type': 'application/json' })
      res.end('{"jsonrpc":"2.0","error":{"code":-32000,"message":"Conflict"},"id":null}')
      return true
    },
  })
  const vmcp = await startTestVmcp({ raw: backend.url }, { aggregation: bareNames('raw') })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const told = await session.listen()
  const isChange = ({ method }: { method?: string }) => method === 'notifications/tools/list_changed'
  await session.request('tools/list')
  line.refusals = 1
  const reopened = new Promise<void>((resolve) => (line.reopened = resolve))
  for (const stream of backend.streams) stream.destroy()
  await reopened
  t.equal(line.refusals, 0)
  tools.push('{"name":"two","inputSchema":{"type":"object"}}')
  backend.push('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}')
  await told.next(isChange)
  t.match((await session.request('tools/list')).text, /"two"/)
  told.close()
})

t.test('a flapping stream does not cause lists to be reread again and again', async (t) => {
  const gets = { opened: 0 }
  const backend = await startRawBackend({
    before(req, res) {
      if (req.method !== 'GET') return false
      gets.opened++
      res.writeHead(200, { 'content-type': 'text/event-stream' }).end('retry: 20\n\n')
      return true
    },
  })
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  while (gets.opened < 6) await session.request('tools/list')
  const lists = backend.requests.filter(({ method }) => method === 'tools/list').length
  t.equal(lists, 2, 'once more than without a gap')
})

t.test('gaps: the first is reported at once, then one report per half minute', async (t) => {
  let told = 0
  const timers: { ms: number; work: () => void }[] = []
  const clock = {
    now: () => 0,
    after(ms: number, work: () => void) {
      const timer = { ms, work }
      timers.push(timer)
      return () => void timers.splice(timers.indexOf(timer), 1)
    },
  }
  const pass = () => timers.shift()?.work()
  const gaps = new GapReporter(() => told++, clock)
  for (let i = 0; i < 5; i++) gaps.note()
  t.same([told, timers.map(({ ms }) => ms)], [1, [30_000]])
  pass()
  t.same([told, timers.length], [2, 1], 'changes in the meantime are reported at the end')
  pass()
  t.same([told, timers.length], [2, 0], 'without changes there is no report')
  gaps.note()
  gaps.note()
  gaps.close()
  t.same([told, timers.length], [3, 0], 'a closed stream reports nothing more')
})
