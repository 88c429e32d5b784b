/**
 * Runs the official suite's scenarios for tasks through a virtual server, in front of a server with tasks of each era.
 * The scenarios belong to an extension, so the recorded runs have no revision. The suite has no scenario for clients of
 * tasks. A backend of each era therefore also tests the virtual server as a client of tasks.
 *
 * Calls have a time limit of 500 ms, because a virtual server returns the finished result of a short task to a client
 * without tasks, and -32021 otherwise.
 */
import t from 'tap'
import { Recorder } from '../helpers/conformance/record.ts'
import { runConformance, type ScenarioResult } from '../helpers/conformance/suite.ts'
import { startExtensionTaskServer, startSessionTaskServer } from '../helpers/conformance/task-servers.ts'
import { bareNames, startTestVmcp } from '../helpers/vmcp/vmcp.ts'

t.setTimeout(600_000)

const recorder = new Recorder('vmcp-tasks')
const revision = '2026-07-28'
const scenarios = [
  'tasks-lifecycle',
  'tasks-capability-negotiation',
  'tasks-wire-fields',
  'tasks-request-state-removal',
  'tasks-mrtr-input',
  'tasks-request-headers',
  'tasks-dispatch-and-envelope',
  'tasks-required-task-error',
  'tasks-mrtr-composition',
]
const backends = [
  { title: 'backend of 2026-07-28', start: startExtensionTaskServer },
  { title: 'backend of 2025-11-25', start: startSessionTaskServer },
]

for (const { title, start } of backends) {
  await t.test(`tasks, ${title}: every scenario passes`, async (t) => {
    const backend = await start()
    const vmcp = await startTestVmcp(
      { backend: backend.url },
      {
        aggregation: bareNames('backend'),
        extensions: { tasks: { enabled: true, pollInterval: '100ms', runAsTask: ['optionalTools'] } },
        operational: { timeouts: { default: '500ms' } },
      },
    )
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const results = new Map<string, ScenarioResult>()
    for (const scenario of scenarios) {
      const args = [
        'server',
        '--url',
        vmcp.url,
        '--scenario',
        scenario,
        '--spec-version',
        revision,
        '--force',
      ]
      const run = await runConformance(args)
      for (const [name, result] of run.scenarios) results.set(name, result)
      t.same(run.scenarios.get(scenario)?.failed, [], `${scenario}: ${run.output.slice(-4_000)}`)
      t.equal(run.code, 0, scenario)
    }
    recorder.addRun({ title: `virtual server with tasks, ${title}`, mode: 'server' }, results)
  })
}

await t.test('the conformance page shows these results', async (t) => recorder.compare(t))
