/**
 * Overload protection: which requests wait, their order, and which are rejected; with the test's own clock and turns.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import t from 'tap'
import { type Caller, Exchange, localIssuer, makeCaller } from '../../../runtime/net/index.ts'
import { LoadControl, type LoadOptions } from '../../../runtime/net/load/load.ts'
import { trackOverload } from '../../../runtime/net/load/track-overload.ts'

interface Asked {
  readonly caller?: Caller
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: string
  readonly body?: Buffer
}

/** A load whose event loop turns end under the test's control. */
class Rig {
  now = 0
  refused = 0
  readonly began: string[] = []
  readonly load: LoadControl
  #work: (() => void) | undefined

  constructor(limits: LoadOptions['limits'] = {}) {
    this.load = new LoadControl({
      limits: { alwaysAdmitted: 0, turnMs: 1, ...limits },
      now: () => this.now,
      afterTurn: (work) => {
        this.#work = work
      },
      onRejected: () => this.refused++,
    })
  }

  exchange({ caller, headers = {}, method = 'POST', body }: Asked = {}): Exchange {
    const req = { url: '/mcp', method, headers, socket: { remoteAddress: '127.0.0.1' } }
    const exchange = new Exchange(req as unknown as IncomingMessage, {} as ServerResponse)
    Object.defineProperty(exchange, 'startedAt', { value: this.now })
    if (caller) exchange.caller = caller
    if (body) exchange.body = body
    return exchange
  }

  /** Passes both stages. Returns the error code of a rejection; otherwise adds the name to `began`. */
  async take(name: string, asked: Asked = {}): Promise<string> {
    const exchange = this.exchange(asked)
    try {
      await this.load.admit(exchange)
      await this.load.turn(exchange)
      this.began.push(name)
      return 'began'
    } catch (error) {
      return (error as { code: string }).code
    }
  }

  /** Ends the turn of the event loop after this time. */
  async endTurn(ms: number): Promise<void> {
    this.now += ms
    const work = this.#work
    this.#work = undefined
    work?.()
    await new Promise(setImmediate)
  }

  get turnIsOpen(): boolean {
    return this.#work !== undefined
  }
}

function named(subject: string): Caller {
  return makeCaller({ issuer: 'https://issuer.example', subject, claims: {} })
}

t.test('without load, no request waits', async (t) => {
  const rig = new Rig()
  t.equal(rig.load.admit(rig.exchange()), undefined)
  t.equal(rig.load.turn(rig.exchange()), undefined, 'no promise, so that the hot path creates none')
  t.equal(rig.load.waiting, 0)
  await rig.endTurn(0.1)
  t.equal(rig.turnIsOpen, false, 'nothing runs while nothing is to do')
})

t.test('requests beyond the time of one turn continue in the next turns, oldest first', async (t) => {
  const rig = new Rig()
  const results = Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => rig.take(name)))
  await new Promise(setImmediate)
  t.same(rig.began, ['a', 'b'], 'two requests of half a millisecond')
  t.equal(rig.load.waiting, 3)
  await rig.endTurn(1)
  t.same(rig.began, ['a', 'b', 'c', 'd'])
  await rig.endTurn(1)
  t.same(rig.began, ['a', 'b', 'c', 'd', 'e'])
  await results
})

t.test(
  'callers take turns: a hundred waiting requests of one caller delay another caller by one request',
  async (t) => {
    const rig = new Rig()
    const all = Array.from({ length: 100 }, (_, i) => rig.take(`many ${i}`, { caller: named('many') }))
    all.push(rig.take('few 0', { caller: named('few') }), rig.take('few 1', { caller: named('few') }))
    await new Promise(setImmediate)
    await rig.endTurn(1)
    await rig.endTurn(1)
    t.same(rig.began.slice(2), ['many 2', 'few 0', 'many 3', 'few 1'])
    while (rig.load.waiting > 0) await rig.endTurn(1)
    t.equal((await Promise.all(all)).filter((result) => result !== 'began').length, 0, 'no request is lost')
  },
)

