/** Bound tokens at a proxy with one and several processes, at a proxy with policies, and at two virtual servers. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startGatehouse } from '../../helpers/gatehouse.ts'
import { startTokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { post } from '../../helpers/mcp/wire.ts'
import { makeDpopClient } from '../../helpers/oauth/dpop-client.ts'
import { startUpstream } from '../../helpers/proxy/rig.ts'
import { missingRedis, startRedis } from '../../helpers/redis.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

const resource = 'https://mcp.example/mcp'
const initialize =
  '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}'

async function startCaller(t: Test) {
  const idp = await startTokenIssuer()
  t.teardown(() => idp.close())
  const client = await makeDpopClient()
  const token = await idp.token('alice', { cnf: client.cnf })
  return {
    idp,
    bearer: { authorization: `Bearer ${token}` },
    bound: async (nonce?: string) => ({
      authorization: `DPoP ${token}`,
      dpop: await client.proof('POST', resource, token, { nonce }),
    }),
  }
}

type Caller = Awaited<ReturnType<typeof startCaller>>

/** Sends a bound call, the same proof again, and the token without a proof. Each request goes to the next server. */
async function attack(t: Test, urls: readonly string[], { bound, bearer }: Caller, nonce?: string) {
  const [first = '', second = first] = urls
  const headers = await bound(nonce)
  t.equal((await post(first, initialize, headers)).status, 200)
  for (const url of [first, second, second, first]) {
    const again = await post(url, initialize, headers)
    t.equal(again.status, 401)
    t.match(again.headers.get('www-authenticate'), /DPoP .*error="invalid_dpop_proof"/)
    t.equal((await post(url, initialize, bearer)).status, 401)
    t.equal((await post(url, initialize, await bound(nonce))).status, 200)
  }
}

function proxyFile(t: Test, { idp }: Caller, targetUri: string, more: object = {}): string {
  const file = join(t.testdir({}), 'proxy.yaml')
  const { issuer, audience, jwksUrl } = idp
  const oidc = { issuer, audience, jwksUrl, resource, insecureAllowHttp: true, jwksAllowPrivateIp: true }
  writeFileSync(file, JSON.stringify({ name: 'demo', targetUri, oidc, dpop: { mode: 'optional' }, ...more }))
  return file
}

for (const [name, args, more] of [
  ['one process', [], {}],
  ['two processes', ['--workers', '2'], {}],
  ['policies', [], { authz: { type: 'cedar', policies: ['permit(principal, action, resource);'] } }],
] as const) {
  await t.test(
    `proxy, ${name}: a proof is accepted once, and the target receives no credential`,
    async (t) => {
      const caller = await startCaller(t)
      const target =
        name === 'policies'
          ? await startRawBackend()
          : await startUpstream((_, res) => {
              res.setHeader('Content-Type', 'application/json')
              res.end('{"jsonrpc":"2.0","id":1,"result":{}}')
            })
      t.teardown(() => target.close())
      const file = proxyFile(t, caller, target.url, more)
      const run = startGatehouse(['proxy', '--config', file, ...args, 'demo'])
      const [, port] = await run.waitFor(/on port (\d+)/)
      const url = `http://127.0.0.1:${port}/mcp`
      await attack(t, [url], caller)
      if ('seen' in target) {
        for (const { headers } of target.seen as readonly { headers: Record<string, unknown> }[])
          t.notOk(headers['dpop'] ?? headers['authorization'])
      }
      t.equal(await run.interrupt(), 0)
    },
  )
}

await t.test(
  'two virtual servers on one Redis share used proofs and nonces',
  { skip: missingRedis },
  async (t) => {
    const [caller, redis, backend] = await Promise.all([startCaller(t), startRedis(), startRawBackend()])
    const { incomingAuth } = caller.idp
    const oidc = { ...(incomingAuth['oidc'] as object), resource }
    const start = () =>
      startTestVmcp(
        { raw: backend.url },
        {
          incomingAuth: { ...incomingAuth, oidc, dpop: { mode: 'required', requireNonce: true } },
          sessionStorage: { provider: 'redis', address: redis.addr },
        },
      )
    const servers = [await start(), await start()]
    t.teardown(() => Promise.all([...servers.map((server) => server.close()), redis.stop(), backend.close()]))
    const urls = servers.map(({ url }) => url)
    const refused = await post(urls[0] ?? '', initialize, await caller.bound())
    t.match(refused.headers.get('www-authenticate'), /error="use_dpop_nonce"/)
    await attack(t, urls, caller, refused.headers.get('dpop-nonce') ?? '')
  },
)
