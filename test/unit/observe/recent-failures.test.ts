/** Failures of single calls are kept for an hour: counted, bounded, with a next step, and without user names. */
import t from 'tap'
import { makeEvents, reportLoss } from '../../../runtime/observe/index.ts'
import { SessionTable } from '../../../runtime/vmcp/clients/sessions/table.ts'

const failed = { backend: 'b', reason: 'timeout' }

t.test('repeated failures are one entry, and the latest entry comes first', async (t) => {
  let now = Date.UTC(2026, 0, 1)
  const events = makeEvents(() => now)
  events.emit('backend_call_failed', failed)
  now += 1_000
  events.emit('call_limited', { scope: 'shared', operation_type: 'tool' })
  now += 1_000
  events.emit('backend_call_failed', failed)
  t.match(events.recent(), [
    { type: 'backend_call_failed', backend: 'b', reason: 'timeout', count: 2, first: now - 2_000, last: now },
    { type: 'call_limited', reason: 'shared', fix: /rateLimiting/, count: 1 },
  ])
  now += 3_600_000 - 500
  t.match(events.recent(), [{ type: 'backend_call_failed' }])
  t.equal(events.recent().length, 1, 'an hour later it is removed')
  now += 1_000
  events.emit('backend_call_failed', failed)
  t.match(events.recent(), [{ count: 1, first: now }], 'and it starts again')
  events.emit('backends_changed', { added: [], removed: ['b'] })
  t.same(events.recent(), [])
})

t.test('entries that a client can vary are bounded', async (t) => {
  const events = makeEvents()
  for (let i = 0; i < 1_000; i++)
    events.emit('console_action', { operation: 'tool_tried', outcome: 'denied', user: `u${i}`, target: 'x' })
  t.equal(events.recent().length, 200)
  t.notMatch(JSON.stringify(events.recent()), /u\d/, 'and names no user')
})

t.test('a successful event is not listed as a failure', async (t) => {
  const events = makeEvents()
  events.emit('authorization_server', { action: 'login_completed', outcome: 'success' })
  events.emit('console_action', { operation: 'login_completed', outcome: 'success' })
  events.emit('token_obtained', { strategy: 's' })
  t.same(events.recent(), [])
  events.emit('authorization_server', { action: 'login_failed', outcome: 'failure', upstream: 'corp' })
  t.match(events.recent(), [
    { type: 'authorization_server', reason: 'login_failed', fix: /this server's log/ },
  ])
})

t.test('a session that cannot be saved is listed', async (t) => {
  const events = makeEvents()
  const records = { update: () => Promise.reject(new Error('gone')) }
  const sessions = new SessionTable({
    ttlMs: 1,
    maxSessions: 1,
    now: Date.now,
    records: records as never,
    events,
    onEnd() {},
  })
  await sessions.save({} as never)
  t.match(events.recent(), [{ type: 'session_unsaved', fix: /check that Redis is running/ }])
})

t.test('lost audit lines are a problem until no line has been lost for a while', async (t) => {
  const events = makeEvents()
  let timers: (() => void)[] = []
  const { onLoss, onWritten } = reportLoss(events, (_ms, work) => {
    timers = [work]
    return () => {
      timers = []
    }
  })
  onLoss?.(3)
  t.match(events.problems(), [{ type: 'audit_lost' }])
  onWritten?.()
  t.match(events.problems(), [{ type: 'audit_lost' }], 'lines are written again, but the problem stays open')
  onLoss?.(1)
  t.equal(timers.length, 0, 'the waiting time starts again')
  onWritten?.()
  for (const work of timers) work()
  t.same(events.problems(), [])
})
