/** Slots at the decision point: one caller with many requests does not block other callers. */
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { QuestionSlots } from '../../../runtime/policy/remote/slots.ts'

t.test('callers take turns, within their own limit and the limit for all', async (t) => {
  const slots = new QuestionSlots(3, 2)
  const started: string[] = []
  const ends: (() => void)[] = []
  const signal = new AbortController().signal
  const ask = (caller: string, name: string, within = signal) =>
    slots.run(caller, within, () => {
      started.push(name)
      return new Promise<void>((resolve) => ends.push(resolve))
    })
  const gone = new AbortController()
  const all = [ask('a', 'a1'), ask('a', 'a2'), ask('a', 'a3'), ask('a', 'a4'), ask('b', 'b1'), ask('b', 'b2')]
  const left = ask('a', 'never', gone.signal)
  gone.abort(new Error('gone'))
  await t.rejects(left, { message: 'gone' })
  t.same(started, ['a1', 'a2', 'b1'], 'a waits for its own slot, although one was free for b')
  while (ends.length > 0) {
    ends.shift()?.()
    await setImmediate()
    await setImmediate()
  }
  await Promise.all(all)
  t.same(started, ['a1', 'a2', 'b1', 'a3', 'b2', 'a4'])
  await t.rejects(ask('a', 'late', AbortSignal.abort(new Error('before'))), { message: 'before' })
  t.equal(await slots.run('a', signal, () => Promise.resolve(5)), 5, 'and no slot is taken')
})
