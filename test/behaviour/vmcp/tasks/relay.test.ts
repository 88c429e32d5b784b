/** Tasks of backends through a virtual server, for clients of both eras. Source: docs/guides/tasks.md. */
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
import { openSession, stateless } from '../../../helpers/mcp/wire.ts'
import { bareNames, startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

const bare = { aggregation: bareNames('b') }

t.test('extension client, extension backend', async (t) => {
  const backend = await startExtensionBackend()
  const vmcp = await startTestVmcp({ b: backend.url }, { ...bare, ...tasksOn() })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const discovered = await taskRequest(vmcp.url, 'server/discover', {})
  t.match(discovered.response?.result, {
    capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } },
  })

  await t.test('creation, reads and completion', async (t) => {
    const created = (await taskRequest(vmcp.url, 'tools/call', { name: 'flex' })).response?.result ?? {}
    const [own] = backend.tasks.keys()
    t.match(created, { resultType: 'task', status: 'working', pollIntervalMs: 100, ttlMs: 86_400_000 })
    t.match(created['vendor'], { kept: '12345678901234567890' }, 'unknown members pass through')
    t.not(created['taskId'], own, 'the id is sealed')
    const taskId = String(created['taskId'])
    const working = (await taskRequest(vmcp.url, 'tasks/get', { taskId })).response?.result
    t.match(working, { resultType: 'complete', status: 'working', taskId })
    backend.complete(String(own), { content: [{ type: 'text', text: 'ready' }] })
    const ended = await pollTask(vmcp.url, taskId)
    t.match(ended, { status: 'completed', taskId, result: { content: [{ text: 'ready' }] } })
  })

  await t.test('input', async (t) => {
    const created = (await taskRequest(vmcp.url, 'tools/call', { name: 'ask' })).response?.result ?? {}
    const taskId = String(created['taskId'])
    const asked = await pollTask(vmcp.url, taskId)
    t.match(asked, { status: 'input_required', inputRequests: { color: { method: 'elicitation/create' } } })
    const inputResponses = { color: { action: 'accept', content: { color: 'red' } } }
    const updated = await taskRequest(vmcp.url, 'tasks/update', { taskId, inputResponses })
    t.match(updated.response?.result, { resultType: 'complete' })
    t.match((await pollTask(vmcp.url, taskId))['result'], { content: [{ text: /got .*red/ }] })
    const missing = await taskRequest(vmcp.url, 'tasks/update', { taskId })
    t.match(missing.response?.error, { code: -32602, message: /inputResponses must be an object/ })
  })

  await t.test('cancellation', async (t) => {
    const created = (await taskRequest(vmcp.url, 'tools/call', { name: 'flex' })).response?.result ?? {}
    const taskId = String(created['taskId'])
    t.match((await taskRequest(vmcp.url, 'tasks/cancel', { taskId })).response?.result, {
      resultType: 'complete',
    })
    t.match(await pollTask(vmcp.url, taskId), { status: 'cancelled' })
  })

  await t.test('a client that did not declare the extension', async (t) => {
    const plain = await stateless(vmcp.url, 'tools/call', { name: 'flex' })
    t.match(plain.response?.result, { content: [{ text: 'at once' }] })
    const get = await stateless(vmcp.url, 'tasks/get', { taskId: 'x' }, { headers: { 'mcp-name': 'x' } })
    t.match(get.response?.error, {
      code: -32021,
      data: { requiredCapabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
    })
  })

  await t.test('headers and unknown methods', async (t) => {
    const wrong = await taskRequest(vmcp.url, 'tasks/get', { taskId: 'x' }, { headers: { 'mcp-name': 'y' } })
    t.equal(wrong.response?.error?.code, -32020)
    const session = await taskRequest(vmcp.url, 'tasks/result', { taskId: 'x' })
    t.equal(session.response?.error?.code, -32601)
  })
})

t.test('session client, session backend', async (t) => {
  const backend = await startSessionTaskBackend()
  const vmcp = await startTestVmcp({ b: backend.url }, { ...bare, ...tasksOn() })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url, { capabilities: { elicitation: {} } })
  t.match(session.initialized.result?.['capabilities'], {
    tasks: { cancel: {}, requests: { tools: { call: {} } } },
  })

  await t.test('creation, status and result', async (t) => {
    const { response } = await session.request('tools/call', {
      name: 'slow',
      arguments: { ms: 150 },
      task: { ttl: 60_000 },
    })
    const task = response?.result?.['task'] as Record<string, unknown>
    t.match(task, { status: 'working', ttl: 60_000, pollInterval: 100 })
    const taskId = String(task['taskId'])
    const result = await session.request('tasks/result', { taskId })
    t.match(result.response?.result, {
      content: [{ text: 'slept 150' }],
      _meta: { 'io.modelcontextprotocol/related-task': { taskId } },
    })
    t.match(await pollSessionTask(session, taskId), { status: 'completed', taskId })
  })

  await t.test('input on the stream of tasks/result', async (t) => {
    const { response } = await session.request('tools/call', { name: 'ask', task: {} })
    const { taskId } = Object(response?.result?.['task'])
    const stream = await session.open('tasks/result', { taskId })
    const asked = await stream.next(({ method }) => method === 'elicitation/create')
    t.match(asked.params?.['_meta'], { 'io.modelcontextprotocol/related-task': { taskId } })
    await session.response(asked.id, { action: 'accept', content: { color: 'blue' } })
    t.match((await stream.next(({ result }) => result !== undefined)).result, {
      content: [{ text: /got .*blue/ }],
    })
  })

  await t.test('cancellation', async (t) => {
    const { response } = await session.request('tools/call', {
      name: 'slow',
      arguments: { ms: 60_000 },
      task: {},
    })
    const { taskId } = Object(response?.result?.['task'])
    t.match((await session.request('tasks/cancel', { taskId })).response?.result, {
      taskId,
      status: 'cancelled',
    })
    t.equal((await session.request('tasks/cancel', { taskId })).response?.error?.code, -32602)
  })

  await t.test('a call without a task waits for the result', async (t) => {
    const { response } = await session.request('tools/call', { name: 'slow', arguments: { ms: 50 } })
    t.match(response?.result, { content: [{ text: 'slept 50' }] })
    const plain = await session.request('tools/call', { name: 'plain' })
    t.match(plain.response?.result, { content: [{ text: 'plain' }] })
  })
})