t.test('anonymous callers are distinguished by session, otherwise by address', async (t) => {
  const rig = new Rig()
  const anonymous = makeCaller({ issuer: localIssuer, subject: 'anonymous', claims: {} })
  const session = (id: string): Asked => ({ caller: anonymous, headers: { 'mcp-session-id': id } })
  const all = Array.from({ length: 10 }, (_, i) => rig.take(`many ${i}`, session('one')))
  all.push(rig.take('few', session('other')), rig.take('none', { caller: anonymous }))
  await new Promise(setImmediate)
  await rig.endTurn(1)
  t.same(rig.began.slice(2), ['many 2', 'few'])
  await rig.endTurn(1)
  t.same(rig.began.slice(4), ['none', 'many 3'])
  while (rig.load.waiting > 0) await rig.endTurn(1)
  await Promise.all(all)
})

t.test('only POST requests wait: streams and the end of sessions are not counted', async (t) => {
  const rig = new Rig()
  void Promise.all(Array.from({ length: 50 }, (_, i) => rig.take(`call ${i}`)))
  t.equal(await rig.take('stream', { method: 'GET' }), 'began')
  t.equal(await rig.take('end', { method: 'DELETE' }), 'began')
})

t.test(
  'a request that would wait too long is rejected before its body, and other callers are not affected',
  async (t) => {
    const rig = new Rig({ burstMs: 20, standingMs: 10, rejectionsPerStart: 100 })
    const many = { caller: named('many'), headers: { authorization: 'Bearer many' } }
    const few = { caller: named('few'), headers: { authorization: 'Bearer few' } }
    const results = Array.from({ length: 60 }, (_, i) => rig.take(`many ${i}`, many))
    await new Promise(setImmediate)
    t.equal(rig.load.waiting, 41, 'more than forty requests of half a millisecond would wait more than 20 ms')
    t.equal(rig.refused, 17)
    t.throws(() => rig.load.admit(rig.exchange({ headers: many.headers })), {
      code: 'OVERLOADED',
      status: 503,
      headers: { 'retry-after': /^[123]$/ },
    })
    const other = rig.take('few', few)
    await new Promise(setImmediate)
    await rig.endTurn(1)
    t.equal(await other, 'began')
    while (rig.load.waiting > 0) await rig.endTurn(0.1)
    const codes = await Promise.all(results)
    t.equal(codes.filter((code) => code === 'began').length, 43)
    t.equal(await rig.take('again', many), 'began', 'at once again when the queue is empty')
  },
)

t.test('a caller whose requests always wait may have fewer waiting requests than in a burst', async (t) => {
  const rig = new Rig({ burstMs: 20, standingMs: 10 })
  const codes: string[] = []
  const fill = async (): Promise<void> => {
    for (let i = 0; i < 30; i++)
      void rig.take('x', { caller: named('many') }).then((code) => codes.push(code))
    await new Promise(setImmediate)
  }
  await fill()
  t.equal(rig.refused, 0, 'a burst of 15 ms is accepted')
  for (let turn = 0; turn < 30; turn++) {
    await rig.endTurn(1)
    void rig.take('x', { caller: named('many') })
    void rig.take('x', { caller: named('many') })
  }
  t.equal(rig.refused > 0, true, 'not for long')
  t.ok(rig.load.waiting * 0.5 <= 10.5, `and fewer requests wait: ${rig.load.waiting}`)
})

t.test('a request that has waited too long is rejected at its turn', async (t) => {
  const rig = new Rig({ burstMs: 20, standingMs: 10 })
  const results = Array.from({ length: 6 }, (_, i) => rig.take(`call ${i}`))
  await new Promise(setImmediate)
  await rig.endTurn(1)
  await rig.endTurn(30)
  t.same(await Promise.all(results), ['began', 'began', 'began', 'began', 'OVERLOADED', 'OVERLOADED'])
})

t.test('rejections have a share of each turn, and further ones wait', async (t) => {
  const rig = new Rig({ burstMs: 1, standingMs: 1, rejectionsPerStart: 2 })
  const results = Array.from({ length: 30 }, (_, i) => rig.take(`call ${i}`))
  let told = 0
  for (const result of results) void result.then((code) => (told += Number(code === 'OVERLOADED')))
  await new Promise(setImmediate)
  const perTurn = 4
  t.equal(told, perTurn)
  await rig.endTurn(1)
  t.equal(told, 2 * perTurn)
  while (rig.turnIsOpen) await rig.endTurn(0.5)
  t.equal(told + rig.began.length, 30)
})

