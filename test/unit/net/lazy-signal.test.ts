/** A signal that creates an AbortSignal only on demand. */
import t from 'tap'
import { abortable, LazySignal, signalOf } from '../../../runtime/net/index.ts'

t.test('listeners are called once, in order, with the first reason', async (t) => {
  const lazy = new LazySignal()
  const called: string[] = []
  const removed = (): void => void called.push('removed')
  lazy.addEventListener('abort', () => void called.push('a'))
  lazy.addEventListener('abort', removed)
  lazy.addEventListener('abort', () => void called.push('b'))
  lazy.removeEventListener('abort', removed)
  t.equal(lazy.aborted, false)
  lazy.abort(new Error('first'))
  lazy.abort(new Error('second'))
  lazy.addEventListener('abort', () => void called.push('late'))
  t.same(called, ['a', 'b'])
  t.match(lazy, { aborted: true, reason: { message: 'first' } })
})

t.test('a listener can remove other listeners while it runs', async (t) => {
  const lazy = new LazySignal()
  const called: string[] = []
  const other = (): void => void called.push('other')
  lazy.addEventListener('abort', () => lazy.removeEventListener('abort', other))
  lazy.addEventListener('abort', other)
  lazy.addEventListener('abort', () => void called.push('last'))
  lazy.abort(new Error('over'))
  t.ok(called.includes('last'))
})

t.test('an AbortSignal created before or after the abort has the same reason', async (t) => {
  const before = new LazySignal()
  const { signal } = before
  t.equal(signalOf(before), signal)
  before.abort(new Error('over'))
  t.match(signal, { aborted: true, reason: { message: 'over' } })
  const after = new LazySignal()
  after.abort(new Error('over'))
  t.match(after.signal, { aborted: true, reason: { message: 'over' } })
})

t.test('waiting ends with the abort', async (t) => {
  const lazy = new LazySignal()
  const waiting = abortable(new Promise(() => {}), lazy)
  lazy.abort(new Error('over'))
  await t.rejects(waiting, { message: 'over' })
  await t.rejects(abortable(Promise.resolve(), lazy), { message: 'over' })
})
