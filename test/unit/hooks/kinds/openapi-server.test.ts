/** MCPOpenAPIServer: its checks, its document, and the virtual servers that use it. */
import t from 'tap'
import { referenceCheck, validateResource } from '../../../../hooks/index.ts'
import { configOf, door, statusOf } from '../../../hooks/rendered.ts'
import { auth, configMap, entry, openApi, petstore, resource, world } from '../../../hooks/resources.ts'
import type { Condition, Stored, World } from '../../../hooks/world.ts'

const document = (text = petstore) => configMap('petstore', { 'openapi.json': text })
const apiOf = (paths: object) => JSON.stringify({ openapi: '3.1.0', info: {}, paths })
const operation = (more: object = {}) => ({ responses: { 200: { description: 'ok' } }, ...more })

interface Status {
  readonly phase: string
  readonly toolCount?: number
  readonly skippedCount?: number
  readonly skipped?: readonly { readonly operation: string; readonly message: string }[]
  readonly documentSha256?: string
  readonly conditions: readonly Condition[]
}
const serviceOf = (w: World) => w.get('MCPOpenAPIServer', 'pets')['status'] as Status
const conditionOf = (w: World, name: string) => serviceOf(w).conditions.find(({ type }) => type === name)
const backendsOf = (w: World) =>
  ((configOf(w)['backends'] ?? []) as unknown as { name: string; url: string }[]).map(({ name }) => name)
const violationsOf = (spec: object) => validateResource(openApi('pets', spec)).violations

t.test('MCPOpenAPIServer: admission checks the addresses, the headers and the size', async (t) => {
  t.strictSame(violationsOf({}), [])
  t.match(violationsOf({ baseUrl: 'https://10.0.0.1/v1' }), [{ path: 'spec.baseUrl', message: /private/ }])
  t.strictSame(violationsOf({ baseUrl: 'http://10.0.0.1/v1', allowPrivateEndpoint: true }), [])
  t.match(violationsOf({ baseUrl: 'https://169.254.169.254/v1', allowPrivateEndpoint: true }), [
    { path: 'spec.baseUrl' },
  ])
  const url = { url: 'https://10.0.0.1/openapi.json', sha256: '0'.repeat(64) }
  t.match(violationsOf({ document: url }), [{ path: 'spec.document.url', message: /private/ }])
  const headers = { addPlaintextHeaders: { 'X-Key': 'a', 'x-key': 'b' } }
  t.match(violationsOf({ headerForward: headers }), [{ message: /same header/ }])
  t.match(violationsOf({ headerForward: { addPlaintextHeaders: { Host: 'a' } } }), [{ message: /Host/ }])
  const overrides = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`op${index}`, { description: 'x'.repeat(2_000) }]),
  )
  t.match(violationsOf({ overrides }), [{ path: 'spec', message: /maximum is 65536/ }])
  t.strictSame(violationsOf({ overrides: { listPets: { name: 'pets' } } }), [])
})

t.test('MCPOpenAPIServer: the settings determine the tools that the status counts', async (t) => {
  const text = apiOf({
    '/a': { get: operation({ tags: ['x'] }), post: operation({ operationId: 'make' }) },
    '/b': { get: operation({ deprecated: true }) },
  })
  const countOf = (spec: object) => serviceOf(world(openApi('pets', spec), document(text)).settle()).toolCount
  t.equal(countOf({}), 1)
  t.equal(countOf({ operations: { includeDeprecated: true } }), 2)
  t.equal(countOf({ operations: { include: [{ tags: ['x'] }, { operationIds: ['make'] }] } }), 2)
  const none = world(openApi('pets', { operations: { exclude: [{ tags: ['x'] }] } }), document(text)).settle()
  t.match(conditionOf(none, 'DocumentReady'), { reason: 'DocumentInvalid', message: /no-operations/ })
})

t.test('MCPOpenAPIServer: the condition lists unused filters and overrides', async (t) => {
  const spec = {
    operations: { exclude: [{ tags: ['internal'] }] },
    overrides: { 'missing\u202e': { title: 'A' } },
  }
  const w = world(openApi('pets', spec), document()).settle()
  t.match(conditionOf(w, 'DocumentReady'), {
    status: 'True',
    message:
      /skipped: 1\. Unused settings: exclude filter 1 matches no operation; the override "missing\\u202e" matches no selected operation$/,
  })
  t.match(serviceOf(w), { phase: 'Ready' })
  const service = openApi('pets', spec)
  t.match(referenceCheck([service, document()])(service).warnings.slice(-2), [
    /^spec\.operations: exclude filter 1 matches no operation$/,
    /^spec\.overrides: the override "missing\\u202e" matches no selected operation$/,
  ])
})

