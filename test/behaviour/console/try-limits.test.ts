/** Limits on console memory: a page that does not read, endless questions, tries that no page reads. */
import { request } from 'node:http'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { startTestConsole, type TestConsole } from '../../helpers/console/console.ts'
import { startRawBackend, type RawAnswer, textResult } from '../../helpers/mcp/raw-backend.ts'
import { until } from '../../helpers/redis.ts'

async function rig(t: Test, answer: RawAnswer): Promise<TestConsole> {
  const backend = await startRawBackend({ responses: { 'tools/call': answer } })
  const console = await startTestConsole({ b: backend.url })
  t.teardown(() => Promise.all([console.close(), backend.close()]))
  return console
}

async function start(console: TestConsole): Promise<string> {
  const body = { name: 'b_echo', arguments: '{}', era: '2025-11-25' }
  return String((await console.api('tries', { method: 'POST', body })).json['id'])
}

const event = (message: string): string => `event: message\ndata: ${message}\n\n`

t.test('a page that does not read delays no call and uses no extra memory', async (t) => {
  const lines = 6_000
  const text = 'x'.repeat(4_000)
  const console = await rig(t, async ({ id, res }) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    for (let i = 0; i < lines; i++) {
      const params = JSON.stringify({ level: 'info', data: `${i} ${text}` })
      if (!res.write(event(`{"jsonrpc":"2.0","method":"notifications/message","params":${params}}`)))
        await once(res, 'drain')
    }
    res.end(event(`{"jsonrpc":"2.0","id":${id},"result":${textResult('at last')}}`))
    return undefined
  })
  const id = await start(console)
  const req = request(`${console.url}api/v1/tries/${id}/events`, {
    headers: { 'x-gatehouse-launch': console.token },
  }).end()
  const [res] = (await once(req, 'response')) as [import('node:http').IncomingMessage]
  res.pause()
  await until(async () => ((await console.api('calls')).json['items'] as unknown[]).length > 0)
  let received = ''
  res
    .setEncoding('utf8')
    .on('data', (chunk: string) => (received += chunk))
    .resume()
  await once(res, 'end')
  const logged = received.split('event: log').length - 1
  t.ok(logged < lines / 2, `${logged} of ${lines} lines were held`)
  t.match(received, /event: done\ndata: .*at last/)
})

t.test('finished tries that no page has read are dropped to make space', async (t) => {
  const console = await rig(t, () => textResult('quick'))
  const ids: string[] = []
  for (let i = 0; i < 70; i++) {
    ids.push(await start(console))
    await until(async () => ((await console.api('calls?limit=200')).json['items'] as unknown[]).length > i)
  }
  t.notOk(ids.includes('undefined'), 'unread tries do not fill the table')
  const last = await console.events(`tries/${ids.at(-1) ?? ''}/events`)
  t.match((await last.next('done')).data, { outcome: 'success' })
  t.equal((await console.events(`tries/${ids[0] ?? ''}/events`)).status, 404)
})

t.test('a try can be read by one page only', async (t) => {
  const console = await rig(t, () => new Promise(() => {}))
  const id = await start(console)
  const first = await console.events(`tries/${id}/events`)
  t.match(await console.api(`tries/${id}/events`), { status: 409, json: { code: 'TRY_IS_READ' } })
  await console.api(`tries/${id}`, { method: 'DELETE' })
  t.match((await first.next('done')).data, { outcome: 'cancelled' }, 'the first reader continues')
})
