/** The hook server over real sockets. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { makeHooks } from '../../../../hooks/index.ts'
import type { EventSink } from '../../../../hooks/server/events.ts'
import { makeLog } from '../../../../hooks/server/log.ts'
import { HookMetrics } from '../../../../hooks/server/metrics.ts'
import { type HookService, hooksApp } from '../../../../hooks/server/server.ts'
import { EvaluationWorker, type WorkerTask } from '../../../../hooks/server/workers.ts'
import { configMap, openApi, petstore, server as manifest, virtual, world } from '../../../hooks/resources.ts'
import { testSettings } from '../../../hooks/world.ts'

interface Started {
  url: string
  metrics: HookMetrics
  logged: string[]
  server: Server
}

async function start(
  t: Test,
  more: {
    tokens?: () => readonly string[]
    serves?: readonly HookService[]
    notReady?: () => string | undefined
    events?: EventSink
    worker?: EvaluationWorker
  } = {},
): Promise<Started> {
  const logged: string[] = []
  const metrics = new HookMetrics()
  let seconds = 0
  const app = hooksApp({
    registry: makeHooks(testSettings),
    metrics,
    log: makeLog({ write: (text) => logged.push(text) }, { now: () => new Date(0) }),
    seconds: () => (seconds += 0.001),
    notReady: more.notReady ?? (() => undefined),
    ...(more.tokens && { tokens: more.tokens }),
    ...(more.serves && { serves: more.serves }),
    ...(more.events && { events: more.events }),
    ...(more.worker && { workers: { hooks: more.worker, reviews: more.worker } }),
  })
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => new Promise((resolve) => server.close(resolve)))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, metrics, logged, server }
}

const post = (url: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', connection: 'close', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
const get = (url: string) => fetch(url, { headers: { connection: 'close' } })

t.test('server: sync and customize of every kind respond under the plural name', async (t) => {
  const { url } = await start(t)
  const w = world(manifest('files'), virtual()).ready()
  for (const hook of w.hooks) {
    const rules = await post(`${url}/hooks/${hook.plural}/customize?rev=1`, {
      controller: {},
      parent: {
        apiVersion: 'gatehouse.dev/v1beta1',
        kind: hook.kind,
        metadata: { name: 'x', namespace: 'team' },
        spec: {},
      },
    })
    t.equal(rules.status, 200, hook.plural)
    const { relatedResources } = (await rules.json()) as {
      relatedResources: { namespace?: string; names?: string[]; labelSelector?: object }[]
    }
    for (const rule of relatedResources) {
      // Metacontroller rejects a rule with both.
      if (rule.labelSelector) t.equal(rule.namespace, undefined, 'a selector or a namespace')
      else t.equal(rule.namespace, 'team')
      t.ok(rule.names === undefined || rule.names.length > 0, 'no rule with an empty list of names')
    }
  }
  const response = await post(`${url}/hooks/virtualmcpservers/sync`, w.request('VirtualMCPServer', 'door'))
  t.equal(response.status, 200)
  t.match(response.headers.get('content-type'), /application\/json/)
  t.strictSame(
    Object.keys((await response.json()) as object).sort(),
    ['children', 'status'],
    'a strict parser accepts every member',
  )
})

t.test('server: /validate responds to reviews', async (t) => {
  const { url, metrics } = await start(t)
  const review = (object: object) => ({
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: { uid: 'u', kind: { kind: 'MCPServer' }, operation: 'CREATE', object },
  })
  const good = await post(`${url}/validate?timeout=5s`, review(manifest('files')))
  t.match(await good.json(), { response: { uid: 'u', allowed: true } })
  const bad = await post(`${url}/validate`, review(manifest('files', { transport: 'carrier-pigeon' })))
  t.equal(bad.status, 200)
  t.match(await bad.json(), { response: { uid: 'u', allowed: false, status: { code: 422 } } })
  t.match(metrics.text(), /gatehouse_hooks_admission_denied_total\{kind="MCPServer"\} 1/)
})

t.test('server: health, readiness and metrics', async (t) => {
  let ready = true
  const { url } = await start(t, { notReady: () => (ready ? undefined : 'shutting down') })
  t.equal((await get(`${url}/healthz`)).status, 200)
  t.equal((await get(`${url}/readyz`)).status, 200)
  ready = false
  t.equal((await get(`${url}/readyz`)).status, 503)
  t.equal((await get(`${url}/healthz`)).status, 200)
  await post(`${url}/hooks/mcpgroups/sync`, {})
  const metrics = await (await get(`${url}/metrics`)).text()
  t.match(metrics, /gatehouse_hooks_requests_total\{kind="MCPGroup",hook="sync",code="400"\} 1/)
  t.match(
    metrics,
    /gatehouse_hooks_request_duration_seconds_bucket\{kind="MCPGroup",hook="sync",le="\+Inf"\} 1/,
  )
})

t.test('server: unknown paths and invalid requests are rejected', async (t) => {
  const { url } = await start(t)
  for (const path of [
    '/',
    '/hooks',
    '/hooks/pods/sync',
    '/hooks/mcpgroups/finalize',
    '/hooks/MCPGroups/sync',
    '/hooks/__proto__/sync',
    '/hooks/constructor/sync',
  ]) {
    t.equal((await post(url + path, {})).status, 404, path)
  }
  const wrong = await get(`${url}/hooks/mcpgroups/sync`)
  t.equal(wrong.status, 405)
  t.equal(wrong.headers.get('allow'), 'POST')
})

t.test('server: errors and the log repeat nothing of the body', async (t) => {
  const { url, logged } = await start(t)
  const bodies = [
    '{"data":"hunter2"',
    'hunter2',
    '',
    '[]',
    'null',
    '{"parent":{"kind":"hunter2"}}',
    { parent: { apiVersion: 'a', kind: 'MCPGroup', metadata: { name: 'HUNTER2 hunter2' } } },
  ]
  for (const body of bodies) {
    const response = await post(`${url}/hooks/mcpgroups/sync`, body)
    t.equal(response.status, 400, JSON.stringify(body))
    const text = await response.text()
    t.notMatch(text, /hunter2/i)
    t.match(JSON.parse(text), { status: 400, title: 'BAD_REQUEST', detail: String })
  }
  t.notMatch(logged.join(''), /hunter2/i)
})

t.test('server: bodies well above a megabyte are accepted, unlimited ones are not', async (t) => {
  const { url } = await start(t)
  const padded = world().request('MCPGroup', 'tools') as { related: Record<string, Record<string, object>> }
  padded.related['Secret.v1'] = {
    'team/big': {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'big', namespace: 'team' },
      data: { a: 'x'.repeat(5e6) },
    },
  }
  t.equal((await post(`${url}/hooks/mcpgroups/sync`, padded)).status, 200)
  const response = await fetch(`${url}/hooks/mcpgroups/sync`, {
    method: 'POST',
    headers: { connection: 'close' },
    body: 'x'.repeat(65 * 1024 * 1024),
  }).catch(() => undefined)
  t.ok(response === undefined || response.status === 413)
  await response?.text()
})

t.test('server: Metacontroller must send a token, the API server need not', async (t) => {
  const { url } = await start(t, { tokens: () => ['s3cret'] })
  const request = world().request('MCPGroup', 'tools')
  t.equal((await post(`${url}/hooks/mcpgroups/sync`, request)).status, 401)
  t.equal((await post(`${url}/hooks/mcpgroups/sync`, request, { authorization: 'Bearer s3cre' })).status, 401)
  t.equal(
    (await post(`${url}/hooks/mcpgroups/sync`, request, { authorization: 'Bearer s3cret' })).status,
    200,
  )
  t.equal(
    (await post(`${url}/validate`, { kind: 'AdmissionReview', request: { uid: 'u', operation: 'CONNECT' } }))
      .status,
    200,
  )
})

t.test(
  'server: two tokens are valid during a rotation, and an empty list rejects every caller',
  async (t) => {
    let valid = ['old', 'new']
    const { url } = await start(t, { tokens: () => valid })
    const request = world().request('MCPGroup', 'tools')
    const statusOf = async (token: string) =>
      (await post(`${url}/hooks/mcpgroups/sync`, request, { authorization: `Bearer ${token}` })).status
    t.equal(await statusOf('old'), 200)
    t.equal(await statusOf('new'), 200)
    valid = ['new']
    t.equal(await statusOf('old'), 401)
    valid = []
    t.equal(await statusOf('new'), 401)
    t.equal(await statusOf(''), 401)
  },
)

t.test('server: routes of one group of callers are absent for the other group', async (t) => {
  const hooks = await start(t, { serves: ['hooks'] })
  const admission = await start(t, { serves: ['admission'] })
  const sync = world().request('MCPGroup', 'tools')
  const review = { kind: 'AdmissionReview', request: { uid: 'u', operation: 'CONNECT' } }
  t.equal((await post(`${hooks.url}/hooks/mcpgroups/sync`, sync)).status, 200)
  t.equal((await post(`${hooks.url}/validate`, review)).status, 404)
  t.equal((await post(`${admission.url}/hooks/mcpgroups/sync`, sync)).status, 404)
  t.equal((await post(`${admission.url}/validate`, review)).status, 200)
  for (const { url } of [hooks, admission])
    for (const path of ['healthz', 'readyz', 'metrics'])
      t.equal((await get(`${url}/${path}`)).status, 200, path)
})

t.test('server: slow senders do not block other callers', async (t) => {
  const { url, server } = await start(t)
  const { port } = server.address() as AddressInfo
  const { connect } = await import('node:net')
  const sockets = Array.from({ length: 64 }, () => {
    const socket = connect(port, '127.0.0.1')
    socket.write('POST /hooks/mcpgroups/sync HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{')
    return socket
  })
  let seen = 0
  const all = new Promise<void>((resolve) => {
    server.on('request', () => {
      seen += 1
      if (seen === 64) resolve()
    })
  })
  await all
  const request = world().request('MCPGroup', 'tools')
  t.equal((await post(`${url}/hooks/mcpgroups/sync`, request)).status, 200)
  for (const socket of sockets) socket.destroy()
})

t.test('server: reviews and hooks have separate limits', async (t) => {
  const { url } = await start(t)
  const review = { kind: 'AdmissionReview', request: { uid: 'u', operation: 'CONNECT' } }
  const lists = Array.from({ length: 60_000 }, () => [])
  const large = await post(`${url}/validate`, { ...review, padding: lists })
  t.equal(large.status, 413)
  t.match(await large.json(), { detail: 'the request body contains more than 100000 JSON values' })
  const sync = { ...(world().request('MCPGroup', 'tools') as object), padding: lists }
  t.equal((await post(`${url}/hooks/mcpgroups/sync`, sync)).status, 200)
  t.equal((await post(`${url}/validate`, { ...review, padding: 'x'.repeat(9e6) })).status, 413)
  t.equal((await post(`${url}/validate`, review)).status, 200)
})

t.test('server: a small OpenAPI document is converted in a worker', async (t) => {
  const ran: string[] = []
  class RecordingWorker extends EvaluationWorker {
    override run(task: WorkerTask, signal: AbortSignal) {
      ran.push('plural' in task.call ? `${task.call.plural} ${task.call.hook}` : task.call.hook)
      return super.run(task, signal)
    }
  }
  const worker = new RecordingWorker({
    settings: testSettings,
    heapMb: 128,
    deadlineMs: 60_000,
    onEngineFailures: () => {},
  })
  t.teardown(() => worker.close())
  const { url } = await start(t, { worker })
  const w = world(openApi('pets'), configMap('petstore', { 'openapi.json': petstore })).settle()
  const hooks = `${url}/hooks/mcpopenapiservers`
  const synced = await post(`${hooks}/sync`, w.request('MCPOpenAPIServer', 'pets'))
  t.match(await synced.json(), { status: { phase: 'Ready', toolCount: 1 } })
  t.equal((await post(`${hooks}/customize`, { parent: w.get('MCPOpenAPIServer', 'pets') })).status, 200)
  t.equal((await post(`${url}/hooks/mcpgroups/sync`, w.request('MCPGroup', 'tools'))).status, 200)
  t.strictSame(ran, ['mcpopenapiservers sync'], 'other small requests are evaluated on the main thread')
})

t.test('server: an event is written after the response, and a failing sink has no effect', async (t) => {
  const { cases } = await import('../../../hooks/cases.ts')
  const emitted: string[] = []
  const { url } = await start(t, { events: { emit: ({ reason }) => emitted.push(reason) } })
  const body = cases['VirtualMCPServer/embedded-auth-server']?.()
  t.equal((await post(`${url}/hooks/virtualmcpservers/sync`, body)).status, 200)
  t.strictSame(emitted, ['AuthzPrimaryUpstreamProviderDeprecated'])
  const broken = await start(t, {
    events: {
      emit: () => {
        throw new Error('no')
      },
    },
  })
  t.equal((await post(`${broken.url}/hooks/virtualmcpservers/sync`, body)).status, 200)
  t.match(broken.logged.join(''), /building an event failed/)
})

t.test('server: rejected requests are counted, and logged once a minute with their reason', async (t) => {
  const { url, metrics, logged } = await start(t, { tokens: () => ['right'] })
  const sync = `${url}/hooks/mcpgroups/sync`
  const authorization = 'Bearer right'
  const deep = '['.repeat(201)
  t.equal((await post(`${url}/validate`, deep)).status, 400)
  t.equal((await post(`${url}/validate`, deep)).status, 400)
  t.equal((await post(`${url}/validate`, '{}', { 'content-encoding': 'gzip' })).status, 415)
  t.equal((await post(sync, '{}')).status, 401)
  t.equal((await post(sync, '{', { authorization })).status, 400, 'rejected by the evaluation')
  t.equal((await post(`${url}/hooks/constructor/sync`, '{')).status, 404)
  for (const [labels, count] of [
    ['kind="AdmissionReview",hook="validate",code="400"', 2],
    ['kind="AdmissionReview",hook="validate",code="415"', 1],
    ['kind="MCPGroup",hook="sync",code="401"', 1],
    ['kind="MCPGroup",hook="sync",code="400"', 1],
  ] as const)
    t.match(metrics.text(), `gatehouse_hooks_requests_total{${labels}} ${count}\n`)
  t.strictSame(
    logged.map((line) => {
      const { level, kind, hook, status, reason } = JSON.parse(line)
      return [level, kind, hook, status, reason]
    }),
    [
      ['warn', 'AdmissionReview', 'validate', 400, 'the request body is nested more than 200 levels deep'],
      ['warn', 'AdmissionReview', 'validate', 415, 'the request body must not be compressed'],
      ['warn', 'MCPGroup', 'sync', 401, 'authentication is required'],
      ['warn', 'MCPGroup', 'sync', 400, 'the request body must be JSON'],
    ],
  )
})
