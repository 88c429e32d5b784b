/**
 * Runs the official suite's client scenarios with the proxy command as the OAuth client: the required scenarios of both
 * revisions (which include the whole suite `auth`), the servers of the oldest revision, and all extensions.
 */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Recorder } from '../helpers/conformance/record.ts'
import { nodeCommand, runConformance } from '../helpers/conformance/suite.ts'
import { proves } from '../helpers/proves.ts'
import { startClientQueue } from './fixtures/client-queue.ts'
import { runThroughProxy } from './fixtures/proxy-client.ts'

proves('1.does.outgoing-auth', '1.does.detect-auth', '1.does.register', '1.rule.4')

t.setTimeout(900_000)
const clients = await startClientQueue(3, runThroughProxy)
t.teardown(() => clients.close())

const recorder = new Recorder('proxy-auth')
const command = nodeCommand(join(import.meta.dirname, 'fixtures/forwarding-client.ts'))

/** Outcome of each scenario's client, because the suite ignores it when it runs many scenarios. */
async function runClient(
  t: Test,
  run: { readonly title: string; readonly revision?: string },
  args: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { code, output, scenarios } = await runConformance(
    ['client', '--command', command, '--timeout', '600000', '--verbose', ...args],
    clients.env,
  )
  if (code !== 0) t.comment(output.slice(-20_000))
  t.equal(code, 0, 'the suite passes')
  // Extensions have a run of their own. In the run of a revision, they are not scored.
  const own = [...scenarios].filter(([name]) => run.revision === undefined || !extension.test(name))
  recorder.addRun({ ...run, mode: 'client' }, new Map(own))
  return new Map(
    [...scenarios].map(([name, { stdout }]) => [name, /^outcome: (.*)$/m.exec(stdout)?.[1] ?? 'none']),
  )
}

const extension = /^auth\/(client-credentials|enterprise|wif|dpop)/

const revisions = [
  { revision: '2025-11-25', required: 18, refused: ['auth/scope-retry-limit'] },
  {
    revision: '2026-07-28',
    required: 32,
    /** Servers that must not be trusted, and one that requests more scopes forever. */
    refused: [
      'auth/iss-normalized',
      'auth/iss-supported-missing',
      'auth/iss-unexpected',
      'auth/iss-wrong-issuer',
      'auth/metadata-issuer-mismatch',
      'auth/resource-mismatch',
      'auth/scope-retry-limit',
    ],
  },
]

for (const { revision, required, refused } of revisions) {
  await t.test(`proxy as OAuth client, ${revision}: every required scenario passes`, async (t) => {
    const outcomes = await runClient(t, { title: 'proxy', revision }, ['--requirements', revision])
    const own = [...outcomes].filter(([scenario]) => !extension.test(scenario))
    t.ok(own.length >= required, `${own.length} scenarios ran`)
    const others = own.filter(([, outcome]) => !/^\d+ tools called$/.test(outcome))
    t.same(others.map(([scenario]) => scenario).toSorted(), refused, 'only these were rejected')
  })
}

await t.test('proxy as OAuth client: servers of revision 2025-03-26 pass', async (t) => {
  const outcomes = await runClient(t, { title: 'proxy, servers of 2025-03-26' }, ['--suite', 'backcompat'])
  t.same([...outcomes.values()], ['1 tools called', '1 tools called'])
})

await t.test('proxy as OAuth client: every extension passes', async (t) => {
  const outcomes = await runClient(t, { title: 'proxy, extensions' }, ['--suite', 'extensions'])
  for (const scenario of [
    'auth/client-credentials-jwt',
    'auth/client-credentials-basic',
    'auth/dpop',
    'auth/dpop-nonce',
    'auth/enterprise-managed-authorization',
    'auth/wif-jwt-bearer',
  ])
    t.equal(outcomes.get(scenario), '1 tools called', scenario)
})

await t.test('the conformance page shows these results', async (t) => recorder.compare(t))
