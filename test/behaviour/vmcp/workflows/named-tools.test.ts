/**
 * Tools of workflow steps: `workload.tool` stays valid however names change, and defaults replace a backend that is
 * down.
 */
import t, { type Test } from 'tap'
import { openSession, stateless, type WireSession } from '../../../helpers/mcp/wire.ts'
import { type RawBackendOptions, startRawBackend, textResult } from '../../../helpers/mcp/raw-backend.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'
import { until } from '../../../helpers/redis.ts'

t.setTimeout(180_000)

const bestEffort = { operational: { failureHandling: { partialFailureMode: 'best_effort' } } }

function saying(who: string, names: readonly string[] = ['say']): RawBackendOptions {
  return {
    tools: () =>
      names.map(
        (name) => `{"name":"${name}","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
      ),
    responses: { 'tools/call': ({ params }) => textResult(`${who} ${String(params['name'])}`) },
  }
}

async function rig(t: Test, backends: Readonly<Record<string, RawBackendOptions>>, config: object) {
  const started = new Map<string, Awaited<ReturnType<typeof startRawBackend>>>()
  for (const [name, options] of Object.entries(backends)) started.set(name, await startRawBackend(options))
  const urls = Object.fromEntries([...started].map(([name, { url }]) => [name, url]))
  const vmcp = await startTestVmcp(urls, { ...bestEffort, ...config })
  t.teardown(() => Promise.all([vmcp.close(), ...[...started.values()].map((backend) => backend.close())]))
  return { vmcp, started, session: await openSession(vmcp.url) }
}

async function names(session: WireSession): Promise<readonly string[]> {
  const { response } = await session.request('tools/list')
  return ((response?.result?.['tools'] ?? []) as { name: string }[]).map(({ name }) => name)
}

const flow = (tool: string) => ({ name: 'flow', steps: [{ id: 'one', tool }] })
const strategies: Readonly<Record<string, object>> = {
  'priority, shadowed': {
    conflictResolution: 'priority',
    conflictResolutionConfig: { priorityOrder: ['b', 'a'] },
  },
  'priority, none listed': {
    conflictResolution: 'priority',
    conflictResolutionConfig: { priorityOrder: ['c'] },
  },
  'manual, in conflict': { conflictResolution: 'manual', tools: [{ workload: 'a' }] },
  'prefix, colliding': {
    conflictResolution: 'prefix',
    conflictResolutionConfig: { prefixFormat: 'x_' },
  },
}

for (const [what, aggregation] of Object.entries(strategies)) {
  t.test(`two backends with a tool of one name: ${what}`, async (t) => {
    for (const backend of ['a', 'b']) {
      const { session, vmcp } = await rig(
        t,
        { a: saying('a'), b: saying('b'), c: saying('c', ['other']) },
        { aggregation, compositeTools: [flow(`${backend}.say`)] },
      )
      t.ok((await names(session)).includes('flow'), backend)
      t.match((await session.request('tools/call', { name: 'flow' })).text, `${backend} say`)
      t.match((await stateless(vmcp.url, 'tools/call', { name: 'flow' })).text, `${backend} say`)
      t.notOk((await names(session)).includes(`${backend}.say`), 'clients get no other name for it')
      t.equal((await session.request('tools/call', { name: `${backend}.say` })).response?.error?.code, -32602)
    }
  })
}

t.test('a tool with the name of another backend’s tool does not replace it', async (t) => {
  const { session } = await rig(
    t,
    { a: saying('a'), b: saying('b', ['a.say']) },
    {
      aggregation: {
        conflictResolution: 'priority',
        conflictResolutionConfig: { priorityOrder: ['b', 'a'] },
      },
      compositeTools: [flow('a.say')],
    },
  )
  t.match((await session.request('tools/call', { name: 'flow' })).text, 'a say')
  t.match((await session.request('tools/call', { name: 'a.say' })).text, 'b a.say')
})

t.test('a tool that pinning rejects stays unreachable when it is shadowed, too', async (t) => {
  const lock = (backend: string) => ({
    backend,
    tools: [
      { name: 'say', definition: '{"name":"say","description":"approved","inputSchema":{"type":"object"}}' },
    ],
  })
  const { session } = await rig(
    t,
    { a: saying('a'), b: saying('b') },
    {
      aggregation: strategies['priority, shadowed'],
      compositeTools: [flow('a.say')],
      pinning: { onChanged: 'block', onNew: 'block' },
      toolLocks: [lock('a'), lock('b')],
    },
  )
  t.notOk((await names(session)).includes('flow'))
})

const tolerant = {
  name: 'flow',
  steps: [
    { id: 'one', tool: 'a.say' },
    { id: 'two', tool: 'b.say', onError: { action: 'continue' }, defaultResults: { text: 'a default' } },
  ],
  output: { properties: { text: { type: 'string', value: '{{.steps.two.output.text}}' } } },
}

t.test(
  'defaultResults: the workflow is listed and works while the backend of the step is down',
  async (t) => {
    const { session, started, vmcp } = await rig(
      t,
      { a: saying('a'), b: saying('b') },
      {
        compositeTools: [tolerant],
        operational: {
          failureHandling: {
            ...bestEffort.operational.failureHandling,
            healthCheckInterval: '1s',
            healthCheckTimeout: '500ms',
            unhealthyThreshold: 1,
          },
        },
      },
    )
    const flowItem = async () => {
      const { response } = await session.request('tools/list')
      return ((response?.result?.['tools'] ?? []) as { name: string }[]).find(({ name }) => name === 'flow')
    }
    const before = await flowItem()
    t.match(before, { annotations: { readOnlyHint: true } })
    t.match((await session.request('tools/call', { name: 'flow' })).text, 'b say')
    await started.get('b')?.close()
    await until(async () => !(await names(session)).includes('b_say'))
    t.same(await flowItem(), before, 'clients notice no change')
    t.match((await session.request('tools/call', { name: 'flow' })).text, 'a default')
    t.match((await stateless(vmcp.url, 'tools/call', { name: 'flow' })).text, 'a default')
  },
)

t.test('defaultResults: also when the backend has been down since the start', async (t) => {
  const a = await startRawBackend(saying('a'))
  const step = { id: 'one', tool: 'a.say' }
  const vmcp = await startTestVmcp(
    { a: a.url, b: 'http://127.0.0.1:1/mcp' },
    {
      ...bestEffort,
      compositeTools: [tolerant, { name: 'strict', steps: [step, { id: 'two', tool: 'b.say' }] }],
    },
  )
  t.teardown(() => Promise.all([vmcp.close(), a.close()]))
  const session = await openSession(vmcp.url)
  t.same(await names(session), ['a_say', 'flow'])
  t.match((await session.request('tools/call', { name: 'flow' })).text, 'a default')
  const { problems } = (await (await fetch(`${vmcp.origin}/status`)).json()) as { problems: string[] }
  t.match(problems.join('\n'), /workflow flow runs without its unknown tools \(b\.say\)/)
  t.match(problems.join('\n'), /workflow strict is left out: unknown tool b\.say/)
})

t.test('defaultResults alone are not enough: a step that aborts needs its tool', async (t) => {
  const [one, two] = tolerant.steps
  const aborting = { ...tolerant, steps: [one, { ...two, onError: { action: 'abort' } }] }
  const { session } = await rig(t, { a: saying('a') }, { compositeTools: [aborting] })
  t.same(await names(session), ['a_say'])
})
