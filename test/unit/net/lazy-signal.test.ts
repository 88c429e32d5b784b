/** A signal that makes an AbortSignal only for who asks for one. */
import t from 'tap'
import { abortable, LazySignal, signalOf } from '../../../runtime/net/index.ts'

t.test('listeners are called once, in their order, and the first reason counts', async (t) => {
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

t.test('a listener may take others away while it is called', async (t) => {
  const lazy = new LazySignal()
  const called: string[] = []
  const other = (): void => void called.push('other')
  lazy.addEventListener('abort', () => lazy.removeEventListener('abort', other))
  lazy.addEventListener('abort', other)
  lazy.addEventListener('abort', () => void called.push('last'))
  lazy.abort(new Error('over'))
  t.ok(called.includes('last'))
})

t.test('an AbortSignal made before or after says the same', async (t) => {
  const before = new LazySignal()
  const { signal } = before
  t.equal(signalOf(before), signal)
  before.abort(new Error('over'))
  t.match(signal, { aborted: true, reason: { message: 'over' } })
  const after = new LazySignal()
  after.abort(new Error('over'))
  t.match(after.signal, { aborted: true, reason: { message: 'over' } })
})

t.test('waiting ends with it', async (t) => {
  const lazy = new LazySignal()
  const waiting = abortable(new Promise(() => {}), lazy)
  lazy.abort(new Error('over'))
  await t.rejects(waiting, { message: 'over' })
  await t.rejects(abortable(Promise.resolve(), lazy), { message: 'over' })
})
