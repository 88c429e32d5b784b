/** A decision point receives the client that acts for a user. */
import t from 'tap'
import { callerFacts, makeCaller } from '../../../runtime/net/index.ts'
import { makeExternalGate } from '../../../runtime/policy/index.ts'
import { startDecisionPoint } from '../../helpers/decisions/decision-point.ts'
import { vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

t.test('the principal contains the actor of a delegated token only', async (t) => {
  const point = await startDecisionPoint()
  const authz = { type: 'httpv1', httpv1: { http: { url: point.url }, claimMapping: 'standard' } }
  const { incomingAuth } = vmcpConfig({}, { incomingAuth: { type: 'anonymous', authz } })
  const gate = makeExternalGate(incomingAuth.authz, { serverName: 'x', observe() {} })
  if (!gate) throw new Error('no gate')
  t.teardown(() => Promise.all([gate.close?.(), point.close()]))
  const list = async (act: object | undefined): Promise<void> => {
    const claims = { sub: 'ada', tsid: 's', act }
    const caller = makeCaller({
      issuer: 'i',
      subject: 'ada',
      claims,
      facts: callerFacts(claims, 'embedded'),
    })
    await gate.filter(caller, 'tools/list', Buffer.from('{"tools":[{"name":"echo"}]}'))
  }
  await list({ sub: 'client:agent', act: { sub: 'client:earlier' } })
  await list(undefined)
  t.same(
    point.asked.map(({ question }) => question.principal),
    [{ sub: 'ada', actor: 'client:agent' }, { sub: 'ada' }],
  )
})
