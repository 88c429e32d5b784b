/**
 * Invalid settings of one backend only exclude that backend, at the start and after a reload. Status, health, log and
 * metrics name it, and it is served once its settings are valid.
 */
import { writeFileSync } from 'node:fs'
import { lookup } from 'node:dns/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import t from 'tap'
import { type ReadVmcpConfig, readVmcpConfig } from '../../../../runtime/config/vmcp/file.ts'
import { startVmcp, type VmcpServer } from '../../../../runtime/vmcp/index.ts'
import type { Clock } from '../../../../runtime/vmcp/model/time/clock.ts'
import { isRefusedAddress } from '../../../../schemas/index.ts'
import { keepingLog } from '../../../helpers/authserver/authserver.ts'
import { runGatehouse, startGatehouse } from '../../../helpers/gatehouse.ts'
import { openSession } from '../../../helpers/mcp/wire.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { type Case, excludedCases, header } from './excluded-cases.ts'

t.setTimeout(120_000)

const good = await startRawBackend()
const other = await startRawBackend()
t.teardown(() => Promise.all([good.close(), other.close()]))

const dir = t.testdir({ 'empty.pem': '', 'damaged.pem': pem('bm90IGEgY2VydGlmaWNhdGU=') })

function pem(base64: string): string {
  return `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`
}

const cases = excludedCases(dir)

function fileOf({ backend, strategy, default: fallback, file = {} }: Partial<Case>): ReadVmcpConfig {
  const { good: goodStrategy, ...more } = file as { good?: object }
  const entries = { ...(goodStrategy && { good: goodStrategy }), ...(strategy && { bad: strategy }) }
  return readVmcpConfig(
    JSON.stringify({
      name: 'v',
      groupRef: 'g',
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'inline', backends: entries, ...(fallback && { default: fallback }) },
      aggregation: { conflictResolution: 'prefix' },
      backends: [
        { name: 'good', url: good.url, transport: 'streamable-http' },
        { name: 'bad', url: other.url, transport: 'streamable-http', ...backend },
      ],
      telemetry: { enablePrometheusMetricsPath: true },
      ...more,
      operational: {
        failureHandling: { partialFailureMode: 'best_effort' },
        ...(more as { operational?: object }).operational,
      },
    }),
  )
}

async function text(vmcp: VmcpServer, path: string): Promise<string> {
  return (await fetch(`${vmcp.origin}${path}`)).text()
}

async function tools(vmcp: VmcpServer): Promise<string[]> {
  const session = await openSession(vmcp.url)
  const { response } = await session.request('tools/list', {})
  const result = response?.result as { tools: { name: string }[] } | undefined
  return (result?.tools ?? []).map(({ name }) => name).sort()
}

for (const one of cases) {
  t.test(`start: ${one.what}`, async (t) => {
    const { log, text: logged } = keepingLog()
    const { config, excluded } = fileOf(one)
    const vmcp = await startVmcp(config, { port: 0, graceMs: 200, env: one.env ?? {}, log, excluded })
    t.teardown(() => vmcp.close())
    t.same(await tools(vmcp), ['good_echo'], 'the other backend is served')
    const [status, health, metrics] = await Promise.all(
      ['/status', '/api/backends/health', '/metrics'].map((path) => text(vmcp, path)),
    )
    const { backends, problems, healthy } = JSON.parse(status ?? '')
    t.match(backends, [{ name: 'bad', health: 'unhealthy' }, { name: 'good' }])
    t.ok(healthy === true || backends[1].health === 'unknown')
    t.match(problems, [one.problem])
    t.match(problems[0], /^backend bad is excluded: /)
    t.match(JSON.parse(health ?? ''), {
      backends: { bad: { status: 'unhealthy', last_error_category: 'configuration_invalid' } },
    })
    t.match(metrics, /^gatehouse_vmcp_backends_excluded\{?[^\n]*\}? 1$/m)
    const line = logged()
      .split('\n')
      .find((each) => each.includes('a backend is excluded'))
    t.match(JSON.parse(line ?? '{}'), { level: 'error', backend: 'bad', problems: [one.problem] })
    if (one.secret !== undefined) t.notMatch(status + (health ?? '') + logged(), one.secret)
  })

  t.test(`reload: ${one.what}`, async (t) => {
    const before = fileOf({})
    const vmcp = await startVmcp(before.config, { port: 0, graceMs: 200, env: one.env ?? {} })
    t.teardown(() => vmcp.close())
    const session = await openSession(vmcp.url)
    const broken = fileOf(one)
    vmcp.reload(broken.config, { excluded: broken.excluded })
    t.same(await tools(vmcp), ['good_echo'])
    t.match(
      (await session.request('tools/call', { name: 'good_echo' })).response?.result,
      { content: [{ text: '{}' }] },
      'an open session continues',
    )
    t.match(JSON.parse(await text(vmcp, '/status')).problems, [one.problem])
    // The environment does not change during the life of a process.
    if (one.env && !one.strategy) return
    vmcp.reload(before.config)
    t.same(await tools(vmcp), ['bad_echo', 'good_echo'], 'it is served once its settings are valid')
    t.same(JSON.parse(await text(vmcp, '/status')).problems, [])
  })
}

t.test('a backend named like a member of every object is served like any other', async (t) => {
  const { config } = readVmcpConfig(
    JSON.stringify({
      name: 'v',
      groupRef: 'g',
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'inline', backends: { good: { type: 'unauthenticated' } } },
      aggregation: { conflictResolution: 'prefix' },
      operational: { timeouts: { perWorkload: { good: '5s' } } },
      backends: ['constructor', 'good'].map((name) => ({
        name,
        url: good.url,
        transport: 'streamable-http',
      })),
    }),
  )
  const vmcp = await startVmcp(config, { port: 0, graceMs: 200, env: {} })
  t.teardown(() => vmcp.close())
  t.same(await tools(vmcp), ['constructor_echo', 'good_echo'])
})

