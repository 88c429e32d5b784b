/** `gatehouse proxy` with --tls-cert-file: HTTPS only, and certificate rotation without a lost request. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { Agent, request } from 'node:https'
import { connect as connectTcp } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { freePort, type RunningGatehouse, runGatehouse, startGatehouse } from '../../helpers/gatehouse.ts'
import {
  type Leaf,
  makeAuthority,
  mountSecret,
  type MountedSecret,
  secretOf,
} from '../../helpers/certificates.ts'
import { until } from '../../helpers/redis.ts'

t.setTimeout(180_000)

const authority = await makeAuthority()
const { ca } = authority
const streams = new Set<ServerResponse>()
const target = createServer((req, res) => {
  if (req.url === '/sse' || req.headers.accept === 'text/event-stream') {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write('data: begin\n\n')
    streams.add(res)
    return
  }
  req.resume().on('end', () => res.end('hello'))
}).listen(0, '127.0.0.1')
await once(target, 'listening')
const bound = target.address()
const targetUri = `http://127.0.0.1:${typeof bound === 'object' && bound ? bound.port : 0}`
t.teardown(() => target.close(() => undefined).closeAllConnections())

interface Served {
  readonly run: RunningGatehouse
  readonly port: number
  readonly secret: MountedSecret
  readonly first: Leaf
}

async function serve(t: Test, ...more: string[]): Promise<Served> {
  const first = await authority.leaf()
  const secret = mountSecret(secretOf(first, ca))
  const flags = ['--tls-cert-file', secret.certFile, '--tls-key-file', secret.keyFile, ...more]
  const run = startGatehouse(['proxy', '--target-uri', targetUri, ...flags, 'demo'])
  t.teardown(() => run.interrupt())
  const [, port] = await run.waitFor(/^Transparent proxy started for server demo on port (\d+)/m)
  return { run, port: Number(port), secret, first }
}

/** Returns the serial number of the certificate on a new connection. */
async function shown(port: number): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', ca })
  await once(socket, 'secureConnect')
  const { serialNumber } = socket.getPeerCertificate()
  socket.destroy()
  return serialNumber
}

async function untilShown(port: number, leaf: Leaf): Promise<void> {
  await until(async () => (await shown(port)) === leaf.serialNumber)
}

interface Reply {
  readonly status: number | undefined
  readonly text: string
  readonly socket: TLSSocket
}

function call(port: number, agent: Agent): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
    const headers = { 'content-type': 'application/json', accept: 'application/json' }
    const options = { port, host: '127.0.0.1', path: '/mcp', method: 'POST', agent, ca, headers }
    const sent = request(options, (res) => {
      const socket = res.socket as TLSSocket
      let text = ''
      res.setEncoding('utf8').on('data', (part: string) => (text += part))
      res.on('error', reject).on('end', () => resolve({ status: res.statusCode, text, socket }))
    })
    sent.on('error', reject).end(body)
  })
}

t.test('only HTTPS is served', async (t) => {
  const metricsPort = await freePort()
  const { run, port, first } = await serve(t, '--metrics-port', String(metricsPort))
  const agent = new Agent({ keepAlive: true })
  const reply = await call(port, agent)
  t.match(reply, { status: 200, text: 'hello' })
  t.equal(reply.socket.getPeerCertificate().serialNumber, first.serialNumber)
  t.match(['TLSv1.3', 'TLSv1.2'], [reply.socket.getProtocol()])
  t.equal((await call(port, agent)).socket, reply.socket, 'connections are kept')

  await t.rejects(fetch(`http://127.0.0.1:${port}/mcp`), 'plain HTTP')
  await t.rejects(fetch(`https://127.0.0.1:${port}/mcp`), 'an authority unknown to the client')
  const old = connect({ port, host: '127.0.0.1', ca, maxVersion: 'TLSv1.1', minVersion: 'TLSv1' })
  t.match(await once(old, 'error'), [{ code: /^ERR_SSL|ECONNRESET/ }], 'TLS 1.1')

  const origin = (value: string) =>
    new Promise((resolve, reject) => {
      const options = { port, host: '127.0.0.1', path: '/mcp', agent, ca, headers: { origin: value } }
      request(options, (res) => resolve(res.resume().statusCode))
        .on('error', reject)
        .end()
    })
  t.equal(await origin(`https://localhost:${port}`), 200, 'its own origin')
  t.equal(await origin(`http://localhost:${port}`), 403, 'an origin with another scheme is rejected')

  const metrics = await new Promise<string>((resolve, reject) => {
    request({ port: metricsPort, host: '127.0.0.1', path: '/metrics', ca }, (res) => {
      let text = ''
      res.setEncoding('utf8').on('data', (part: string) => (text += part))
      res.on('end', () => resolve(text))
    })
      .on('error', reject)
      .end()
  })
  t.match(metrics, /gatehouse_certificate_expiry_timestamp_seconds\{certificate="serving"\} \d{10}/)
  agent.destroy()
  t.equal(await run.interrupt(), 0, 'the connection is closed immediately')
})

t.test('an incomplete handshake keeps no connection open', async (t) => {
  const { run, port } = await serve(t)
  const idle = connectTcp(port, '127.0.0.1')
  await once(idle, 'connect')
  const half = connectTcp(port, '127.0.0.1')
  half.write(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]))
  await once(half, 'connect')
  for (const socket of [idle, half]) socket.on('error', () => undefined)
  t.equal(await run.interrupt(), 0)
})

