/** Audit lines go to a private file in append mode or to standard output, or nowhere when the audit log is off. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeAudit } from '../../../runtime/observe/index.ts'
import { openSession } from '../../helpers/mcp/wire.ts'
import { proves } from '../../helpers/proves.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'
import { program } from '../../helpers/gatehouse.ts'

const settings = {
  enabled: true,
  detectApplicationErrors: true,
  includeRequestData: false,
  includeResponseData: false,
  maxDataSize: 1024,
  policyInputs: 'none' as const,
  maxDelegationDepth: 10,
}

await t.test('audit file: created with mode 0600, and appended to after a restart', async (t) => {
  proves('3.config.audit.logFile')
  const logFile = join(t.testdir({}), 'audit.log')
  for (const lines of [2, 4]) {
    const vmcp = await startTestVmcp({}, { audit: { enabled: true, logFile } })
    await openSession(vmcp.url)
    await vmcp.close()
    t.equal(readFileSync(logFile, 'utf8').trim().split('\n').length, lines)
  }
  t.equal(statSync(logFile).mode & 0o777, 0o600)
})

await t.test('audit file: a file that cannot be opened prevents the start', async (t) => {
  const logFile = join(t.testdir({}), 'no-such-folder', 'audit.log')
  await t.rejects(startTestVmcp({}, { audit: { enabled: true, logFile } }), {
    code: 'INVALID_CONFIG',
    message: /audit\.logFile: the file cannot be opened/,
  })
})

await t.test('audit file: a full disk loses lines and logs an error, but fails no request', async (t) => {
  const errors: string[] = []
  const log = { ...quiet(), error: (message: string) => void errors.push(message) }
  const vmcp = await startTestVmcp({}, { audit: { enabled: true, logFile: '/dev/full' } }, { log })
  const session = await openSession(vmcp.url)
  t.equal((await session.request('ping')).status, 200)
  await vmcp.close()
  t.same(new Set(errors), new Set(['audit lines are lost']))
  t.ok(errors.length <= 2, 'the first error, and the number of the rest')
})

await t.test('audit off: no file and no lines, by default and when configured', async (t) => {
  proves('3.config.audit.enabled')
  const logFile = join(t.testdir({}), 'audit.log')
  for (const audit of [undefined, { logFile }, { enabled: false, logFile }]) {
    const vmcp = await startTestVmcp({}, audit ? { audit } : {})
    await openSession(vmcp.url)
    await vmcp.close()
    t.equal(existsSync(logFile), false)
  }
})

await t.test('audit on standard output: only lines of JSON, separate from the log', async (t) => {
  const file = join(t.testdir({}), 'vmcp.json')
  writeFileSync(
    file,
    JSON.stringify({
      name: 'piped',
      groupRef: 'g',
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: { source: 'inline' },
      aggregation: { conflictResolution: 'prefix' },
    }),
  )
  const args = [program, 'vmcp', 'serve', '--config', file, '--port', '0', '--enable-audit']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  const url = await new Promise<string>((resolve) => {
    let err = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text
      const match = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(err)
      if (match) resolve(match[0])
    })
  })
  await openSession(url)
  child.kill('SIGTERM')
  await once(child, 'close')
  const lines = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  t.match(lines, [
    { level: 'AUDIT', type: 'mcp_initialize', component: 'vmcp-server' },
    { level: 'AUDIT', type: 'mcp_notification' },
  ])
})

await t.test('audit: a changed section is reported and takes effect at the next start', async (t) => {
  const warnings: string[] = []
  const log = { ...quiet(), warn: (message: string) => void warnings.push(message) }
  const vmcp = await startTestVmcp({}, {}, { log })
  t.teardown(() => vmcp.close())
  const { vmcpConfig } = await import('../../helpers/vmcp/vmcp.ts')
  vmcp.reload(vmcpConfig({}))
  t.same(warnings, [])
  vmcp.reload(vmcpConfig({}, { audit: { enabled: true } }))
  t.same(warnings, ['changed settings take effect at the next start'])
})

function quiet() {
  const log = {
    debug() {},
    info() {},
    warn() {},
    error() {},
    child: () => log,
    debugEnabled: false,
    infoEnabled: false,
  }
  return log
}

await t.test(
  'audit of workflows and inner calls: same envelope, local source, redacted and truncated',
  async (t) => {
    const lines: string[] = []
    const audit = makeAudit(
      { ...settings, includeRequestData: true, includeResponseData: true, maxDataSize: 60 },
      { destination: { write: (line) => void lines.push(line) }, now: () => 0 },
    )
    audit.workflow({
      type: 'vmcp_workflow_started',
      outcome: 'success',
      caller: undefined,
      workflowId: 'w1',
      workflowName: 'deploy',
      extra: { timeout_ms: 1000 },
      request: Buffer.from(JSON.stringify({ token: 'hunter2', target: 'prod' })),
    })
    audit.workflow({
      type: 'vmcp_workflow_step_failed',
      outcome: 'error',
      caller: undefined,
      workflowId: 'w1',
      workflowName: 'deploy',
      stepId: 's1',
      extra: { duration_ms: 5, retry_count: 2 },
      response: Buffer.from(JSON.stringify({ text: 'y'.repeat(500) })),
    })
    audit.call({
      caller: undefined,
      tool: 'one_echo',
      backend: 'one',
      outcome: 'application_error',
      durationMs: 3,
      request: Buffer.from('{"a":1}'),
    })
    const found = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
    t.match(found[0], {
      time: '1970-01-01T00:00:00.000Z',
      component: 'vmcp-composer',
      type: 'vmcp_workflow_started',
      source: { type: 'local' },
      target: { workflow_id: 'w1', workflow_name: 'deploy', type: 'workflow' },
      metadata: { extra: { timeout_ms: 1000 } },
      data: { request: { token: '[redacted]', target: 'prod' } },
    })
    t.match(found[1], {
      outcome: 'error',
      target: { step_id: 's1', type: 'workflow_step' },
      data: { response: /^\{"text":"y+$/, response_truncated: true },
    })
    t.match(found[2], {
      type: 'mcp_tool_call',
      component: 'gatehouse-api',
      target: { name: 'one_echo', type: 'tool' },
      metadata: { extra: { backend: 'one', duration_ms: 3, transport: 'local' } },
      data: { request: { a: 1 } },
    })
    t.notMatch(lines.join(''), /hunter2/)
  },
)

await t.test('audit of workflows: types that are not selected write no line', async (t) => {
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const audit = makeAudit({ ...settings, eventTypes: ['vmcp_workflow_failed'] }, { destination })
  const facts = { outcome: 'error', caller: undefined, workflowId: 'w', workflowName: 'n' } as const
  audit.workflow({ ...facts, type: 'vmcp_workflow_started' })
  audit.workflow({ ...facts, type: 'vmcp_workflow_failed' })
  audit.call({ caller: undefined, tool: 't', backend: undefined, outcome: 'success', durationMs: 1 })
  t.equal(lines.length, 1)
})
