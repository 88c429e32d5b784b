/**
 * Announced list changes: the first ones apply at once, later ones after growing pauses, until the backend stops
 * announcing.
 */
import t from 'tap'
import { ChangePacer } from '../../../../runtime/vmcp/catalog/changes/change-pacer.ts'

const pace = { free: 2, burstMs: 0, firstPauseMs: 100, maxPauseMs: 400, quietMs: 1_000, reportFrom: 4 }

function rig(changed: Partial<typeof pace> = {}) {
  let now = 0
  const timers = new Set<{ at: number; work: () => void }>()
  const reports: string[] = []
  const applied: string[] = []
  const clock = {
    now: () => now,
    after(ms: number, work: () => void) {
      const timer = { at: now + ms, work }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
  }
  const pacer = new ChangePacer({
    pace: { ...pace, ...changed },
    clock,
    onChange: (state) => void reports.push(state),
  })
  return {
    pacer,
    reports,
    applied,
    timers,
    announce: (key: string, what = key) => pacer.announce(key, () => void applied.push(`${what}@${now}`)),
    move(ms: number) {
      const to = now + ms
      for (;;) {
        const due = [...timers].filter(({ at }) => at <= to).sort((a, b) => a.at - b.at)[0]
        if (!due) break
        timers.delete(due)
        now = due.at
        due.work()
      }
      now = to
    },
  }
}

t.test(
  'a backend that announces a change after each reload: pauses grow, one report is written, and the report ends',
  async (t) => {
    const { pacer, announce, move, applied, reports } = rig()
    announce('k', 'a')
    announce('k', 'b')
    t.same(applied, ['a@0', 'b@0'], 'the first at once')
    announce('k', 'c')
    announce('k', 'd')
    move(99)
    t.equal(applied.length, 2)
    move(1)
    t.same(applied.at(-1), 'd@100', 'the latest, at the end of the pause')
    t.same(reports, [])
    announce('k', 'e')
    move(199)
    t.equal(applied.length, 3)
    move(1)
    t.same(applied.at(-1), 'e@300')
    t.same(reports, ['paced'])
    for (let i = 0; i < 10; i++) {
      announce('k', 'f')
      move(400)
    }
    t.equal(applied.length, 14, 'the longest pause')
    t.same(reports, ['paced'], 'reported once')
    move(1_000)
    t.same(reports, ['paced', 'quiet'])
    announce('k', 'g')
    t.equal(applied.at(-1), 'g@5300', 'at once again')
    pacer.close()
  },
)

t.test('one change announced on many connections is applied once or twice', async (t) => {
  const { announce, move, applied } = rig({ burstMs: 10 })
  for (let i = 0; i < 20; i++) announce('k', `a${i}`)
  t.same(applied, ['a0@0'])
  move(10)
  t.same(applied, ['a0@0', 'a19@10'])
})

t.test('keys are independent, and a forgotten key drops its pending change', async (t) => {
  const { pacer, announce, move, applied, timers } = rig()
  for (let i = 0; i < 3; i++) announce('a')
  announce('b')
  t.same(applied, ['a@0', 'a@0', 'b@0'])
  pacer.forget('a')
  move(10_000)
  t.equal(applied.length, 3)
  t.equal(timers.size, 0)
  for (let i = 0; i < 3; i++) announce('c')
  pacer.close()
  move(10_000)
  t.equal(applied.length, 5)
})

t.test('the number of keys is bounded, and no change is lost', async (t) => {
  const { announce, applied, timers } = rig()
  for (let i = 0; i < 3; i++) announce('first')
  for (let i = 0; i < 1_024; i++) announce(`k${i}`)
  t.equal(applied.filter((one) => one.startsWith('first')).length, 3, 'applied when its key made room')
  t.equal(timers.size, 1_024)
})
