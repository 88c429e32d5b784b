/** A changed key: task ids, stored tasks and sessions stay valid. Source: docs/guides/redis.md, "Rotate the key". */
import t from 'tap'
import { nextPoll, pollTask, taskRequest, tasksOn } from '../../../helpers/mcp/tasks/clients.ts'
import { startExtensionBackend } from '../../../helpers/mcp/tasks/extension-backend.ts'
import { openSession } from '../../../helpers/mcp/wire.ts'
import { missingRedis, startRedis } from '../../../helpers/redis.ts'
import { bareNames, startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

const [first, second, third] = ['first', 'second', 'third'].map((name) =>
  Buffer.from(name.padEnd(32, '.')).toString('base64'),
)
const compositeTools = [
  {
    name: 'flow',
    description: 'Calls.',
    parameters: { type: 'object', properties: {} },
    steps: [{ id: 'first', type: 'tool', tool: 'sync' }],
  },
]

t.test('data that was sealed with a previous key stays valid', { skip: missingRedis }, async (t) => {
  const redis = await startRedis()
  const backend = await startExtensionBackend()
  t.teardown(() => Promise.all([redis.stop(), backend.close()]))
  const start = async (key?: string, previous?: string) => {
    const vmcp = await startTestVmcp(
      { b: backend.url },
      {
        aggregation: bareNames('b'),
        ...tasksOn({ runAsTask: ['workflows'] }),
        compositeTools,
        sessionStorage: { provider: 'redis', address: redis.addr },
      },
      { env: { VMCP_SESSION_HMAC_SECRET: key, VMCP_SESSION_HMAC_SECRET_PREVIOUS: previous } },
    )
    t.teardown(() => vmcp.close())
    return vmcp
  }
  // Secrets that are created from files often end with a line break.
  const before = await start(`${first}\n`)
  const session = await openSession(before.url)
  const create = async (name: string): Promise<string> => {
    const { response } = await taskRequest(before.url, 'tools/call', { name })
    return String(response?.result?.['taskId'])
  }
  const [relayed, owned] = [await create('flex'), await create('flow')]
  t.match(await pollTask(before.url, owned), { status: 'completed' })
  await before.close()

  const lost = await start(second)
  for (const taskId of [relayed, owned])
    t.equal((await taskRequest(lost.url, 'tasks/get', { taskId })).response?.error?.code, -32602)

  const rotated = await start(third, ` ${second} ,${first}`)
  t.match((await taskRequest(rotated.url, 'tasks/get', { taskId: relayed })).response?.result, {
    status: 'working',
  })
  t.match(await pollTask(rotated.url, owned), { status: 'completed', result: { content: [{}] } })
  const moved = { ...session, url: rotated.url }
  t.equal(
    (await fetch(moved.url, { method: 'DELETE', headers: moved.headers })).status,
    200,
    'the session still exists',
  )

  await t.test('text that is sealed after the rotation requires the new key', async (t) => {
    const { response } = await taskRequest(rotated.url, 'tools/call', { name: 'flex' })
    const taskId = String(response?.result?.['taskId'])
    await nextPoll()
    t.equal((await taskRequest(lost.url, 'tasks/get', { taskId })).response?.error?.code, -32602)
    const announced = await start(second, third)
    t.match((await taskRequest(announced.url, 'tasks/get', { taskId })).response?.result, {
      status: 'working',
    })
  })
})

t.test('previous keys without a current key are rejected', async (t) => {
  const started = startTestVmcp({ b: 'http://127.0.0.1:9/mcp' }, tasksOn(), {
    env: { VMCP_SESSION_HMAC_SECRET_PREVIOUS: first },
  })
  await t.rejects(started, {
    code: 'INVALID_CONFIG',
    message: /VMCP_SESSION_HMAC_SECRET_PREVIOUS: requires VMCP_SESSION_HMAC_SECRET/,
  })
})
