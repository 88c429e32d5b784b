/**
 * A backend with unusable settings is unavailable, not absent: lists and calls fail according to partialFailureMode
 * with the cause, a server that starts with it is not ready, and status, health and console name it. A reload never
 * makes a ready server unready.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type ReadVmcpConfig, readVmcpConfig } from '../../../../runtime/config/vmcp/file.ts'
import { makeMemoryStore } from '../../../../runtime/store/index.ts'
import { type StartOptions, startVmcp, type VmcpServer } from '../../../../runtime/vmcp/index.ts'
import { VmcpReadiness } from '../../../../runtime/vmcp/server/status/readiness.ts'
import { runGatehouse, startGatehouse } from '../../../helpers/gatehouse.ts'
import { openSession, stateless } from '../../../helpers/mcp/wire.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { proves } from '../../../helpers/proves.ts'
import { vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'
import { excludedCases, header } from './excluded-cases.ts'

proves(
  '3.error.partialFailure.fail',
  '3.error.partialFailure.best_effort',
  '3.config.operational.failureHandling.partialFailureMode',
)
t.setTimeout(120_000)

type Mode = 'fail' | 'best_effort'

const backend = await startRawBackend({
  capabilities: '{"tools":{},"prompts":{},"resources":{}}',
  responses: {
    'prompts/list': () => '{"prompts":[{"name":"p"}]}',
    'resources/list': () => '{"resources":[{"uri":"file:///a","name":"a"}]}',
    'resources/templates/list': () => '{"resourceTemplates":[]}',
  },
})
t.teardown(() => backend.close())

interface Given {
  readonly mode?: Mode
  /** Settings of the backend `bad`. */
  readonly bad?: object
  readonly strategy?: object | undefined
  /** True to leave out the backend `good`. */
  readonly alone?: boolean
  readonly more?: object
}

const unset = header({ headerValueEnv: 'NOT_SET' })

function fileOf({ mode = 'fail', bad, strategy, alone = false, more = {} }: Given): ReadVmcpConfig {
  const of = (name: string, settings?: object) => ({
    name,
    url: backend.url,
    transport: 'streamable-http',
    ...settings,
  })
  const entries = strategy ? { backends: { bad: strategy } } : {}
  return readVmcpConfig(
    JSON.stringify({
      name: 'v',
      groupRef: 'g',
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'inline', ...entries },
      ...more,
      operational: {
        failureHandling: { partialFailureMode: mode },
        ...(more as { operational?: object }).operational,
      },
      backends: [...(alone ? [] : [of('good')]), of('bad', bad)],
    }),
  )
}

async function start(t: Test, file: ReadVmcpConfig, options: StartOptions = {}): Promise<VmcpServer> {
  const { config, excluded } = file
  const vmcp = await startVmcp(config, { port: 0, graceMs: 200, env: {}, excluded, ...options })
  t.teardown(() => vmcp.close())
  return vmcp
}

interface Read {
  readonly problems?: readonly string[]
  readonly backends?: readonly unknown[]
}

async function read(vmcp: VmcpServer, path: string) {
  const response = await fetch(`${vmcp.origin}${path}`)
  return { status: response.status, body: (await response.json()) as Read }
}

async function readiness(vmcp: VmcpServer): Promise<number> {
  return (await read(vmcp, '/readyz')).status
}

const cause = /backend bad is unavailable: the configuration of bad is invalid and must be corrected/
const unavailable = { error: { message: cause, data: { backends: ['bad'] } } }

/** One request of each kind that depends on the backends' items. */
const requests: readonly (readonly [string, Record<string, unknown>])[] = [
  ['tools/list', {}],
  ['prompts/list', {}],
  ['resources/list', {}],
  ['resources/templates/list', {}],
  ['tools/call', { name: 'good_echo', arguments: {} }],
  ['tools/call', { name: 'bad_echo', arguments: {} }],
  ['prompts/get', { name: 'bad_p' }],
  ['resources/read', { uri: 'file:///a' }],
]

