/** Tasks that a virtual server runs itself. Source: docs/guides/tasks.md. */
import t from 'tap'
import {
  nextPoll,
  pollSessionTask,
  pollTask,
  taskRequest,
  tasksOn,
} from '../../../helpers/mcp/tasks/clients.ts'
import { startExtensionBackend } from '../../../helpers/mcp/tasks/extension-backend.ts'
import { startSessionTaskBackend } from '../../../helpers/mcp/tasks/session-backend.ts'
import { openSession, post, stream, type WireAnswer } from '../../../helpers/mcp/wire.ts'
import { missingRedis, startRedis } from '../../../helpers/redis.ts'
import { bareNames, startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

const bare = { aggregation: bareNames('b') }
const compositeTools = [
  {
    name: 'flow',
    description: 'Asks, then calls.',
    parameters: { type: 'object', properties: {} },
    steps: [{ id: 'first', type: 'tool', tool: 'sync' }],
  },
  {
    name: 'asking',
    description: 'Asks.',
    parameters: { type: 'object', properties: {} },
    steps: [
      { id: 'ask', type: 'elicitation', message: 'Go on?', schema: { type: 'object', properties: {} } },
      { id: 'then', type: 'tool', tool: 'sync', dependsOn: ['ask'] },
    ],
  },
]

const taskOf = ({ response }: WireAnswer): Record<string, unknown> => {
  const task = response?.result?.['task']
  if (typeof task !== 'object' || task === null) throw new Error(JSON.stringify(response))
  return { ...task }
}

t.test('session client, stateless backend', async (t) => {
  const backend = await startExtensionBackend({ completeAfterMs: 100 })
  const vmcp = await startTestVmcp({ b: backend.url }, { ...bare, ...tasksOn(), compositeTools })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url, { capabilities: { elicitation: {} } })
  const { response } = await session.request('tools/list')
  const listed = response?.result?.['tools'] as { execution?: unknown }[]
  t.ok(listed.every(({ execution }) => JSON.stringify(execution) === '{"taskSupport":"optional"}'))

  for (const [name, text] of [
    ['only', 'finished'],
    ['sync', 'at once'],
    ['flow', /at once/],
  ] as const) {
    const task = taskOf(await session.request('tools/call', { name, task: { ttl: 30_000 } }))
    t.match(task, { status: 'working', ttl: 30_000, pollInterval: 100 })
    const taskId = String(task['taskId'])
    const result = await session.request('tasks/result', { taskId })
    t.match(result.response?.result, {
      content: [{ text }],
      _meta: { 'io.modelcontextprotocol/related-task': { taskId } },
    })
    t.match(await pollSessionTask(session, taskId), { status: 'completed', taskId, ttl: 30_000 })
    t.equal((await session.request('tasks/cancel', { taskId })).response?.error?.code, -32602)
  }

  await t.test('questions arrive on tasks/result', async (t) => {
    const taskId = String(taskOf(await session.request('tools/call', { name: 'asking', task: {} }))['taskId'])
    t.match(await pollSessionTask(session, taskId), { status: 'input_required' })
    const stream = await session.open('tasks/result', { taskId })
    const asked = await stream.next(({ method }) => method === 'elicitation/create')
    t.match(asked.params?.['_meta'], { 'io.modelcontextprotocol/related-task': { taskId } })
    await session.response(asked.id, { action: 'accept', content: {} })
    const ended = await stream.next(({ result, error }) => result !== undefined || error !== undefined)
    t.match(ended.result, { content: [{ text: /at once/ }] })
  })

  await t.test('cancellation and status notifications', async (t) => {
    const stream = await session.listen()
    const taskId = String(taskOf(await session.request('tools/call', { name: 'asking', task: {} }))['taskId'])
    const wanted = (status: string) =>
      stream.next(({ params }) => params?.['taskId'] === taskId && params['status'] === status)
    t.match(await wanted('input_required'), { method: 'notifications/tasks/status' })
    const cancelled = await session.request('tasks/cancel', { taskId })
    t.match(cancelled.response?.result, { taskId, status: 'cancelled' })
    t.match(await pollSessionTask(session, taskId), { status: 'cancelled' })
    t.equal((await session.request('tasks/result', { taskId })).response?.error?.code, -32602)
    stream.close()
  })
})

