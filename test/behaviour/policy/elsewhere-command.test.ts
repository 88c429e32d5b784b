/**
 * `gatehouse policy` with an external decision point: without --ask, no decision or change is reported for it, and no
 * request is sent.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { startAuthzenPoint } from '../../helpers/decisions/authzen-point.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

async function rig(t: Test) {
  const point = await startAuthzenPoint(({ resource }) => resource.properties['original'] !== 'delete')
  t.teardown(() => point.close())
  const folder = t.testdir({})
  const config = join(folder, 'vmcp.yaml')
  const authzenv1 = { http: { url: point.url }, context: { includeArgs: true } }
  writeFileSync(
    config,
    stringify({
      name: 'front',
      groupRef: 'all',
      backends: [{ name: 'github', url: 'https://x.example.com/mcp', transport: 'streamable-http' }],
      outgoingAuth: { source: 'inline' },
      aggregation: {
        conflictResolution: 'prefix',
        conflictResolutionConfig: { prefixFormat: '{workload}_' },
      },
      incomingAuth: { type: 'anonymous', authz: { type: 'authzenv1', authzenv1 } },
    }),
  )
  const fixtures = join(folder, 'tests.yaml')
  const call = (original: string) => ({ tool: `github_${original}`, backend: 'github', original })
  writeFileSync(
    fixtures,
    stringify({
      policies: 'vmcp.yaml',
      tests: [
        {
          name: 'may search',
          claims: { sub: 'ada' },
          call: call('search'),
          expect: 'allow',
          because: ['authzenv1'],
        },
        { name: 'may delete', claims: { sub: 'ada' }, call: call('delete'), expect: 'allow' },
      ],
    }),
  )
  const policy = (...args: string[]) => runGatehouse(['policy', ...args])
  return { point, folder, config, fixtures, authzenv1, policy }
}

t.test(
  'test: reports that the decision is external, in every format, and requests it with --ask',
  async (t) => {
    const { point, fixtures, policy } = await rig(t)
    const text = await policy('test', '-f', fixtures)
    t.match(text, { code: 2, stdout: /0 passed, 0 failed, 2 decided elsewhere; use --ask/ })
    t.match(text.stdout, `decided elsewhere: ${fixtures}: may search: ${point.url}`)
    const json = await policy('test', '-f', fixtures, '-o', 'json')
    t.match(JSON.parse(json.stdout), {
      passed: 0,
      failed: 0,
      elsewhere: 2,
      tests: [{ elsewhere: point.url }, {}],
    })
    const junit = await policy('test', '-f', fixtures, '-o', 'junit')
    t.match(junit.stdout, /<testsuite name="gatehouse policy test" tests="2" failures="0" skipped="2">/)
    t.equal(junit.stdout.split('<skipped message="decided elsewhere').length, 3)
    t.equal(point.asked.length, 0, 'no request was sent without --ask')

    const asked = await policy('test', '-f', fixtures, '--ask')
    t.match(asked, { code: 1, stdout: /1 passed, 1 failed$/m })
    t.match(asked.stdout, 'call_tool github_delete: expected allow, was deny by authzenv1')
    t.match(point.asked[0]?.body, { subject: { id: 'ada' }, resource: { id: 'front/github/search' } })
    point.answer = (res) => res.writeHead(500).end()
    const failing = await policy('test', '-f', fixtures, '--ask')
    t.match(failing, { code: 1, stdout: /expected allow, no decision: authzenv1: status/ })
  },
)

t.test('explain: shows the request, and with --ask the decision', async (t) => {
  const { point, config, policy } = await rig(t)
  const explain = (original: string, ...more: string[]) =>
    policy(
      'explain',
      ...['-p', config, '--claims', '{"sub":"ada"}', '--tool', `github_${original}`],
      ...['--backend', 'github', '--original', original, ...more],
    )
  const told = await explain('search')
  t.match(told, {
    code: 2,
    stdout: /^decided elsewhere: http.*\(authzenv1\); use --ask to query it\n {2}the question: \{"subject"/,
  })
  t.match(JSON.parse((await explain('search', '-o', 'json')).stdout), {
    decision: 'elsewhere',
    type: 'authzenv1',
  })
  t.equal(point.asked.length, 0)
  t.match(await explain('search', '--ask'), { code: 0, stdout: /^allowed by authzenv1/ })
  t.match(await explain('delete', '--ask'), { code: 1, stdout: /^denied by authzenv1/ })
  point.answer = (res) => res.writeHead(500).end()
  const failed = await explain('search', '--ask', '-o', 'json')
  t.equal(failed.code, 2)
  t.match(JSON.parse(failed.stdout), { decision: 'none', failure: 'status' })
})

t.test(
  'replay: handles recorded external decisions, with and without the decision point, and reports no false change',
  async (t) => {
    const { point, folder, config, authzenv1, policy } = await rig(t)
    const backend = await startRawBackend({
      tools: () =>
        ['search', 'delete'].map((name) => JSON.stringify({ name, inputSchema: { type: 'object' } })),
      responses: { 'tools/call': () => '{"content":[]}' },
    })
    t.teardown(() => backend.close())
    const logs: Record<string, string> = {}
    // Sequential, because the decision point fails for both.
    for (const policyInputs of ['read', 'all'] as const) {
      const logFile = join(folder, `${policyInputs}.log`)
      const vmcp = await startTestVmcp(
        { github: backend.url },
        {
          incomingAuth: { type: 'anonymous', authz: { type: 'authzenv1', authzenv1 } },
          audit: { enabled: true, logFile, policyInputs },
        },
      )
      for (const name of ['search', 'delete'])
        await stateless(vmcp.url, 'tools/call', { name: `github_${name}`, arguments: { a: 1 } })
      point.answer = (res) => res.writeHead(500).end()
      await stateless(vmcp.url, 'tools/call', { name: 'github_search', arguments: { a: 2 } })
      point.answer = undefined
      await vmcp.close()
      logs[policyInputs] = logFile
    }
    const replay = (log: string | undefined, to: string, ...more: string[]) =>
      policy('replay', '--audit', log ?? '', '--new', to, ...more)
    const before = point.asked.length
    t.match(await replay(logs['all'], config), {
      code: 2,
      stdout:
        /^3 decisions: 3 decided elsewhere, nothing was compared; 0 lines without a decision; use --ask/,
    })
    const json = JSON.parse((await replay(logs['all'], config, '-o', 'json')).stdout) as object
    t.match(json, { decisions: 3, elsewhere: 3, unchanged: 0, flips: [] })
    t.equal(point.asked.length, before, 'no request was sent without --ask')

    const same = await replay(logs['all'], config, '--ask')
    t.match(same, { code: 0, stdout: /^3 decisions: 2 unchanged, 0 changed, 1 inconclusive/ })
    t.match(same.stdout, 'inconclusive lines lack: a decision (1)')
    point.decide = () => true
    const changed = await replay(logs['all'], config, '--ask')
    t.match(changed, { code: 1, stdout: /github_delete: deny becomes allow by authzenv1/ })
    t.match(await replay(logs['read'], config, '--ask'), {
      code: 0,
      stdout: /0 unchanged, 0 changed, 3 inconclusive[^]*arguments \(2\)/,
    })

    const policies = join(folder, 'policies.yaml')
    writeFileSync(
      policies,
      JSON.stringify({ policies: ['permit(principal in ServiceGroup::"ops", action, resource);'] }),
    )
    const cedar = await replay(logs['read'], policies)
    t.match(cedar, { code: 0, stdout: /0 unchanged, 0 changed, 3 inconclusive/ }, 'groups are not recorded')
    t.match(readFileSync(logs['read'] ?? '', 'utf8'), 'authzenv1')
  },
)

t.test('missing files of the settings are reported', async (t) => {
  const { folder, policy } = await rig(t)
  const config = join(folder, 'files.yaml')
  const http = { url: 'https://pdp.example.com', caBundlePath: '/config/decision-point/ca/ca.crt' }
  writeFileSync(
    config,
    stringify({
      name: 'front',
      groupRef: 'all',
      backends: [],
      outgoingAuth: { source: 'inline' },
      aggregation: {
        conflictResolution: 'prefix',
        conflictResolutionConfig: { prefixFormat: '{workload}_' },
      },
      incomingAuth: { type: 'anonymous', authz: { type: 'authzenv1', authzenv1: { http } } },
    }),
  )
  t.match(await policy('explain', '-p', config, '--tool', 'x'), { code: 2, stdout: /^decided elsewhere/ })
  const { code, stderr } = await policy('explain', '-p', config, '--tool', 'x', '--ask')
  t.equal(code, 2)
  t.match(
    stderr,
    /authzenv1\.http\.caBundlePath: the file \/config\/decision-point\/ca\/ca\.crt cannot be read/,
  )
})