t.test('fail: every request names the left-out backend and the cause, in both eras', async (t) => {
  const vmcp = await start(t, fileOf({ strategy: unset }))
  const session = await openSession(vmcp.url)
  for (const [method, params] of requests) {
    const what = `${method} ${JSON.stringify(params)}`
    t.match((await session.request(method, params)).response, unavailable, what)
    t.match((await stateless(vmcp.url, method, params)).response, unavailable, `${what}, stateless`)
  }
  t.match((await read(vmcp, '/status')).body, {
    healthy: false,
    backends: [{ name: 'bad', health: 'unhealthy' }, {}],
  })
  t.match(await read(vmcp, '/readyz'), {
    status: 503,
    body: { status: 'not_ready', reason: /configuration of bad/ },
  })
  t.match(vmcp.view.backends()[0], { name: 'bad', excluded: [/NOT_SET is not set/] })
})

t.test(
  'best_effort: lists work, and an item that may belong to the left-out backend is not "not found"',
  async (t) => {
    const vmcp = await start(t, fileOf({ strategy: unset, mode: 'best_effort' }))
    const session = await openSession(vmcp.url)
    const list = async () => (await session.request('tools/list')).response?.result?.['tools']
    t.match(await list(), [{ name: 'good_echo' }])
    t.match((await session.request('tools/call', { name: 'good_echo' })).response?.result, { content: [{}] })
    t.match((await session.request('tools/call', { name: 'bad_echo' })).response, unavailable)
    t.match((await session.request('prompts/get', { name: 'bad_p' })).response, unavailable)
    t.match((await session.request('resources/read', { uri: 'file:///b' })).response, unavailable)
    t.match(
      (await session.request('resources/read', { uri: 'file:///a' })).response,
      {
        error: { code: -32601 },
      },
      'from the other backend, which does not support the method',
    )
    t.match((await session.request('tools/call', { name: 'other_x' })).response, {
      error: { code: -32602, message: /not found/ },
    })
    t.equal(await readiness(vmcp), 200)
  },
)

t.test(
  'best_effort, with names without a backend prefix: any unknown name may belong to the backend',
  async (t) => {
    const aggregation = {
      conflictResolution: 'priority',
      conflictResolutionConfig: { priorityOrder: ['good', 'bad'] },
    }
    const vmcp = await start(t, fileOf({ strategy: unset, mode: 'best_effort', more: { aggregation } }))
    const session = await openSession(vmcp.url)
    t.match((await session.request('tools/call', { name: 'echo' })).response?.result, { content: [{}] })
    t.match((await session.request('tools/call', { name: 'other' })).response, unavailable)
  },
)

t.test('all backends left out: not ready in either mode', async (t) => {
  for (const mode of ['fail', 'best_effort'] as const) {
    const vmcp = await start(t, fileOf({ strategy: unset, mode, alone: true }))
    t.equal(await readiness(vmcp), 503, mode)
    t.match((await read(vmcp, '/status')).body, { healthy: false })
    t.equal((await read(vmcp, '/health')).status, 200, 'it is alive')
    const session = await openSession(vmcp.url)
    t.match((await session.request('tools/call', { name: 'bad_echo' })).response, unavailable)
  }
})

t.test('with no declared backends the server is ready, because backends may be added later', async (t) => {
  const { config } = readVmcpConfig(
    JSON.stringify({
      name: 'v',
      groupRef: 'g',
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'discovered' },
    }),
  )
  const vmcp = await startVmcp(config, { port: 0, graceMs: 200 })
  t.teardown(() => vmcp.close())
  t.equal(await readiness(vmcp), 200)
})

for (const one of excludedCases(t.testdir({ 'empty.pem': '', 'damaged.pem': 'x' }))) {
  t.test(`not ready under fail: ${one.what}`, async (t) => {
    const { good, ...more }: { good?: object } = one.file ?? {}
    const file = fileOf({
      ...(one.backend && { bad: one.backend }),
      more: {
        ...more,
        outgoingAuth: {
          source: 'inline',
          backends: { ...(good && { good }), ...(one.strategy && { bad: one.strategy }) },
          ...(one.default && { default: one.default }),
        },
      },
    })
    const vmcp = await start(t, file, { env: one.env ?? {} })
    t.equal(await readiness(vmcp), 503)
    const { response } = await stateless(vmcp.url, 'tools/list')
    t.match(response, unavailable)
    if (one.secret !== undefined) t.notMatch(JSON.stringify(response), one.secret)
  })
}

