/** The pool of workers: running, waiting and parked scripts. */
import { once } from 'node:events'
import { mock } from 'node:test'
import t from 'tap'
import { localIssuer, makeCaller } from '../../../../runtime/net/index.ts'
import { type ClientSession, callerOf } from '../../../../runtime/vmcp/model/session.ts'
import { type PoolOptions, WorkerPool } from '../../../../runtime/process/index.ts'
import { scriptWorker } from '../../../../runtime/vmcp/features/scripts/feature.ts'

const SMALL: PoolOptions = {
  tasks: 'scripts',
  maxWorkers: 2,
  maxPerCaller: 2,
  maxWaiting: 2,
  maxParked: 2,
  maxParkedPerCaller: 1,
  maxParkedBytes: 100,
  maxIdle: 1,
  idleMs: 60_000,
  heapMb: 32,
}
const never = new AbortController().signal

t.test(
  'pool: the caller with the fewest workers is next, waiting can be aborted, and the queue is bounded',
  async (t) => {
    const pool = new WorkerPool(scriptWorker, SMALL)
    t.teardown(() => pool.close())
    const [a1, a2] = await Promise.all([pool.take('a', never), pool.take('a', never)])
    const order: string[] = []
    const stop = new AbortController()
    const impatient = pool.take('a', stop.signal)
    const a3 = pool.take('b', never).then((lease) => {
      order.push('b')
      return lease
    })
    await t.rejects(pool.take('c', never), { code: 'RATE_LIMITED' })
    stop.abort(new Error('enough'))
    await t.rejects(impatient, { message: 'enough' })
    const a4 = pool.take('a', never).then((lease) => {
      order.push('a')
      return lease
    })
    a1.end({ usable: true })
    const b = await a3
    t.same(order, ['b'], 'the caller with nothing in flight')
    t.equal(b.worker, a1.worker, 'a usable worker is used again')
    a2.end({ usable: false })
    const again = await a4
    t.not(again.worker, a2.worker, 'an ended worker is not')
    for (const lease of [b, again]) lease.end({ usable: true })
  },
)

t.test('pool: one caller cannot take all workers', async (t) => {
  const pool = new WorkerPool(scriptWorker, { ...SMALL, maxPerCaller: 1 })
  t.teardown(() => pool.close())
  const first = await pool.take('a', never)
  const waits = pool.take('a', never)
  const other = await pool.take('b', never)
  first.end({ usable: true })
  const second = await waits
  second.end({ usable: true })
  other.end({ usable: true })
  t.pass('the second of the same caller had to wait')
})

t.test('pool: an idle worker is ended, and the next script gets a new one', async (t) => {
  const pool = new WorkerPool(scriptWorker, { ...SMALL, idleMs: 1 })
  t.teardown(() => pool.close())
  const first = await pool.take('a', never)
  const ended = once(first.worker, 'exit')
  first.end({ usable: true })
  // Neither the worker nor its timer keeps the process alive.
  const alive = setInterval(() => {}, 1_000)
  await ended
  clearInterval(alive)
  const next = await pool.take('a', never)
  t.not(next.worker, first.worker)
  next.end({ usable: true })
})

t.test('pool: a worker whose idle time has expired is not assigned while it ends', async (t) => {
  const pool = new WorkerPool(scriptWorker, SMALL)
  t.teardown(() => pool.close())
  const first = await pool.take('a', never)
  await once(first.worker, 'online')
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  first.end({ usable: true })
  mock.timers.tick(SMALL.idleMs)
  const next = await pool.take('a', never)
  t.not(next.worker, first.worker)
  next.end({ usable: true })
})

t.test(
  'pool: a script that waits for a user releases its slot, and returns before waiting scripts',
  async (t) => {
    const pool = new WorkerPool(scriptWorker, { ...SMALL, maxWorkers: 1, maxPerCaller: 1 })
    t.teardown(() => pool.close())
    const first = await pool.take('a', never)
    first.park(10)
    const second = await pool.take('b', never)
    const order: string[] = []
    const third = pool.take('c', never).then((lease) => {
      order.push('c')
      return lease
    })
    const back = first.resume(never).then(() => order.push('a'))
    second.end({ usable: true })
    await back
    first.end({ usable: true })
    ;(await third).end({ usable: true })
    t.same(order, ['a', 'c'])
  },
)

t.test('pool: parked scripts are bounded in number, per caller, and in bytes', async (t) => {
  const pool = new WorkerPool(scriptWorker, SMALL)
  t.teardown(() => pool.close())
  const a = await pool.take('a', never)
  a.park(60)
  const more = await pool.take('a', never)
  t.throws(() => more.park(1), { code: 'RATE_LIMITED' }, 'the second one of a caller')
  const b = await pool.take('b', never)
  t.throws(() => b.park(41), { code: 'RATE_LIMITED' }, 'too many bytes')
  b.park(40)
  const c = await pool.take('c', never)
  t.throws(() => c.park(0), { code: 'RATE_LIMITED' }, 'too many')
  a.end({ usable: false })
  c.park(0)
  for (const lease of [b, c, more]) lease.end({ usable: true })
  const [x, y] = await Promise.all([pool.take('x', never), pool.take('y', never)])
  x.end({ usable: true })
  y.end({ usable: true })
  t.pass('every slot is free again')
})

t.test('pool: a script that ends while it waits to return leaves nothing behind', async (t) => {
  const pool = new WorkerPool(scriptWorker, { ...SMALL, maxWorkers: 1, maxPerCaller: 1 })
  t.teardown(() => pool.close())
  const first = await pool.take('a', never)
  first.park(10)
  const second = await pool.take('b', never)
  const stop = new AbortController()
  const [back, late] = [first.resume(stop.signal), first.resume(never)]
  stop.abort(new Error('over'))
  await t.rejects(back, { message: 'over' })
  first.end({ usable: false })
  second.end({ usable: true })
  await late
  ;(await pool.take('c', never)).end({ usable: true })
})

t.test('pool: in a full queue, the caller with the most waiting scripts is rejected', async (t) => {
  const pool = new WorkerPool(scriptWorker, { ...SMALL, maxWorkers: 1, maxPerCaller: 1, maxWaiting: 3 })
  t.teardown(() => pool.close())
  const first = await pool.take('x', never)
  const greedy = [1, 2, 3].map(() => pool.take('greedy', never).then((lease) => lease.end({ usable: true })))
  const other = pool.take('other', never).then((lease) => lease.end({ usable: true }))
  await t.rejects(
    greedy[2] ?? Promise.resolve(),
    { code: 'RATE_LIMITED' },
    'the newest request of the greedy caller',
  )
  await t.rejects(pool.take('greedy', never), { code: 'RATE_LIMITED' })
  first.end({ usable: true })
  await Promise.all([other, greedy[0], greedy[1]])
})

t.test('callers: anonymous callers are distinguished by session', async (t) => {
  const anonymous = makeCaller({ issuer: localIssuer, subject: 'anonymous', claims: {} })
  const ada = makeCaller({ issuer: 'https://idp.example', subject: 'ada', claims: {} })
  const session = (id: string): ClientSession => ({
    id,
    deliver() {},
    ask: () => Promise.reject(new Error('no')),
  })
  const key = (caller: typeof ada, id?: string) =>
    callerOf({ caller, session: id === undefined ? undefined : session(id) })
  t.not(key(anonymous, '1'), key(anonymous, '2'))
  t.equal(key(anonymous), key(anonymous))
  t.equal(key(ada, '1'), key(ada, '2'), 'a user has one share for all sessions')
})
