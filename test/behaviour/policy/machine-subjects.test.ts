/** The subject in a decision point's question: a machine has no upstream token, so its own claims are used. */
import t from 'tap'
import { callerFacts, makeCaller } from '../../../runtime/net/index.ts'
import { makeExternalGate } from '../../../runtime/policy/index.ts'
import { startAuthzenPoint } from '../../helpers/decisions/authzen-point.ts'
import { vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

t.test('primaryUpstreamProvider does not apply to machines', async (t) => {
  const point = await startAuthzenPoint(() => true)
  t.teardown(() => point.close())
  const authz = { type: 'authzenv1', authzenv1: { http: { url: point.url } } }
  const { incomingAuth } = vmcpConfig({}, { incomingAuth: { type: 'anonymous', authz } })
  if (!incomingAuth.authz) throw new Error('no authorization')
  const asked: string[] = []
  const gate = makeExternalGate(
    { ...incomingAuth.authz, primaryUpstreamProvider: 'corporate' },
    {
      serverName: 'x',
      observe() {},
      upstreamTokens: {
        get: ({ subject }) => {
          asked.push(subject)
          return Promise.resolve(undefined)
        },
      },
    },
  )
  if (!gate) throw new Error('no gate')
  t.teardown(() => gate.close?.())
  const listed = async (claims: Readonly<Record<string, unknown>> & { readonly sub: string }) => {
    const facts = callerFacts(claims, 'embedded')
    const caller = makeCaller({ issuer: 'i', subject: claims.sub, claims, facts })
    const page = Buffer.from('{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}')
    return (await gate.filter(caller, 'tools/list', page)).toString().includes('echo')
  }
  t.equal(await listed({ sub: 'client:ci', client_id: 'ci' }), true)
  t.strictSame(asked, [])
  t.equal(
    await listed({ sub: 'ada', client_id: 'app', tsid: 's' }),
    false,
    'a user without an upstream token',
  )
  t.strictSame(asked, ['ada'])
})
