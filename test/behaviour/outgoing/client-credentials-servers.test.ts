/** Type client_credentials in a virtual server and in a proxy, with a backend that requires the token. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { loadProxyFile, resolveProxyFile } from '../../../runtime/config/index.ts'
import { makeLog } from '../../../runtime/observe/index.ts'
import { runProxy } from '../../../runtime/proxy/index.ts'
import { type PeerResponse, startLoopback } from '../../helpers/loopback.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { openSession, stateless } from '../../helpers/mcp/wire.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const secret = 'pa55word-of-the-gateway'
const issued = 'token-of-the-gateway'

/** A token endpoint, a backend that accepts only its token, settings with the secret in a file, and a log. */
async function rig(t: Test, answer?: PeerResponse) {
  const lines: string[] = []
  const directory = mkdtempSync(join(tmpdir(), 'client-credentials-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  const clientSecretPath = join(directory, 'secret')
  writeFileSync(clientSecretPath, secret)
  const idp = await startLoopback(
    () => answer ?? { body: { access_token: issued, token_type: 'Bearer', expires_in: 3600 } },
  )
  const seen = new Set<string | undefined>()
  const backend = await startRawBackend({
    responses: { 'tools/call': () => '{"content":[{"type":"text","text":"welcome"}]}' },
    before: (req: IncomingMessage, res: ServerResponse) => {
      seen.add(req.headers.authorization)
      if (req.headers.authorization === `Bearer ${issued}`) return false
      res.writeHead(401).end()
      return true
    },
  })
  t.teardown(() => Promise.all([idp.close(), backend.close()]))
  const log = makeLog({ level: 'debug', destination: { write: (line) => void lines.push(line) } })
  const clientCredentials = { tokenUrl: idp.url, clientId: 'gateway', clientSecretPath }
  const settings = { type: 'client_credentials', clientCredentials }
  const leaks = () => [secret, issued].filter((text) => lines.join('').includes(text))
  return { idp, backend, seen, log, lines, settings, leaks, directory }
}

const ofTheClient = { headers: { authorization: 'Bearer of-the-client' } }

t.test('virtual server: both eras of clients, lists and health checks share one token', async (t) => {
  const { idp, backend, seen, log, lines, settings, leaks } = await rig(t)
  const vmcp = await startTestVmcp(
    { crm: backend.url },
    { aggregation: bareNames('crm'), outgoingAuth: { source: 'inline', default: settings } },
    { log },
  )
  t.teardown(() => vmcp.close())
  const session = await openSession(vmcp.url, ofTheClient)
  t.match((await session.request('tools/list')).text, /echo/)
  t.match((await session.request('tools/call', { name: 'echo' })).text, 'welcome')
  t.match((await stateless(vmcp.url, 'tools/call', { name: 'echo' })).text, 'welcome')
  t.same([...seen], [`Bearer ${issued}`], 'no request carries another credential')
  t.equal(idp.seen.length, 1)
  t.ok(lines.length > 0)
  t.same(leaks(), [])
})

t.test('virtual server: a rejected client appears in status, log and metrics', async (t) => {
  const answer = { status: 401, body: { error: 'invalid_client' } }
  const { backend, seen, log, lines, settings, leaks } = await rig(t, answer)
  const failed = new Promise<string>((resolve) => {
    const write = lines.push.bind(lines)
    lines.push = (line: string) => {
      if (line.includes('could not be obtained')) resolve(line)
      return write(line)
    }
  })
  const vmcp = await startTestVmcp(
    { crm: backend.url },
    {
      aggregation: bareNames('crm'),
      outgoingAuth: { source: 'inline', backends: { crm: settings } },
      telemetry: { enablePrometheusMetricsPath: true },
    },
    { log },
  )
  t.teardown(() => vmcp.close())
  t.match(
    await failed,
    /invalid_client; check outgoingAuth\.backends\.crm\.clientCredentials\.clientId and .*clientSecretPath/,
  )
  const base = new URL(vmcp.url).origin
  const status: unknown = await (await fetch(`${base}/status`)).json()
  t.match(status, {
    backends: [{ consecutive_failures: 1, last_error: { category: 'authentication_failed' } }],
    recent_failures: [{ type: 'token_failed', fix: /client_credentials/ }],
  })
  const metrics = await (await fetch(`${base}/metrics`)).text()
  t.match(
    metrics,
    /outcome="failure"[^}]*strategy="client_credentials"|strategy="client_credentials"[^}]*outcome="failure"/,
  )
  t.equal(seen.size, 0, 'the backend gets no request without the token')
  t.same(leaks(), [])
})

t.test('proxy: the configuration file selects the strategy', async (t) => {
  const { idp, backend, seen, log, settings, leaks, directory } = await rig(t)
  const path = join(directory, 'proxy.yaml')
  writeFileSync(path, stringify({ name: 'crm', targetUri: backend.url, outgoingAuth: settings }))
  const config = resolveProxyFile('crm', loadProxyFile(path), { host: '127.0.0.1', port: '0' }, {})
  const proxy = await runProxy(config, { log, notify() {} })
  t.teardown(() => proxy.close({ graceMs: 0 }))
  await proxy.ready
  const sessions = [await openSession(`${proxy.url}/mcp`, ofTheClient), await openSession(`${proxy.url}/mcp`)]
  for (const session of sessions)
    t.match((await session.request('tools/call', { name: 'echo' })).text, 'welcome')
  t.same([...seen], [`Bearer ${issued}`])
  t.equal(idp.seen.length, 1)
  t.same(leaks(), [])
})
