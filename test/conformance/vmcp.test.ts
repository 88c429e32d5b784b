/**
 * Runs the official suite's required server scenarios of both revisions through a virtual server with a full fixture as
 * its only backend. A fixture of the same era has no expected failures. For a fixture of the other era alone,
 * vmcp-other-era.expected.yaml lists the features that cannot be translated. Names have no prefix (priority), as the
 * suite requires.
 */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Recorder } from '../helpers/conformance/record.ts'
import { runConformance, type ScenarioResult } from '../helpers/conformance/suite.ts'
import { startFixture } from '../helpers/mcp/fixture-server/index.ts'
import { openSession, post, statelessRequest } from '../helpers/mcp/wire.ts'
import { bareNames, startTestVmcp } from '../helpers/vmcp/vmcp.ts'

t.setTimeout(900_000)

const recorder = new Recorder('vmcp')
const revisions = ['2025-11-25', '2026-07-28'] as const
const eraOf = { '2025-11-25': 'session', '2026-07-28': 'stateless' } as const
const otherEraOf = { '2025-11-25': 'stateless', '2026-07-28': 'session' } as const

/** Runs a revision's required set and returns the output. Fails unless the suite passes. */
async function runServerSet(
  t: Test,
  revision: (typeof revisions)[number],
  era: 'session' | 'stateless',
  more: readonly string[] = [],
): Promise<void> {
  const fixture = await startFixture({ era })
  const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture') })
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  const { initialized } = await openSession(vmcp.url)
  t.match(initialized.result?.['serverInfo'], { name: 'test-vmcp' }, 'the suite tests the virtual server')
  const { body, headers } = statelessRequest('server/discover')
  const { status } = await post(fixture.url, body, headers)
  t.equal(status === 200, era === 'stateless', 'the backend speaks only one era')
  const { code, output, scenarios } = await runConformance([
    'server',
    '--url',
    vmcp.url,
    '--requirements',
    revision,
    ...more,
  ])
  const backend = era === 'session' ? '2025-11-25' : '2026-07-28'
  recorder.addRun({ title: `virtual server, backend of ${backend}`, mode: 'server', revision }, scenarios)
  t.equal(code, 0, output.slice(-4000))
}

for (const revision of revisions) {
  await t.test(`vmcp, ${revision}: every required scenario passes`, { timeout: 300_000 }, (t) =>
    runServerSet(t, revision, eraOf[revision]),
  )
}

/** The suite treats an entry that passes as stale, so only one run gets the file. */
const expected = {
  '2025-11-25': [],
  '2026-07-28': ['--expected-failures', join(import.meta.dirname, 'vmcp-other-era.expected.yaml')],
} as const

for (const revision of revisions) {
  const backend = otherEraOf[revision] === 'session' ? '2025-11-25' : '2026-07-28'
  await t.test(
    `vmcp, ${revision} over a backend of ${backend} alone: only the listed scenarios fail`,
    { timeout: 300_000 },
    (t) => runServerSet(t, revision, otherEraOf[revision], expected[revision]),
  )
}

/** Client scenarios that apply to the connection to backends. Logins do not take part here. */
const clientScenarios = {
  '2025-11-25': ['initialize', 'tools_call', 'elicitation-sep1034-client-defaults', 'sse-retry'],
  '2026-07-28': [
    'tools_call',
    'request-metadata',
    'http-standard-headers',
    'http-custom-headers',
    'http-invalid-tool-headers',
    'json-schema-ref-no-deref',
    'sep-2322-client-request-state',
    'json-schema-2020-12-preservation',
  ],
}
const driver = join(import.meta.dirname, '../helpers/conformance/client.ts')

const clientResults = {
  '2025-11-25': new Map<string, ScenarioResult>(),
  '2026-07-28': new Map<string, ScenarioResult>(),
}

for (const revision of revisions) {
  for (const scenario of clientScenarios[revision]) {
    await t.test(`vmcp as a client, ${revision}: ${scenario}`, { timeout: 60_000 }, async (t) => {
      const { code, output, scenarios } = await runConformance([
        'client',
        '--command',
        `${process.execPath} ${driver}`,
        '--scenario',
        scenario,
        '--spec-version',
        revision,
      ])
      for (const [name, result] of scenarios) clientResults[revision].set(name, result)
      t.equal(code, 0, output.slice(-4000))
    })
  }
}

for (const revision of revisions)
  recorder.addRun({ title: 'virtual server', mode: 'client', revision }, clientResults[revision])

await t.test('the conformance page shows these results', async (t) => recorder.compare(t))