t.test(
  'a reload that makes a backend unusable fails its requests but keeps readiness, until a reload repairs it',
  async (t) => {
    const vmcp = await start(t, fileOf({}))
    const session = await openSession(vmcp.url)
    const call = async (name: string) => (await session.request('tools/call', { name })).response
    t.equal(await readiness(vmcp), 200)
    t.match(await call('bad_echo'), { result: {} })
    vmcp.reload(fileOf({ strategy: unset }).config)
    t.match(await call('bad_echo'), unavailable)
    t.match(await call('good_echo'), unavailable, 'the mode is fail')
    t.equal(await readiness(vmcp), 200, 'a reload does not end readiness')
    t.match((await read(vmcp, '/status')).body, { healthy: false })
    vmcp.reload(fileOf({ strategy: unset, mode: 'best_effort' }).config)
    t.match(await call('good_echo'), { result: {} })
    t.match(await call('bad_echo'), unavailable)
    const broken = fileOf({ bad: { transport: 'pigeon' } })
    vmcp.reload(broken.config, { excluded: broken.excluded })
    t.match(await call('good_echo'), unavailable, 'excluded by the file itself')
    vmcp.reload(fileOf({}).config)
    t.match(await call('bad_echo'), { result: {} })
  },
)

t.test('a reload that repairs the first configuration makes the server ready permanently', async (t) => {
  const vmcp = await start(t, fileOf({ strategy: unset }))
  t.equal(await readiness(vmcp), 503)
  vmcp.reload(fileOf({ strategy: unset }).config)
  t.equal(await readiness(vmcp), 503, 'not by a reload that repairs nothing')
  vmcp.reload(fileOf({}).config)
  vmcp.reload(fileOf({ strategy: unset }).config)
  t.equal(await readiness(vmcp), 200, 'it was ready in between')
})

t.test('a restarted worker is ready if its siblings were', async (t) => {
  const shared = makeMemoryStore()
  const make = () =>
    new VmcpReadiness({
      authServer: undefined,
      shared,
      config: () => vmcpConfig({}),
      stopping: () => false,
    })
  const [first, second] = [make(), make()]
  second.onApplied(['bad'], 1)
  t.match(await second.notReady(), /configuration of bad/)
  first.onApplied([], 1)
  t.equal(await second.notReady(), undefined)
  const third = make()
  third.onApplied(['bad'], 1)
  t.equal(await third.notReady(), undefined)
})

t.test('a recheck from the console sets up a backend once its file exists', async (t) => {
  const path = join(t.testdir({}), 'ca.pem')
  const { rootCertificates } = await import('node:tls')
  const vmcp = await start(t, fileOf({ bad: { type: 'entry', caBundlePath: path } }))
  t.equal(await vmcp.view.recheck('bad'), true)
  t.match(vmcp.view.backends()[0], { excluded: [/cannot be read/] })
  writeFileSync(path, rootCertificates[0] ?? '')
  t.equal(await vmcp.view.recheck('bad'), true)
  t.match(vmcp.view.backends()[0], { name: 'bad', excluded: undefined })
  t.equal(await readiness(vmcp), 200)
  t.equal(await vmcp.view.recheck('nobody'), false)
})

t.test('an invalid setting for an unknown backend leaves nothing out', async (t) => {
  const strategies = { backends: { ghost: { type: 'header_injection', nonsense: 1 } } }
  const file = fileOf({ more: { outgoingAuth: { source: 'inline', ...strategies } } })
  const vmcp = await start(t, file)
  t.equal(await readiness(vmcp), 200)
  t.match((await stateless(vmcp.url, 'tools/list')).response, { result: { tools: [{}, {}] } })
  const { body } = await read(vmcp, '/status')
  t.match(body.problems, [/outgoingAuth\.backends\.ghost.*; unknown backend "ghost"/])
  t.equal(body.backends?.length, 2)
})

