/** Attacks on tasks, and their bounds. Source: docs/guides/tasks.md, "Safety". */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { LiveTasks } from '../../../../runtime/vmcp/features/tasks/live-tasks.ts'
import { startTokenIssuer } from '../../../helpers/authserver/token-issuer.ts'
import { nextPoll, pollTask, taskRequest, tasksOn } from '../../../helpers/mcp/tasks/clients.ts'
import { startExtensionBackend } from '../../../helpers/mcp/tasks/extension-backend.ts'
import { openSession } from '../../../helpers/mcp/wire.ts'
import { bareNames, startTestVmcp, vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

const bare = { aggregation: bareNames('b') }

async function create(url: string, name = 'flex', headers = {}): Promise<string> {
  const { response } = await taskRequest(url, 'tools/call', { name }, { headers })
  if (response?.result?.['resultType'] !== 'task') throw new Error(JSON.stringify(response))
  return String(response.result['taskId'])
}

t.test('forged, foreign, expired and lost ids cause the same error', async (t) => {
  const backend = await startExtensionBackend()
  const issuer = await startTokenIssuer()
  const more = { ...bare, incomingAuth: issuer.incomingAuth }
  const vmcp = await startTestVmcp({ b: backend.url }, { ...more, ...tasksOn({ maxTtl: '2s' }) })
  const other = await startTestVmcp({ b: backend.url }, { ...more, ...tasksOn() })
  t.teardown(() => Promise.all([vmcp.close(), other.close(), backend.close(), issuer.close()]))
  const ada = { authorization: `Bearer ${await issuer.token('ada')}` }
  const eve = { authorization: `Bearer ${await issuer.token('eve')}` }
  const taskId = await create(vmcp.url, 'flex', ada)
  const lost = await create(vmcp.url, 'flex', ada)
  backend.tasks.delete(String([...backend.tasks.keys()][1]))
  const read = async (id: string, headers: Record<string, string>, url = vmcp.url) => {
    const results = []
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const params = { taskId: id, inputResponses: {} }
      const { status, response } = await taskRequest(url, method, params, { headers })
      results.push({ status, error: response?.error })
    }
    return results
  }
  const [own] = backend.tasks.keys()
  const forged = await read('x', ada)
  t.match(forged[0], { status: 400, error: { code: -32602, message: /unknown or expired task/ } })
  t.same(await read(taskId, eve), forged, 'the id of another caller')
  t.same(await read(String(own), ada), forged, "the backend's own id")
  t.same(await read(`${taskId.slice(0, -2)}AA`, ada), forged, 'a changed id')
  t.same(await read(taskId, ada, other.url), forged, 'the id of another process')
  t.same(await read(lost, ada), forged, 'a task that the backend has lost')
  t.equal((await taskRequest(vmcp.url, 'tasks/get', { taskId }, { headers: ada })).status, 200)
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  t.same(await read(taskId, ada), forged, 'an expired id')
})

t.test('a session cannot read the tasks of another session', async (t) => {
  const backend = await startExtensionBackend()
  const vmcp = await startTestVmcp({ b: backend.url }, { ...bare, ...tasksOn() })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const [one, two] = [await openSession(vmcp.url), await openSession(vmcp.url)]
  const { response } = await one.request('tools/call', { name: 'sync', task: {} })
  const { taskId } = Object(response?.result?.['task'])
  t.equal((await one.request('tasks/get', { taskId })).response?.error, undefined)
  for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel'])
    t.match((await two.request(method, { taskId })).response?.error, { code: -32602, message: /unknown/ })
})

t.test('reads that are too fast are rejected without a request to the backend', async (t) => {
  const backend = await startExtensionBackend({ created: { pollIntervalMs: 10_000 } })
  const vmcp = await startTestVmcp({ b: backend.url }, { ...bare, ...tasksOn() })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const taskId = await create(vmcp.url)
  const read = async () =>
    (await taskRequest(vmcp.url, 'tasks/get', { taskId })).response?.error ?? { code: 0 }
  t.same([(await read()).code, (await read()).code], [0, 0], 'one read may arrive early')
  const before = backend.requests.length
  t.match(await read(), { code: 429, data: { pollIntervalMs: 10_000 } })
  t.equal(backend.requests.length, before)
  t.equal((await taskRequest(vmcp.url, 'tasks/cancel', { taskId })).status, 200)
  t.equal((await read()).code, 0, 'a change allows the next read')
})

