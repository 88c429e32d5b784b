/** Windows of an hour, a day and a month in UTC, and where they end. */
import t from 'tap'
import { periodOf } from '../../../../runtime/policy/quotas/window.ts'

const cases = [
  ['hour', '2026-11-23T10:59:59.999Z', '2026-11-23T10', '2026-11-23T11:00:00.000Z'],
  ['hour', '2026-12-31T23:00:00.000Z', '2026-12-31T23', '2027-01-01T00:00:00.000Z'],
  ['day', '2026-11-23T00:00:00.000Z', '2026-11-23', '2026-11-24T00:00:00.000Z'],
  ['day', '2028-02-28T12:00:00.000Z', '2028-02-28', '2028-02-29T00:00:00.000Z'],
  ['day', '2026-03-29T23:59:59.999Z', '2026-03-29', '2026-03-30T00:00:00.000Z'],
  ['month', '2026-01-31T23:59:59.999Z', '2026-01', '2026-02-01T00:00:00.000Z'],
  ['month', '2026-02-28T12:00:00.000Z', '2026-02', '2026-03-01T00:00:00.000Z'],
  ['month', '2028-02-29T12:00:00.000Z', '2028-02', '2028-03-01T00:00:00.000Z'],
  ['month', '2026-12-01T00:00:00.000Z', '2026-12', '2027-01-01T00:00:00.000Z'],
] as const

t.test('window: the key names the period, and the window ends with it', async (t) => {
  for (const [window, at, label, end] of cases) {
    const period = periodOf(window, Date.parse(at))
    t.same(
      { label: period.label, end: new Date(period.endMs).toISOString() },
      { label, end },
      `${window} of ${at}`,
    )
    t.equal(periodOf(window, period.endMs - 1).label, label, 'the last millisecond belongs to it')
    t.not(periodOf(window, period.endMs).label, label, 'the next is not')
  }
})
