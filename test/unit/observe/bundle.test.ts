/** Telemetry and audit inside a bundle, as in the images: without node_modules, and without patched modules. */
import { execFile } from 'node:child_process'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import t from 'tap'
import { bundleOptions } from '../../../manifests/bundle/options.ts'
import { startCollector } from '../../helpers/otlp.ts'

const door = resolve(import.meta.dirname, '../../../runtime/observe/index.ts')

const program = `
import { makeAudit, makeTelemetry } from ${JSON.stringify(door)}
const telemetry = await makeTelemetry({
  endpoint: process.argv[2], insecure: true, tracingEnabled: true, metricsEnabled: true,
  enablePrometheusMetricsPath: true, samplingRate: '1', useLegacyAttributes: false,
}, { serverName: 'bundled', version: '1' })
telemetry.metrics.workflowExecutions(1, { 'workflow.name': 'w' })
await telemetry.tracer.internal('core.ExecuteWorkflow', undefined, async () => {})
await telemetry.close()
const audit = makeAudit({
  enabled: true, detectApplicationErrors: true, includeRequestData: false, includeResponseData: false,
  maxDataSize: 1024, maxDelegationDepth: 10,
})
audit.call({ caller: undefined, tool: 'x', backend: 'b', outcome: 'success', durationMs: 1 })
audit.close()
`

t.test('bundle: spans and metrics arrive, the audit line is written', async (t) => {
  const outfile = join(t.testdir({}), 'bundle.mjs')
  await build({
    stdin: { contents: program, resolveDir: resolve(import.meta.dirname, '../../..'), loader: 'ts' },
    ...bundleOptions,
    outfile,
    logLevel: 'silent',
  })
  const collector = await startCollector()
  t.teardown(() => collector.close())
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [outfile, collector.url], {
    cwd: '/',
  })
  t.equal(stderr, '')
  t.match(JSON.parse(stdout), { level: 'AUDIT', type: 'mcp_tool_call', target: { name: 'x' } })
  t.match(collector.spans(), [{ name: 'core.ExecuteWorkflow', resource: { 'service.name': 'bundled' } }])
  t.match(collector.points(), [{ name: 'gatehouse_vmcp_workflow_executions', value: 1 }])
})
