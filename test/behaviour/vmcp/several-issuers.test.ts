/**
 * Equal subjects from two issuers of one virtual server are two callers: sessions, quotas, policies and the audit log.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startTokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { openSession, post } from '../../helpers/mcp/wire.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

t.test('equal subjects from two issuers share nothing', async (t) => {
  const [a, b, stranger, backend] = await Promise.all([
    startTokenIssuer(),
    startTokenIssuer(),
    startTokenIssuer(),
    startRawBackend(),
  ])
  const logFile = join(t.testdir({}), 'audit.log')
  const { issuer, audience, jwksUrl } = b
  const vmcp = await startTestVmcp(
    { raw: backend.url },
    {
      aggregation: bareNames('raw'),
      audit: { enabled: true, logFile },
      quotas: [{ name: 'hourly', per: 'user', window: 'hour', limit: 1 }],
      incomingAuth: {
        ...a.incomingAuth,
        issuers: [{ issuer, audience, jwksUrl, jwksAllowPrivateIp: true, groupPrefix: 'b/' }],
        authz: {
          type: 'cedar',
          policies: [
            `permit(principal in ServiceGroup::"ops", action, resource) when { principal.issuer == "${a.issuer}" };`,
            `permit(principal == Client::"${issuer}#alice", action, resource) when { principal in ServiceGroup::"b/ops" };`,
          ],
        },
      },
    },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), a.close(), b.close(), stranger.close()]))
  const groups = { groups: ['ops'] }
  const as = async (who: typeof a, subject = 'alice') => ({
    authorization: `Bearer ${await who.token(subject, groups)}`,
  })
  const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
  const [first, second] = await Promise.all([
    openSession(vmcp.url, { headers: await as(a) }),
    openSession(vmcp.url, { headers: await as(b) }),
  ])
  const call = async (session: typeof first) => {
    const { status, response } = await session.request('tools/call', { name: 'echo' })
    return { status, isError: response?.result?.['isError'] }
  }

  t.match(await call(first), { isError: undefined })
  t.match(await call(second), { isError: undefined }, 'each has its own quota')
  t.match(await call(first), { isError: true })
  const foreign = await post(vmcp.url, list, { ...(await as(b)), 'mcp-session-id': first.id })
  t.equal(foreign.status, 404, 'a session belongs to the caller of one issuer')
  const mallory = await openSession(vmcp.url, { headers: await as(b, 'mallory') })
  t.match(await call(mallory), { status: 403 }, 'the group of another issuer does not count')

  const refused = await post(vmcp.url, list, await as(stranger))
  t.equal(refused.status, 401)
  const idToken = await a.token('alice', { at_hash: 'x' })
  const confused = await post(vmcp.url, list, { authorization: `Bearer ${idToken}` })
  t.equal(confused.status, 401)
  t.notMatch(JSON.stringify(confused), /at_hash|ID token/, 'the client does not get the reason')

  await vmcp.close()
  const lines = readFileSync(logFile, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const reasons = lines.flatMap(({ metadata }) => metadata?.extra?.denial_reason ?? [])
  t.ok(reasons.includes('token_issuer'), String(reasons))
  t.ok(reasons.includes('token_id_token'), String(reasons))
  const users = new Set(lines.map(({ subjects }) => subjects.user_id))
  t.ok(users.has('alice') && users.has(`${issuer}#alice`), [...users].join())
})
