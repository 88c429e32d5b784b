/** The headers that reach a backend (passed through, forwarded, injected), and trust anchors for its certificate. */
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import t from 'tap'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { startTokenIssuer } from '../../../helpers/authserver/token-issuer.ts'
import { startLoopback } from '../../../helpers/loopback.ts'
import { startPassingTime } from '../../../helpers/outgoing/passing-time.ts'
import { openSession, stateless } from '../../../helpers/mcp/wire.ts'
import { proves } from '../../../helpers/proves.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { makeCertificates, missingRedisTls } from '../../../helpers/redis.ts'
import { startTestVmcp, vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'

proves(
  '3.auth.passthrough',
  '3.config.passthroughHeaders',
  '3.auth.outgoing',
  '3.config.outgoingAuth',
  '3.config.outgoingAuth.default',
  '3.config.outgoingAuth.backends',
  '3.error.passthroughHeaders',
)

t.test('listed headers are copied from each request, other headers are not', async (t) => {
  const [a, b] = await Promise.all([startRawBackend(), startFixture({ era: 'stateless' })])
  const vmcp = await startTestVmcp({ a: a.url, b: b.url }, { passthroughHeaders: ['X-Team', 'X-Trace'] })
  t.teardown(() => Promise.all([vmcp.close(), a.close(), b.close()]))
  const session = await openSession(vmcp.url, {
    headers: { 'x-team': 'red', 'x-other': 'no', authorization: 'Bearer abc' },
  })
  await session.request('tools/call', { name: 'a_echo' })
  await session.request('tools/call', { name: 'a_echo' }, { 'x-team': 'blue' })
  const calls = a.requests.filter(({ method }) => method === 'tools/call')
  t.same(
    calls.map(({ headers }) => headers['x-team']),
    ['red', 'blue'],
    'a changed value in the same session arrives',
  )
  await stateless(
    vmcp.url,
    'tools/call',
    { name: 'b_echo' },
    { headers: { 'x-trace': 't-1', 'x-other': 'no' } },
  )
  const last = b.state.requests.at(-1)
  t.equal(last?.headers['x-trace'], 't-1')
  for (const { headers } of [...a.requests, ...b.state.requests]) {
    t.equal(headers['x-other'], undefined)
    t.equal(headers['authorization'], undefined)
  }
})

t.test('restricted headers cannot be listed', async (t) => {
  for (const name of [
    'Host',
    'Authorization',
    'Cookie',
    'X-Forwarded-For',
    'Connection',
    'Mcp-Session-Id',
    'TE',
  ]) {
    t.throws(() => vmcpConfig({}, { passthroughHeaders: [name] }), { code: 'INVALID_CONFIG' }, name)
  }
})

t.test(
  'fixed headers come from the environment, override client headers, and only go to their backend',
  async (t) => {
    const [a, b] = await Promise.all([startRawBackend(), startRawBackend()])
    const env = {
      GATEHOUSE_HEADER_FORWARD_MY_A: JSON.stringify({
        addPlaintextHeaders: { 'X-Plan': 'gold', 'X-Team': 'fixed' },
        addHeadersFromSecret: { 'X-Api-Key': 'HEADER_FORWARD_X_API_KEY_MY_A' },
      }),
      GATEHOUSE_SECRET_HEADER_FORWARD_X_API_KEY_MY_A: 'k-123',
    }
    const vmcp = await startTestVmcp({ 'my-a': a.url, b: b.url }, { passthroughHeaders: ['X-Team'] }, { env })
    t.teardown(() => Promise.all([vmcp.close(), a.close(), b.close()]))
    const session = await openSession(vmcp.url, { headers: { 'x-team': 'forged' } })
    await session.request('tools/call', { name: 'my-a_echo' })
    await session.request('tools/call', { name: 'b_echo' })
    t.match(a.requests.at(-1)?.headers, { 'x-plan': 'gold', 'x-team': 'fixed', 'x-api-key': 'k-123' })
    t.match(b.requests.at(-1)?.headers, { 'x-team': 'forged' })
    t.ok(
      b.requests.every(
        ({ headers }) => headers['x-api-key'] === undefined && headers['x-plan'] === undefined,
      ),
    )
  },
)

t.test('one backend has its own strategy, the other backends share a default', async (t) => {
  const [a, b] = await Promise.all([startRawBackend(), startRawBackend()])
  const inject = (headerName: string, value: Record<string, string>) => ({
    type: 'header_injection',
    headerInjection: { headerName, ...value },
  })
  const outgoingAuth = {
    source: 'inline',
    default: inject('X-Default', { headerValueEnv: 'DEFAULT_KEY' }),
    backends: { a: inject('Authorization', { headerValue: 'Bearer of-a' }) },
  }
  const vmcp = await startTestVmcp({ a: a.url, b: b.url }, { outgoingAuth }, { env: { DEFAULT_KEY: 'd-1' } })
  t.teardown(() => Promise.all([vmcp.close(), a.close(), b.close()]))
  const session = await openSession(vmcp.url)
  await session.request('tools/call', { name: 'a_echo' })
  await session.request('tools/call', { name: 'b_echo' })
  t.ok(
    a.requests.every(
      ({ headers }) => headers['authorization'] === 'Bearer of-a' && headers['x-default'] === undefined,
    ),
  )
  t.ok(
    b.requests.every(
      ({ headers }) => headers['x-default'] === 'd-1' && headers['authorization'] === undefined,
    ),
  )
  t.match(await (await fetch(`${vmcp.origin}/status`)).json(), {
    backends: [{ auth_type: 'header_injection' }, {}],
  })
})

t.test('a backend rejects the credential: the tool result reports it without the credential', async (t) => {
  const backend = await startRawBackend({
    before: (req, res) => {
      if (req.headers['x-key'] === 'good') return false
      res.writeHead(401, { 'www-authenticate': 'Bearer realm="internal"' }).end('the key bad-1 is wrong')
      return true
    },
  })
  const outgoingAuth = {
    source: 'inline',
    default: { type: 'header_injection', headerInjection: { headerName: 'X-Key', headerValueEnv: 'KEY' } },
  }
  const env: Record<string, string> = { KEY: 'good' }
  const vmcp = await startTestVmcp({ raw: backend.url }, { outgoingAuth }, { env })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  t.match((await session.request('tools/call', { name: 'raw_echo' })).response?.result, {
    content: [{ text: '{}' }],
  })
  env['KEY'] = 'bad-1'
  const { text, response, headers } = await session.request('tools/call', { name: 'raw_echo' })
  t.match(response?.result, {
    isError: true,
    content: [{ text: 'backend raw: authentication to the backend failed' }],
  })
  t.notMatch(text, 'bad-1')
  t.equal(headers.get('www-authenticate'), null, 'the client is not sent to the backend’s login')
  env['KEY'] = 'good'
  t.match(
    (await session.request('tools/call', { name: 'raw_echo' })).response?.result,
    { content: [{ text: '{}' }] },
    'a rotated value is reloaded',
  )
})

t.test('a backend with a certificate of a private authority works', { skip: missingRedisTls }, async (t) => {
  const { certFile, keyFile, ca, remove } = makeCertificates()
  const { readFileSync } = await import('node:fs')
  const plain = await startRawBackend()
  const tls = createTlsServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      const { host: _host, connection: _connection, ...headers } = req.headers
      void fetch(plain.url, {
        method: req.method ?? 'GET',
        headers: headers as Record<string, string>,
        ...(req.method === 'POST' ? { body: Buffer.concat(chunks).toString() } : {}),
      })
        .then(async (response) => {
          if (req.method === 'GET') {
            res.writeHead(405).end()
            await response.body?.cancel()
            return
          }
          res.writeHead(response.status, Object.fromEntries(response.headers))
          res.end(Buffer.from(await response.arrayBuffer()))
        })
        .catch(() => res.destroy())
    })
  })
  await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve))
  const url = `https://127.0.0.1:${(tls.address() as AddressInfo).port}/mcp`
  const caFile = join(t.testdir({}), 'ca.crt')
  writeFileSync(caFile, ca)
  const config = (caBundlePath?: string) => ({
    backends: [
      {
        name: 'raw',
        url,
        transport: 'streamable-http',
        type: 'entry',
        ...(caBundlePath === undefined ? {} : { caBundlePath }),
      },
    ],
  })
  const trusting = await startTestVmcp({}, config(caFile))
  const doubting = await startTestVmcp({}, config())
  t.teardown(async () => {
    await Promise.all([trusting.close(), doubting.close(), plain.close()])
    tls.closeAllConnections()
    tls.close()
    remove()
  })
  t.match((await (await openSession(trusting.url)).request('tools/list')).text, 'raw_echo')
  t.equal((await (await openSession(doubting.url)).request('tools/list')).response?.error?.code, -32603)
})