t.test('an embedded authorization server without the provider that a strategy names', async (t) => {
  const upstreamTokens = { providers: ['corp'], get: async () => undefined }
  const inject = (providerName: string) =>
    fileOf({ strategy: { type: 'upstream_inject', upstreamInject: { providerName } } })
  const vmcp = await start(t, inject('crop'), { upstreamTokens })
  t.equal(await readiness(vmcp), 503)
  t.match((await stateless(vmcp.url, 'tools/list')).response, unavailable)
  t.match(vmcp.view.backends()[0], { excluded: [/crop/] })
  t.equal(await readiness(await start(t, inject('corp'), { upstreamTokens })), 200)
})

t.test('a backend of the deprecated transport is left out like any other', async (t) => {
  const vmcp = await start(t, fileOf({ bad: { transport: 'sse' }, strategy: unset, mode: 'best_effort' }))
  const session = await openSession(vmcp.url)
  t.match((await session.request('tools/call', { name: 'bad_echo' })).response, unavailable)
  const stdio = fileOf({ bad: { transport: 'stdio' }, mode: 'best_effort' })
  vmcp.reload(stdio.config, { excluded: stdio.excluded })
  t.match((await session.request('tools/call', { name: 'bad_echo' })).response, unavailable)
})

t.test('a backend that is down and one that is left out: the error names both', async (t) => {
  const more = { operational: { failureHandling: { unhealthyThreshold: 1 } } }
  const file = fileOf({ strategy: unset, more: { ...more } })
  const config = {
    ...file.config,
    backends: (file.config.backends ?? []).map((one) =>
      one.name === 'good' ? { ...one, url: 'http://127.0.0.1:9/mcp' } : one,
    ),
  }
  const vmcp = await start(t, { config, excluded: [] })
  t.match((await stateless(vmcp.url, 'tools/list')).response, {
    error: {
      message: /backends bad, good are unavailable: the configuration of bad is invalid/,
      data: { backends: ['bad', 'good'] },
    },
  })
})

t.test('vmcp validate and vmcp serve agree on errors and on warnings', async (t) => {
  const folder = t.testdir({})
  const common = {
    name: 'v',
    groupRef: 'g',
    incomingAuth: { type: 'anonymous' },
    outgoingAuth: { source: 'inline' },
  }
  const good = { name: 'good', url: backend.url, transport: 'streamable-http' }
  const write = (name: string, more: object): string => {
    const path = join(folder, name)
    writeFileSync(path, JSON.stringify({ ...common, backends: [good], ...more }))
    return path
  }
  const serve = async (file: string) => {
    const run = startGatehouse(['vmcp', 'serve', '-c', file, '--port', '0'])
    t.teardown(() => run.interrupt())
    const [, url = ''] = await run.waitFor(/"url":"(http:[^"]+)"/)
    return { ready: (await fetch(new URL('/readyz', url))).status, output: run.output() }
  }
  const warned = write('warned.json', {
    outgoingAuth: {
      source: 'inline',
      default: header({ headerValueEnv: 'NOT_SET' }),
      backends: { good: { type: 'unauthenticated' } },
    },
    aggregation: { tools: [{ workload: 'godo', filter: ['x'] }] },
  })
  const lines = [
    /aggregation\.tools\[0\]\.workload: unknown backend/,
    /NOT_SET is not set or empty; no backend uses it/,
  ]
  const checked = await runGatehouse(['vmcp', 'validate', '-c', warned])
  t.equal(checked.code, 0, checked.stderr)
  const served = await serve(warned)
  t.equal(served.ready, 200)
  for (const line of lines) {
    t.match(checked.stderr, line)
    t.match(served.output, line)
  }
  const broken = write('broken.json', { outgoingAuth: { source: 'inline', backends: { good: unset } } })
  t.equal((await runGatehouse(['vmcp', 'validate', '-c', broken])).code, 2)
  t.equal((await serve(broken)).ready, 503)
})