t.test('MCPOpenAPIServer: an override cannot set a header of headerForward', async (t) => {
  const parameters = [{ name: 'X-Tenant', in: 'header', schema: { type: 'string' } }]
  const text = apiOf({
    '/a': { get: operation({ operationId: 'find', parameters }) },
    '/b': { get: operation() },
  })
  const overrides = { find: { set: { 'header.X-Tenant': 'acme' } } }
  const headerForward = { addPlaintextHeaders: { 'x-tenant': 'acme' } }
  const skippedOf = (spec: object) => serviceOf(world(openApi('pets', spec), document(text)).settle()).skipped
  t.strictSame(skippedOf({ overrides }), [])
  t.match(skippedOf({ overrides, headerForward }), [{ operation: 'GET /a', reason: 'override' }])
})

t.test('MCPOpenAPIServer: the list of skipped operations is bounded and readable', async (t) => {
  const paths = Object.fromEntries(
    Array.from({ length: 60 }, (_, index) => [`/p${index}\u202e${'x'.repeat(300)}`, { get: operation() }]),
  )
  const w = world(openApi('pets'), document(apiOf({ ...paths, '/ok': { get: operation() } }))).settle()
  const { skipped = [], skippedCount, toolCount } = serviceOf(w)
  t.match({ skippedCount, toolCount }, { skippedCount: 60, toolCount: 1 })
  t.equal(skipped.length, 50)
  t.match(skipped[0]?.operation, /^GET \/p0\\u202ex+…$/)
  t.ok(skipped.every(({ operation: label, message }) => label.length <= 256 && message.length <= 512))
  t.strictSame(validateResource({ ...openApi('pets'), status: serviceOf(w) }).violations, [])
})

t.test('a document that becomes invalid keeps the backend and the last counts', async (t) => {
  const w = door({}, openApi('pets'), document())
  t.strictSame(backendsOf(w), ['pets'])
  const before = { deployment: w.get('Deployment', 'vmcp-door')['spec'], config: configOf(w) }
  const { documentSha256 } = serviceOf(w)
  for (const [broken, reason] of [
    [document('{"openapi": "3.1.0", "openapi": "3.0.0"}'), 'DocumentInvalid'],
    [document('[]'), 'DocumentInvalid'],
    [configMap('petstore', {}), 'DocumentNotFound'],
  ] as const) {
    w.apply(broken).settle()
    t.match(serviceOf(w), { phase: 'Degraded', toolCount: 1, documentSha256 })
    t.match(conditionOf(w, 'DocumentReady'), { status: 'False', reason })
    t.match(conditionOf(w, 'Ready'), { status: 'False', reason })
    t.strictSame(configOf(w), before.config)
  }
  w.remove('ConfigMap', 'petstore').settle()
  t.match(serviceOf(w), { phase: 'Degraded', toolCount: 1 })
  t.strictSame(backendsOf(w), ['pets'])
  w.apply(document(apiOf({ '/a': { get: operation(), head: operation() } }))).settle()
  t.match(serviceOf(w), { phase: 'Ready', toolCount: 2, skippedCount: 0 })
  t.strictSame(w.get('Deployment', 'vmcp-door')['spec'], before.deployment, 'no change replaces the pods')
})

t.test('a service without a valid document is not a backend until its document is fixed', async (t) => {
  const w = door({}, openApi('pets'), entry('search'), document('swagger: "2.0"'))
  t.match(serviceOf(w), { phase: 'Failed', toolCount: undefined })
  t.match(conditionOf(w, 'Stalled'), { reason: 'DocumentInvalid' })
  t.strictSame(backendsOf(w), ['search'])
  t.match(statusOf(w)['discoveredBackends'], [
    { name: 'pets', status: 'unavailable', message: 'The member has failed' },
    { name: 'search' },
  ])
  w.apply(document()).settle()
  t.strictSame(backendsOf(w), ['pets', 'search'])
})

t.test('a document in binaryData is rejected', async (t) => {
  const map = { ...configMap('petstore', {}), binaryData: { 'openapi.json': 'AAEC' } } as unknown as Stored
  const w = world(openApi('pets'), map).settle()
  t.match(conditionOf(w, 'DocumentReady'), { reason: 'DocumentInvalid', message: /UTF-8/ })
})

t.test('a document at a URL is Unknown, and its service is a backend', async (t) => {
  const source = { url: 'https://pets.example.com/openapi.json', sha256: 'a'.repeat(64) }
  const w = door({}, openApi('pets'), document())
  t.match(serviceOf(w), { toolCount: 1 })
  w.apply(openApi('pets', { document: source })).settle()
  t.match(conditionOf(w, 'DocumentReady'), { status: 'Unknown', reason: 'DocumentAtURL' })
  t.match(serviceOf(w), { phase: 'Ready', toolCount: undefined, documentSha256: undefined })
  t.match(configOf(w)['backends'], [{ openapi: { document: source } }])
  t.notMatch(JSON.stringify(w.get('Deployment', 'vmcp-door')), 'openapi-pets', 'nothing is mounted')
})

