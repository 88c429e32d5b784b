/** Failures of lists: items, names, locks. */
import type { Test } from 'tap'
import type { RawBackendOptions } from '../mcp/raw-backend.ts'
import { approved, changed, lockOf, pinning } from '../vmcp/pinning.ts'
import { bareNames } from '../vmcp/vmcp.ts'
import { openSession } from '../mcp/wire.ts'
import { until } from '../redis.ts'
import { pageDigest } from '../../../runtime/vmcp/features/apps/page-locks.ts'
import { page, startAppServer } from '../mcp/app-server.ts'
import { backend, rig, type Rig } from './rig.ts'
import { type Failure, noState } from './views.ts'

const malformed = {
  type: 'items_malformed',
  lasts: true,
  backend: 'b',
  fix: /report this to the operator of b/,
} as const

/** A backend that lists this tool in addition to others, and a client that has read the list. */
const listing = (tool: string) => async (t: Test) => {
  const running = await rig(t, { b: await backend(t, { tools: () => [tool] }) })
  await running.call('b_bad')
  return running
}

/** The lists are read once, and fail a minute later. */
async function unreadableLater(t: Test): Promise<Rig> {
  let broken = false
  let now = Date.now()
  const url = await backend(t, {
    capabilities: '{"tools":{}}',
    before(_req, res, body) {
      if (broken && body.includes('tools/list')) res.writeHead(500).end()
      return broken && body.includes('tools/list')
    },
  })
  const after = (ms: number, work: () => void) => {
    const timer = setTimeout(work, Math.min(ms, 100))
    return () => clearTimeout(timer)
  }
  const running = await rig(t, { b: url }, {}, { clock: { now: () => now, after } })
  await running.call('b_echo')
  broken = true
  now += 60_000
  await running.call('b_echo')
  return running
}

/** A tool that differs from its lock, and a call to it. */
async function changedTool(t: Test): Promise<Rig> {
  const tool = changed(approved, { description: 'Reads and forwards' })
  const running = await rig(
    t,
    { b: await backend(t, { tools: () => [tool] }) },
    { aggregation: bareNames('b'), pinning: pinning('block'), toolLocks: [lockOf('b', [approved])] },
  )
  // Gatehouse compares the lists after reading them.
  await until(async () => {
    await running.call('read')
    return running.vmcp.view.recent().some(({ type }) => type === 'pin_refused')
  })
  return running
}

const conflict = {
  type: 'name_conflict',
  lasts: true,
  fix: /rename (it|the tool) with an aggregation.tools override/,
} as const

/** A page that differs from its lock, and a client that has read it. */
async function changedPage(t: Test): Promise<Rig> {
  const uri = 'ui://view'
  const contents = { [uri]: page(uri, '<p>changed</p>') }
  const server = await startAppServer({ name: 'b', era: 'session', tools: [{ name: 'show' }], contents })
  t.teardown(() => server.close())
  const locks = {
    pinning: pinning('warn'),
    toolLocks: [{ backend: 'b', pages: [{ uri, digest: pageDigest(Buffer.from('')) }] }],
  }
  const running = await rig(t, { b: server.url }, locks)
  const session = await openSession(running.vmcp.url)
  await session.request('resources/read', { uri })
  return running
}

