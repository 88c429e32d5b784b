/** Workflows in the audit log, the metrics and the traces of a running server. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { openSession } from '../../../helpers/mcp/wire.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

t.test('audit, metrics: the workflow, its steps, and every call of a step', async (t) => {
  const logFile = join(t.testdir(), 'audit.log')
  const fixture = await startFixture()
  const vmcp = await startTestVmcp(
    { fixture: fixture.url },
    {
      audit: { enabled: true, logFile, includeRequestData: true },
      telemetry: { metricsEnabled: true, enablePrometheusMetricsPath: true },
      compositeTools: [
        {
          name: 'w',
          steps: [
            { id: 'a', tool: 'fixture.echo', arguments: { x: '{{.params.x}}' } },
            { id: 'b', tool: 'fixture.test_error_handling', dependsOn: ['a'], condition: '{{.params.fail}}' },
          ],
          parameters: { type: 'object', properties: { fail: { type: 'boolean', default: false } } },
        },
      ],
    },
  )
  t.teardown(() => fixture.close())
  const session = await openSession(vmcp.url)
  await session.request('tools/call', { name: 'w', arguments: { x: 'seen' } })
  await session.request('tools/call', { name: 'w', arguments: { fail: true } })
  const metrics = await (await fetch(`${vmcp.origin}/metrics`)).text()
  t.match(metrics, /gatehouse_vmcp_workflow_executions_total\{[^}]*workflow_name="w"[^}]*\} 2/)
  t.match(metrics, /gatehouse_vmcp_workflow_errors_total\{[^}]*workflow_name="w"[^}]*\} 1/)
  t.match(metrics, /gatehouse_vmcp_workflow_duration_seconds_count\{[^}]*\} 2/)
  await vmcp.close()
  const lines = readFileSync(logFile, 'utf8')
    .trim()
    .split('\n')
    .map((line): { type: string; target: Record<string, string>; data?: unknown } => JSON.parse(line))
  const events = lines.filter(
    ({ type, target }) => type.includes('workflow') || target['name']?.startsWith('fixture_'),
  )
  t.strictSame(
    events.map(({ type, target }) =>
      [type, target['step_id'] ?? target['name'] ?? target['workflow_name']].join(' '),
    ),
    [
      'vmcp_workflow_started w',
      'vmcp_workflow_step_started a',
      'mcp_tool_call fixture_echo',
      'vmcp_workflow_step_completed a',
      'vmcp_workflow_step_skipped b',
      'vmcp_workflow_completed w',
      'vmcp_workflow_started w',
      'vmcp_workflow_step_started a',
      'mcp_tool_call fixture_echo',
      'vmcp_workflow_step_completed a',
      'vmcp_workflow_step_started b',
      'mcp_tool_call fixture_test_error_handling',
      'vmcp_workflow_step_failed b',
      'vmcp_workflow_failed w',
    ],
  )
  t.match(events[0], { data: { request: { x: 'seen' } } })
  t.equal(
    lines.filter(({ type, target }) => type === 'mcp_tool_call' && target['name'] === 'w').length,
    2,
    'and the calls of the client',
  )
})
