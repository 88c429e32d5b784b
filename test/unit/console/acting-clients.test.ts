/** The console shows the client that acts for a caller next to the caller. */
import t from 'tap'
import { callOf } from '../../../runtime/console/calls/call-of.ts'
import { callTest } from '../../../runtime/console/calls/filter.ts'
import { sessionRow } from '../../../runtime/console/data/sessions.ts'
import { callerFacts, makeCaller } from '../../../runtime/net/index.ts'
import type { ExchangeRecord } from '../../../runtime/observe/index.ts'

function viewOf(act: object | undefined) {
  const claims = { iss: 'https://mcp.example.com', sub: 'u-1', tsid: 's', client_id: 'agent', act }
  const facts = callerFacts(claims, 'embedded')
  const caller = makeCaller({ issuer: claims.iss, subject: 'u-1', claims, displayName: 'Ada', facts })
  const record = { req: { headers: {} }, status: 200, durationMs: 1, outcome: 'success', caller }
  return callOf(record as unknown as ExchangeRecord, 'a.1', 0, 'none')
}

t.test('a call contains the acting client, and filters find it', (t) => {
  const call = viewOf({ sub: 'client:agent' })
  t.same(call.caller, { sub: 'u-1', name: 'Ada', actor: 'client:agent' })
  t.same(viewOf(undefined).caller, { sub: 'u-1', name: 'Ada' })
  t.equal(viewOf({ sub: `client:${'x'.repeat(200)}` }).caller?.actor?.length, 128)
  const all = { caller: '', backend: '', tool: '', outcome: '', text: '', messages: '' }
  for (const filter of [{ caller: 'client:AGENT' }, { text: 'client:agent' }]) {
    t.equal(callTest({ ...all, ...filter })(call), true)
    t.equal(callTest({ ...all, ...filter })(viewOf(undefined)), false)
  }
  t.end()
})

t.test('a session contains the acting client', (t) => {
  const facts = {
    hash: 'h',
    owner: 'k',
    subject: 'u-1',
    displayName: 'Ada',
    info: undefined,
    protocolVersion: '2025-11-25',
    openedAt: 0,
    usedAt: 0,
    streams: 0,
  }
  t.match(sessionRow({ ...facts, actor: 'client:agent' }, 'k').caller, { actor: 'client:agent' })
  t.same(sessionRow({ ...facts, actor: undefined }, 'k').caller, { sub: 'u-1', name: 'Ada' })
  t.end()
})
