/**
 * The official suite's required server scenarios of both revisions, through a virtual server whose only backend is a
 * full fixture of the same era. No expected failures. Names stay bare (priority), as the suite wants them.
 */
import { join } from 'node:path'
import t from 'tap'
import { runConformance } from '../helpers/conformance.ts'
import { startFixture } from '../helpers/fixture-server/index.ts'
import { openSession } from '../helpers/mcp-wire.ts'
import { bareNames, startTestVmcp } from '../helpers/vmcp.ts'

t.setTimeout(900_000)

const revisions = { '2025-11-25': 'session', '2026-07-28': 'stateless' } as const

for (const [revision, era] of Object.entries(revisions)) {
  await t.test(`vmcp, ${revision}: every required scenario passes`, { timeout: 300_000 }, async (t) => {
    const fixture = await startFixture({ era })
    const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture') })
    t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
    const { initialized } = await openSession(vmcp.url)
    t.match(
      initialized.result?.['serverInfo'],
      { name: 'test-vmcp' },
      'it is the virtual server that is tested',
    )
    const { code, output } = await runConformance(['server', '--url', vmcp.url, '--requirements', revision])
    t.equal(code, 0, output.slice(-4000))
  })
}

/** Scenarios of a client that say something about the side towards backends; logins and forms are the client's own. */
const clientScenarios = {
  '2025-11-25': ['initialize', 'tools_call', 'sse-retry'],
  '2026-07-28': [
    'tools_call',
    'request-metadata',
    'http-standard-headers',
    'http-custom-headers',
    'http-invalid-tool-headers',
    'json-schema-ref-no-deref',
    'sep-2322-client-request-state',
  ],
}
const driver = join(import.meta.dirname, '../helpers/conformance-client.ts')

for (const [revision, scenarios] of Object.entries(clientScenarios)) {
  for (const scenario of scenarios) {
    await t.test(`vmcp as a client, ${revision}: ${scenario}`, { timeout: 60_000 }, async (t) => {
      const { code, output } = await runConformance([
        'client',
        '--command',
        `${process.execPath} ${driver}`,
        '--scenario',
        scenario,
        '--spec-version',
        revision,
      ])
      t.equal(code, 0, output.slice(-4000))
    })
  }
}
