/** `gatehouse explain` for a call that a quota rejects: the quotas that count it, and their usage. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startTestConsole } from '../../helpers/console/console.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'
import { startRawBackend, textResult } from '../../helpers/mcp/raw-backend.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { refusalOf } from '../../helpers/vmcp/quota-rig.ts'

t.setTimeout(120_000)

const settings = {
  quotas: [
    { name: 'searches', match: { backend: 'web', tool: 'search' }, per: 'server', window: 'day', limit: 2 },
    { name: 'spending', per: 'server', window: 'month', unit: 'cost', limit: 1_000, action: 'warn' },
    { name: 'elsewhere', match: { backend: 'other' }, per: 'server', window: 'hour', limit: 1 },
  ],
  costs: { 'web/search': 25 },
}

t.test('with a running server: the quota that rejected a call, and the usage of all quotas', async (t) => {
  const backend = await startRawBackend({
    tools: () => ['{"name":"search","inputSchema":{"type":"object"}}'],
    responses: { 'tools/call': () => textResult('found') },
  })
  const console = await startTestConsole({ web: backend.url }, settings)
  t.teardown(() => Promise.all([console.close(), backend.close()]))
  const tokenFile = join(t.testdir({}), 'token')
  writeFileSync(tokenFile, console.token)
  const call = () => stateless(console.vmcp.url, 'tools/call', { name: 'web_search', arguments: {} })
  const explain = () =>
    runGatehouse(['explain', '--url', console.url, '--token-file', tokenFile, '--tool', 'web_search'])
  t.equal(refusalOf(await call()), undefined)
  t.match((await explain()).stdout, /searches: .* is 50% used in this window/)
  t.equal(refusalOf(await call()), undefined)
  t.match(refusalOf(await call()), { quota: 'searches' })
  const { stdout } = await explain()
  t.match(
    stdout,
    /note quota +searches: 2 calls per day for all callers in total; further calls are rejected; the fullest budget is 100% used in this window/,
  )
  t.match(
    stdout,
    /spending: 1000 cost per month for all callers in total, of which this call costs 25 unless the backend reports a different cost; further calls are allowed; the fullest budget is 5% used in this window/,
  )
  t.notMatch(stdout, 'elsewhere')
})

t.test('with a file: there are no counters, so no usage is shown', async (t) => {
  const folder = t.testdir({
    'vmcp.json': JSON.stringify({
      name: 'team',
      groupRef: 'g',
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'inline' },
      aggregation: {
        conflictResolution: 'prefix',
        conflictResolutionConfig: { prefixFormat: '{workload}_' },
      },
      backends: [{ name: 'web', url: 'http://127.0.0.1:9/mcp', transport: 'streamable-http' }],
      ...settings,
    }),
    'state.yaml': 'backends: {web: {tools: [search], health: healthy}}\n',
  })
  const args = ['-f', join(folder, 'vmcp.json'), '--state', join(folder, 'state.yaml')]
  const { stdout, stderr } = await runGatehouse(['explain', ...args, '--tool', 'web_search'])
  t.match(
    stdout,
    /note quota +searches: 2 calls per day for all callers in total; further calls are rejected\n/,
    stderr,
  )
})
