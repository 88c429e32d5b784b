/** The document fetch: SSRF guard for literals and lookups, redirects, size and time limits, jose and oauth4webapi. */
import { createServer } from 'node:http'
import { once } from 'node:events'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import * as jose from 'jose'
import * as oauth from 'oauth4webapi'
import t from 'tap'
import { makeFetch, type Fetch } from '../../../runtime/net/index.ts'

const plain = Buffer.from('document '.repeat(100))
const codings: Readonly<Record<string, readonly [string, Buffer]>> = {
  '/gzip': ['gzip', gzipSync(plain)],
  '/deflate': ['deflate', deflateSync(plain)],
  '/raw-deflate': ['deflate', deflateRawSync(plain)],
  '/br': ['br', brotliCompressSync(plain)],
  '/twice': ['deflate, GZIP', gzipSync(deflateSync(plain))],
  '/early-end': ['gzip', gzipSync(plain).subarray(0, -8)],
  '/broken': ['gzip', plain],
  '/other': ['other', plain],
  '/five': [Array(5).fill('gzip').join(), wrapped(5)],
  '/six': [Array(6).fill('gzip').join(), wrapped(6)],
}

function wrapped(times: number): Buffer {
  return times === 0 ? plain : gzipSync(wrapped(times - 1))
}

const server = createServer((req, res) => {
  const url = new URL(req.url ?? '/', 'http://x')
  const coded = codings[url.pathname]
  if (coded) {
    const [coding, body] = coded
    res.writeHead(200, { 'Content-Encoding': coding, 'Content-Length': body.length }).end(body)
    return
  }
  if (url.pathname === '/redirect') res.writeHead(302, { Location: '/ok' }).end()
  else if (url.pathname === '/away') res.writeHead(302, { Location: 'http://localhost:1/ok' }).end()
  else if (url.pathname === '/loop') res.writeHead(302, { Location: '/loop' }).end()
  else if (url.pathname === '/big') res.end('x'.repeat(5000))
  else if (url.pathname === '/silent') res.writeHead(200).write('a')
  else if (url.pathname === '/none') res.writeHead(204).end()
  else if (url.pathname === '/headers') res.end(JSON.stringify(req.headers))
  else if (url.pathname === '/.well-known/openid-configuration') {
    res.setHeader('content-type', 'application/json')
    res.end(
      JSON.stringify({
        issuer: `http://${req.headers.host}`,
        token_endpoint: `http://${req.headers.host}/token`,
      }),
    )
  } else if (url.pathname === '/token') {
    let body = ''
    req.on('data', (chunk: Buffer) => (body += chunk.toString()))
    req.on('end', () => {
      res.setHeader('content-type', 'application/json')
      res.end(
        JSON.stringify({ access_token: new URLSearchParams(body).get('grant_type'), token_type: 'bearer' }),
      )
    })
  } else if (url.pathname === '/jwks') res.setHeader('content-type', 'application/json').end('{"keys":[]}')
  else res.end(`ok ${req.method}`)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const address = server.address()
const port = address !== null && typeof address === 'object' ? address.port : 0
const base = `http://127.0.0.1:${port}`
t.teardown(() => {
  server.closeAllConnections()
  server.close()
})

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined
}

async function reason(fetch: Fetch, url: string): Promise<string> {
  try {
    await fetch(url)
    return 'allowed'
  } catch (error) {
    return codeOf(error) ?? (error instanceof Error ? codeOf(error.cause) : undefined) ?? 'other'
  }
}

await t.test(
  'fetch: without the guard, reads a document and follows a redirect on the same authority',
  async (t) => {
    const fetch = makeFetch()
    t.equal(await (await fetch(`${base}/ok`)).text(), 'ok GET')
    t.equal(await (await fetch(`${base}/redirect`)).text(), 'ok GET')
    t.equal((await fetch(`${base}/away`)).status, 302, 'another authority is not followed')
    t.equal((await fetch(`${base}/loop`)).status, 302, 'a loop ends')
    t.equal((await fetch(`${base}/redirect`, { method: 'POST' })).status, 302, 'a POST is not followed')
    t.equal((await fetch(`${base}/none`)).status, 204)
    await fetch.close()
  },
)

await t.test('fetch: with the guard, never dials a private address, whatever its notation', async (t) => {
  const fetch = makeFetch({ guard: true, allowHttp: true })
  for (const host of [
    '127.0.0.1',
    'localhost',
    '[::1]',
    '2130706433',
    '0x7f.1',
    '0177.0.0.1',
    '[::ffff:127.0.0.1]',
    '0.0.0.0',
    '[::]',
  ]) {
    t.equal(await reason(fetch, `http://${host}:${port}/ok`), 'ADDRESS_REFUSED', `http ${host}`)
    t.equal(await reason(fetch, `https://${host}:${port}/ok`), 'ADDRESS_REFUSED', `https ${host}`)
  }
  for (const host of [
    '10.1.2.3',
    '169.254.169.254',
    '192.168.0.1',
    '[fd00::1]',
    '[64:ff9b::a00:1]',
    '[2002:a00:1::]',
  ]) {
    t.equal(await reason(fetch, `https://${host}/ok`), 'ADDRESS_REFUSED', host)
  }
  await fetch.close()
})

await t.test(
  'fetch: metadata services and loopback stay forbidden where private networks are allowed',
  async (t) => {
    const fetch = makeFetch({ guard: 'private', allowHttp: true })
    for (const host of ['127.0.0.1', '169.254.169.254', '100.100.100.200', '[fd00:ec2::254]', '224.0.0.1']) {
      t.equal(await reason(fetch, `https://${host}/ok`), 'ADDRESS_REFUSED', host)
    }
    await fetch.close()
  },
)

await t.test('fetch: with the guard, checks the addresses of a name, and dials only those', async (t) => {
  const fetch = makeFetch({
    guard: true,
    allowHttp: true,
    lookup: (_name, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]),
  })
  t.equal(await reason(fetch, `http://public.example:${port}/ok`), 'ADDRESS_REFUSED')
  t.equal(await reason(fetch, `https://public.example:${port}/ok`), 'ADDRESS_REFUSED')
  await fetch.close()
})

