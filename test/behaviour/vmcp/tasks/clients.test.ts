/** Notifications about tasks, and the task clients of the TypeScript SDK and of ext-tasks. */
import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import {
  Client as NewClient,
  StreamableHTTPClientTransport as NewTransport,
} from '@modelcontextprotocol/client'
import t from 'tap'
import { declaringTasks, nextPoll, taskRequest, tasksOn } from '../../../helpers/mcp/tasks/clients.ts'
import { startExtensionBackend } from '../../../helpers/mcp/tasks/extension-backend.ts'
import { startSessionTaskBackend } from '../../../helpers/mcp/tasks/session-backend.ts'
import { openSession, stateless, statelessStream } from '../../../helpers/mcp/wire.ts'
import { bareNames, startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

t.test('subscriptions/listen reports changed tasks', async (t) => {
  const backend = await startExtensionBackend()
  const vmcp = await startTestVmcp({ b: backend.url }, { aggregation: bareNames('b'), ...tasksOn() })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const { response } = await taskRequest(vmcp.url, 'tools/call', { name: 'flex' })
  const taskId = String(response?.result?.['taskId'])
  const notifications = { taskIds: [taskId, 'forged'] }
  const undeclared = await stateless(vmcp.url, 'subscriptions/listen', { notifications })
  t.equal(undeclared.response?.error?.code, -32021)
  const stream = await statelessStream(
    vmcp.url,
    'subscriptions/listen',
    { notifications },
    { capabilities: declaringTasks },
  )
  t.teardown(() => stream.close())
  const acknowledged = await stream.next()
  t.same(acknowledged.params?.['notifications'], { taskIds: [taskId] }, 'forged ids are not accepted')
  t.match(await stream.next(), { method: 'notifications/tasks', params: { taskId, status: 'working' } })
  backend.complete(String([...backend.tasks.keys()][0]), { content: [{ type: 'text', text: 'ready' }] })
  t.match(await stream.next(), {
    method: 'notifications/tasks',
    params: { taskId, status: 'completed', result: { content: [{ text: 'ready' }] } },
  })
})

t.test('at most three streams watch the same task', async (t) => {
  const backend = await startExtensionBackend()
  const vmcp = await startTestVmcp({ b: backend.url }, { aggregation: bareNames('b'), ...tasksOn() })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const { response } = await taskRequest(vmcp.url, 'tools/call', { name: 'flex' })
  const taskId = String(response?.result?.['taskId'])
  const open = async () => {
    const params = { notifications: { taskIds: [taskId, taskId] } }
    const stream = await statelessStream(vmcp.url, 'subscriptions/listen', params, {
      capabilities: declaringTasks,
    })
    t.teardown(() => stream.close())
    const { params: accepted } = await stream.next()
    return { stream, accepted: Object(accepted?.['notifications'])['taskIds'] }
  }
  const [first] = [await open(), await open(), await open()]
  t.same(first.accepted, [taskId], 'an id counts once')
  t.same((await open()).accepted ?? [], [])
  first.stream.close()
  await first.stream.ended
  await nextPoll()
  t.same((await open()).accepted, [taskId], 'a closed stream no longer counts')
})

t.test('status notifications of a session-era backend have the id of the client', async (t) => {
  const backend = await startSessionTaskBackend()
  const vmcp = await startTestVmcp({ b: backend.url }, { aggregation: bareNames('b'), ...tasksOn() })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const stream = await session.listen()
  const { response } = await session.request('tools/call', { name: 'slow', arguments: { ms: 100 }, task: {} })
  const { taskId } = Object(response?.result?.['task'])
  t.match(await stream.next(({ method }) => method === 'notifications/tasks/status'), {
    params: { taskId, status: 'completed' },
  })
  stream.close()
})

for (const kind of ['session', 'extension'] as const)
  t.test(`the SDK's task client, ${kind} backend`, async (t) => {
    const backend =
      kind === 'session'
        ? await startSessionTaskBackend()
        : await startExtensionBackend({ completeAfterMs: 150 })
    const vmcp = await startTestVmcp({ b: backend.url }, { aggregation: bareNames('b'), ...tasksOn() })
    const client = new Client({ name: 'sdk', version: '1' }, { capabilities: { elicitation: { form: {} } } })
    client.setRequestHandler(ElicitRequestSchema, async () => ({
      action: 'accept',
      content: { color: 'red' },
    }))
    await client.connect(new StreamableHTTPClientTransport(new URL(vmcp.url)))
    t.teardown(async () => {
      await client.close()
      await Promise.all([vmcp.close(), backend.close()])
    })
    await client.listTools()
    const call = async (name: string): Promise<string[]> => {
      const seen: string[] = []
      const messages = client.experimental.tasks.callToolStream({ name, arguments: {} }, undefined, {
        task: { ttl: 60_000 },
      })
      for await (const message of messages) seen.push(message.type, JSON.stringify(message))
      return seen
    }
    const ended = await call(kind === 'session' ? 'slow' : 'only')
    t.match(ended.at(0), 'taskCreated')
    t.match(ended.at(-1), kind === 'session' ? /slept 0/ : /finished/)
    t.match((await call('ask')).at(-1), /got .*red/)
  })

t.test('the requester of ext-tasks over a session', async (t) => {
  const backend = await startSessionTaskBackend()
  const vmcp = await startTestVmcp({ b: backend.url }, { aggregation: bareNames('b'), ...tasksOn() })
  const client = new NewClient({ name: 'ext', version: '1' }, { capabilities: {} })
  await client.connect(new NewTransport(new URL(vmcp.url)))
  const session = createTaskSessionFromClient(client, { endpointId: 'vmcp' })
  t.teardown(async () => {
    await session.close()
    await client.close()
    await Promise.all([vmcp.close(), backend.close()])
  })
  const execution = await session.callTool('slow', { ms: 50 })
  const { outcome } = await execution.settle()
  t.match(resultFromTaskOutcome(outcome), { content: [{ text: 'slept 50' }] })
})
