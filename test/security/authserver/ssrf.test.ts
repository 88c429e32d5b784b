/**
 * An untrusted client's client_id must not make the server call private addresses. The address check is the real one.
 */
import { createServer } from 'node:http'
import t from 'tap'
import { authorizeUrl, pkce, type Rig, startAuthServer } from '../../helpers/authserver/authserver.ts'

async function status(rig: Rig, clientId: string): Promise<number> {
  const url = authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge })
  return (await fetch(url, { redirect: 'manual' })).status
}

t.test('ssrf: private, loopback and special addresses are never dialed, in any notation', async (t) => {
  let connections = 0
  const victim = createServer((_req, res) => res.end('{}'))
  victim.on('connection', () => (connections += 1))
  await new Promise<void>((resolve) => victim.listen(0, '127.0.0.1', resolve))
  t.teardown(() => victim.close())
  const address = victim.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const rig = await startAuthServer(t, {
    config: { cimd: { cacheMaxSize: 10, cacheTtlMs: 1000, allowLoopback: false } },
  })
  for (const clientId of [
    `http://127.0.0.1:${port}/c.json`,
    `http://localhost:${port}/c.json`,
    `http://[::1]:${port}/c.json`,
    `https://127.0.0.1:${port}/c.json`,
    `https://localhost:${port}/c.json`,
    `https://2130706433:${port}/c.json`,
    `https://0x7f.1:${port}/c.json`,
    `https://[::ffff:127.0.0.1]:${port}/c.json`,
    'https://169.254.169.254/latest/meta-data',
    'https://10.0.0.1/c.json',
    'https://[fd00::1]/c.json',
    'http://example.com/c.json',
    'ftp://example.com/c.json',
    'https://user:pass@example.com/c.json',
    'https://example.com/',
    'https://example.com/a/../c.json',
    'https://example.com/%2e%2e/c.json',
    'https://example.com/c.json#f',
  ]) {
    t.equal(await status(rig, clientId), 401, clientId)
  }
  t.equal(connections, 0)
})

t.test(
  'ssrf: even with loopback documents allowed, the server does not dial other private addresses',
  async (t) => {
    const rig = await startAuthServer(t, {
      config: { cimd: { cacheMaxSize: 10, cacheTtlMs: 1000, allowLoopback: true } },
    })
    for (const clientId of [
      'https://10.0.0.1/c.json',
      'https://169.254.169.254/c.json',
      'https://192.168.1.1/c.json',
    ]) {
      t.equal(await status(rig, clientId), 401, clientId)
    }
  },
)
