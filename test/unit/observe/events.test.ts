/**
 * The event stream: problems open and close, the log reports each change once and counts repeats, and a failing
 * listener has no effect.
 */
import t from 'tap'
import { logEvents, makeEvents, makeLog } from '../../../runtime/observe/index.ts'
import { eventTable } from '../../../runtime/observe/events/table.ts'
import { repeatWindowMs } from '../../../runtime/observe/events/log-view.ts'

function make() {
  let now = Date.UTC(2026, 0, 1)
  let timers: { ms: number; work: () => void; cancelled: boolean }[] = []
  const lines: Record<string, unknown>[] = []
  const log = makeLog({
    level: 'debug',
    destination: { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  })
  const events = makeEvents(() => now)
  const stop = logEvents(events, log, {
    after(ms, work) {
      const timer = { ms, work, cancelled: false }
      timers.push(timer)
      return () => {
        timer.cancelled = true
      }
    },
  })
  return {
    events,
    lines,
    stop,
    pass(ms: number) {
      now += ms
    },
    endWindows() {
      const due = timers
      timers = []
      for (const timer of due) {
        t.equal(timer.ms, repeatWindowMs)
        if (!timer.cancelled) timer.work()
      }
      return due.length
    },
  }
}

const failed = { backend: 'b', reason: 'timeout' }
const down = { backend: 'b', before: 'healthy', after: 'unhealthy', reason: 'connection_failed' }

t.test('a problem opens with its cause and a fix, and closes', async (t) => {
  const { events, pass } = make()
  events.emit('backend_health', down)
  pass(5_000)
  events.emit('config_refused', {})
  t.match(events.problems(), [
    {
      type: 'backend_health',
      backend: 'b',
      since: Date.UTC(2026, 0, 1),
      message: 'backend b is unhealthy: Connection failed',
      fix: /check that b is running/,
    },
    { type: 'config_refused', fix: /gatehouse vmcp validate/ },
  ])
  events.emit('backend_health', { backend: 'b', before: 'unhealthy', after: 'healthy' })
  t.match(events.problems(), [{ type: 'config_refused' }])
})

t.test('removing a backend closes its problems', async (t) => {
  const { events } = make()
  events.emit('backend_health', down)
  events.emit('backend_health', { ...down, backend: 'other' })
  events.emit('backends_changed', { added: [], removed: ['b'] })
  t.match(events.problems(), [{ backend: 'other' }])
})

t.test('a persistent problem is logged once, and again when it ends', async (t) => {
  const { events, lines } = make()
  const excluded = { backend: 'b', problems: ['backends.b.url: is not a URL'] }
  for (let i = 0; i < 50; i++) events.emit('backend_excluded', excluded)
  t.equal(lines.length, 1)
  t.match(lines[0], { level: 'error', event: 'backend_excluded', backend: 'b' })
  events.emit('backend_excluded', { ...excluded, problems: ['another'] })
  events.emit('backend_included', { backend: 'b' })
  events.emit('backend_included', { backend: 'b' })
  t.same(
    lines.map(({ message }) => message),
    [
      'a backend is excluded: its settings cannot be used',
      'a backend is excluded: its settings cannot be used',
      'a backend is no longer excluded',
    ],
  )
})

t.test('repeats are one line a minute, with their count', async (t) => {
  const { events, lines, endWindows, stop } = make()
  for (let i = 0; i < 1_000; i++) events.emit('backend_call_failed', failed)
  events.emit('backend_call_failed', { ...failed, backend: 'other' })
  t.equal(lines.length, 2, 'one line for each backend')
  t.notOk('repeated' in lines[0]!)
  endWindows()
  t.equal(lines.length, 3)
  t.match(lines[2], { event: 'backend_call_failed', backend: 'b', repeated: 999 })
  for (let i = 0; i < 10; i++) events.emit('backend_call_failed', failed)
  t.equal(lines.length, 3, 'one line for each window while they continue')
  endWindows()
  t.match(lines[3], { repeated: 10 })
  endWindows()
  t.equal(endWindows(), 0, 'no timer stays')
  events.emit('backend_call_failed', failed)
  t.equal(lines.length, 5, 'after a quiet minute the next one is logged at once')
  events.emit('backend_call_failed', failed)
  stop()
  t.match(lines[5], { repeated: 1 }, 'the end reports the suppressed count')
})

t.test('each reload is logged, even if nothing was wrong before', async (t) => {
  const { events, lines, endWindows } = make()
  events.emit('config_reloaded', { backends: 1 })
  events.emit('config_reloaded', { backends: 2 })
  t.match(lines, [{ message: 'configuration reloaded', backends: 1 }, { backends: 2 }])
  for (let i = 0; i < 100; i++) events.emit('config_reloaded', { backends: 3 })
  t.equal(lines.length, 5, 'a burst is suppressed')
  endWindows()
  t.match(lines[5], { repeated: 97 })
})

t.test('each rejected configuration is logged with its own error', async (t) => {
  const { events, lines } = make()
  events.emit('config_refused', { err: new Error('line 2') })
  events.emit('config_refused', { err: new Error('line 9') })
  t.match(lines, [{ err: { message: 'line 2' } }, { err: { message: 'line 9' } }])
})

t.test('a backend that flaps does not fill the log', async (t) => {
  const { events, lines } = make()
  for (let i = 0; i < 100; i++) {
    events.emit('backend_health', down)
    events.emit('backend_health', { backend: 'b', before: 'unhealthy', after: 'healthy' })
  }
  t.equal(lines.length, 5)
})

t.test('memory is bounded for any number of names', async (t) => {
  const { events, lines, endWindows } = make()
  for (let i = 0; i < 5_000; i++) {
    events.emit('backend_name_unknown', { problem: `name ${i}`, resolved: false })
    events.emit('call_denied', { method: `m${i}` })
  }
  t.equal(events.problems().length, 500)
  t.ok(endWindows() <= 1_002, 'windows')
  t.ok(lines.length < 2_000, String(lines.length))
})

t.test('a listener that throws does not affect other listeners', async (t) => {
  const events = makeEvents()
  const heard: string[] = []
  events.listen(() => {
    throw new Error('broken')
  })
  const stop = events.listen(({ type }) => heard.push(type))
  events.emit('config_reloaded', { backends: 1 })
  stop()
  events.emit('config_reloaded', { backends: 2 })
  t.same(heard, ['config_reloaded'])
})

t.test('the names of event types are stable', async (t) => {
  for (const type of Object.keys(eventTable)) t.match(type, /^[a-z]+(?:_[a-z]+)+$/)
})
