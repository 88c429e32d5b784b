/** Callers that a backend's strategy can never serve. Lists and calls report the reason and do not suggest a retry. */
import t from 'tap'
import { openSession, stateless } from '../../helpers/mcp/wire.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { startLoopback } from '../../helpers/loopback.ts'
import { startTokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const roleArn = 'arn:aws:iam::123456789012:role/ops'
const cloudSts = { region: 'eu-west-1', roleMappings: [{ claim: 'ops', roleArn }] }

const tokens = await startLoopback(() => ({ status: 400, body: { error: 'unauthorized_client' } }))
t.teardown(() => tokens.close())

const strategies = [
  [{ type: 'cloud_sts', cloudSts }, /^backend b: no role mapping matches this caller/],
  [
    {
      type: 'token_exchange',
      tokenExchange: { tokenUrl: `${tokens.url}/token`, audience: 'b' },
    },
    /^backend b: authentication to the backend failed: the token endpoint refused the request: unauthorized_client/,
  ],
] as const

for (const [strategy, expected] of strategies) {
  for (const partialFailureMode of ['fail', 'best_effort']) {
    await t.test(`${strategy.type}, ${partialFailureMode}: the error names the reason`, async (t) => {
      const [issuer, backend] = await Promise.all([startTokenIssuer(), startRawBackend({ tools: () => [] })])
      const vmcp = await startTestVmcp(
        { b: backend.url },
        {
          incomingAuth: issuer.incomingAuth,
          outgoingAuth: { source: 'inline', backends: { b: strategy } },
          operational: { failureHandling: { partialFailureMode } },
        },
      )
      t.teardown(() => Promise.all([vmcp.close(), backend.close(), issuer.close()]))
      const headers = { authorization: `Bearer ${await issuer.token('ada', { groups: ['dev'] })}` }
      const session = await openSession(vmcp.url, { headers })
      const responses = await Promise.all([
        session.request('tools/call', { name: 'b_echo', arguments: {} }),
        stateless(vmcp.url, 'tools/call', { name: 'b_echo', arguments: {} }, { headers }),
        ...(partialFailureMode === 'fail' ? [session.request('tools/list')] : []),
      ])
      for (const { response } of responses) {
        const content = response?.result?.['content'] as { text: string }[] | undefined
        const message = response?.error?.message ?? content?.[0]?.text
        t.match(message, expected)
        t.notMatch(message, /temporarily|try again/)
      }
    })
  }
}