t.test('a document at a URL: the reports of virtual servers determine the condition', async (t) => {
  const source = { url: 'https://pets.example.com/openapi.json', sha256: 'a'.repeat(64) }
  const w = door({}, openApi('pets', { document: source }))
  const report = (...reports: readonly object[]) =>
    w
      .setData(
        'door-vmcp-status',
        Object.fromEntries(reports.map((item, index) => [`pod-${index}.json`, JSON.stringify(item)])),
      )
      .settle()
  const backend = { name: 'pets', url: 'https://pets.example.com/v1' }
  const problem = { type: 'openapi_document', backend: 'pets', message: 'the digest is wrong\u202e' }
  t.match(conditionOf(w, 'DocumentReady'), { status: 'Unknown', reason: 'DocumentAtURL' })
  report({ backends: [{ ...backend, status: 'unknown' }], problems: [{ ...problem, backend: 'other' }] })
  t.match(conditionOf(w, 'DocumentReady'), { status: 'Unknown' }, 'no server has read the document')
  report({ backends: [{ ...backend, url: 'https://old.example.com', status: 'ready' }] })
  t.match(conditionOf(w, 'DocumentReady'), { status: 'Unknown' }, 'a report about an earlier address')
  report({ backends: [{ ...backend, status: 'unavailable' }] })
  t.match(conditionOf(w, 'DocumentReady'), { status: 'True', reason: 'DocumentValid' })
  t.match(serviceOf(w), { phase: 'Ready' })
  const unused = {
    ...problem,
    type: 'openapi_settings_unused',
    message: 'exclude filter 1 matches no operation',
  }
  report({ backends: [{ ...backend, status: 'ready' }], problems: [unused] })
  t.match(conditionOf(w, 'DocumentReady'), {
    status: 'True',
    reason: 'DocumentValid',
    message: 'A virtual server uses the document. exclude filter 1 matches no operation',
  })
  report({ backends: [{ ...backend, status: 'ready' }] }, { problems: [problem] })
  t.match(conditionOf(w, 'DocumentReady'), {
    status: 'False',
    reason: 'DocumentInvalid',
    message: 'the digest is wrong\\u202e',
  })
  t.match(serviceOf(w), { phase: 'Degraded' })
  t.strictSame(backendsOf(w), ['pets'], 'the service stays a backend')
  report({ problems: [5, { ...problem, message: 7 }, { ...problem, type: 'other' }], backends: 'x' })
  t.match(conditionOf(w, 'DocumentReady'), { status: 'Unknown' }, 'invalid reports are skipped')
})

t.test('a tool lock applies to a service by kind and name', async (t) => {
  const lock = (kind: string) =>
    resource('MCPToolLock', kind.toLowerCase(), { backendRef: { kind, name: 'pets' }, onNew: 'block' })
  const pinning = { config: { pinning: { onChanged: 'block' } } }
  const w = door(pinning, openApi('pets'), document(), lock('MCPOpenAPIServer'), lock('MCPServerEntry'))
  t.match(configOf(w)['toolLocks'], [{ name: 'mcpopenapiserver', backend: 'pets', onNew: 'block' }])
  t.equal((configOf(w)['toolLocks'] as unknown as object[]).length, 1)
})

t.test('a member of another kind with the same name takes precedence', async (t) => {
  const w = door({}, openApi('pets'), entry('pets'), document())
  t.match(configOf(w)['backends'], [{ transport: 'streamable-http', url: 'https://pets.example.com/mcp' }])
  t.match(w.get('MCPGroup', 'tools')['status'], {
    entryCount: 1,
    openApiServers: ['pets'],
    openApiServerCount: 1,
  })
})

t.test('a service with a broken reference is not a backend', async (t) => {
  const w = door({}, openApi('pets', { externalAuthConfigRef: { name: 'header' } }), auth.header, document())
  t.strictSame(backendsOf(w), ['pets'])
  t.match(w.get('MCPExternalAuthConfig', 'header')['status'], {
    referenceCount: 2,
    referencingWorkloads: [{ kind: 'VirtualMCPServer', name: 'door' }],
  })
  w.remove('MCPExternalAuthConfig', 'header').settle()
  t.match(serviceOf(w), { phase: 'Failed', toolCount: 1 })
  t.match(conditionOf(w, 'Ready'), { reason: 'ReferencesNotReady' })
  t.strictSame(backendsOf(w), [])
})

t.test(
  'a service that was admitted under older rules is excluded, without regard to its status',
  async (t) => {
    const w = door({}, openApi('pets'), entry('search'), document())
    const request = JSON.parse(JSON.stringify(w.request('VirtualMCPServer', 'door'))) as {
      related: Record<string, Record<string, { spec: Record<string, unknown> }>>
    }
    const pets = request.related['MCPOpenAPIServer.gatehouse.dev/v1beta1']?.['team/pets']
    t.ok(pets)
    for (const source of [{}, { configMapRef: { name: 'petstore' } }, 5]) {
      if (pets) pets.spec['document'] = source
      const { status } = w.hooks.byKind('VirtualMCPServer')?.sync(request) ?? {}
      t.match(status, {
        discoveredBackends: [
          { name: 'pets', status: 'unavailable', message: /MCPOpenAPIServer pets is not valid/ },
          { name: 'search' },
        ],
      })
    }
  },
)
