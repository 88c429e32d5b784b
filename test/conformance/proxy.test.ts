/**
 * Runs the official suite's required server scenarios of both revisions through the proxy in front of a full server:
 * without authentication, and with incoming OIDC (a shim adds the bearer token, because the suite sends none). No
 * expected failures.
 */
import { createServer, request as httpRequest } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { makeAuthenticator } from '../../runtime/incoming/index.ts'
import { Recorder } from '../helpers/conformance/record.ts'
import { runConformance } from '../helpers/conformance/suite.ts'
import { startFixture } from '../helpers/mcp/fixture-server/index.ts'
import { startOidcProvider } from '../helpers/authserver/oidc-provider.ts'
import { startRig } from '../helpers/proxy/rig.ts'

const recorder = new Recorder('proxy')
const revisions = ['2025-11-25', '2026-07-28'] as const
const resource = 'https://tools.example/mcp'

async function target(t: Test): Promise<string> {
  const fixture = await startFixture({ era: 'both' })
  t.teardown(() => fixture.close())
  return new URL(fixture.url).origin
}

/** Forwards all bytes and adds one header. The shim is created first, because clients see its origin. */
async function bearerShim(t: Test, to: { port: number; token: string }): Promise<string> {
  const server = createServer((req, res) => {
    const headers = { ...req.headers, authorization: `Bearer ${to.token}` }
    const forward = httpRequest(
      { host: '127.0.0.1', port: to.port, path: req.url, method: req.method, headers },
      (response) => {
        res.writeHead(response.statusCode ?? 502, response.headers)
        response.pipe(res)
      },
    )
    forward.on('error', () => res.destroy())
    res.on('close', () => forward.destroy())
    req.pipe(forward)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

for (const revision of revisions) {
  await t.test(`proxy, ${revision}: every required scenario passes`, { timeout: 300_000 }, async (t) => {
    const rig = await startRig(await target(t))
    t.teardown(() => rig.close())
    const { code, output, scenarios } = await runConformance([
      'server',
      '--url',
      `${rig.url}/mcp`,
      '--requirements',
      revision,
    ])
    recorder.addRun({ title: 'proxy', mode: 'server', revision }, scenarios)
    t.equal(code, 0, output.slice(-4000))
  })

  await t.test(
    `proxy with OIDC, ${revision}: every required scenario passes`,
    { timeout: 300_000 },
    async (t) => {
      const idp = await startOidcProvider({
        clients: [{ client_id: 'app', client_secret: 's', redirect_uris: ['https://app.example/cb'] }],
        resources: { [resource]: {} },
      })
      t.teardown(() => idp.close())
      const to = { port: 0, token: await idp.accessToken({ clientId: 'app', resource }) }
      const shim = await bearerShim(t, to)
      const rig = await startRig(await target(t), {
        allowedOrigins: [shim],
        incoming: () => makeAuthenticator({ type: 'oidc', oidc: { issuer: idp.issuer, audience: resource } }),
      })
      t.teardown(() => rig.close())
      t.equal(
        (await fetch(`${rig.url}/mcp`, { method: 'POST', body: '{}' })).status,
        401,
        'a request without a token is rejected',
      )
      to.port = rig.port
      const { code, output, scenarios } = await runConformance([
        'server',
        '--url',
        `${shim}/mcp`,
        '--requirements',
        revision,
      ])
      recorder.addRun({ title: 'proxy that requires a token (OIDC)', mode: 'server', revision }, scenarios)
      t.equal(code, 0, output.slice(-4000))
    },
  )
}

await t.test('the conformance page shows these results', async (t) => recorder.compare(t))