t.test('the minimum time between reads is half of the poll interval', (t) => {
  let now = 1_000
  const live = new LiveTasks(
    () => ({ max: 1, maxPerCaller: 1 }),
    () => now,
  )
  const isAllowed = () => {
    try {
      live.pace(Object({ hash: 'a', pollMs: 100 }))
      return true
    } catch {
      return false
    }
  }
  t.same([isAllowed(), isAllowed(), isAllowed()], [true, true, false])
  now += 49
  t.equal(isAllowed(), false)
  now += 1
  t.same([isAllowed(), isAllowed()], [true, false])
  now += 10_000
  t.same([isAllowed(), isAllowed(), isAllowed()], [true, true, false], 'early reads do not accumulate')
  live.pace(Object({ hash: 'b', pollMs: 100 }))
  t.end()
})

t.test('the number of live tasks is limited', async (t) => {
  const backend = await startExtensionBackend()
  const issuer = await startTokenIssuer()
  const vmcp = await startTestVmcp(
    { b: backend.url },
    { ...bare, incomingAuth: issuer.incomingAuth, ...tasksOn({ maxTasksPerCaller: 2, maxTasks: 3 }) },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close(), issuer.close()]))
  const ada = { authorization: `Bearer ${await issuer.token('ada')}` }
  const eve = { authorization: `Bearer ${await issuer.token('eve')}` }
  const first = await create(vmcp.url, 'flex', ada)
  await create(vmcp.url, 'flex', ada)
  const call = (name: string, headers: Record<string, string>) =>
    taskRequest(vmcp.url, 'tools/call', { name }, { headers })
  t.match((await call('only', ada)).response?.error, { code: 429, message: /too many live tasks/ })
  t.match(
    (await call('flex', ada)).response?.result,
    { content: [{ text: 'at once' }] },
    'no task is offered',
  )
  await create(vmcp.url, 'flex', eve)
  t.match((await call('only', eve)).response?.error, { code: 429 }, 'the limit of the replica')
  await taskRequest(vmcp.url, 'tasks/cancel', { taskId: first }, { headers: ada })
  await create(vmcp.url, 'only', ada)
})

t.test('a task counts as live until its backend ends or loses it', async (t) => {
  const backend = await startExtensionBackend({ rejectsCancel: true })
  const vmcp = await startTestVmcp({ b: backend.url }, { ...bare, ...tasksOn({ maxTasks: 1 }) })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const taskId = await create(vmcp.url, 'only')
  const another = () => taskRequest(vmcp.url, 'tools/call', { name: 'only' })
  t.match((await taskRequest(vmcp.url, 'tasks/cancel', { taskId })).response?.error, { code: -32603 })
  t.match((await another()).response?.error, { code: 429 }, 'the backend rejected the cancellation')
  backend.tasks.clear()
  t.match((await taskRequest(vmcp.url, 'tasks/get', { taskId })).response?.error, { code: -32602 })
  t.match((await another()).response?.result, { resultType: 'task' }, 'the backend lost the task')
})

t.test('10,000 live tasks are counted, and expired tasks are forgotten', async (t) => {
  let now = 0
  const live = new LiveTasks(
    () => ({ max: 10_000, maxPerCaller: 20 }),
    () => now,
  )
  const client = Object({ caller: { key: 'anonymous', token: undefined } })
  for (let i = 0; live.hasRoom(client) && i < 20_000; i++)
    live.add(Object({ hash: String(i), notAfter: 60_000 }), client)
  t.equal(live.size, 10_000)
  now = 60_001
  t.ok(live.hasRoom(client))
  t.equal(live.size, 0)
})

t.test('lifetimes and intervals of backends are bounded', async (t) => {
  const backend = await startExtensionBackend({ created: { ttlMs: 1e15, pollIntervalMs: 1 } })
  const vmcp = await startTestVmcp({ b: backend.url }, { ...bare, ...tasksOn({ maxTtl: '1h' }) })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const { response } = await taskRequest(vmcp.url, 'tools/call', { name: 'flex' })
  t.match(response?.result, { ttlMs: 3_600_000, pollIntervalMs: 100 })
})

t.test('a backend that changes its answers violates the protocol', async (t) => {
  const backend = await startExtensionBackend()
  const vmcp = await startTestVmcp({ b: backend.url }, { ...bare, ...tasksOn() })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  for (const members of [{ taskId: 'another' }, { status: 'unheard' }, { taskId: 'x'.repeat(2_000) }]) {
    const taskId = await create(vmcp.url)
    const task = [...backend.tasks.values()].at(-1)
    if (task) task.members = { ...task.members, ...members }
    t.match((await taskRequest(vmcp.url, 'tasks/get', { taskId })).response?.error, {
      code: -32603,
      message: /not valid MCP/,
    })
  }
  const unasked = await taskRequest(
    vmcp.url,
    'tools/call',
    { name: 'ask' },
    { capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } },
  )
  const taskId = String(unasked.response?.result?.['taskId'])
  const options = { capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } }
  t.match(
    (await taskRequest(vmcp.url, 'tasks/get', { taskId }, options)).response?.error,
    { code: -32021, data: { requiredCapabilities: { elicitation: {} } } },
    'questions that the client did not declare',
  )
})

