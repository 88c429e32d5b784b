/** Rows that arrive while a page is open: sorted like the server's list, and filtered like on the server. */
import t from 'tap'
import type { CallView, StreamEvent } from '../../../runtime/console/api.ts'
import { type CallFilter, callTest } from '../../../runtime/console/calls/filter.ts'
import { withEvents, withWaiting } from '../../../runtime/console/web/data/call-list.ts'

const all: CallFilter = { caller: '', backend: '', tool: '', outcome: '', text: '', messages: '' }

function call(id: string, more: Partial<CallView> = {}): CallView {
  return {
    id,
    at: '2026-11-22T10:00:00.000Z',
    method: 'tools/call',
    name: 'jira_search',
    original: 'search',
    backend: 'jira',
    caller: { sub: 'u-17', name: 'Ben Miller', client: 'cursor 2.1' },
    ms: 1,
    outcome: 'failure',
    error: { message: 'Token refused' },
    payload: 'none',
    ...more,
  }
}

t.test('the calls of several batches are sorted newest first', async (t) => {
  const events: StreamEvent[] = [
    { type: 'calls', items: [call('r.1'), call('r.2')] },
    { type: 'calls', items: [call('r.3'), call('r.4')] },
  ]
  const list = withEvents({ rows: [call('r.0')], waiting: [] }, events, all)
  t.same(
    withWaiting(list).rows.map(({ id }) => id),
    ['r.4', 'r.3', 'r.2', 'r.1', 'r.0'],
  )
})

t.test('filters match on each of their fields', async (t) => {
  const fits = (filter: Partial<CallFilter>) => callTest({ ...all, ...filter })(call('r.1'))
  for (const filter of [
    { caller: 'ben' },
    { caller: 'U-17' },
    { tool: 'jira_search' },
    { tool: 'search' },
    { text: 'CURSOR' },
    { text: 'jira' },
    { text: 'token' },
    { text: 'tools/' },
    { backend: 'jira', outcome: 'failure' },
  ])
    t.ok(fits(filter), JSON.stringify(filter))
  for (const filter of [
    { caller: 'cursor' },
    { tool: 'sea' },
    { backend: 'jir' },
    { outcome: 'denied' },
    { text: 'nothing' },
  ])
    t.notOk(fits(filter), JSON.stringify(filter))
})