export const listFailures: readonly Failure[] = [
  {
    ...malformed,
    name: 'an item that is left out',
    drive: listing('{"name":"bad","inputSchema":{"type":"array"}}'),
    message: /1 left out, 0 repaired/,
    metric: 'gatehouse_vmcp_malformed_items_total{target_workload_name="b",action="left_out"}',
  },
  {
    ...malformed,
    name: 'an item that is repaired',
    drive: listing('{"name":"bad","inputSchema":{"type":"object"},"title":7}'),
    message: /0 left out, 1 repaired/,
    metric: 'gatehouse_vmcp_malformed_items_total{target_workload_name="b",action="repaired"}',
  },
  {
    name: 'an item that guardrails leave out',
    type: 'items_withheld',
    lasts: true,
    backend: 'b',
    async drive(t) {
      const url = await backend(t, {
        tools: () => ['{"name":"bad","description":"a\\u200b","inputSchema":{"type":"object"}}'],
      })
      const mark = [{ name: 'hidden', hiddenCharacters: 'refuse' }]
      const running = await rig(t, { b: url }, { guardrails: { mark } })
      await running.call('b_bad')
      return running
    },
    message: /backend b lists items with hidden characters: 1 left out/,
    fix: /ask the operator of b .*tool "bad" from backend b is left out: guardrail hidden/,
    metric: 'gatehouse_guardrail_matches_total',
  },
  {
    name: 'lists that cannot be read any more',
    type: 'lists_failed',
    lasts: true,
    backend: 'b',
    drive: unreadableLater,
    message: /have been unreadable since .*; the previous lists stay in use$/,
    fix: /check the health of b/,
    metric: 'gatehouse_vmcp_list_read_failures_total{target_workload_name="b"}',
  },
  {
    name: 'lists that could never be read',
    type: 'lists_failed',
    lasts: false,
    backend: 'b',
    async drive(t) {
      const url = await backend(t, {
        responses: { 'tools/list': ({ res }) => void res.writeHead(500).end() },
      })
      const running = await rig(t, { b: url })
      await running.call('b_echo')
      return running
    },
    reason: 'unreadable',
    message: /the backend's lists cannot be read/,
    fix: /check the health of b/,
    metric: 'gatehouse_vmcp_list_read_failures_total{target_workload_name="b"}',
    silent: {
      condition: 'nothing was offered that is missing now; a backend that is down is told by its health',
    },
  },
  {
    name: 'one list of a backend that cannot be read',
    type: 'list_problem',
    lasts: true,
    backend: 'b',
    async drive(t) {
      const url = await backend(t, {
        capabilities: '{"tools":{},"prompts":{}}',
        responses: { 'prompts/list': ({ res }) => void res.writeHead(500).end() },
      })
      const running = await rig(t, { b: url })
      await running.call('b_echo')
      return running
    },
    message: /^prompts\/list on backend b failed: .*HTTP 500.*its items are missing$/,
    fix: /see the log of b/,
    metric: 'gatehouse_vmcp_list_read_failures_total{target_workload_name="b"}',
  },
  {
    name: 'changes that are announced without end',
    type: 'changes_paced',
    lasts: true,
    backend: 'b',
    async drive(t) {
      const url = await backend(t, {
        responses: {
          'tools/list': ({ id, res }) => {
            const list = '{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}'
            res.writeHead(200, { 'content-type': 'text/event-stream' })
            res.write('data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n')
            res.end(`data: {"jsonrpc":"2.0","id":${id},"result":${list}}\n\n`)
            return undefined
          },
        },
      })
      // Pauses are short, and the backend announces changes continuously.
      const after = (ms: number, work: () => void) => {
        const timer = ms < 5_000 ? setTimeout(work, ms / 100) : undefined
        return () => clearTimeout(timer)
      }
      const start = Date.now()
      const running = await rig(t, { b: url }, {}, { clock: { now: () => start, after } })
      await running.call('b_echo')
      await until(async () =>
        (await (await fetch(`${running.vmcp.origin}/status`)).text()).includes('changes_paced'),
      )
      return running
    },
    message: /^backend b sends list_changed notifications too often/,
    fix: /maintainer of b/,
  },
  {
    ...conflict,
    name: 'a conflict of names',
    async drive(t) {
      const [one, two] = await Promise.all([backend(t), backend(t)])
      const running = await rig(t, { one, two }, { aggregation: bareNames('one', 'two') })
      await running.call('echo')
      return running
    },
    message: /echo/,
  },
  {
    ...conflict,
    name: 'a resource whose address another backend has',
    async drive(t) {
      const options: RawBackendOptions = {
        capabilities: '{"tools":{},"resources":{}}',
        responses: { 'resources/list': () => '{"resources":[{"uri":"memory://graph","name":"graph"}]}' },
      }
      const [one, two] = await Promise.all([backend(t, options), backend(t, options)])
      const running = await rig(t, { one, two })
      const session = await openSession(running.vmcp.url)
      await session.request('resources/list', {})
      return running
    },
    fix: /configure different addresses in the backends/,
    message: /resource memory:\/\/graph from two is left out: one also offers it/,
  },
  {
    ...conflict,
    name: 'an override that matches no tool',
    async drive(t) {
      const tools = [{ workload: 'one', overrides: { ecoh: { name: 'say' } } }]
      const aggregation = { conflictResolution: 'manual', tools }
      const running = await rig(t, { one: await backend(t) }, { aggregation })
      await running.call('echo')
      return running
    },
    fix: /correct the name in aggregation.tools overrides/,
    message: /the override for ecoh does not match any tool from one/,
  },
  {
    ...conflict,
    name: 'a workflow that is beyond what all may take together',
    async drive(t) {
      const properties = Object.fromEntries(
        Array.from({ length: 399 }, (_, i) => [`p${i}`, { type: 'string' }]),
      )
      const steps = [{ id: 'a', tool: 'one.echo' }]
      const large = (i: number) => ({ name: `w${i}`, steps, parameters: { type: 'object', properties } })
      const compositeTools = [...Array.from({ length: 6 }, (_, i) => large(i)), { name: 'small', steps }]
      const running = await rig(t, { one: await backend(t) }, { compositeTools })
      const session = await openSession(running.vmcp.url)
      const { response } = await session.request('tools/list', {})
      const listed = JSON.stringify(response?.result?.['tools'])
      t.match(listed, /"name":"w4".*"name":"small"|"name":"small".*"name":"w4"/)
      t.notMatch(listed, '"name":"w5"')
      return running
    },
    fix: /correct the workflow/,
    message: /workflow w5 is left out: compositeTools\[5\]\.parameters: all workflows together may have/,
  },
  {
    ...conflict,
    name: 'a tool with the name of a tool of the server itself',
    async drive(t) {
      const named = (name: string) => JSON.stringify({ name, inputSchema: { type: 'object' } })
      const url = await backend(t, { tools: () => [named('echo'), named('call_tool'), named('plain')] })
      const tools = [{ workload: 'one', overrides: { echo: { name: 'execute_tool_script' } } }]
      const aggregation = { conflictResolution: 'manual', tools }
      const running = await rig(t, { one: url }, { aggregation, optimizer: {}, codeMode: { enabled: true } })
      await running.call('find_tool')
      return running
    },
    message: /is reserved for one of the server's own tools/,
    async also(t, { status }, running) {
      const told = status.problem_details.map(({ message }) => String(message)).join('\n')
      t.match(told, /tool call_tool from one is left out/)
      t.match(told, /tool echo, renamed to execute_tool_script, from one is left out/)
      const session = await openSession(running.vmcp.url)
      const script = 'return 1 + 1'
      for (const [name, parameters, expected] of [
        ['call_tool', { tool_name: 'execute_tool_script', parameters: { script } }, /2/],
        ['call_tool', { tool_name: 'call_tool', parameters: {} }, /tool not found: call_tool/],
      ] as const)
        t.match(
          JSON.stringify(await session.request('tools/call', { name, arguments: parameters })),
          expected,
        )
    },
  },
  {
    name: 'a tool that has changed since it was approved',
    type: 'tools_drifted',
    lasts: true,
    backend: 'b',
    drive: changedTool,
    message: /^backend b differs from its tool lock: 1 changed, 0 new, 0 removed$/,
    fix: /gatehouse lock --check/,
    metric: 'gatehouse_vmcp_pinned_items{target_workload_name="b",state="changed"} 1',
  },
  {
    name: 'a call of a tool that has changed',
    type: 'pin_refused',
    lasts: false,
    backend: 'b',
    drive: changedTool,
    reason: 'tool_changed',
    message: /does not match the lock/,
    fix: /gatehouse lock --check/,
    logged: { level: 'warn', item: 'read', reason: 'tool_changed' },
    metric: 'gatehouse_vmcp_pin_refusals_total{target_workload_name="b",reason="tool_changed"}',
    call: { name: 'read', outcome: 'denied', denied: { by: 'pin' } },
    silent: noState,
  },
  {
    name: 'a page that has changed since it was approved',
    type: 'pages_drifted',
    lasts: true,
    backend: 'b',
    drive: changedPage,
    message: /^pages of backend b differ from its lock: 1 changed, 0 new$/,
    fix: /gatehouse lock --check.*page ui:\/\/view changed/,
    metric: 'gatehouse_vmcp_drifted_pages{target_workload_name="b",state="changed"} 1',
  },
  {
    name: 'a tool lock that cannot be used',
    type: 'tool_lock',
    lasts: true,
    backend: 'b',
    async drive(t) {
      const url = await backend(t, { tools: () => [approved] })
      return rig(
        t,
        { b: url },
        {
          pinning: pinning('block'),
          toolLocks: [lockOf('b', [approved], { failure: 'two locks name it' })],
        },
      )
    },
    message: /^the tool lock for backend b cannot be used: /,
    fix: /correct the MCPToolLock for b/,
  },
]