t.test('rotations under load lose no request, and open connections and streams continue', async (t) => {
  const { run, port, secret, first } = await serve(t)
  const serials = new Set<string>()
  const failures: unknown[] = []
  const state = { stop: false, answered: 0 }
  async function load(agent: Agent): Promise<void> {
    while (!state.stop) {
      try {
        const { status, text, socket } = await call(port, agent)
        if (status !== 200 || text !== 'hello') failures.push({ status, text })
        serials.add(socket.getPeerCertificate().serialNumber)
        state.answered++
      } catch (error) {
        failures.push(error)
      }
    }
  }
  const kept = new Agent({ keepAlive: true, maxSockets: 1 })
  const before = await call(port, kept)
  const stream = request({
    port,
    host: '127.0.0.1',
    path: '/mcp',
    ca,
    headers: { accept: 'text/event-stream' },
  })
  stream.end()
  const [events] = await once(stream, 'response')
  await once(events, 'data')

  const fresh = new Agent({ keepAlive: false, maxCachedSessions: 0 })
  const clients = [kept, fresh, fresh, new Agent({ keepAlive: true })].map(load)
  const leaves = [first]
  for (const algorithm of ['rsa', 'ecdsa', 'ed25519'] as const) {
    const leaf = await authority.leaf({ algorithm })
    leaves.push(leaf)
    secret.write(secretOf(leaf, ca))
    await untilShown(port, leaf)
    const enough = state.answered + 20
    await until(() => state.answered >= enough)
  }
  state.stop = true
  await Promise.all(clients)
  t.same(failures, [])
  for (const { serialNumber } of leaves)
    t.ok(serials.has(serialNumber), 'clients under load saw each certificate')

  const after = await call(port, kept)
  t.equal(after.socket, before.socket, 'the existing connection')
  t.equal(after.socket.getPeerCertificate().serialNumber, first.serialNumber)
  for (const res of streams) res.write('data: after\n\n')
  t.match(String((await once(events, 'data'))[0]), 'data: after')
  await run.waitFor(/serving_certificate_reloaded/)
  kept.destroy()
  stream.destroy()
})

t.test('an unusable certificate pair is reported, and the previous one stays in use', async (t) => {
  const { run, port, secret, first } = await serve(t)
  const next = await authority.leaf()
  secret.write(secretOf({ ...next, key: first.key }, ca))
  await run.waitFor(/serving_certificate_refused.*is not the key of the certificate/)
  t.equal(await shown(port), first.serialNumber)
  secret.write(secretOf(next, ca))
  await untilShown(port, next)
  await run.waitFor(/serving_certificate_reloaded/)
  t.notMatch(run.output(), 'BEGIN', 'no file content is shown')
})

t.test('a certificate that is expired or expires soon is served and reported', async (t) => {
  const { run, port, secret } = await serve(t)
  const soon = await authority.leaf({ endsInMs: 86_400_000 })
  secret.write(secretOf(soon, ca))
  await untilShown(port, soon)
  await run.waitFor(/this server's certificate expires soon/)
  const later = await authority.leaf()
  secret.write(secretOf(later, ca))
  await run.waitFor(/this server's certificate no longer expires soon/)
  const ended = mountSecret(secretOf(await authority.leaf({ endsInMs: -1_000 }), ca))
  const flags = ['--tls-cert-file', ended.certFile, '--tls-key-file', ended.keyFile]
  const other = startGatehouse(['proxy', '--target-uri', targetUri, ...flags, 'late'])
  t.teardown(() => other.interrupt())
  await other.waitFor(/this server's certificate has expired/)
  await other.waitFor(/^Transparent proxy started/m)
})

t.test('several workers: all use the new certificate, and one report is logged', async (t) => {
  const { run, port, secret } = await serve(t, '--workers', '2')
  const next = await authority.leaf()
  secret.write(secretOf(next, ca))
  await run.waitFor(/serving_certificate_reloaded/)
  let seen = 0
  while (seen < 10) seen = (await shown(port)) === next.serialNumber ? seen + 1 : 0
  t.equal(await run.interrupt(), 0)
  t.equal(run.output().split('"event":"serving_certificate_reloaded"').length - 1, 1)
})

t.test('an incomplete setting or an unusable pair is an error', async (t) => {
  const leaf = await authority.leaf()
  const good = mountSecret(secretOf(leaf))
  const mixed = mountSecret(secretOf({ ...leaf, key: (await authority.leaf()).key }))
  const serve = ['vmcp', 'serve', '--group', 'g', '--backend', `a=${targetUri}/mcp`]
  const proxy = ['proxy', '--target-uri', targetUri, 'demo']
  const together = /--tls-cert-file and --tls-key-file must be given together/
  const cases: readonly [string[], RegExp][] = [
    [['--tls-cert-file', good.certFile], together],
    [['--tls-key-file', good.keyFile], together],
    [['--tls-cert-file', good.certFile, '--tls-key-file', ''], together],
    [['--tls-cert-file', mixed.certFile, '--tls-key-file', mixed.keyFile], /tls\.key: is not the key of/],
    [
      ['--tls-cert-file', '/no/crt', '--tls-key-file', '/no/key'],
      /\/no\/crt: the file cannot be read[^]*\/no\/key/,
    ],
  ]
  const runs = [proxy, serve].flatMap((command) =>
    cases.map(async ([flags, expected]) => {
      const { code, stderr } = await runGatehouse([...command, ...flags])
      t.equal(code, 2, [...command, ...flags].join(' '))
      t.match(stderr, expected)
    }),
  )
  await Promise.all(runs)
})