for (const era of ['session', 'stateless'] as const)
  t.test(
    `${era} era: a token that the backend rejects is replaced once, and the call is repeated`,
    async (t) => {
      const pass = startPassingTime(t)
      let issued = 0
      let revoked = 0
      const sts = await startLoopback(() => ({
        body: {
          access_token: `token-${++issued}`,
          token_type: 'Bearer',
          issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
          expires_in: 300,
        },
      }))
      const backend = await startFixture({
        era,
        before({ headers }, res) {
          if (!(Number(headers.authorization?.replace('Bearer token-', '')) <= revoked)) return false
          res.writeHead(401).end()
          return true
        },
      })
      const issuer = await startTokenIssuer()
      const vmcp = await startTestVmcp(
        { b: backend.url },
        {
          incomingAuth: issuer.incomingAuth,
          outgoingAuth: {
            source: 'inline',
            default: { type: 'token_exchange', tokenExchange: { tokenUrl: `${sts.url}/token` } },
          },
        },
      )
      t.teardown(() => Promise.all([vmcp.close(), backend.close(), issuer.close(), sts.close()]))
      const headers = { authorization: `Bearer ${await issuer.token('alice')}` }
      const call = async () =>
        (await stateless(vmcp.url, 'tools/call', { name: 'b_test_simple_text' }, { headers })).response
          ?.result
      t.match(await call(), { content: [{ type: 'text' }], isError: undefined })
      const before = issued
      revoked = issued
      pass(10_000)
      t.match(await call(), { content: [{ type: 'text' }], isError: undefined })
      t.equal(issued, before + 1)
      revoked = Number.MAX_SAFE_INTEGER
      pass(10_000)
      t.match(await call(), { isError: true, content: [{ text: /authentication to the backend failed/ }] })
      t.equal(issued, before + 2)
    },
  )
