/**
 * A decision point that implements OpenID AuthZEN, over HTTP in both eras: exact requests, batches for lists, and only
 * a boolean decision permits a call.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { makeCertificates, until } from '../../helpers/redis.ts'
import { startAuthzenPoint, type TestAuthzenPoint } from '../../helpers/decisions/authzen-point.ts'
import { type Ask, eras, startDecisionRig, toolsIn } from '../../helpers/decisions/decision-rig.ts'
import { sendJson } from '../../helpers/vmcp/json-server.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const echo = (ask: Ask, text = 'hello') => ask('tools/call', { name: 'echo', arguments: { text } })
const denied = 'call denied by authorization policy'
const unavailable = 'authorization check failed: try again later'
const json = { 'content-type': 'application/json' }

function rig(t: Parameters<typeof startDecisionRig>[0], point: TestAuthzenPoint, more: object = {}) {
  return startDecisionRig(t, { http: { url: point.url }, ...more }, 'authzenv1')
}

for (const era of eras) {
  t.test(`${era} era: the requests, and the effect of the responses`, async (t) => {
    const point = await startAuthzenPoint(
      ({ resource }) => resource.properties['name'] !== 'test_simple_text',
    )
    t.teardown(() => point.close())
    const claims = { roles: ['dev'], groups: ['team'], scope: 'read write', clearance: 'HIGH', secret: 'x' }

    await t.test('an evaluation contains exactly subject, action, resource and context', async (t) => {
      const ask = await (await rig(t, point)).as(era, 'alice', claims)
      t.match((await echo(ask)).text, 'hello')
      const asked = point.asked.at(-1)
      t.same(asked?.body, {
        subject: {
          type: 'user',
          id: 'alice',
          properties: { roles: ['dev'], groups: ['team'], scopes: 'read write' },
        },
        action: { name: 'tools/call' },
        resource: {
          type: 'tool',
          id: 'test-vmcp/fixture/echo',
          properties: { name: 'echo', backend: 'fixture', original: 'echo' },
        },
        context: { server: 'test-vmcp' },
      })
      t.match(asked, { path: '/access/v1/evaluation', headers: { 'content-type': 'application/json' } })
      t.notOk(asked?.headers.authorization, "the caller's token is not sent")
      await ask('prompts/get', { name: 'test_simple_prompt' })
      await ask('resources/read', { uri: 'test://static-text' })
      const more = point.asked.map(({ body: { action, resource } }) => [
        action.name,
        resource.type,
        resource.id,
      ])
      t.has(more, [
        ['tools/call', 'tool', 'test-vmcp/fixture/echo'],
        ['prompts/get', 'prompt', 'test-vmcp/fixture/test_simple_prompt'],
        ['resources/read', 'resource', 'test-vmcp/fixture/test://static-text'],
      ])
    })

    await t.test(
      "a denied call is rejected, and the client learns nothing of the response's context",
      async (t) => {
        const server = await rig(t, point)
        const ask = await server.as(era, 'alice')
        const { response, text } = await ask('tools/call', { name: 'test_simple_text', arguments: {} })
        t.match(response?.error, { code: 403, message: denied })
        t.notMatch(text, 'secret reason')
        // Lines are written after the response.
        await until(() => server.audit().some(({ policy }) => policy))
        t.match(server.audit().at(-1), { policy: { decision: 'deny', reason: ['authzenv1'], errors: [] } })
        t.notMatch((await echo(ask)).text, 'secret reason')
      },
    )

    await t.test('claims have the names of mpe, and arguments are sent on request', async (t) => {
      const server = await rig(t, point, { claimMapping: 'mpe', context: { includeArgs: true } })
      const ask = await server.as(era, 'alice', claims)
      await ask('tools/call', { name: 'echo', arguments: { text: 'ünïcode', n: [1] } })
      t.same(point.asked.at(-1)?.body.subject.properties, {
        mroles: ['dev'],
        mgroups: ['team'],
        scopes: 'read write',
        mclearance: 'HIGH',
        mannotations: {},
      })
      t.same(point.asked.at(-1)?.body.context, {
        server: 'test-vmcp',
        arguments: { text: 'ünïcode', n: [1] },
      })
    })

    await t.test('a list is one batch, with one evaluation per item as for a call', async (t) => {
      const ask = await (await rig(t, point)).as(era, 'alice', claims)
      point.asked.length = 0
      const names = toolsIn(await ask('tools/list'))
      t.ok(names.includes('echo'))
      t.notOk(names.includes('test_simple_text'))
      t.equal(point.asked.length, 1)
      const [batch] = point.asked
      t.match(batch, { path: '/access/v1/evaluations' })
      t.match(batch?.body, {
        subject: { id: 'alice' },
        action: { name: 'tools/call' },
        options: { evaluations_semantic: 'execute_all' },
      })
      t.equal(batch?.evaluations.length, names.length + 1)
      await echo(ask)
      const single = point.asked.at(-1)?.body
      const same = batch?.evaluations.find(({ resource }) => resource.properties['name'] === 'echo')
      t.match(same, { ...single }, 'a cached decision applies to both')
    })
  })
}

const nothing: Readonly<Record<string, readonly [body: string, reason: string]>> = {
  'no JSON': ['true', 'malformed'],
  'a text': ['{"decision":"true"}', 'malformed'],
  'a number': ['{"decision":1}', 'malformed'],
  null: ['{"decision":null}', 'malformed'],
  'no member': ['{"Decision":true,"allow":true}', 'malformed'],
  'two members': ['{"decision":true,"decision":true}', 'malformed'],
  'a batch': ['{"evaluations":[{"decision":true}]}', 'malformed'],
  'too much': [`{"decision":true,"context":{"x":"${'x'.repeat(70_000)}"}}`, 'too_large'],
}

t.test('a response without a decision rejects the call, and the audit log has the reason', async (t) => {
  const point = await startAuthzenPoint()
  t.teardown(() => point.close())
  const server = await rig(t, point)
  const ask = await server.as('stateless', 'alice')
  for (const [name, [body]] of Object.entries(nothing)) {
    point.answer = (res) => res.writeHead(200, json).end(body)
    t.match((await echo(ask)).response?.error, { code: -32603, message: unavailable }, name)
  }
  point.answer = (res) => res.writeHead(307, { location: '/elsewhere' }).end()
  t.match((await echo(ask)).response?.error, { message: unavailable }, 'a redirect')
  const told = [...Object.values(nothing).map(([, reason]) => reason), 'redirect']
  while (server.audit().length < told.length) await setTimeout(20)
  t.same(
    server.audit().flatMap(({ policy }) => policy?.['errors']),
    told.map((reason) => `authzenv1: ${reason}`),
  )
  t.notOk(point.asked.some(({ path }) => path === '/elsewhere'))
  point.answer = undefined
  t.match((await echo(ask)).text, 'hello', 'and decisions work again')
})

t.test(
  'batch items without a valid decision are left out, and a batch with too many entries decides nothing',
  async (t) => {
    const point = await startAuthzenPoint()
    t.teardown(() => point.close())
    const server = await rig(t, point)
    const ask = await server.as('stateless', 'alice')
    const all = toolsIn(await ask('tools/list'))
    const answering = (evaluations: unknown): void => {
      point.answer = (res) => sendJson(res, { evaluations })
    }
    const allow = { decision: true }

    answering([allow])
    t.equal(toolsIn(await ask('tools/list')).length, 1, 'items without an entry are left out')
    answering(all.map((_, at) => (at === 0 ? allow : { decision: 'true' })))
    t.equal(toolsIn(await ask('tools/list')).length, 1, 'items without a boolean are left out')
    answering(all.map((_, at) => (at === 1 ? allow : [true])))
    t.equal(toolsIn(await ask('tools/list')).length, 1, 'items that are not objects are left out')
    t.match(await server.metrics(), /decision_point_answers_total\{[^}]*outcome="malformed"[^}]*\} 3/)

    for (const [name, evaluations] of Object.entries({
      'more than was asked': [...all, 'more'].map(() => allow),
      'none at all': [],
      'no list': { 0: allow },
      'no member': undefined,
    })) {
      answering(evaluations)
      t.match((await ask('tools/list')).response?.error, { code: -32603, message: unavailable }, name)
    }
    point.answer = (res) => sendJson(res, allow)
    t.match(
      (await ask('tools/list')).response?.error,
      { message: unavailable },
      'a response to a single evaluation',
    )
    answering(all.map(() => ({ decision: false })))
    t.same(toolsIn(await ask('tools/list')), [], 'a list may be empty if every item is denied')
  },
)

t.test('a decision point without batches gets one request per item', async (t) => {
  const point = await startAuthzenPoint(({ resource }) => resource.properties['name'] === 'echo')
  point.batches = false
  t.teardown(() => point.close())
  const ask = await (await rig(t, point)).as('stateless', 'alice')
  t.same(toolsIn(await ask('tools/list')), ['echo'])
  const batches = () => point.asked.filter(({ path }) => path === '/access/v1/evaluations').length
  t.equal(batches(), 1)
  t.same(toolsIn(await ask('tools/list')), ['echo'])
  t.equal(batches(), 1, 'a batch is not tried again for a while')
})

t.test('a list is sent in batches of 50, without items that are cached', async (t) => {
  const point = await startAuthzenPoint(({ resource }) => !resource.id.endsWith('7'))
  t.teardown(() => point.close())
  const tools = Array.from({ length: 120 }, (_, at) => ({
    name: `tool_${at}`,
    inputSchema: { type: 'object' },
  }))
  const { makeExternalGate } = await import('../../../runtime/policy/index.ts')
  const { makeCaller } = await import('../../../runtime/net/index.ts')
  const { vmcpConfig } = await import('../../helpers/vmcp/vmcp.ts')
  const authz = {
    type: 'authzenv1',
    authzenv1: { http: { url: point.url }, cache: { ttl: '5m', maxEntries: 1000 } },
  }
  const { incomingAuth } = vmcpConfig({}, { incomingAuth: { type: 'anonymous', authz } })
  const gate = makeExternalGate(incomingAuth.authz, { serverName: 'x', observe() {} })
  if (!gate) throw new Error('no gate')
  t.teardown(() => gate.close?.())
  const caller = makeCaller({ issuer: 'i', subject: 'ada', claims: { sub: 'ada' } })
  const list = async (count: number) => {
    const raw = Buffer.from(JSON.stringify({ tools: tools.slice(0, count) }))
    const { tools: left } = JSON.parse((await gate.filter(caller, 'tools/list', raw)).toString()) as {
      tools: unknown[]
    }
    return left.length
  }
  t.equal(await list(110), 99)
  t.same(
    point.asked.map(({ evaluations }) => evaluations.length).sort((a, b) => a - b),
    [10, 50, 50],
  )
  t.equal(await list(120), 108)
  t.equal(point.asked.length, 4)
  t.equal(point.asked.at(-1)?.evaluations.length, 10, 'decided items are not requested again')
})

t.test('both paths of the decision point support mutual TLS and a token of the gateway', async (t) => {
  const { caFile, certFile, keyFile, ca, remove } = makeCertificates()
  const folder = mkdtempSync(join(tmpdir(), 'authzen-'))
  const tokenPath = join(folder, 'token')
  writeFileSync(tokenPath, 'own-token\n')
  const tls = { key: readFileSync(keyFile), cert: readFileSync(certFile), ca: Buffer.from(ca) }
  const point = await startAuthzenPoint((_, { authorization }) => authorization === 'Bearer own-token', tls)
  t.teardown(async () => {
    await point.close()
    remove()
    rmSync(folder, { recursive: true })
  })
  const paths = { caBundlePath: caFile, clientCertificatePath: certFile, clientKeyPath: keyFile }
  const start = (http: object) => rig(t, point, { http: { url: point.url, ...http } })
  const ask = await (await start({ ...paths, bearerTokenPath: tokenPath })).as('stateless', 'alice')
  t.match((await echo(ask)).text, 'hello')
  t.ok(toolsIn(await ask('tools/list')).length > 1)
  const untrusted = await (await start({})).as('stateless', 'alice')
  t.match((await echo(untrusted)).response?.error, { message: unavailable })
  t.match((await untrusted('tools/list')).response?.error, { message: unavailable })
})

t.test('a decision point that is down opens the circuit, which closes when it is back', async (t) => {
  const point = await startAuthzenPoint()
  t.teardown(() => point.close())
  point.answer = (res) => sendJson(res, {}, 503)
  const server = await rig(t, point, { circuitBreaker: { failureThreshold: 2, timeout: '1s' } })
  const ask = await server.as('stateless', 'alice')
  for (let i = 0; i < 4; i++) await echo(ask)
  t.equal(point.asked.length, 2)
  t.match((await ask('tools/list')).response?.error, { message: unavailable })
  t.match(await server.status(), 'the decision point is not returning decisions')
  point.answer = undefined
  while ((await echo(ask)).response?.error) await setTimeout(50)
  t.ok(toolsIn(await ask('tools/list')).length > 1)
})

t.test('unusable settings prevent the start', async (t) => {
  const start = async (authz: object) => startTestVmcp({}, { incomingAuth: { type: 'anonymous', authz } })
  const url = 'https://pdp.example'
  const wrong: readonly (readonly [object, RegExp])[] = [
    [{ type: 'authzenv1' }, /authzenv1 must be set exactly/],
    [{ type: 'authzenv1', httpv1: { http: { url }, claimMapping: 'mpe' } }, /must be set exactly/],
    [
      { type: 'authzenv1', authzenv1: { http: { url } }, policies: ['permit(principal, action, resource);'] },
      /for type cedar/,
    ],
    [
      { type: 'authzenv1', authzenv1: { http: { url }, context: { includeOperation: true } } },
      /includeOperation/,
    ],
    [{ type: 'authzenv1', authzenv1: { http: { url: 'http://169.254.169.254' } } }, /never allowed/],
    [
      { type: 'authzenv1', authzenv1: { http: { url, caBundlePath: '/does/not/exist' } } },
      /authzenv1\.http\.caBundlePath.*cannot be read/,
    ],
  ]
  for (const [authz, message] of wrong) await t.rejects(start(authz), { message })
})
