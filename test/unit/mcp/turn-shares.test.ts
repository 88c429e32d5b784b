import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { inTurns, TurnQueue, type TurnWork } from '../../../runtime/mcp/index.ts'

const stepMs = 2
/**
 * Maximum time of a turn: the limit for arriving work plus the limit for waiting work, each exceeded by at most one
 * step.
 */
const mostMs = 2 * (5 + stepMs)

/** Starts a clock that only work advances, and records the longest turn. */
async function workClock(t: Test): Promise<{ work: () => void; longestTurnMs: () => Promise<number> }> {
  // The turn that changes the clocks is not measured.
  await setImmediate()
  let now = performance.now()
  let turnBegan = now
  let longest = 0
  const watching = new AbortController()
  t.capture(performance, 'now', () => now)
  const watch = async (): Promise<void> => {
    while (!watching.signal.aborted) {
      await setImmediate()
      longest = Math.max(longest, now - turnBegan)
      turnBegan = now
    }
  }
  const watched = watch()
  t.teardown(() => watching.abort())
  return {
    work() {
      now += stepMs
    },
    async longestTurnMs() {
      watching.abort()
      await watched
      return longest
    },
  }
}

t.test('turns: the length of a turn does not depend on the amount of work', async (t) => {
  const clock = await workClock(t)
  const done: number[] = Array.from({ length: 50 }, () => 0)
  let largestLead = 0
  function* steps(own: number): TurnWork<void> {
    for (let i = 0; i < 10; i++) {
      clock.work()
      done[own] = i + 1
      largestLead = Math.max(largestLead, i + 1 - Math.min(...done))
      yield
    }
  }
  await Promise.all(done.map(async (_, own) => inTurns(steps(own))))
  t.ok((await clock.longestTurnMs()) <= mostMs)
  t.ok(largestLead <= 3, `no task is far ahead of the others: ${largestLead} steps`)
})

t.test('turns: work that follows from finished work counts, too', async (t) => {
  const clock = await workClock(t)
  function* short(): TurnWork<void> {
    yield
  }
  await Promise.all(
    Array.from({ length: 50 }, async () => {
      await inTurns(short())
      await Promise.resolve()
      clock.work()
    }),
  )
  t.ok((await clock.longestTurnMs()) <= mostMs)
})

t.test('turns: queues share them, and a short queue does not wait for all items of a long one', async (t) => {
  const clock = await workClock(t)
  const order: string[] = []
  const fail = (error: unknown): void => void t.fail(String(error))
  const queues = Array.from({ length: 20 }, (_, own) => {
    const queue = new TurnQueue<{ name: string }>(({ name }) => {
      clock.work()
      order.push(name)
    }, fail)
    for (let i = 0; i < (own === 0 ? 100 : 2); i++) queue.push({ name: `${own}-${i}` })
    return queue
  })
  await Promise.all(queues.flatMap(({ busy }) => busy ?? []))
  t.equal(order.length, 138)
  t.ok(order.indexOf('19-1') < order.indexOf('0-10'))
  t.ok((await clock.longestTurnMs()) <= mostMs)
  for (let own = 0; own < 20; own++) {
    const items = order.filter((name) => name.startsWith(`${own}-`))
    t.strictSame(
      items,
      items.toSorted((a, b) => Number(a.split('-')[1]) - Number(b.split('-')[1])),
    )
  }
})

t.test('turns: a failing item ends only its own queue', async (t) => {
  const clock = await workClock(t)
  const errors: unknown[] = []
  const handled: string[] = []
  const queueOf = (name: string) =>
    new TurnQueue<{ n: number }>(
      ({ n }) => {
        clock.work()
        if (name === 'bad' && n === 5) throw new Error('cannot be read')
        handled.push(`${name}-${n}`)
      },
      (error) => void errors.push(error),
    )
  const [bad, good] = [queueOf('bad'), queueOf('good')]
  for (let n = 0; n < 10; n++) for (const queue of [bad, good]) queue.push({ n })
  await Promise.all([bad, good].flatMap(({ busy }) => busy ?? []))
  t.equal(errors.length, 1)
  t.equal(handled.filter((name) => name.startsWith('good')).length, 10)
  t.notOk(handled.includes('bad-6'))
  t.equal(bad.busy, undefined)
})
