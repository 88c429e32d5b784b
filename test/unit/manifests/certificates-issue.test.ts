/** The serving certificate of the hooks server: its profile, and which connections real TLS peers accept. */
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { createServer, connect, type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { checkFitness, joinBundle } from '../../../hooks/certificates/inspect.ts'
import { issueCertificate, type IssuedCertificate } from '../../../hooks/certificates/issue.ts'
import { serviceNames } from '../../../hooks/certificates/command.ts'

const hour = 3_600_000
const names = serviceNames({
  service: 'gatehouse-hooks',
  namespace: 'gatehouse-system',
  clusterDomain: 'cluster.local',
  dnsName: [],
})

async function made(now = new Date()): Promise<IssuedCertificate> {
  return issueCertificate({ names, now, lifetimeMs: 24 * hour })
}

/** Serves the leaf on a free port. `dial` returns the error of the handshake, or undefined when it succeeds. */
async function serve(t: Test, issued: IssuedCertificate) {
  const server = createServer({ cert: issued.certificate, key: issued.key }, (socket) => socket.end())
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return async (servername: string, ca: string): Promise<string | undefined> => {
    const socket: TLSSocket = connect({ host: '127.0.0.1', port, servername, ca })
    const failure = await new Promise<string | undefined>((resolve) => {
      socket.once('secureConnect', () => resolve(undefined))
      socket.once('error', (error) => resolve('code' in error ? String(error.code) : error.message))
    })
    socket.destroy()
    return failure
  }
}

await t.test(
  'names: the name that the API server dials comes first, and every in-cluster form is included',
  async (t) => {
    t.strictSame(names, [
      'gatehouse-hooks.gatehouse-system.svc',
      'gatehouse-hooks.gatehouse-system.svc.cluster.local',
      'gatehouse-hooks.gatehouse-system',
      'gatehouse-hooks',
    ])
    const more = serviceNames({
      service: 'a',
      namespace: 'b',
      clusterDomain: 'corp',
      dnsName: ['hooks.example.com', 'a'],
    })
    t.ok(more.includes('a.b.svc.corp'))
    t.equal(new Set(more).size, more.length, 'no doubles')
  },
)

await t.test('certificate: a real TLS handshake succeeds under every name of the Service', async (t) => {
  const issued = await made()
  const dial = await serve(t, issued)
  for (const name of names) t.equal(await dial(name, issued.ca), undefined, name)
})

await t.test('certificate: the handshake fails under another name, and with another authority', async (t) => {
  const [issued, untrusted] = await Promise.all([made(), made()])
  const dial = await serve(t, issued)
  t.equal(await dial('other.gatehouse-system.svc', issued.ca), 'ERR_TLS_CERT_ALTNAME_INVALID')
  t.not(await dial(names[0] ?? '', untrusted.ca), undefined, 'an untrusted client authority is not enough')
  t.equal(await dial(names[0] ?? '', joinBundle([untrusted.ca, issued.ca])), undefined, 'both together are')
})

await t.test('profile: authority and leaf have exactly the extensions that RFC 5280 requires', async (t) => {
  const now = new Date()
  const issued = await made(now)
  const ca = new X509Certificate(issued.ca)
  const leaf = new X509Certificate(issued.certificate)
  t.equal(ca.ca, true)
  t.equal(leaf.ca, false, 'the leaf cannot sign')
  t.strictSame(leaf.keyUsage, ['1.3.6.1.5.5.7.3.1'], 'server authentication only')
  t.ok(leaf.verify(ca.publicKey))
  t.ok(leaf.validFromDate < now, 'valid on a node whose clock is a little behind')
  t.equal(Math.round((leaf.validToDate.getTime() - now.getTime()) / hour), 24)
  t.match(issued.key, /^-----BEGIN PRIVATE KEY-----\n/)
})

await t.test('profile: two authorities never share subject, serial or key', async (t) => {
  const [a, b] = (await Promise.all([made(), made()])).map((one) => new X509Certificate(one.ca))
  t.not(a?.subject, b?.subject)
  t.not(a?.serialNumber, b?.serialNumber)
  t.not(
    a?.publicKey.export({ type: 'spki', format: 'pem' }),
    b?.publicKey.export({ type: 'spki', format: 'pem' }),
  )
})

await t.test('checkFitness: reports why a stored pair cannot be used', async (t) => {
  const now = new Date()
  const [issued, other] = await Promise.all([made(now), made(now)])
  const why = (
    pair: { certificate: string; key: string },
    bundle: string,
    wanted: readonly string[] = names,
    at = now,
  ) => {
    const found = checkFitness(pair, bundle, wanted, at)
    return found.fit ? 'fit' : found.why
  }
  t.equal(why(issued, issued.ca), 'fit')
  t.match(why({ certificate: '', key: '' }, ''), /no certificate yet/)
  t.match(why({ certificate: 'junk', key: 'junk' }, issued.ca), /cannot be parsed/)
  t.match(why({ ...issued, key: other.key }, issued.ca), /does not belong/)
  t.match(why({ ...issued, key: 'junk' }, issued.ca), /does not belong/)
  t.match(why(issued, other.ca), /no trusted authority/)
  t.match(why(issued, issued.ca, [...names, 'hooks.example.com']), /does not cover hooks\.example\.com/)
  t.match(
    why(issued, issued.ca, names, new Date(now.getTime() + 25 * hour)),
    /has expired or is not valid yet/,
  )
  t.match(why(issued, issued.ca, names, new Date(now.getTime() - hour)), /has expired or is not valid yet/)
})
