/**
 * Policies that could overflow the engine permanently, through every entry point: reviews, syncs, the command line, the
 * running server. Each is rejected with its location, and other requests continue.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { makeHooks } from '../../../hooks/index.ts'
import { makeLog } from '../../../hooks/server/log.ts'
import { HookMetrics } from '../../../hooks/server/metrics.ts'
import { hooksApp } from '../../../hooks/server/server.ts'
import { makeCaller, silentLog } from '../../../runtime/net/index.ts'
import { makeAuthorizer } from '../../../runtime/policy/index.ts'
import { engineAnswers } from '../../../schemas/cedar/index.ts'
import { breakEngine, trapEngine } from '../../helpers/broken-engine.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'
import { configMap, server as manifest, world } from '../../hooks/resources.ts'
import { testSettings } from '../../hooks/world.ts'

const good = 'permit(principal, action, resource);'
const when = (condition: string): string => `permit(principal, action, resource) when { ${condition} };`
const monsters = [
  when('('.repeat(200) + 'true' + ')'.repeat(200)),
  when(`${'['.repeat(500)}1${']'.repeat(500)} == []`),
  when(`context${'.a'.repeat(3000)}`),
  when(`1${' + 1'.repeat(3000)} == 1`),
]
let deep = '1'
for (let i = 0; i < 500; i++) deep = `[${deep}]`
const deepEntities = `[{"uid":{"type":"A","id":"1"},"attrs":{"x":${deep}},"parents":[]}]`

function inline(policies: readonly string[], entitiesJson = '[]') {
  return { authzConfig: { type: 'inline', inline: { policies, entitiesJson } } }
}

async function startHooks(t: Test) {
  const metrics = new HookMetrics()
  const app = hooksApp({
    registry: makeHooks(testSettings),
    metrics,
    log: makeLog({ write: () => undefined }, { now: () => new Date(0) }),
    seconds: () => 0,
    notReady: () => (engineAnswers() ? undefined : 'the policy engine is not responding'),
  })
  const listener = createServer(app).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  t.teardown(() => new Promise((resolve) => listener.close(resolve)))
  const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`
  const post = async (path: string, body: unknown) => {
    const headers = { 'content-type': 'application/json', connection: 'close' }
    const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const review = (object: unknown, { dryRun = false }: { readonly dryRun?: boolean } = {}) =>
    post('/validate', {
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: { uid: 'u', kind: { kind: 'MCPServer' }, operation: 'CREATE', dryRun, object },
    })
  const ready = async () => (await fetch(`${url}/readyz`, { headers: { connection: 'close' } })).status
  return { post, review, ready, metrics }
}

t.test(
  'reviews: an oversized policy is rejected with its location, and the next review is answered',
  async (t) => {
    const { review, ready } = await startHooks(t)
    for (const monster of monsters) {
      const { status, body } = await review(manifest('files', inline([good, monster])), { dryRun: true })
      t.equal(status, 200)
      t.match(body, {
        response: { allowed: false, status: { message: /^spec\.authzConfig\.inline\.policies\[1\]: nests/ } },
      })
    }
    t.match((await review(manifest('files', inline([good], deepEntities)))).body, {
      response: { allowed: false, status: { message: /inline\.entitiesJson: are nested more than 32/ } },
    })
    t.match((await review(manifest('files', inline([good])))).body, { response: { allowed: true } })
    t.equal(await ready(), 200)
  },
)

t.test('syncs: an oversized policy in a ConfigMap only affects the objects that reference it', async (t) => {
  const { post } = await startHooks(t)
  const envelope = (policies: readonly string[]) =>
    JSON.stringify({ version: '1.0', type: 'cedarv1', cedar: { policies, entities_json: '[]' } })
  for (const monster of monsters) {
    const named = { authzConfig: { type: 'configMap', configMap: { name: 'authz' } } }
    const w = world(configMap('authz', { 'authz.json': envelope([monster]) }), manifest('files', named))
    const { status, body } = await post('/hooks/mcpservers/sync', w.request('MCPServer', 'files'))
    t.equal(status, 200)
    t.match(JSON.stringify(body['status']), /ConfigMap authz, key authz\.json: policies\[0\] nests/)
    const other = world(manifest('other', inline([good])))
    t.notMatch(
      JSON.stringify(
        (await post('/hooks/mcpservers/sync', other.request('MCPServer', 'other'))).body['status'],
      ),
      /Invalid/,
    )
  }
})

t.test('readiness: fails while the engine does not respond, and reviews fail closed', async (t) => {
  const { review, ready, metrics } = await startHooks(t)
  t.equal(await ready(), 200)
  const broken = breakEngine()
  t.equal(await ready(), 503)
  t.match((await review(manifest('files', inline(['permit(principal, action, resource); // new'])))).body, {
    response: {
      allowed: false,
      status: { message: /cannot be checked: the policy engine cannot be loaded/ },
    },
  })
  t.match(metrics.text(), /gatehouse_hooks_policy_engine_failures_total [1-9]/)
  broken.repair()
  t.equal(await ready(), 200)
  t.match((await review(manifest('files', inline([good])))).body, { response: { allowed: true } })
})

t.test(
  'command line: validate names the file of an oversized policy and checks the other files',
  async (t) => {
    const dir = t.testdir({
      'a.json': JSON.stringify(manifest('a', inline([monsters[0] ?? '']))),
      'b.json': JSON.stringify(manifest('b', inline([good]))),
      'c.json': JSON.stringify(manifest('c', inline(['permit(']))),
    })
    const { code, stderr } = await runGatehouse(['validate', '-f', dir])
    t.equal(code, 1)
    t.match(stderr, /a\.json:\d+: .*spec\.authzConfig\.inline\.policies\[0\]: nests brackets/)
    t.notMatch(stderr, /b\.json:\d+: .*authzConfig/)
    t.match(stderr, /c\.json:\d+: .*policies\[0\]: is not a Cedar policy/)
  },
)

t.test('decisions: a failing engine rejects one request, is counted and replaced', async (t) => {
  let failures = 0
  const authorizer = makeAuthorizer(
    { policies: [good], entitiesJson: '[]', groupEntityType: 'ServiceGroup' },
    { serverName: 's', log: silentLog, engineFailed: () => failures++ },
  )
  const subject = await authorizer.subject(
    makeCaller({ issuer: 'i', subject: 'ada', claims: { sub: 'ada' } }),
  )
  const decide = (id: string) => authorizer.decide(subject, { action: 'call_tool', id })
  t.equal(decide('a'), 'permitted')
  trapEngine()
  t.equal(decide('b'), 'permitted', 'by a new engine')
  const broken = breakEngine()
  t.equal(decide('c'), 'forbidden')
  t.equal(failures, 1)
  broken.repair()
  t.equal(decide('c'), 'permitted', 'the failure was not cached as a decision')
})

t.test('virtual server: rejects requests and is not ready without an engine, and recovers', async (t) => {
  const backend = await startRawBackend({ tools: () => ['{"name":"echo","inputSchema":{"type":"object"}}'] })
  const vmcp = await startTestVmcp(
    { raw: backend.url },
    { incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies: [good] } } },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const call = async () => (await stateless(vmcp.url, 'tools/call', { name: 'raw_echo' })).response
  const ready = async () => (await fetch(new URL('/readyz', vmcp.url))).status
  const broken = breakEngine()
  t.equal(await ready(), 503)
  t.match(await call(), { error: { code: 403 } })
  broken.repair()
  t.equal(await ready(), 200)
  t.ok((await call())?.result)
})
