/**
 * Consoles of several replicas with a real Redis: all calls, including those of a replica that is gone, and an outage.
 */
import t from 'tap'
import { makeRecordStream } from '../../../runtime/store/index.ts'
import { startTestConsole, type TestConsole } from '../../helpers/console/console.ts'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { missingRedis, startRedis, until } from '../../helpers/redis.ts'

type Items = { id: string; name: string; payload: string }[]

const callsOf = async (console: TestConsole, query = '') =>
  (await console.api(`calls?limit=200${query}`)).json['items'] as Items

t.test(
  'calls of all replicas are shown, including a stopped and a new replica',
  { skip: missingRedis },
  async (t) => {
    const redis = await startRedis()
    const fixture = await startFixture()
    const start = () =>
      startTestConsole(
        { notes: fixture.url },
        {},
        { shared: makeRecordStream({ addr: redis.addr }, 'test:calls'), payloads: 'all' },
      )
    const [one, two] = await Promise.all([start(), start()])
    t.teardown(() => Promise.all([two.close(), fixture.close(), redis.stop()]))
    const call = (console: TestConsole, text: string) =>
      stateless(console.vmcp.url, 'tools/call', { name: 'notes_echo', arguments: { text } })

    const live = await two.events('stream?topics=calls')
    await call(one, 'first')
    await call(two, 'second')
    await live.next('calls')
    await until(async () => (await callsOf(two)).length === 2 && (await callsOf(one)).length === 2)
    const ids = (items: Items) => items.map(({ id }) => id).sort()
    t.same(ids(await callsOf(one)), ids(await callsOf(two)), 'both consoles show the same calls')
    t.match(await two.api('overview'), { json: { totals: { calls: 2 } } })

    const replica = String((await two.api('me')).json['replica'])
    const other = (await callsOf(two)).find(({ id }) => !id.startsWith(replica))
    t.equal(other?.payload, 'elsewhere', 'payloads stay on their replica')
    t.match(await two.api(`calls/${other?.id ?? ''}`), { status: 200, json: { name: 'notes_echo' } })
    t.match(await two.api(`calls/${other?.id ?? ''}/payload`), {
      status: 409,
      json: { code: 'WRONG_REPLICA' },
    })

    const page = (await two.api('calls?limit=1')).json
    const next = (await two.api(`calls?limit=1&cursor=${String(page['next'])}`)).json['items'] as Items
    t.not(next[0]?.id, (page['items'] as Items)[0]?.id, 'paging works across replicas')

    await one.close()
    t.equal((await callsOf(two)).length, 2, 'calls of a stopped replica are kept')
    const three = await start()
    t.teardown(() => three.close())
    await until(async () => (await callsOf(three)).length === 2)
    t.pass('a new one reads what was before it')
  },
)

t.test(
  'without Redis calls continue, and are shared again once it is back',
  { skip: missingRedis },
  async (t) => {
    const first = await startRedis()
    const fixture = await startFixture()
    const start = () =>
      startTestConsole(
        { notes: fixture.url },
        {},
        { shared: makeRecordStream({ addr: first.addr }, 'test:calls') },
      )
    const [one, two] = await Promise.all([start(), start()])
    const call = () => stateless(one.vmcp.url, 'tools/call', { name: 'notes_echo', arguments: { text: 'x' } })
    await call()
    await until(async () => (await callsOf(two)).length === 1)
    await first.stop()
    t.match(await call(), { status: 200 }, 'no call waits for Redis')
    t.equal((await callsOf(one)).length, 2)
    const port = Number(first.addr.split(':')[1])
    const second = await startRedis({ port })
    t.teardown(() => Promise.all([one.close(), two.close(), fixture.close(), second.stop()]))
    await until(async () => {
      await call()
      return (await callsOf(two)).length > 1
    })
    t.pass('shared again')
  },
)
