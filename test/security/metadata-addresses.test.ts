/**
 * No outgoing connection goes to a metadata or link-local address, whatever the source of the address: a single
 * connector opens connections and always applies this rule. The table lists every other opener of sockets, with the
 * reason.
 */
import { readdirSync, readFileSync } from 'node:fs'
import type { LookupAddress } from 'node:dns'
import { join } from 'node:path'
import t from 'tap'
import { guardedLookup, type LookupAll, makeDispatcher, makeFetch } from '../../runtime/net/index.ts'
import { openEmbeddingService } from '../../runtime/vmcp/features/search/embedding-service.ts'

const hosts = [
  '169.254.169.254',
  '2852039166',
  '100.100.100.200',
  '[fd00:ec2::254]',
  '[fe80::1]',
  '[::ffff:a9fe:a9fe]',
]

const to =
  (...addresses: string[]): LookupAll =>
  (_name, _options, callback) =>
    callback(
      null,
      addresses.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 })),
    )

async function codeOf(work: Promise<unknown>): Promise<unknown> {
  try {
    await work
    return 'no error'
  } catch (error) {
    const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } }
    return cause?.code ?? code
  }
}

await t.test('a fetch without options rejects literals and names with such addresses', async (t) => {
  const fetch = makeFetch({ allowHttp: true })
  for (const host of hosts) {
    t.equal(await codeOf(fetch(`http://${host}/latest`)), 'ADDRESS_REFUSED', host)
    t.equal(await codeOf(fetch(`https://${host}/latest`)), 'ADDRESS_REFUSED', host)
  }
  await fetch.close()
  const named = makeFetch({ allowHttp: true, lookup: to('169.254.169.254', 'fd00:ec2::254') })
  t.equal(await codeOf(named('https://idp.example/token')), 'ADDRESS_REFUSED')
  await named.close()
})

await t.test('the HTTP proxy of the environment is not dialed at such an address', async (t) => {
  const proxy = { http: 'http://127.0.0.1:9', https: 'http://127.0.0.1:9' }
  const fetch = makeFetch({ allowHttp: true, proxy })
  for (const host of hosts) t.equal(await codeOf(fetch(`http://${host}/`)), 'ADDRESS_REFUSED', host)
  t.not(await codeOf(fetch('http://idp.example/')), 'ADDRESS_REFUSED', 'other addresses go to the proxy')
  await fetch.close()
})

await t.test('streams: a dispatcher for one origin rejects such addresses', async (t) => {
  const origin = 'http://169.254.169.254'
  const dispatcher = makeDispatcher({ origin })
  t.equal(await codeOf(dispatcher.request({ origin, path: '/', method: 'GET' })), 'ADDRESS_REFUSED')
  await dispatcher.close()
})

await t.test('the DNS lookup of telemetry exporters returns allowed addresses only', async (t) => {
  const lookup = (resolve: LookupAll) =>
    new Promise<unknown>((done) => {
      guardedLookup('operator', resolve)('collector', { all: true }, (error, found) => done(error ?? found))
    })
  t.match(await lookup(to('169.254.169.254')), { code: 'ADDRESS_REFUSED' })
  t.same(await lookup(to('169.254.169.254', '10.0.0.3')), [{ address: '10.0.0.3', family: 4 }])
})

await t.test('tool search: an embedding service at such an address is not dialed', async (t) => {
  const service = openEmbeddingService({
    protocol: 'compat',
    url: 'http://169.254.169.254/v1',
    model: 'm',
    headers: {},
    apiKey: undefined,
    timeoutMs: 5_000,
  })
  await t.rejects(service.embed(['text'], 1, new AbortController().signal))
  await service.close()
})

/** Files and folders that open sockets without the connector. */
const others: Readonly<Record<string, string>> = {
  'net/outgoing/connector.ts': 'the connector itself',
  'net/outgoing/proxy-server.ts': 'asks for a tunnel over a socket of the connector',
  'tools/doctor/remote/network.ts': 'says which hop fails; it sends no request and reads nothing',
  'toolkit/local/': 'ports of this machine',
  'toolkit/targets/down.ts': 'loopback only: the status of a server on this machine',
  'toolkit/targets/sign-ins.ts': 'loopback only: the status of a server on this machine',
  'tools/up/instance/control.ts': 'loopback only: the control address of `gatehouse up`',
  'tools/up/identity/passkey-script.ts': 'runs in the browser',
  'cli/vmcp/login-pages.ts': 'loopback only: the login pages of `gatehouse up --login`',
  'tools/explain/live.ts': 'loopback only: the console of a server on this machine',
  'console/web/': 'runs in the browser',
  'kube/attachment.ts': 'the API server of the cluster that the pod runs in',
  'vmcp/clients/processes/relay.ts': 'loopback only: the other workers of this server',
  'proxy/tunnel/relay-client.ts': 'the target that was named for the tunnel',
}

await t.test('every opener of sockets uses the connector, or is in the table', async (t) => {
  const root = join(import.meta.dirname, '../../runtime')
  const found = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && opens(readFileSync(join(root, name), 'utf8')))
    .map((name) => name.replaceAll('\\', '/'))
  const known = Object.keys(others)
  t.same(
    found.filter((name) => !known.some((one) => name.startsWith(one))),
    [],
  )
  t.same(
    known.filter((one) => !found.some((name) => name.startsWith(one))),
    [],
    'each entry is needed',
  )
})

/** Finds code that connects a socket, uses Node's own client, or calls the global fetch. */
function opens(source: string): boolean {
  const connects = /import \{[^}]*\bconnect\b[^}]*\} from 'node:(net|tls|http2)'/.test(source)
  const requests = /import \{[^}]*\b(request|get)\b[^}]*\} from 'node:https?'/.test(source)
  const undici = /\{[^}]*\bfetch\b[^}]*\} = \(?await import\('undici/.test(source)
  const own = /(const|let|function) \{?[^=\n]*\bfetch\b|\bfetch\b[?]?:|[(,{] ?fetch\b[,) }:]/.test(source)
  const socket = /from 'ws'/.test(source)
  return connects || requests || undici || socket || (/await fetch\(/.test(source) && !own)
}