t.test('two backends that share a variable: neither gets the headers of the other', async (t) => {
  const names = ['a-b', 'a.b', 'good']
  const file = readVmcpConfig(
    JSON.stringify({
      name: 'v',
      groupRef: 'g',
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'inline' },
      operational: { failureHandling: { partialFailureMode: 'best_effort' } },
      aggregation: { conflictResolution: 'prefix' },
      backends: names.map((name) => ({ name, url: good.url, transport: 'streamable-http' })),
    }),
  )
  const env = { GATEHOUSE_HEADER_FORWARD_A_B: JSON.stringify({ addPlaintextHeaders: { 'X-Key': 'k' } }) }
  const vmcp = await startVmcp(file.config, { port: 0, graceMs: 200, env })
  t.teardown(() => vmcp.close())
  t.same(await tools(vmcp), ['good_echo'])
  t.match(JSON.parse(await text(vmcp, '/status')).problems, [
    /a-b and for a\.b|a-b is excluded/,
    /a\.b is excluded/,
  ])
})

t.test('two backends of the same name are both excluded, because the name is ambiguous', async (t) => {
  const { config, excluded } = readVmcpConfig(
    JSON.stringify({
      name: 'v',
      groupRef: 'g',
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'inline' },
      aggregation: { conflictResolution: 'prefix' },
      backends: ['twin', 'twin', 'good'].map((name) => ({
        name,
        url: good.url,
        transport: 'streamable-http',
      })),
    }),
  )
  t.same(
    config.backends?.map(({ name }) => name),
    ['good'],
  )
  t.match(excluded, [{ name: 'twin', problems: [/repeats the name/] }])
})

const ownAddress = await lookup(hostname()).catch(() => undefined)
const skip =
  ownAddress && isRefusedAddress(ownAddress.address)
    ? false
    : 'this machine has no name for an address of its own network'

t.test('the address of a name is checked when it is dialed', { skip }, async (t) => {
  const { log, text: logged } = keepingLog()
  const { config, excluded } = fileOf({
    backend: { url: `http://${hostname()}:9/mcp`, addresses: 'public' },
  })
  t.same(excluded, [])
  const vmcp = await startVmcp(config, { port: 0, graceMs: 200, log })
  t.teardown(() => vmcp.close())
  const session = await openSession(vmcp.url)
  await session.request('tools/list', {})
  t.match(logged(), 'ADDRESS_REFUSED')
})

t.test('a mounted file that arrives late sets up the backend without a restart', async (t) => {
  const path = join(t.testdir({}), 'ca.pem')
  let due: (() => void)[] = []
  const clock: Clock = {
    now: () => 0,
    after(ms, work) {
      if (ms === 30_000) due.push(work)
      return () => {}
    },
  }
  const passTime = () => {
    const now = due
    due = []
    for (const work of now) work()
  }
  const { config } = fileOf({ backend: { type: 'entry', caBundlePath: path } })
  const vmcp = await startVmcp(config, { port: 0, graceMs: 200, clock })
  t.teardown(() => vmcp.close())
  t.same(await tools(vmcp), ['good_echo'])
  passTime()
  t.same(await tools(vmcp), ['good_echo'], 'the file is still missing')
  writeFileSync(path, rootCertificates[0] ?? '')
  passTime()
  t.same(await tools(vmcp), ['bad_echo', 'good_echo'])
})

t.test(
  'a problem of the whole server prevents the start, and is reported with those of backends',
  async (t) => {
    t.throws(() => fileOf({ backend: { transport: 'pigeon' }, file: { bogus: 1 } }), {
      message: /backends\[1\]\.transport[^]*bogus/,
    })
    const { config, excluded } = fileOf({
      strategy: header({ headerValueEnv: 'NOT_SET' }),
      file: { incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies: ['nonsense'] } } },
    })
    await t.rejects(startVmcp(config, { port: 0, excluded }), { message: /policies\[0\][^]*NOT_SET/ })
  },
)

t.test('as commands: validate reports every problem, and serve continues without the backend', async (t) => {
  const file = join(t.testdir({}), 'vmcp.yaml')
  writeFileSync(
    file,
    `name: v
groupRef: g
incomingAuth: {type: anonymous}
outgoingAuth:
  source: inline
  backends:
    keyless: {type: header_injection, headerInjection: {headerName: X-Key, headerValueEnv: NOT_SET}}
operational: {failureHandling: {partialFailureMode: best_effort}}
backends:
  - {name: good, url: "${good.url}", transport: streamable-http}
  - {name: keyless, url: "${other.url}", transport: streamable-http}
  - {name: bird, url: "${other.url}", transport: pigeon}
`,
  )
  const checked = await runGatehouse(['vmcp', 'validate', '-c', file])
  t.equal(checked.code, 2)
  t.match(checked.stderr, /backends\[2\]\.transport/)
  t.match(checked.stderr, /outgoingAuth\.backends\.keyless.*NOT_SET/)
  const run = startGatehouse(['vmcp', 'serve', '-c', file, '--port', '0'])
  t.teardown(() => run.interrupt())
  const [, url = ''] = await run.waitFor(/"url":"(http:[^"]+)"/)
  const session = await openSession(url)
  t.match((await session.request('tools/list')).text, 'good_echo')
  const output = run.output()
  t.match(output, /a backend is excluded[^\n]*/)
  for (const name of ['keyless', 'bird']) t.match(output, new RegExp(`"backend":"${name}"`))
})
