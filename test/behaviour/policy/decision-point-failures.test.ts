/** A failing decision point, and callers who misuse it: no failure ever becomes a permission. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { post, stateless } from '../../helpers/mcp/wire.ts'
import { makeCertificates } from '../../helpers/redis.ts'
import { type Answer, startDecisionPoint } from '../../helpers/decisions/decision-point.ts'
import { sendJson } from '../../helpers/vmcp/json-server.ts'
import { type Ask, eras, startDecisionRig } from '../../helpers/decisions/decision-rig.ts'
import { startTestVmcp, vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

const echo = (ask: Ask) => ask('tools/call', { name: 'echo', arguments: { text: 'hello' } })
const unavailable = 'authorization check failed: try again later'
const json = { 'content-type': 'application/json' }

const failures: Readonly<Record<string, { readonly answer: Answer; readonly reason: string }>> = {
  'an error': { answer: (res) => sendJson(res, { allow: true }, 500), reason: 'status' },
  'another success': { answer: (res) => sendJson(res, { allow: true }, 202), reason: 'status' },
  'no content': { answer: (res) => res.writeHead(204).end(), reason: 'status' },
  'a redirect': { answer: (res) => res.writeHead(307, { location: '/allow' }).end(), reason: 'redirect' },
  'another type': {
    answer: (res) => res.writeHead(200, { 'content-type': 'text/plain' }).end('{"allow":true}'),
    reason: 'content_type',
  },
  'no type': { answer: (res) => res.writeHead(200).end('{"allow":true}'), reason: 'content_type' },
  'no JSON': { answer: (res) => res.writeHead(200, json).end('allow'), reason: 'malformed' },
  'a list': { answer: (res) => sendJson(res, [{ allow: true }]), reason: 'malformed' },
  'more than JSON': {
    answer: (res) => res.writeHead(200, json).end('{"allow":true} {}'),
    reason: 'malformed',
  },
  'a text': { answer: (res) => sendJson(res, { allow: 'true' }), reason: 'malformed' },
  'a number': { answer: (res) => sendJson(res, { allow: 1 }), reason: 'malformed' },
  'no member': { answer: (res) => sendJson(res, { Allow: true }), reason: 'malformed' },
  'two members': {
    answer: (res) => res.writeHead(200, json).end('{"allow":true,"allow":true}'),
    reason: 'malformed',
  },
  'too much': {
    answer: (res) => sendJson(res, { allow: true, more: 'x'.repeat(70_000) }),
    reason: 'too_large',
  },
  'a broken body': {
    answer(res) {
      res.writeHead(200, { ...json, 'content-length': '100' }).write('{"allow":true}')
      res.destroy()
    },
    reason: 'unreachable',
  },
  silence: { answer: () => {}, reason: 'timeout' },
}

for (const era of eras) {
  t.test(`${era} era: a response without a decision rejects the call`, async (t) => {
    const point = await startDecisionPoint()
    t.teardown(() => point.close())
    const rig = await startDecisionRig(t, {
      http: { url: point.url, timeout: '500ms' },
      claimMapping: 'standard',
      circuitBreaker: { failureThreshold: 100 },
    })
    const ask = await rig.as(era, 'alice')
    const told: string[] = []
    for (const [name, { answer, reason }] of Object.entries(failures)) {
      point.answer = () => answer
      const { response, text } = await echo(ask)
      t.match(response?.error, { code: -32603, message: unavailable }, name)
      t.notMatch(text, point.url)
      told.push(`httpv1: ${reason}`)
    }
    while (rig.audit().length < told.length) await setTimeout(20)
    t.same(
      rig.audit().flatMap(({ policy }) => policy?.['errors']),
      told,
      'each with its reason in the audit log',
    )
    t.notOk(
      point.asked.some(({ path }) => path === '/allow'),
      'no redirect was followed',
    )
    point.answer = () => true
    t.match((await echo(ask)).text, 'hello', 'and decisions work again')
    t.notMatch(await rig.status(), 'is not returning decisions')
  })
}

t.test(
  'a decision point that is down is not called for a while, and callers cannot open the circuit',
  async (t) => {
    const point = await startDecisionPoint(() => (res) => sendJson(res, {}, 500))
    t.teardown(() => point.close())
    const rig = await startDecisionRig(t, {
      http: { url: point.url },
      claimMapping: 'standard',
      circuitBreaker: { failureThreshold: 2, timeout: '1s' },
    })
    const ask = await rig.as('stateless', 'alice')
    for (let i = 0; i < 4; i++) await echo(ask)
    t.equal(point.asked.length, 4, 'an error response does not count as an outage')
    point.answer = () => (res) => sendJson(res, {}, 503)
    for (let i = 0; i < 4; i++) t.match((await echo(ask)).response?.error, { message: unavailable })
    t.equal(point.asked.length, 6)
    t.match(await rig.metrics(), /outcome="circuit_open"[^}]*\} 2/)
    point.answer = () => true
    while ((await echo(ask)).response?.error) await setTimeout(50)
    t.match((await echo(ask)).text, 'hello')
  },
)

t.test('a connection lost during a request is not a failure', async (t) => {
  const point = await startDecisionPoint()
  t.teardown(() => point.close())
  const rig = await startDecisionRig(t, { http: { url: point.url }, claimMapping: 'standard' })
  const ask = await rig.as('stateless', 'alice')
  await echo(ask)
  let first = true
  point.answer = () => {
    if (!first) return true
    first = false
    return (res) => res.destroy()
  }
  t.match((await echo(ask)).text, 'hello')
})

t.test('mutual TLS and a token of the gateway are reloaded when they change', async (t) => {
  const certificates = makeCertificates()
  const other = makeCertificates()
  const folder = mkdtempSync(join(tmpdir(), 'decision-point-'))
  const file = (name: string, from: string): string => {
    const path = join(folder, name)
    writeFileSync(path, readFileSync(from))
    return path
  }
  const tokenPath = join(folder, 'token')
  writeFileSync(tokenPath, 'first-token\n')
  const { caFile, certFile, keyFile, ca } = certificates
  const tls = { key: readFileSync(keyFile), cert: readFileSync(certFile), ca: Buffer.from(ca) }
  const point = await startDecisionPoint(
    (_question, headers) => headers.authorization === 'Bearer first-token',
    tls,
  )
  t.teardown(async () => {
    await point.close()
    for (const made of [certificates, other]) made.remove()
    rmSync(folder, { recursive: true })
  })
  const paths = {
    caBundlePath: file('ca', caFile),
    clientCertificatePath: file('crt', certFile),
    clientKeyPath: file('key', keyFile),
    bearerTokenPath: tokenPath,
  }
  const start = (http: Record<string, unknown>) =>
    startDecisionRig(t, { http: { url: point.url, ...http }, claimMapping: 'standard' })
  const ask = await (await start(paths)).as('stateless', 'alice')
  t.match((await echo(ask)).text, 'hello')

  const { clientCertificatePath: _, clientKeyPath: __, ...noClient } = paths
  const without = await (await start(noClient)).as('stateless', 'alice')
  t.match((await echo(without)).response?.error, { message: unavailable }, 'without a client certificate')
  const { caBundlePath: ___, ...noCa } = paths
  const distrusting = await (await start(noCa)).as('stateless', 'alice')
  t.match(
    (await echo(distrusting)).response?.error,
    { message: unavailable },
    'a server with an untrusted certificate',
  )
  const foreign = { ...paths, clientCertificatePath: other.certFile, clientKeyPath: other.keyFile }
  const refused = await (await start(foreign)).as('stateless', 'alice')
  t.match(
    (await echo(refused)).response?.error,
    { message: unavailable },
    'a certificate of another authority',
  )

  writeFileSync(tokenPath, 'second-token')
  point.answer = (_question, headers) => headers.authorization === 'Bearer second-token'
  while ((await echo(ask)).response?.error) await setTimeout(100)
  t.pass('the rotated token is sent')
})

t.test('ambiguous JSON is rejected without a request', async (t) => {
  const point = await startDecisionPoint(({ context }) => context['mcp']?.['args'] === undefined)
  t.teardown(() => point.close())
  const start = () =>
    startTestVmcp(
      {},
      {
        incomingAuth: {
          type: 'anonymous',
          authz: {
            type: 'httpv1',
            httpv1: { http: { url: point.url }, claimMapping: 'mpe', context: { includeArgs: true } },
          },
        },
      },
    )
  const vmcp = await start()
  t.teardown(() => vmcp.close())
  const meta =
    '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}'
  const call = (args: string) =>
    post(
      vmcp.url,
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":${args},${meta}}}`,
      { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'x' },
    )
  for (const args of ['{"a":1,"a":2}', '{"a":{"b":1,"\\u0062":2}}', '[1]', '"x"'])
    t.match((await call(args)).response?.error, { code: -32602 }, args)
  t.equal(point.asked.length, 0)
  await call('{"a":9007199254740993}')
  t.match(point.asked[0]?.text, '9007199254740993', 'numbers arrive as they were written')
})

t.test('unusable settings prevent the start', async (t) => {
  const start = (http: Record<string, unknown>, more: Record<string, unknown> = {}) =>
    startTestVmcp(
      {},
      {
        incomingAuth: {
          type: 'anonymous',
          authz: { type: 'httpv1', httpv1: { http, claimMapping: 'standard', ...more } },
        },
      },
    )
  const url = 'https://pdp.example'
  const wrong: readonly (readonly [Record<string, unknown>, RegExp])[] = [
    [{ url: 'ftp://pdp.example' }, /http\.url/],
    [{ url: 'https://user:pass@pdp.example' }, /http\.url/],
    [{ url: 'https://pdp.example/?a=b' }, /http\.url/],
    [{ url: 'http://169.254.169.254' }, /never allowed/],
    [{ url, timeout: '0s' }, /from 100ms to 60s/],
    [{ url, clientCertificatePath: '/x' }, /must be set together/],
    [{ url: 'http://pdp.example', bearerTokenPath: '/x' }, /need an https URL/],
    [{ url, insecureSkipVerify: true, bearerTokenPath: '/x' }, /cannot be combined with/],
    [{ url, bearerTokenPath: '/does/not/exist' }, /cannot be read/],
    [{ url, caBundlePath: '/does/not/exist' }, /cannot be read/],
  ]
  for (const [http, message] of wrong) await t.rejects(async () => start(http), { message })
  await t.rejects(async () => start({ url }, { claimMapping: 'other' }), { message: /claimMapping/ })
})

t.test('a changed file: another decision point is used, and problems of the earlier one end', async (t) => {
  const [down, up] = await Promise.all([startDecisionPoint(), startDecisionPoint()])
  await down.close()
  t.teardown(() => up.close())
  const settings = (url: string) => ({
    incomingAuth: {
      type: 'anonymous',
      authz: { type: 'httpv1', httpv1: { http: { url }, claimMapping: 'standard', cache: {} } },
    },
  })
  const vmcp = await startTestVmcp({}, settings(down.url))
  t.teardown(() => vmcp.close())
  const call = () => stateless(vmcp.url, 'tools/call', { name: 'x' })
  const status = async () => (await fetch(`${vmcp.origin}/status`)).text()
  for (let i = 0; i < 3; i++) await call()
  t.match(await status(), 'the decision point is not returning decisions')
  vmcp.reload(vmcpConfig({}, settings(up.url)))
  t.notMatch(await status(), 'the decision point is not returning decisions')
  t.match((await call()).text, 'not found')
  t.equal(up.asked.length, 1)
  vmcp.reload(vmcpConfig({}, { ...settings(up.url), passthroughHeaders: ['x-other'] }))
  await call()
  t.equal(up.asked.length, 1, 'unchanged settings keep the cache')
})

t.test('a list ends in time, without the items that have no decision', async (t) => {
  let held = 0
  const point = await startDecisionPoint(({ resource }) => resource.endsWith(':echo') || (() => void held++))
  t.teardown(() => point.close())
  const rig = await startDecisionRig(t, {
    http: { url: point.url, timeout: '300ms' },
    claimMapping: 'standard',
    circuitBreaker: { failureThreshold: 1000 },
  })
  const ask = await rig.as('stateless', 'alice')
  const { response } = await ask('tools/list')
  t.match(response?.result?.['tools'], [{ name: 'echo' }])
  t.ok(held > 0)
  t.match(await rig.metrics(), /decision_point_answers_total\{[^}]*outcome="timeout"/)
})
