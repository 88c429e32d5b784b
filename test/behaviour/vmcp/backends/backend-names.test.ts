/**
 * Settings for backends that do not exist have no effect: `vmcp validate` warns of them, and a running server names them
 * in status and log.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readVmcpConfig } from '../../../../runtime/config/vmcp/file.ts'
import { startVmcp, type VmcpServer } from '../../../../runtime/vmcp/index.ts'
import { keepingLog } from '../../../helpers/authserver/authserver.ts'
import { runGatehouse, startGatehouse } from '../../../helpers/gatehouse.ts'
import { openSession } from '../../../helpers/mcp/wire.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'

t.setTimeout(120_000)

const good = await startRawBackend()
const other = await startRawBackend()
t.teardown(() => Promise.all([good.close(), other.close()]))

async function text(vmcp: VmcpServer, path: string): Promise<string> {
  return (await fetch(`${vmcp.origin}${path}`)).text()
}

async function tools(vmcp: VmcpServer): Promise<string[]> {
  const session = await openSession(vmcp.url)
  const { response } = await session.request('tools/list', {})
  const result = response?.result as { tools: { name: string }[] } | undefined
  return (result?.tools ?? []).map(({ name }) => name).sort()
}

t.test(
  'a setting for an unknown backend is reported in status and log, at the start and after a reload',
  async (t) => {
    const file = (name: string, transport = 'streamable-http') =>
      readVmcpConfig(
        JSON.stringify({
          name: 'v',
          groupRef: 'g',
          incomingAuth: { type: 'anonymous' },
          outgoingAuth: { source: 'inline', backends: { [name]: { type: 'unauthenticated' } } },
          aggregation: { conflictResolution: 'prefix', tools: [{ workload: name, excludeAll: false }] },
          operational: { timeouts: { perWorkload: { [name]: '5s' } } },
          backends: [
            { name: 'good', url: good.url, transport: 'streamable-http' },
            { name: 'other', url: other.url, transport },
          ],
        }),
      )
    const { log, text: logged } = keepingLog()
    const vmcp = await startVmcp(file('goood').config, { port: 0, graceMs: 200, log })
    t.teardown(() => vmcp.close())
    const problems = async () => JSON.parse(await text(vmcp, '/status')).problems
    const expected = (name: string, guess: string) =>
      [
        'aggregation.tools[0].workload',
        `operational.timeouts.perWorkload.${name}`,
        `outgoingAuth.backends.${name}`,
      ].map((path) => `${path}: unknown backend "${name}"; did you mean "${guess}"?`)
    t.same(await tools(vmcp), ['good_echo', 'other_echo'], 'the server is running')
    t.same(await problems(), expected('goood', 'good'))
    t.match(logged(), 'settings refer to backends that do not exist')
    vmcp.reload(file('othr').config)
    t.same(await problems(), expected('othr', 'other'), 'after a reload')
    const excludes = file('other', 'pigeon')
    vmcp.reload(excludes.config, { excluded: excludes.excluded })
    t.match(await problems(), [/^backend other is excluded/], 'an excluded backend is known')
    t.equal((await problems()).length, 1)
    vmcp.reload(file('other').config)
    t.same(await problems(), [])
  },
)

t.test(
  'vmcp validate warns about names that no backend has, and vmcp serve starts and logs them',
  async (t) => {
    const config = join(t.testdir(), 'v.yaml')
    writeFileSync(
      config,
      `name: v
groupRef: g
incomingAuth: {type: anonymous}
outgoingAuth: {source: inline, backends: {goood: {type: unauthenticated}}}
aggregation: {conflictResolution: priority, conflictResolutionConfig: {priorityOrder: [good, godo]}}
backends:
  - {name: good, url: "${good.url}", transport: streamable-http}
`,
    )
    const checked = await runGatehouse(['vmcp', 'validate', '-c', config])
    t.equal(checked.code, 0)
    t.match(
      checked.stderr,
      'warning: outgoingAuth.backends.goood: unknown backend "goood"; did you mean "good"?',
    )
    t.match(checked.stderr, 'priorityOrder[1]: unknown backend "godo"; did you mean "good"?')
    const run = startGatehouse(['vmcp', 'serve', '-c', config, '--port', '0'])
    t.teardown(() => run.interrupt())
    await run.waitFor(/"url":"(http:[^"]+)"/)
    t.match(run.output(), /goood[^\n]*settings refer to backends that do not exist/)
  },
)

t.test('vmcp validate reports a workflow step with an unknown backend with the same text', async (t) => {
  const check = async (tool: string) => {
    const config = join(t.testdir(), 'v.yaml')
    writeFileSync(
      config,
      `name: v
groupRef: g
incomingAuth: {type: anonymous}
outgoingAuth: {source: inline}
aggregation: {conflictResolution: prefix}
compositeTools:
  - {name: w, description: d, steps: [{id: a, tool: ${tool}}]}
backends:
  - {name: good, url: "${good.url}", transport: streamable-http}
`,
    )
    return runGatehouse(['vmcp', 'validate', '-c', config])
  }
  const { code, stderr } = await check('godo_echo')
  t.equal(code, 0)
  t.match(stderr, 'warning: compositeTools[0].steps[0].tool: unknown backend "godo"; did you mean "good"?')
  t.equal((await check('good_echo')).stderr, '')
})