t.test('extension client, session backend', async (t) => {
  const backend = await startSessionTaskBackend()
  const vmcp = await startTestVmcp({ b: backend.url }, { ...bare, ...tasksOn() })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const create = async (name: string, args = {}): Promise<string> => {
    const { response } = await taskRequest(vmcp.url, 'tools/call', { name, arguments: args })
    t.match(response?.result, { resultType: 'task', pollIntervalMs: 100 })
    t.notOk(response?.result?.['pollInterval'], 'members have the names of the extension')
    return String(response?.result?.['taskId'])
  }
  t.match(await pollTask(vmcp.url, await create('slow', { ms: 50 })), {
    status: 'completed',
    result: { content: [{ text: 'slept 50' }] },
  })
  t.match(
    await pollTask(vmcp.url, await create('broken')),
    { status: 'completed', result: { isError: true } },
    'a failed tool is a completed task',
  )
  const taskId = await create('ask')
  const asked = await pollTask(vmcp.url, taskId)
  const [key] = Object.keys(asked['inputRequests'] ?? {})
  t.match(asked['status'], 'input_required')
  await taskRequest(vmcp.url, 'tasks/update', {
    taskId,
    inputResponses: { [String(key)]: { action: 'accept', content: { color: 'green' } } },
  })
  t.match((await pollTask(vmcp.url, taskId))['result'], { content: [{ text: /got .*green/ }] })
  const cancelled = await taskRequest(vmcp.url, 'tasks/cancel', { taskId })
  t.match(
    cancelled.response?.result,
    { resultType: 'complete' },
    'the cancellation of an ended task is acknowledged',
  )
  const optional = await taskRequest(vmcp.url, 'tools/call', { name: 'maybe' })
  t.match(optional.response?.result, { content: [{ text: 'done' }] }, 'optional tools run at once by default')
})

t.test('optional tools become tasks if configured', async (t) => {
  const backend = await startSessionTaskBackend()
  const vmcp = await startTestVmcp(
    { b: backend.url },
    { ...bare, ...tasksOn({ runAsTask: ['optionalTools'] }) },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const { response } = await taskRequest(vmcp.url, 'tools/call', { name: 'maybe' })
  t.match(response?.result, { resultType: 'task' })
})

t.test('a client without tasks waits within the time limit', async (t) => {
  const backend = await startExtensionBackend({ completeAfterMs: 150 })
  const vmcp = await startTestVmcp(
    { b: backend.url },
    { ...bare, ...tasksOn(), operational: { timeouts: { default: '2s' } } },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const waited = await stateless(vmcp.url, 'tools/call', { name: 'only' })
  t.match(waited.response?.result, { content: [{ text: 'finished' }] })
  const session = await openSession(vmcp.url, { capabilities: { elicitation: {} } })
  const stream = await session.open('tools/call', { name: 'ask' })
  const asked = await stream.next(({ method }) => method === 'elicitation/create')
  await session.response(asked.id, { action: 'accept', content: { color: 'red' } })
  t.match((await stream.next(({ result }) => result !== undefined)).result, { content: [{ text: /red/ }] })
})

t.test('a task that takes too long is cancelled', async (t) => {
  const [backend, other] = [await startExtensionBackend(), await startSessionTaskBackend()]
  const vmcp = await startTestVmcp(
    { b: backend.url, c: other.url },
    { aggregation: bareNames('b', 'c'), ...tasksOn(), operational: { timeouts: { default: '500ms' } } },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), other.close()]))
  const late = await stateless(vmcp.url, 'tools/call', { name: 'only' })
  t.match(late.response?.error, { code: -32021, message: /did not finish in time/ })
  await nextPoll()
  t.ok(backend.requests.some(({ method }) => method === 'tasks/cancel'))
  const slow = await stateless(vmcp.url, 'tools/call', { name: 'slow', arguments: { ms: 60_000 } })
  t.match(slow.response?.error, { code: -32021 })
  await nextPoll()
  t.ok(other.methods.includes('tasks/cancel'))
})

t.test('tasks are off by default', async (t) => {
  const backend = await startExtensionBackend()
  const vmcp = await startTestVmcp({ b: backend.url }, bare)
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const call = await taskRequest(vmcp.url, 'tools/call', { name: 'flex' })
  t.match(call.response?.result, { content: [{ text: 'at once' }] }, 'the declaration is not forwarded')
  t.equal((await taskRequest(vmcp.url, 'tasks/get', { taskId: 'x' })).response?.error?.code, -32601)
  const session = await openSession(vmcp.url)
  t.notOk(Object(session.initialized.result?.['capabilities'])['tasks'])
  t.equal((await session.request('tasks/get', { taskId: 'x' })).response?.error?.code, -32601)
})
