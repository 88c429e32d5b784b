/**
 * Runs the official suite's scenarios for client credentials, with a virtual server as the OAuth client of its backend.
 */
import { join } from 'node:path'
import t from 'tap'
import { Recorder } from '../helpers/conformance/record.ts'
import { nodeCommand, runConformance, type ScenarioResult } from '../helpers/conformance/suite.ts'

t.setTimeout(300_000)

const command = nodeCommand(join(import.meta.dirname, 'fixtures/vmcp-client.ts'))
const recorder = new Recorder('vmcp-auth')
const results = new Map<string, ScenarioResult>()

for (const scenario of ['auth/client-credentials-jwt', 'auth/client-credentials-basic']) {
  await t.test(`virtual server as OAuth client: ${scenario} passes`, async (t) => {
    const args = ['client', '--command', command, '--scenario', scenario, '--timeout', '120000', '--verbose']
    const { code, output, scenarios } = await runConformance(args)
    for (const [name, result] of scenarios) results.set(name, result)
    if (code !== 0) t.comment(output.slice(-20_000))
    t.equal(code, 0, 'the suite passes')
    t.match(
      output,
      /Sent 200 response for POST \/mcp \(method: tools\/call\)/,
      'the backend was called with the token',
    )
  })
}

recorder.addRun({ title: 'virtual server, OAuth', mode: 'client' }, results)

await t.test('the conformance page shows these results', async (t) => recorder.compare(t))
