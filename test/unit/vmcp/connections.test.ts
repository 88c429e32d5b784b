/** A connection that announces list changes stays open as long as a client uses the lists. */
import { once } from 'node:events'
import t from 'tap'
import { makeEvents } from '../../../runtime/observe/index.ts'
import { makeDispatcher, silentLog } from '../../../runtime/net/index.ts'
import { Backend } from '../../../runtime/vmcp/backends/backend.ts'
import { Listings } from '../../../runtime/vmcp/catalog/listings.ts'
import { systemClock } from '../../../runtime/vmcp/model/time/clock.ts'
import { noAbilities } from '../../../runtime/vmcp/model/client.ts'
import { type RawBackendOptions, startRawBackend } from '../../helpers/mcp/raw-backend.ts'

t.setTimeout(120_000)

const NOBODY = { caller: undefined, headers: {} }
const IDLE_MS = 300_000

async function start(
  t: { teardown(work: () => unknown): void },
  options: Pick<RawBackendOptions, 'responses' | 'before'> = {},
) {
  const raw = await startRawBackend(options)
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
      events: makeEvents(),
      links: {
        listChanged: (_backend, _kind, scope) => void changes.push(scope.kind),
        announcementsLost: () => {},
        resourceUpdated: () => {},
        listener: (_backend, session) => session,
        eraChanged: () => {},
      },
      health: {
        monitor: {
          admit: () => {},
          admitCall: () => true,
          isAvailable: () => true,
          report: () => {},
          release: () => {},
        },
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
      backend.evict(IDLE_MS)
    },
  }
}

t.test(
  'connections: before a connection that announces changes closes, the lists are read once more',
  async (t) => {
    const { raw, changes, list, pass } = await start(t)
    await list()
    t.equal(raw.sessions.size, 1)
    pass(IDLE_MS + 1)
    t.same(changes, ['listing'], 'the lists are read once more')
    await list()
    pass(IDLE_MS - 1)
    pass(2)
    t.equal(raw.sessions.size, 1, 'the list was used again')
    t.same(changes, ['listing', 'listing'])
    const [stream] = raw.streams
    const closed = stream ? once(stream, 'close') : Promise.reject(new Error('no stream'))
    pass(1)
    await closed
    t.pass('the idle connection is closed')
  },
)

t.test(
  'connections: the number of client types is bounded, and the least recently used is dropped',
  async (t) => {
    const { raw, list, pass } = await start(t)
    for (let i = 0; i < 260; i++) {
      await list(`k${i}`)
      pass(1)
    }
    t.ok(raw.streams.size <= 257, `${raw.streams.size} streams`)
  },
)

const plainClient = {
  era: 'session' as const,
  protocolVersion: '2025-11-25',
  caller: { issuer: 'i', subject: 's', claims: {}, displayName: 's', key: 'k' },
  abilities: noAbilities,
  info: undefined,
  headers: {},
  session: undefined,
}

function makeListings(backend: Backend, onState = () => {}): Listings {
  return new Listings(backend, {
    events: makeEvents(),
    clock: systemClock,
    onRead: () => {},
    onState,
    onDropped: () => {},
  })
}

t.test('listings: a backend that becomes healthy during a failing read is read again', async (t) => {
  let isUp = false
  const { backend } = await start(t, {
    before(_req, res) {
      if (isUp) return false
      // A health check has just succeeded.
      listings.expire()
      res.writeHead(503).end()
      return true
    },
  })
  const listings = makeListings(backend, () => {
    if (listings.failureOf(plainClient)) isUp = true
  })
  const { tools } = await listings.get(plainClient, { waitForFresh: true })
  t.ok(tools.length > 0)
  listings.close()
})

for (const over of [false, true]) {
  const what = over ? 'nothing is read or opened for a session that is over' : 'the list is read once more'
  t.test(`listings: a connection that closes during a read: ${what}`, async (t) => {
    let reads = 0
    let onRead: (() => void) | undefined
    const first = new Promise<void>((resolve) => {
      onRead = resolve
    })
    const { raw, backend } = await start(t, {
      responses: {
        'tools/list': () => {
          if (++reads > 1) return '{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}'
          onRead?.()
          return new Promise(() => {})
        },
      },
    })
    const listings = makeListings(backend)
    const session = {
      id: 's1',
      isOver: false,
      deliver: () => {},
      ask: () => Promise.reject(new Error('nobody')),
    }
    const client = { ...plainClient, session }
    listings.fork({ kind: 'session', session, identity: '' })
    const reading = listings.get(client, { waitForFresh: true })
    await first
    session.isOver = over
    void backend.endSession(session, { end: false })
    if (over) {
      await t.rejects(reading, /closed/)
      t.equal(reads, 1)
      t.equal(raw.sessions.size, 1)
    } else {
      t.same(
        (await reading).tools.map(({ key }) => key),
        ['echo'],
      )
    }
    listings.close()
  })
}