t.test('guardrails check late results and questions', async (t) => {
  const backend = await startExtensionBackend()
  const vmcp = await startTestVmcp(
    { b: backend.url },
    {
      ...bare,
      ...tasksOn(),
      guardrails: {
        redact: [
          { name: 'mail', patterns: ['email'], direction: 'results', match: { tools: ['flex', 'ask'] } },
          { name: 'word', expressions: ['forbidden'], action: 'refuse', direction: 'both' },
        ],
        sizes: [{ name: 'small', maxResultBytes: 20_000 }],
      },
    },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const ended = async (text: string): Promise<Record<string, unknown>> => {
    const taskId = await create(vmcp.url)
    backend.complete(String([...backend.tasks.keys()].at(-1)), { content: [{ type: 'text', text }] })
    return pollTask(vmcp.url, taskId)
  }
  const masked = JSON.stringify(await ended('write to ada@example.com'))
  t.notMatch(masked, 'ada@example.com')
  t.match(masked, 'write to')
  t.match(await ended('a forbidden word'), {
    status: 'completed',
    result: { isError: true, content: [{ text: /withheld by guardrail word/ }] },
  })
  const taskId = await create(vmcp.url)
  backend.complete(String([...backend.tasks.keys()].at(-1)), {
    content: [{ type: 'text', text: 'x'.repeat(30_000) }],
  })
  t.match((await taskRequest(vmcp.url, 'tasks/get', { taskId })).response?.error, {
    message: /larger than guardrail small/,
  })
  const asking = await create(vmcp.url, 'ask')
  const task = [...backend.tasks.values()].at(-1)
  const refused = await taskRequest(vmcp.url, 'tasks/update', {
    taskId: asking,
    inputResponses: { color: { action: 'accept', content: { color: 'forbidden' } } },
  })
  t.match(refused.response?.error, { message: /rejected by guardrail word/ })
  t.same(task?.responses, [], 'the answer does not reach the backend')
})

t.test('policies decide again on reads and updates; the owner may always cancel', async (t) => {
  const backend = await startExtensionBackend()
  const authz = (policy: string) => ({
    incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies: [policy] } },
  })
  const more = { ...bare, ...tasksOn() }
  const vmcp = await startTestVmcp(
    { b: backend.url },
    { ...more, ...authz('permit(principal, action, resource);') },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const taskId = await create(vmcp.url)
  vmcp.reload(
    vmcpConfig(
      { b: backend.url },
      { ...more, ...authz('permit(principal, action, resource == Tool::"sync");') },
    ),
  )
  t.equal((await taskRequest(vmcp.url, 'tasks/get', { taskId })).status, 403)
  t.equal((await taskRequest(vmcp.url, 'tasks/update', { taskId, inputResponses: {} })).status, 403)
  t.equal((await taskRequest(vmcp.url, 'tasks/cancel', { taskId })).status, 200)
  t.ok(backend.requests.some(({ method }) => method === 'tasks/cancel'))
  vmcp.reload(vmcpConfig({ b: backend.url }, bare))
  t.equal(
    (await taskRequest(vmcp.url, 'tasks/cancel', { taskId })).response?.error?.code,
    -32601,
    'tasks are off',
  )
})

t.test('the audit log contains the hash of the id, and one line for each event', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'tasks-'))
  const logFile = join(folder, 'audit.log')
  const backend = await startExtensionBackend()
  const vmcp = await startTestVmcp(
    { b: backend.url },
    { ...bare, ...tasksOn(), audit: { enabled: true, logFile } },
  )
  t.teardown(async () => {
    await Promise.all([vmcp.close(), backend.close()])
    rmSync(folder, { recursive: true })
  })
  const taskId = await create(vmcp.url, 'ask')
  await taskRequest(vmcp.url, 'tasks/get', { taskId })
  await taskRequest(vmcp.url, 'tasks/update', { taskId, inputResponses: { color: { action: 'accept' } } })
  await pollTask(vmcp.url, taskId)
  await pollTask(vmcp.url, taskId)
  await taskRequest(vmcp.url, 'tasks/cancel', { taskId })
  await nextPoll()
  const text = readFileSync(logFile, 'utf8')
  const tasks = text
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [JSON.parse(line).task ?? []]))
    .flat()
  t.same(
    tasks.map(({ event }: { event: string }) => event),
    ['created', 'updated', 'result_read', 'cancelled'],
  )
  t.equal(new Set(tasks.map(({ id }: { id: string }) => id)).size, 1)
  t.notMatch(text, taskId)
  t.notMatch(text, String([...backend.tasks.keys()][0]))
})
