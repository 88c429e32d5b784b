/** Bounds of tasks, and the checks of late results. Source: docs/guides/tasks.md. */
import t from 'tap'
import { silentLog } from '../../../../runtime/net/index.ts'
import { makeServerTasks } from '../../../../runtime/vmcp/server/tasks.ts'
import { pollSessionTask, tasksOn } from '../../../helpers/mcp/tasks/clients.ts'
import { startExtensionBackend } from '../../../helpers/mcp/tasks/extension-backend.ts'
import { startSessionTaskBackend } from '../../../helpers/mcp/tasks/session-backend.ts'
import { openSession } from '../../../helpers/mcp/wire.ts'
import { bareNames, startTestVmcp, vmcpConfig } from '../../../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

const bare = { aggregation: bareNames('b') }

t.test('a task fails if its result is larger than 1 MiB', async (t) => {
  const backend = await startExtensionBackend()
  const vmcp = await startTestVmcp({ b: backend.url }, { ...bare, ...tasksOn() })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const end = async (length: number) => {
    const created = await session.request('tools/call', { name: 'only', task: {} })
    const { taskId } = Object(created.response?.result?.['task'])
    const own = async () => {
      for (let i = 0; i < 200; i++) {
        const found = [...backend.tasks].find(([, { members }]) => members['status'] === 'working')
        if (found) return found[0]
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      throw new Error('the backend has no task')
    }
    backend.complete(await own(), { content: [{ type: 'text', text: 'x'.repeat(length) }] })
    const task = await pollSessionTask(session, taskId)
    return { task, result: (await session.request('tasks/result', { taskId })).response }
  }
  t.match(await end(1024 * 1024 - 200), { task: { status: 'completed' } })
  t.match(await end(1024 * 1024), {
    task: { status: 'failed' },
    result: { error: { message: /larger than a task can store \(1048576 bytes\)/ } },
  })
})

t.test('a server in a cluster offers tasks only with a shared key', (t) => {
  const config = vmcpConfig({ b: 'http://127.0.0.1:9/mcp' }, { ...bare, ...tasksOn() })
  const engine = Object({ core: { parts: { members: new Map() } }, endSession() {} })
  const isOffered = (env: Record<string, string>, value?: string, storage?: object) =>
    makeServerTasks(
      engine,
      { config },
      {
        env,
        secret: { values: value === undefined ? [] : [value] },
        workerStore: undefined,
        storage: storage && Object(storage),
        log: silentLog,
        now: Date.now,
      },
    ).isOffered()
  const cluster = { VMCP_NAMESPACE: 'default' }
  t.equal(isOffered({}), true, 'a single process')
  t.equal(isOffered(cluster), false)
  t.equal(isOffered(cluster, 'key'), true)
  t.equal(
    isOffered({}, undefined, { store: { namespace: () => ({}) } }),
    false,
    'the key has not been read yet',
  )
  t.end()
})

t.test('status notifications of backends contain the effective lifetime', async (t) => {
  const backend = await startSessionTaskBackend()
  const vmcp = await startTestVmcp({ b: backend.url }, { ...bare, ...tasksOn({ maxTtl: '24h' }) })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const stream = await session.listen()
  const { response } = await session.request('tools/call', { name: 'slow', arguments: { ms: 500 }, task: {} })
  const { taskId, ttl } = Object(response?.result?.['task'])
  t.equal(ttl, 86_400_000)
  vmcp.reload(vmcpConfig({ b: backend.url }, { ...bare, ...tasksOn({ maxTtl: '1h' }) }))
  t.match(await stream.next(({ method }) => method === 'notifications/tasks/status'), {
    params: { taskId, status: 'completed', ttl: 3_600_000 },
  })
  stream.close()
})
