/** The pause before an event stream is reopened. */
import t from 'tap'
import { clampRetry, retryAfterOf, StreamPace } from '../../../runtime/net/index.ts'

function start() {
  const timers = new Set<() => void>()
  const reports: string[] = []
  const pace = new StreamPace({
    after(_ms, work) {
      timers.add(work)
      return () => void timers.delete(work)
    },
    onNotKept: () => void reports.push('not kept'),
    onKept: () => void reports.push('kept'),
  })
  return {
    pace,
    reports,
    timers,
    /** Opens a stream that closes at once. Returns the pause. */
    closesAtOnce(retryMs?: number) {
      pace.opened()
      return pace.ended({ retryMs })
    },
    /** Keeps the open stream open for a while. */
    isKept() {
      for (const work of timers) work()
    },
  }
}

t.test('streams that close at once: pauses grow up to minutes, and a report is written', async (t) => {
  const { closesAtOnce, reports } = start()
  const pauses = Array.from({ length: 20 }, () => closesAtOnce(1))
  t.same(pauses.slice(0, 5), [20, 40, 80, 160, 320])
  t.equal(pauses.at(-1), 300_000, 'polled rarely, whatever retry is')
  t.ok(pauses.slice(0, 10).reduce((sum, pause) => sum + pause) > 10_000, 'ten streams in ten seconds at most')
  t.equal(reports[0], 'not kept')
})

t.test('streams that close after a message: polled at least every half minute', async (t) => {
  const { pace } = start()
  const pauses = Array.from({ length: 20 }, () => {
    pace.opened()
    pace.delivered()
    return pace.ended()
  })
  t.equal(pauses.at(-1), 30_000)
  pace.opened()
  t.equal(pace.ended(), 300_000, 'a stream without a message is not polled that often')
})

t.test('without retry, pauses start at one second', async (t) => {
  const { closesAtOnce } = start()
  t.same([closesAtOnce(), closesAtOnce(), closesAtOnce()], [1_000, 2_000, 4_000])
})

t.test('a stream that stays open resets the pauses and the report', async (t) => {
  const { pace, closesAtOnce, isKept, reports } = start()
  for (let n = 0; n < 10; n++) closesAtOnce()
  pace.opened()
  isKept()
  t.equal(reports.at(-1), 'kept')
  t.equal(pace.ended({ retryMs: 100 }), 100, 'the pause that the server requests')
  t.equal(closesAtOnce(100), 100)
  t.equal(closesAtOnce(100), 200)
})

t.test('rejected streams: half a minute at most, unless the server requests more', async (t) => {
  const { pace, reports } = start()
  const pauses = Array.from({ length: 10 }, () => pace.ended())
  t.same(pauses.slice(0, 6), [1_000, 2_000, 4_000, 8_000, 16_000, 30_000])
  t.equal(pauses.at(-1), 30_000)
  t.equal(pace.ended({ retryAfterMs: 60_000 }), 60_000)
  t.equal(pace.ended({ retryAfterMs: 3_600_000 }), 300_000, 'within bounds')
  t.same(reports, [], 'no stream has been opened')
})

t.test('a stream announced as opened twice counts once, and a closed pace has no timer', async (t) => {
  const { pace, timers } = start()
  pace.opened()
  pace.opened()
  t.equal(timers.size, 1)
  t.equal(pace.ended(), 1_000)
  pace.opened()
  pace.close()
  t.equal(timers.size, 0)
})

t.test('pauses that servers request are bounded', async (t) => {
  t.same([-5, 0, 1, 5_000, Infinity].map(clampRetry), [20, 20, 20, 5_000, 30_000])
  t.same(
    [undefined, '', '5', ' 7 ', '-1', '1.5', 'Wed, 21 Oct 2026 07:28:00 GMT', '9'.repeat(400)].map(
      retryAfterOf,
    ),
    [undefined, undefined, 5_000, 7_000, undefined, undefined, undefined, undefined],
  )
})
