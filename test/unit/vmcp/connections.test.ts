/** Connections over which changes of lists are announced stay as long as somebody looks at the lists. */
import { once } from 'node:events'
import t from 'tap'
import { makeDispatcher, silentLog } from '../../../runtime/net/index.ts'
import { Backend } from '../../../runtime/vmcp/backends/backend.ts'
import { startRawBackend } from '../../helpers/raw-backend.ts'

t.setTimeout(120_000)

const NOBODY = { caller: undefined, headers: {} }
const IDLE_MS = 300_000

async function start(t: { teardown(work: () => unknown): void }) {
  const raw = await startRawBackend()
  const dispatcher = makeDispatcher()
  const changes: string[] = []
  let now = 0
  const backend = new Backend(
    {
      name: 'raw',
      transport: 'streamable-http',
      target: {
        url: new URL(raw.url),
        dispatcher,
        credentials: { apply: () => undefined, refused: () => false },
        headers: {},
      },
      timeoutMs: 10_000,
      perCaller: false,
      fingerprint: '',
      authType: 'unauthenticated',
    },
    {
      events: {
        listChanged: (_backend, _kind, scope) => void changes.push(scope.kind),
        resourceUpdated: () => {},
        admit: () => {},
        outcome: () => {},
        released: () => {},
        reclassified: () => {},
      },
      info: '{"name":"test","version":"1"}',
      log: silentLog,
      now: () => now,
    },
  )
  t.teardown(async () => {
    await backend.close()
    await dispatcher.destroy()
    await raw.close()
  })
  const list = (key = 'k') =>
    backend.listing(key, undefined, Buffer.from('{}'), NOBODY, AbortSignal.timeout(10_000))
  return {
    raw,
    backend,
    changes,
    list,
    pass(ms: number) {
      now += ms
      backend.sweep(IDLE_MS)
    },
  }
}

t.test(
  'connections: before one goes on which changes are announced, the lists are read once more',
  async (t) => {
    const { raw, changes, list, pass } = await start(t)
    await list()
    t.equal(raw.sessions.size, 1)
    pass(IDLE_MS + 1)
    t.same(changes, ['listing'], 'whoever looks at them is asked')
    await list()
    pass(IDLE_MS - 1)
    pass(2)
    t.equal(raw.sessions.size, 1, 'somebody does')
    t.same(changes, ['listing', 'listing'])
    const [stream] = raw.streams
    const closed = stream ? once(stream, 'close') : Promise.reject(new Error('no stream'))
    pass(1)
    await closed
    t.pass('nobody does')
  },
)

t.test('connections: kinds of clients are bounded, the one not used for longest makes room', async (t) => {
  const { raw, list, pass } = await start(t)
  for (let i = 0; i < 260; i++) {
    await list(`k${i}`)
    pass(1)
  }
  t.ok(raw.streams.size <= 257, `${raw.streams.size} streams`)
})