await t.test(
  'fetch: plain http is allowed to loopback only, and a URL cannot contain credentials',
  async (t) => {
    const fetch = makeFetch({
      lookup: (_name, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]),
    })
    t.equal(await reason(fetch, `http://intranet.example:${port}/ok`), 'URL_REFUSED')
    t.equal(await reason(fetch, `http://user:pw@127.0.0.1:${port}/ok`), 'URL_REFUSED')
    t.equal(await reason(fetch, 'file:///etc/passwd'), 'URL_REFUSED')
    await fetch.close()
    const open = makeFetch({
      allowHttp: true,
      lookup: (_name, _options, callback) => callback(null, [{ address: '127.0.0.1', family: 4 }]),
    })
    t.equal(await reason(open, `http://intranet.example:${port}/ok`), 'allowed')
    await open.close()
  },
)

await t.test('fetch: a response beyond the size or time limit is rejected', async (t) => {
  const small = makeFetch({ maxBytes: 4999 })
  t.equal(await reason(small, `${base}/big`), 'ANSWER_TOO_LARGE')
  await small.close()
  const hasty = makeFetch({ timeoutMs: 100 })
  t.equal(await reason(hasty, `${base}/silent`), 'TIMED_OUT')
  await hasty.close()
  const roomy = makeFetch({ maxBytes: 5000 })
  t.equal((await (await roomy(`${base}/big`)).text()).length, 5000)
  await roomy.close()
})

await t.test(
  'fetch: a compressed response is decoded, and the limit applies to its decoded size',
  async (t) => {
    const fetch = makeFetch()
    for (const path of Object.keys(codings).filter((name) => !['/broken', '/six'].includes(name))) {
      const response = await fetch(base + path)
      t.equal(await response.text(), plain.toString(), path)
      if (path !== '/other') t.equal(response.headers.get('content-length'), null, path)
    }
    await t.rejects(fetch(`${base}/broken`), TypeError)
    await t.rejects(
      fetch(`${base}/six`),
      { cause: { message: /6 content codings/ } },
      'a chain costs every turn',
    )
    await fetch.close()
    const small = makeFetch({ maxBytes: plain.length - 1 })
    for (const path of ['/gzip', '/raw-deflate', '/br', '/twice'])
      t.equal(await reason(small, base + path), 'ANSWER_TOO_LARGE', path)
    await small.close()
  },
)

await t.test('fetch: the body sets the content type, unless the caller sets it', async (t) => {
  const fetch = makeFetch()
  const sent = async (init: Parameters<Fetch>[1]): Promise<Record<string, string>> =>
    (await (await fetch(`${base}/headers`, init)).json()) as Record<string, string>
  const typeOf = async (init: Parameters<Fetch>[1]) =>
    (await sent({ method: 'POST', ...init }))['content-type']
  t.equal(await typeOf({ body: 'a' }), 'text/plain;charset=UTF-8')
  t.equal(
    await typeOf({ body: new URLSearchParams({ a: 'b' }) }),
    'application/x-www-form-urlencoded;charset=UTF-8',
  )
  t.equal(await typeOf({ body: '{}', headers: { 'Content-Type': 'application/json' } }), 'application/json')
  t.equal(await typeOf({ body: new Uint8Array(3) }), undefined)
  const headers = await sent({ headers: new Headers({ Accept: 'application/json' }) })
  t.equal(headers['accept'], 'application/json')
  t.ok(headers['user-agent'], 'some servers reject requests without it')
  await fetch.close()
})

await t.test('fetch: the caller can abort it with a reason, before and while it runs', async (t) => {
  const fetch = makeFetch()
  const ending = new AbortController()
  const running = fetch(`${base}/silent`, { signal: ending.signal })
  const early = fetch(`${base}/ok`, { signal: AbortSignal.abort(new Error('too late')) })
  await t.rejects(early, { message: 'too late' })
  setTimeout(() => ending.abort(new Error('no longer wanted')), 20)
  await t.rejects(running, { message: 'no longer wanted' })
  await fetch.close()
})

await t.test('fetch: works as customFetch of oauth4webapi and jose', async (t) => {
  const fetch = makeFetch()
  const as = await oauth.processDiscoveryResponse(
    new URL(base),
    await oauth.discoveryRequest(new URL(base), {
      [oauth.customFetch]: fetch,
      [oauth.allowInsecureRequests]: true,
    }),
  )
  const client: oauth.Client = { client_id: 'a' }
  const response = await oauth.genericTokenEndpointRequest(
    as,
    client,
    oauth.None(),
    'client_credentials',
    {},
    {
      [oauth.customFetch]: fetch,
      [oauth.allowInsecureRequests]: true,
    },
  )
  t.equal(
    (await oauth.processGenericTokenEndpointResponse(as, client, response)).access_token,
    'client_credentials',
  )
  const keys = jose.createRemoteJWKSet(new URL(`${base}/jwks`), { [jose.customFetch]: fetch })
  await keys.reload()
  t.same(keys.jwks(), { keys: [] })
  await fetch.close()
})
