/**
 * Clients finish a task across a restart of the virtual server and a change of replica. Source: docs/guides/tasks.md,
 * "Restarts and replicas".
 */
import { createServer, request as httpRequest } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createTaskSessionFromClient, resultFromTaskOutcome } from '@modelcontextprotocol/ext-tasks/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  Client as NewClient,
  StreamableHTTPClientTransport as NewTransport,
} from '@modelcontextprotocol/client'
import t, { type Test } from 'tap'
import {
  startExtensionTaskServer,
  startSessionTaskServer,
} from '../../../helpers/conformance/task-servers.ts'
import { tasksOn } from '../../../helpers/mcp/tasks/clients.ts'
import { connectSessionClient, connectStatelessClient } from '../../../helpers/mcp/tasks/matrix-clients.ts'
import { missingRedis, type RedisProcess, startRedis } from '../../../helpers/redis.ts'
import { bareNames, startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

t.setTimeout(240_000)

/** Forwards requests to the current replica, as a load balancer does. */
async function startFront(t: Test) {
  let target = ''
  const server = createServer((req, res) => {
    const { method, headers } = req
    const forward = httpRequest(target, { method, headers }, (response) => {
      res.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(res)
    })
    forward.on('error', () => res.destroy())
    res.on('close', () => forward.destroy())
    req.pipe(forward)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    setTarget: (url: string) => void (target = url),
  }
}

const starts = { session: startSessionTaskServer, stateless: startExtensionTaskServer }

/** Starts a replica behind a front. `replace` starts another replica and stops the current one. */
async function startReplicas(t: Test, redis: RedisProcess, backendEra: keyof typeof starts) {
  const backend = await starts[backendEra]()
  const front = await startFront(t)
  const start = () =>
    startTestVmcp(
      { b: backend.url },
      {
        aggregation: bareNames('b'),
        ...tasksOn(),
        sessionStorage: { provider: 'redis', address: redis.addr, keyPrefix: backend.url },
      },
      { allowedOrigins: [new URL(front.url).origin] },
    )
  let current = await start()
  front.setTarget(current.url)
  t.teardown(() => Promise.all([current.close({ graceMs: 0 }), backend.close()]))
  return {
    url: front.url,
    async replace() {
      const before = current
      current = await start()
      front.setTarget(current.url)
      await before.close({ graceMs: 2_000 })
    },
  }
}

const soon = { seconds: 3, label: 'soon' }

t.test('a new replica replaces the replica that created the task', { skip: missingRedis }, async (t) => {
  const redis = await startRedis()
  t.teardown(() => redis.stop())

  await t.test("the SDK's task client", async (t) => {
    const { url, replace } = await startReplicas(t, redis, 'session')
    const client = new Client({ name: 'sdk', version: '1' }, { capabilities: {} })
    await client.connect(new StreamableHTTPClientTransport(new URL(url)))
    t.teardown(() => client.close())
    await client.listTools()
    const messages = client.experimental.tasks.callToolStream(
      { name: 'required_compute', arguments: soon },
      undefined,
      { task: { ttl: 60_000 } },
    )
    const seen: unknown[] = []
    for await (const message of messages) {
      seen.push(message)
      if (message.type === 'taskCreated') await replace()
    }
    t.match(seen.at(-1), { type: 'result', result: { content: [{ text: 'computed soon' }] } })
  })

  await t.test('the requester of ext-tasks', async (t) => {
    const { url, replace } = await startReplicas(t, redis, 'session')
    const client = new NewClient({ name: 'ext', version: '1' }, { capabilities: {} })
    await client.connect(new NewTransport(new URL(url)))
    const session = createTaskSessionFromClient(client, { endpointId: 'vmcp' })
    t.teardown(async () => {
      await session.close()
      await client.close()
    })
    const execution = await session.callTool('required_compute', soon)
    await replace()
    const { outcome } = await execution.settle()
    t.match(resultFromTaskOutcome(outcome), { content: [{ text: 'computed soon' }] })
  })

  for (const [client, backend] of [
    ['session', 'session'],
    ['stateless', 'session'],
    ['stateless', 'stateless'],
  ] as const)
    await t.test(`a wire client of the ${client} era, backend of the ${backend} era`, async (t) => {
      const { url, replace } = await startReplicas(t, redis, backend)
      const connect = client === 'session' ? connectSessionClient : connectStatelessClient
      const { create, settle, cancel } = await connect(url)
      const task = await create('required_compute', { seconds: 1, label: 'moved' })
      const asking = await create('confirm_delete', { filename: 'notes' })
      const long = await create('required_compute', { seconds: 60, label: 'late' })
      await replace()
      t.match(await settle(task), /computed moved/)
      t.match(await settle(asking), /deleted notes/, 'questions')
      await replace()
      t.equal(await cancel(long), 'cancelled')
    })
})