t.test('memory is bounded: waiting requests, their bodies, and waiting rejections', async (t) => {
  const full = { burstMs: 1e6, standingMs: 1e6, rejectionsPerStart: 1, maxPendingRejections: 3 }
  const byCount = new Rig({ ...full, maxWaiting: 5 })
  const codes: string[] = []
  for (let i = 0; i < 20; i++) void byCount.take('x').then((code) => codes.push(code))
  await new Promise(setImmediate)
  t.equal(byCount.load.waiting, 5)
  t.equal(codes.filter((code) => code === 'OVERLOADED').length, 10, 'thirteen rejected, of which three wait')
  const byBytes = new Rig({ ...full, maxWaitingBytes: 1_000 })
  for (let i = 0; i < 20; i++) void byBytes.take('x', { body: Buffer.alloc(300) })
  await new Promise(setImmediate)
  t.equal(byBytes.load.waiting, 3)
})

t.test('after a very long turn, late requests of the next turn are rejected for every caller', async (t) => {
  const rig = new Rig({ alwaysAdmitted: 2 })
  await rig.take('a')
  await rig.endTurn(300)
  t.equal(await rig.take('b'), 'began')
  rig.now += 300
  t.equal(await rig.take('c', { method: 'GET' }), 'began', 'always admitted')
  t.equal(await rig.take('d', { method: 'GET' }), 'OVERLOADED')
  await rig.endTurn(0)
  await rig.endTurn(1)
  t.equal(await rig.take('e'), 'began')
})

t.test('a few requests may wait for any time', async (t) => {
  const rig = new Rig({ alwaysAdmitted: 8, burstMs: 5, standingMs: 5 })
  const codes = Array.from({ length: 8 }, (_, i) => rig.take(String(i)))
  for (let turn = 0; turn < 8; turn++) await rig.endTurn(100)
  t.strictSame(
    await Promise.all(codes),
    Array.from({ length: 8 }, () => 'began'),
  )
  t.equal(rig.refused, 0)
})

t.test('long credentials that differ at their end are different callers', async (t) => {
  const rig = new Rig({ turnMs: 0.5 })
  const asked = (end: string): Asked => ({ headers: { authorization: `Bearer ${'x'.repeat(9_000)}${end}` } })
  for (let i = 0; i < 4; i++) void rig.take(`a${i}`, asked('a'))
  void rig.take('b', asked('b'))
  for (let turn = 0; turn < 8; turn++) await rig.endTurn(0.5)
  t.strictSame(rig.began, ['a0', 'a1', 'b', 'a2', 'a3'])
})

t.test('a process that needs longer for each request starts fewer per turn', async (t) => {
  const rig = new Rig({ burstMs: 1e6, standingMs: 1e6 })
  void Promise.all(Array.from({ length: 3_000 }, (_, i) => rig.take(String(i))))
  await new Promise(setImmediate)
  // Each request really takes 0.1 ms, so a turn of a millisecond fits ten.
  for (let turn = 0; turn < 200; turn++) await rig.endTurn((await begunIn(rig)) * 0.1)
  t.ok((await begunIn(rig)) >= 9, 'more, when each takes less')
})

let before = 0
async function begunIn(rig: Rig): Promise<number> {
  const count = rig.began.length - before
  before = rig.began.length
  return Math.max(1, count)
}

t.test('a series of rejections is reported at its start and at its end', async (t) => {
  const told: unknown[] = []
  let work: (() => void) | undefined
  const note = trackOverload(
    (overload) => told.push(overload),
    (_ms, next) => {
      work = next
    },
  )
  for (let i = 0; i < 100; i++) note()
  t.same(told, [{ isOn: true, rejected: 1 }])
  work?.()
  note()
  work?.()
  t.equal(told.length, 1, 'the same series continues')
  work?.()
  t.same(told[1], { isOn: false, rejected: 101 })
  note()
  t.same(told[2], { isOn: true, rejected: 1 }, 'the next series is reported again')
})
