/** The gate of an external decision point in isolation: a list that takes longer than its time limit. */
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { makeExternalGate, type PointEvent } from '../../../runtime/policy/index.ts'
import { makeCaller } from '../../../runtime/net/index.ts'
import { startDecisionPoint } from '../../helpers/decisions/decision-point.ts'
import { sendJson } from '../../helpers/vmcp/json-server.ts'
import { vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

t.test('items without a decision in time are excluded and reported', async (t) => {
  const point = await startDecisionPoint(
    () => (res) => void setTimeout(250).then(() => sendJson(res, { allow: true })),
  )
  const { authz } = vmcpConfig(
    {},
    {
      incomingAuth: {
        type: 'anonymous',
        authz: {
          type: 'httpv1',
          httpv1: {
            http: { url: point.url, timeout: '500ms' },
            // On a slow machine, single responses can be late as well. An open circuit would end the list early.
            circuitBreaker: { failureThreshold: 1000 },
            claimMapping: 'standard',
          },
        },
      },
    },
  ).incomingAuth
  const events: PointEvent[] = []
  const gate = makeExternalGate(authz, { serverName: 'x', observe: (event) => events.push(event) })
  if (!gate) throw new Error('no decision point')
  t.teardown(() => Promise.all([gate.close?.(), point.close()]))
  const caller = makeCaller({ issuer: 'i', subject: 'ada', claims: { sub: 'ada' } })
  const tools = Array.from({ length: 500 }, (_, i) => ({
    name: `tool_${i}`,
    inputSchema: { type: 'object' },
  }))
  const list = Buffer.from(JSON.stringify({ tools }))
  await t.rejects(
    gate.filter(caller, 'tools/list', list, { signal: AbortSignal.abort(new Error('gone')) }),
    { message: 'gone' },
    'a client that disconnects',
  )
  const outcome = await gate.filter(caller, 'tools/list', list).then(
    (result) => JSON.parse(result.toString()) as { tools: unknown[] },
    (error: Error) => error,
  )
  const reasons = events.flatMap((event) => (event.kind === 'failure' ? [event.reason] : []))
  if (outcome instanceof Error) {
    // On a slow machine, every response can be late, so the list is rejected.
    t.match(outcome, { code: 'DECISION_UNAVAILABLE' })
  } else t.ok(outcome.tools.length < tools.length)
  t.ok(reasons.includes('list_timeout'), reasons.join(' '))
})
