import t from 'tap'
import { OpenStreams } from '../../../runtime/incoming/open-streams.ts'
import { type Caller, makeCaller } from '../../../runtime/net/index.ts'

function callerUntil(exp: number | undefined, subject = 'ada'): Caller {
  return makeCaller({ issuer: 'https://issuer.example', subject, claims: exp === undefined ? {} : { exp } })
}

function setup(isLive?: (caller: Caller) => Promise<boolean>) {
  let now = 1_000_000
  const streams = new OpenStreams({ now: () => now, isLive })
  const ended: string[] = []
  return {
    streams,
    ended,
    open: (name: string, caller: Caller) => streams.add(caller, () => ended.push(name)),
    /** Advances the clock by seconds, with a sweep after each. */
    async pass(seconds: number) {
      for (let i = 0; i < seconds; i++) {
        now += 1_000
        await streams.sweep()
      }
    },
  }
}

t.test('a stream ends when its token expires, and no other stream ends', async (t) => {
  const { streams, ended, open, pass } = setup()
  open('short', callerUntil(1_010))
  open('long', callerUntil(1_100))
  open('unlimited', callerUntil(undefined))
  const close = open('closed', callerUntil(1_010))
  close()
  await pass(9)
  t.same(ended, [])
  await pass(1)
  t.same(ended, ['short'])
  t.equal(streams.size, 1, 'a token without an end needs no place')
  await pass(90)
  t.same(ended, ['short', 'long'])
  t.equal(streams.size, 0)
})

t.test('an expired token within the clock tolerance keeps its stream until the tolerance ends', async (t) => {
  const { ended, open, pass } = setup()
  open('late', callerUntil(999))
  await pass(58)
  t.same(ended, [])
  await pass(1)
  t.same(ended, ['late'])
})

t.test('streams end within 10 s of a revocation, and each grant is checked once', async (t) => {
  const revoked = new Set<string>()
  const asked: string[] = []
  const { ended, open, pass } = setup(async ({ subject }) => {
    asked.push(subject)
    return !revoked.has(subject)
  })
  const ada = callerUntil(9_999, 'ada')
  open('a1', ada)
  open('a2', ada)
  open('b', callerUntil(undefined, 'bob'))
  await pass(3)
  t.same(asked, ['ada', 'bob'])
  revoked.add('ada')
  await pass(3)
  t.same(ended, ['a1', 'a2'])
  await pass(30)
  t.same(ended, ['a1', 'a2'])
})

t.test('grants that cannot be checked: their streams continue for 10 s, and then end', async (t) => {
  let isDown = true
  let asked = 0
  const { ended, open, pass } = setup(async () => {
    asked++
    if (isDown) throw new Error('down')
    return true
  })
  for (let i = 0; i < 100; i++) open(`s${i}`, callerUntil(9_999, `user-${i}`))
  await pass(6)
  t.ok(asked <= 64, 'an unavailable store does not get a request for every stream')
  isDown = false
  await pass(6)
  t.same(ended, [])
  isDown = true
  await pass(12)
  t.equal(ended.length, 100)
})

t.test('a slow check is not started twice', async (t) => {
  const revoked = Promise.withResolvers<boolean>()
  let asked = 0
  const { ended, open, streams } = setup(() => {
    asked++
    return revoked.promise
  })
  open('a', callerUntil(9_999))
  const sweeps = Array.from({ length: 9 }, () => streams.sweep())
  t.equal(asked, 1)
  revoked.resolve(false)
  await Promise.all(sweeps)
  t.same(ended, ['a'])
})

t.test('a check without a response does not keep a stream open', async (t) => {
  const { ended, open, pass, streams } = setup(() => new Promise<boolean>(() => {}))
  open('a', callerUntil(9_999))
  const sweeps = [pass(3)]
  for (let i = 0; i < 12; i++) sweeps.push(pass(1))
  void Promise.all(sweeps)
  t.same(ended, ['a'])
  t.equal(streams.size, 0)
})

t.test('a grant that cannot be checked does not end other streams', async (t) => {
  const { ended, open, pass } = setup(async ({ subject }) => {
    if (subject.startsWith('lost')) throw new Error('this part of the store is down')
    return true
  })
  for (let i = 0; i < 40; i++) open(`lost-${i}`, callerUntil(9_999, `lost-${i}`))
  open('good', callerUntil(9_999, 'good'))
  await pass(30)
  t.equal(ended.length, 40)
  t.notOk(ended.includes('good'))
})

t.test('close ends all streams', async (t) => {
  const { streams, ended, open } = setup(async () => true)
  open('a', callerUntil(9_999))
  open('b', callerUntil(undefined))
  streams.close()
  t.same(ended, ['a', 'b'])
  t.equal(streams.size, 0)
})
