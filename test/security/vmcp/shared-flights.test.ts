/** Work that callers share: a caller that is rejected, or disconnects, affects no other. */
import type { ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { startVmcp, type VmcpServer } from '../../../runtime/vmcp/index.ts'
import { startTokenIssuer, type TokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { stateless, statelessRequest } from '../../helpers/mcp/wire.ts'
import { startKeyed, toolsIn } from '../../helpers/vmcp/isolation/keyed-backend.ts'
import { type NamedExchange, startNamedExchange } from '../../helpers/vmcp/isolation/named-exchange.ts'
import { vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

t.setTimeout(60_000)

/** A server without health checks, so that no check detects a backend's era before the first request. */
function startUnmonitored(backend: string, more: Record<string, unknown> = {}): Promise<VmcpServer> {
  const config = vmcpConfig({ raw: backend }, more)
  const failureHandling = { ...config.operational.failureHandling, healthCheckInterval: '0s' }
  return startVmcp(
    { ...config, operational: { ...config.operational, failureHandling } },
    { port: 0, graceMs: 200 },
  )
}

async function startIssuer(t: Test): Promise<TokenIssuer> {
  const issuer = await startTokenIssuer()
  t.teardown(() => issuer.close())
  return issuer
}

async function startExchange(
  t: Test,
  refuses: (claims: Readonly<Record<string, unknown>>) => boolean,
): Promise<NamedExchange> {
  const exchange = await startNamedExchange(refuses)
  t.teardown(() => exchange.close())
  return exchange
}

const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` })

for (const era of ['session', 'stateless'] as const)
  t.test(
    `flights: a caller with a rejected credential does not affect other callers (${era} backend)`,
    async (t) => {
      const backend = await startFixture({ era })
      t.teardown(() => backend.close())
      const issuer = await startIssuer(t)
      const { outgoingAuth } = await startExchange(t, ({ sub }) => sub === 'mallory')
      const vmcp = await startUnmonitored(backend.url, { incomingAuth: issuer.incomingAuth, outgoingAuth })
      t.teardown(() => vmcp.close())
      const refused = await issuer.token('mallory')
      const list = (token: string) => stateless(vmcp.url, 'tools/list', {}, { headers: bearer(token) })
      const state = { isOver: false }
      const loop = async (): Promise<void> => {
        while (!state.isOver) t.notMatch((await list(refused)).text, 'raw_test')
      }
      const loops = [loop(), loop(), loop()]
      const others = await Promise.all(
        Array.from({ length: 12 }, async (_, n) => list(await issuer.token(`user-${n}`))),
      )
      state.isOver = true
      await Promise.all(loops)
      for (const { status, text } of others) {
        t.equal(status, 200)
        t.match(text, 'raw_test_simple_text')
      }
    },
  )

t.test('flights: a caller that disconnects does not end a shared probe', async (t) => {
  const { promise: release, resolve } = Promise.withResolvers<void>()
  const { promise: probed, resolve: noteProbe } = Promise.withResolvers<void>()
  let isUpgraded = false
  const { promise: bothRefused, resolve: noteRefusals } = Promise.withResolvers<void>()
  let refused = 0
  /** After its upgrade the backend only supports the stateless era. */
  const upgraded = async (res: ServerResponse, body: string): Promise<void> => {
    const { id, method, params } = JSON.parse(body) as {
      id: unknown
      method: string
      params?: Record<string, unknown>
    }
    const isOld = params?.['_meta'] === undefined
    if (isOld && ++refused === 2) noteRefusals()
    if (method === 'server/discover') {
      noteProbe()
      await release
    }
    const results: Record<string, unknown> = {
      'server/discover': { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } },
      'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
      'tools/call': { content: [{ type: 'text', text: 'upgraded' }] },
    }
    const response = isOld
      ? {
          error: {
            code: -32022,
            message: 'Unsupported protocol version',
            data: { supported: ['2026-07-28'] },
          },
        }
      : { result: { resultType: 'complete', ...(results[method] as object) } }
    res.writeHead(isOld ? 400 : 200, { 'content-type': 'application/json' })
    res.end(JSON.stringify({ jsonrpc: '2.0', id, ...response }))
  }
  const backend = await startRawBackend({
    before(req, res, body) {
      if (!isUpgraded || req.method !== 'POST') return false
      void upgraded(res, body)
      return true
    },
  })
  const vmcp = await startUnmonitored(backend.url)
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const call = { name: 'raw_echo', arguments: {} }
  await stateless(vmcp.url, 'tools/call', call)
  isUpgraded = true
  const leave = new AbortController()
  const { body, headers } = statelessRequest('tools/call', call)
  const own = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...headers,
  }
  const gone = fetch(vmcp.url, { method: 'POST', headers: own, body, signal: leave.signal }).catch(() => {})
  await probed
  const other = stateless(vmcp.url, 'tools/call', call)
  await bothRefused
  leave.abort()
  await gone
  // A request to the virtual server shows that it has noticed the end of the first call.
  await fetch(`${vmcp.origin}/healthz`)
  resolve()
  t.match((await other).response?.result, { content: [{ text: 'upgraded' }] })
})

t.test('flights: a rejected token does not affect another token of the same user', async (t) => {
  const backend = await startKeyed(t)
  const issuer = await startIssuer(t)
  const { outgoingAuth } = await startExchange(t, ({ jti }) => jti === 'revoked')
  const vmcp = await startUnmonitored(backend.url, { incomingAuth: issuer.incomingAuth, outgoingAuth })
  t.teardown(() => vmcp.close())
  const [revoked, good] = await Promise.all(['revoked', 'good'].map((jti) => issuer.token('ada', { jti })))
  const list = (token = '') => stateless(vmcp.url, 'tools/list', {}, { headers: bearer(token) })
  for (let round = 0; round < 5; round++) {
    const [, own] = await Promise.all([list(revoked), list(good)])
    t.same(toolsIn(own), ['of-Bearerada'])
  }
})
