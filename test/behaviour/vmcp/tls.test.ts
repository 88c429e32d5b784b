/** A virtual server that serves HTTPS to real clients of both eras, and HTTPS backends whose authority changes. */
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect as connectTls, setDefaultCACertificates, getCACertificates } from 'node:tls'
import t, { type Test } from 'tap'
import {
  type Authority,
  type Leaf,
  makeAuthority,
  mountSecret,
  secretOf,
} from '../../helpers/certificates.ts'
import { type RunningGatehouse, startGatehouse } from '../../helpers/gatehouse.ts'
import { connect } from '../../helpers/mcp/clients.ts'
import { startEverything } from '../../helpers/mcp/everything.ts'
import { until } from '../../helpers/redis.ts'

t.setTimeout(180_000)

const authority = await makeAuthority()
setDefaultCACertificates([...getCACertificates('default'), authority.ca])

async function started(t: Test, args: readonly string[], leaf: Leaf, { ca }: Authority = authority) {
  const secret = mountSecret(secretOf(leaf, ca))
  const run = startGatehouse([...args, '--tls-cert-file', secret.certFile, '--tls-key-file', secret.keyFile])
  t.teardown(() => run.interrupt())
  return { run, secret }
}

const urlOf = async (run: RunningGatehouse): Promise<string> =>
  (await run.waitFor(/"url":"(https:\/\/127\.0\.0\.1:\d+\/mcp)"/))[1] ?? ''

async function shown(url: string, ca: string): Promise<string> {
  const socket = connectTls({ port: Number(new URL(url).port), host: '127.0.0.1', ca })
  try {
    await once(socket, 'secureConnect')
    return socket.getPeerCertificate().serialNumber
  } finally {
    socket.destroy()
  }
}

t.test('real clients of both eras keep their sessions across a certificate rotation', async (t) => {
  const { url: backend } = await startEverything(t, 'streamableHttp')
  const args = ['vmcp', 'serve', '--group', 'g', '--backend', `all=${backend}`, '--port', '0']
  const { run, secret } = await started(t, args, await authority.leaf())
  const url = await urlOf(run)
  const clients = await Promise.all(
    (['sdk1', 'sdk2-session', 'sdk2-stateless'] as const).map((kind) => connect(kind, url)),
  )
  const echo = async () => {
    for (const client of clients)
      t.match(await client.callText('all_echo', { message: 'over TLS' }), 'over TLS', client.kind)
  }
  await echo()
  const sessions = clients.map(({ sessionId }) => sessionId)
  const next = await authority.leaf({ algorithm: 'rsa' })
  secret.write(secretOf(next, authority.ca))
  await until(async () => (await shown(url, authority.ca)) === next.serialNumber)
  await echo()
  t.same(
    clients.map(({ sessionId }) => sessionId),
    sessions,
  )
  const status = async () =>
    (await (await fetch(url.replace('/mcp', '/status'))).json()) as { readonly problems: unknown }
  t.same((await status()).problems, [])
  secret.write(secretOf({ ...next, key: (await authority.leaf()).key }, authority.ca))
  await run.waitFor(/serving_certificate_refused/)
  t.match((await status()).problems, [/^this server's new certificate cannot be used.*is not the key/])
  t.equal(await shown(url, authority.ca), next.serialNumber)
  await echo()
  secret.write(secretOf(await authority.leaf(), authority.ca))
  await run.waitFor(/is usable again/)
  t.same((await status()).problems, [])
  for (const client of clients) await client.close()
})

t.test(
  'an HTTPS backend: its authority is trusted, and a new one as soon as the file contains it',
  async (t) => {
    const { origin } = await startEverything(t, 'streamableHttp')
    const old = await makeAuthority()
    const proxy = ['proxy', '--target-uri', origin, 'member']
    const { run: member, secret } = await started(t, proxy, await old.leaf(), old)
    const [, port] = await member.waitFor(/^Transparent proxy started for server member on port (\d+)/m)
    const url = `https://127.0.0.1:${port}/mcp`
    const file = join(t.testdir({}), 'vmcp.yaml')
    const backend = {
      name: 'member',
      url,
      transport: 'streamable-http',
      type: 'entry',
      caBundlePath: secret.caFile,
    }
    const config = {
      name: 'door',
      groupRef: 'g',
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'inline' },
      aggregation: {},
      backends: [backend],
    }
    writeFileSync(file, JSON.stringify(config))
    const { run } = await started(t, ['vmcp', 'serve', '-c', file, '--port', '0'], await authority.leaf())
    const door = await urlOf(run)
    const client = await connect('sdk1', door)
    t.match(await client.callText('member_echo', { message: 'one' }), 'one')

    const fresh = await makeAuthority()
    const leaf = await fresh.leaf()
    secret.write(secretOf(leaf, fresh.ca))
    while ((await shown(url, old.ca + fresh.ca).catch(() => '')) !== leaf.serialNumber)
      await new Promise((resolve) => setTimeout(resolve, 20))
    // A separate session uses separate connections.
    let text = ''
    while (!text.includes('two')) {
      const other = await connect('sdk1', door)
      text = await other.callText('member_echo', { message: 'two' }).catch(() => '')
      await other.close()
    }
    t.match(text, 'two')
    await client.close()
  },
)