t.test('workflows and scripts for clients of the extension', async (t) => {
  const backend = await startExtensionBackend()
  const runAsTask = ['workflows', 'scripts']
  const vmcp = await startTestVmcp(
    { b: backend.url },
    { ...bare, ...tasksOn({ runAsTask }), compositeTools, codeMode: { enabled: true } },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const create = async (params: Record<string, unknown>): Promise<string> => {
    const { response } = await taskRequest(vmcp.url, 'tools/call', params)
    t.match(response?.result, { resultType: 'task', status: 'working' })
    return String(response?.result?.['taskId'])
  }
  t.match(await pollTask(vmcp.url, await create({ name: 'flow' })), {
    status: 'completed',
    result: { content: [{ text: /at once/ }] },
  })
  const script = { name: 'execute_tool_script', arguments: { script: 'return sync()' } }
  t.match(await pollTask(vmcp.url, await create(script)), { status: 'completed', result: { content: [{}] } })
  const taskId = await create({ name: 'asking' })
  const asked = await pollTask(vmcp.url, taskId)
  t.equal(asked['status'], 'input_required')
  const [key] = Object.keys(Object(asked['inputRequests']))
  await taskRequest(vmcp.url, 'tasks/update', {
    taskId,
    inputResponses: { [String(key)]: { action: 'accept', content: {} }, unknown: {} },
  })
  t.match(await pollTask(vmcp.url, taskId), { status: 'completed' })
  const other = await create({ name: 'asking' })
  await taskRequest(vmcp.url, 'tasks/cancel', { taskId: other })
  t.match(await pollTask(vmcp.url, other), { status: 'cancelled' })
})

t.test('workflows do not become tasks by default', async (t) => {
  const backend = await startExtensionBackend()
  const vmcp = await startTestVmcp({ b: backend.url }, { ...bare, ...tasksOn(), compositeTools })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  t.match((await taskRequest(vmcp.url, 'tools/call', { name: 'flow' })).response?.result, {
    resultType: 'complete',
  })
})

t.test('replicas', { skip: missingRedis }, async (t) => {
  const redis = await startRedis()
  const backends = await Promise.all([startExtensionBackend(), startSessionTaskBackend()])
  const [extension, session] = backends
  const start = () =>
    startTestVmcp(
      { b: extension.url, c: session.url },
      {
        aggregation: bareNames('b', 'c'),
        ...tasksOn({ runAsTask: ['workflows'] }),
        compositeTools,
        sessionStorage: { provider: 'redis', address: redis.addr },
      },
    )
  const a = await start()
  const b = await start()
  t.teardown(async () => {
    await Promise.all([a.close(), b.close(), ...backends.map((backend) => backend.close())])
    await redis.stop()
  })
  const create = async (url: string, name: string, args = {}): Promise<string> => {
    const { response } = await taskRequest(url, 'tools/call', { name, arguments: args })
    if (response?.result?.['resultType'] !== 'task') throw new Error(JSON.stringify(response))
    return String(response.result['taskId'])
  }

  await t.test('another replica finishes the tasks of backends', async (t) => {
    const taskId = await create(a.url, 'flex')
    const [own] = extension.tasks.keys()
    extension.complete(String(own), { content: [{ type: 'text', text: 'ready' }] })
    t.match(await pollTask(b.url, taskId), { status: 'completed', result: { content: [{ text: 'ready' }] } })
    const asking = await create(a.url, 'ask')
    t.match(await pollTask(b.url, asking), { status: 'input_required' })
    const slow = await create(a.url, 'slow', { ms: 100 })
    t.match(await pollTask(b.url, slow), {
      status: 'completed',
      result: { content: [{ text: 'slept 100' }] },
    })
  })

  await t.test('another replica answers and cancels the tasks of this one', async (t) => {
    const taskId = await create(a.url, 'asking')
    const asked = await pollTask(b.url, taskId)
    const [key] = Object.keys(Object(asked['inputRequests']))
    const inputResponses = { [String(key)]: { action: 'accept', content: {} } }
    await taskRequest(b.url, 'tasks/update', { taskId, inputResponses })
    for (let i = 0; i < 50 && (await pollTask(b.url, taskId))['status'] === 'input_required'; i++)
      await nextPoll()
    t.match(await pollTask(b.url, taskId), { status: 'completed' })
    const other = await create(a.url, 'asking')
    t.match((await taskRequest(b.url, 'tasks/cancel', { taskId: other })).response?.result, {})
    t.match(await pollTask(a.url, other), { status: 'cancelled' })
  })

  const openResult = async (capabilities = { elicitation: {} }) => {
    const started = await openSession(a.url, { capabilities })
    const { taskId } = taskOf(await started.request('tools/call', { name: 'asking', task: {} }))
    const body = { jsonrpc: '2.0', id: 'result', method: 'tasks/result', params: { taskId } }
    const { headers } = started
    const results = await stream(b.url, { method: 'POST', body: JSON.stringify(body), headers })
    t.teardown(() => results.close())
    const asked = await results.next(({ method }) => method === 'elicitation/create')
    return {
      ...{ taskId, asked },
      respond: (message: object) =>
        post(b.url, JSON.stringify({ jsonrpc: '2.0', id: asked.id, ...message }), headers),
      ended: () => results.next(({ result, error }) => result !== undefined || error !== undefined),
    }
  }

  await t.test('tasks/result asks the questions of a task that another replica runs', async (t) => {
    const { taskId, asked, respond, ended } = await openResult()
    t.match(asked.params, {
      message: 'Go on?',
      _meta: { 'io.modelcontextprotocol/related-task': { taskId } },
    })
    t.equal((await respond({ result: { action: 'accept', content: {} } })).status, 202)
    t.match((await ended()).result, { content: [{ text: /at once/ }] })
  })

  await t.test("a client's error also reaches the replica that runs the task", async (t) => {
    const { respond, ended } = await openResult()
    await respond({ error: { code: -32000, message: 'no user' } })
    const { error, result } = await ended()
    t.match(error ?? result, error ? { code: Number } : { isError: true })
  })

  await t.test('a restart keeps the ids, and a lost replica fails its own tasks', async (t) => {
    const first = await start()
    const taskId = await create(first.url, 'flex')
    const asking = await create(first.url, 'asking')
    await first.close({ graceMs: 0 })
    const second = await start()
    t.teardown(() => second.close())
    t.match((await taskRequest(second.url, 'tasks/get', { taskId })).response?.result, { status: 'working' })
    t.match((await taskRequest(second.url, 'tasks/get', { taskId: asking })).response?.result, {
      status: 'failed',
      error: { code: -32603 },
    })
    const crashed = await create(second.url, 'asking')
    for (const lease of redis.cli('keys', '*lease:*').split('\n')) redis.cli('del', lease)
    t.match((await taskRequest(a.url, 'tasks/get', { taskId: crashed })).response?.result, {
      status: 'failed',
      error: { code: -32603, message: /stopped/ },
    })
  })
})
