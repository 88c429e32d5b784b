/** Client behavior that users of other gateways have reported as failing there. */
import t from 'tap'
import { startTokenIssuer } from '../../../helpers/authserver/token-issuer.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { openSession, post, stream } from '../../../helpers/mcp/wire.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

t.test('the handshake of Cursor succeeds with one of several backends down', async (t) => {
  const backend = await startRawBackend()
  const vmcp = await startTestVmcp(
    { a: backend.url, gone: 'http://127.0.0.1:1/mcp' },
    { operational: { failureHandling: { partialFailureMode: 'best_effort' } } },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const request = (id: number | undefined, method: string, params?: object): string =>
    JSON.stringify({ jsonrpc: '2.0', id, method, params })
  const opened = await post(
    vmcp.url,
    request(0, 'initialize', {
      protocolVersion: '2025-06-18',
      // Not objects, as the protocol requires.
      capabilities: { tools: true, prompts: true, resources: true, logging: false, elicitation: {} },
      clientInfo: { name: 'cursor-vscode', version: '1.0.0' },
    }),
  )
  t.match(opened.response?.result, { protocolVersion: '2025-06-18', capabilities: { tools: {} } })
  const headers = {
    'mcp-session-id': opened.headers.get('mcp-session-id') ?? '',
    'mcp-protocol-version': '2025-06-18',
  }
  t.equal((await post(vmcp.url, request(undefined, 'notifications/initialized'), headers)).status, 202)
  const events = await stream(vmcp.url, { headers })
  t.equal(events.status, 200)
  const lists = {
    'tools/list': { tools: [{ name: 'a_echo' }] },
    'prompts/list': { prompts: [] },
    'resources/list': { resources: [] },
    'resources/templates/list': { resourceTemplates: [] },
  }
  for (const [method, result] of Object.entries(lists))
    t.match((await post(vmcp.url, request(1, method), headers)).response?.result, result, method)
  events.close()
})

t.test('without authentication, login discovery gets 404 in JSON', async (t) => {
  const backend = await startRawBackend()
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  for (const name of ['oauth-authorization-server', 'openid-configuration', 'oauth-protected-resource'])
    for (const path of [`/.well-known/${name}/mcp`, `/.well-known/${name}`, `/mcp/.well-known/${name}`]) {
      const response = await fetch(new URL(path, vmcp.url))
      t.equal(response.status, 404, path)
      t.match(await response.json(), { status: 404 })
    }
})

t.test('a session continues with a refreshed token of its user, and with no other', async (t) => {
  const issuer = await startTokenIssuer()
  const backend = await startRawBackend()
  const vmcp = await startTestVmcp({ raw: backend.url }, { incomingAuth: issuer.incomingAuth })
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), issuer.close()]))
  const bearer = async (user: string, id: string) => ({
    authorization: `Bearer ${await issuer.token(user, { jti: id })}`,
  })
  const session = await openSession(vmcp.url, { headers: await bearer('alice', '1') })
  const call = async (headers: Record<string, string>) =>
    (await session.request('tools/call', { name: 'raw_echo', arguments: {} }, headers)).status
  t.equal(await call({}), 200)
  t.equal(await call(await bearer('alice', '2')), 200)
  t.equal(await call(await bearer('bob', '3')), 404)
})
