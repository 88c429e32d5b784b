import t from 'tap'
import { clusterEventWriter, eventObject, eventSink } from '../../../../hooks/server/events.ts'
import type { KubeObject } from '../../../../hooks/index.ts'
import { kubeMissing, startKubeApiserver } from '../../../helpers/kube/apiserver.ts'

const parent = (generation: number, name = 'door') => ({
  apiVersion: 'gatehouse.dev/v1beta1',
  kind: 'VirtualMCPServer',
  metadata: { name, namespace: 'team', uid: 'u', generation },
})
const event = (generation = 1) => ({
  parent: parent(generation),
  type: 'Warning' as const,
  reason: 'R',
  message: 'm',
})
const now = () => new Date('2026-01-01T00:00:00.789Z')
const silent = () => {}

t.test(
  'event: the name consists of parent, reason and generation, so that a replay creates no second event',
  async (t) => {
    const first = eventObject(event(), now)
    t.strictSame(first.metadata, eventObject(event(), () => new Date()).metadata)
    t.not(first.metadata.name, eventObject(event(2), now).metadata.name)
    t.match(first, {
      apiVersion: 'v1',
      kind: 'Event',
      involvedObject: { kind: 'VirtualMCPServer', name: 'door', namespace: 'team', uid: 'u' },
      type: 'Warning',
      reason: 'R',
      firstTimestamp: '2026-01-01T00:00:00Z',
    })
    t.ok(
      eventObject({ ...event(), parent: parent(1, `${'x'.repeat(229)}.${'y'.repeat(20)}`) }, now).metadata
        .name.length <= 253,
    )
  },
)

t.test('event: written once per server, and again only after a failure', async (t) => {
  const written: string[] = []
  let fails = true
  let settled = Promise.resolve()
  const sink = eventSink(
    (object: KubeObject) => {
      written.push(object.metadata.name)
      const result = fails ? Promise.reject(new Error('down')) : Promise.resolve()
      settled = result.catch(() => {})
      return result
    },
    silent,
    now,
  )
  sink.emit(event())
  await settled
  await new Promise(setImmediate)
  fails = false
  sink.emit(event())
  sink.emit(event())
  await settled
  t.equal(written.length, 2)
  sink.emit(event(2))
  t.equal(written.length, 3)
})

t.test(
  'event: a problem that persists or returns is written again after the API server has dropped the event',
  async (t) => {
    let minute = 0
    const written: number[] = []
    const sink = eventSink(
      async () => {
        written.push(minute)
      },
      silent,
      () => new Date(minute * 60_000),
    )
    for (; minute <= 140; minute += 5) sink.emit(event())
    t.strictSame(written, [0, 65, 130])
  },
)

t.test('event: a burst of thousands waits for a slow API server and is bounded', async (t) => {
  const ends: (() => void)[] = []
  let most = 0
  let done = 0
  const logged: unknown[] = []
  const sink = eventSink(
    () =>
      new Promise((resolve) => {
        ends.push(() => {
          done += 1
          resolve()
        })
        most = Math.max(most, ends.length)
      }),
    (_level, message, fields) => logged.push([message, fields]),
    now,
  )
  const all = () => {
    for (let at = 0; at < 3_000; at += 1) sink.emit({ ...event(), message: `m${at}` })
  }
  const drain = async () => {
    for (let end = ends.shift(); end; end = ends.shift()) {
      end()
      await new Promise(setImmediate)
    }
  }
  all()
  await drain()
  t.equal(most, 16)
  t.equal(done, 1_016)
  t.strictSame(logged, [['too many events at once; some were delayed', { count: 1_984 }]])
  all()
  await drain()
  t.equal(done, 2_032, 'the deferred ones are written with the next syncs')
})

t.test(
  'event: a real API server accepts it, and a replay by another server changes nothing',
  { skip: kubeMissing() },
  async (t) => {
    const server = await startKubeApiserver(t)
    server.must(['create', 'namespace', 'team'])
    const write = await clusterEventWriter(server.kubeconfig)
    const object = eventObject(event(), now)
    await write(object)
    await write({ ...object, message: 'again' })
    const { items } = server.get(['events', '-n', 'team']) as { items: Record<string, unknown>[] }
    t.equal(items.length, 1)
    t.match(items[0], {
      type: 'Warning',
      reason: 'R',
      message: 'm',
      involvedObject: { kind: 'VirtualMCPServer', name: 'door' },
    })
    await t.rejects(
      write({ ...object, metadata: { name: 'x', namespace: 'elsewhere' } }),
      'a namespace that does not exist',
    )

    const told = Promise.withResolvers<unknown>()
    const elsewhere = {
      ...event(),
      parent: { ...parent(1), metadata: { name: 'x', namespace: 'elsewhere' } },
    }
    eventSink(write, (_level, _message, fields) => told.resolve(fields), now).emit(elsewhere)
    t.match(await told.promise, { object: /^elsewhere\//, err: 'the API server answered 404' })
  },
)
