/** Large bodies are evaluated in a worker thread, with the same result. A worker that exits affects no other task. */
import t from 'tap'
import { makeHooks } from '../../../../hooks/index.ts'
import { type HookCall, evaluate } from '../../../../hooks/server/evaluate.ts'
import { EvaluationWorker } from '../../../../hooks/server/workers.ts'
import { configMap, openApi, server, virtual, world } from '../../../hooks/resources.ts'
import { testSettings } from '../../../hooks/world.ts'

const limits = { settings: testSettings, heapMb: 128, onEngineFailures: () => {} }
const never = new AbortController().signal

function taskOf(call: HookCall, value: unknown) {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  // Allocate one spare byte, as a growing buffer does.
  const body = Buffer.allocUnsafeSlow(Buffer.byteLength(text) + 1)
  return { call, body, size: body.write(text) }
}

const sync: HookCall = { hook: 'sync', plural: 'virtualmcpservers', events: true }
const request = world(server('files'), virtual()).ready().request('VirtualMCPServer', 'door')

t.test('worker: evaluates like the main thread', async (t) => {
  const worker = new EvaluationWorker({ ...limits, deadlineMs: 60_000 })
  t.teardown(() => worker.close())
  const review = {
    kind: 'AdmissionReview',
    request: {
      uid: 'u',
      operation: 'CREATE',
      kind: { kind: 'VirtualMCPServer' },
      object: { kind: 'VirtualMCPServer' },
    },
  }
  const calls: readonly (readonly [HookCall, unknown])[] = [
    [sync, request],
    [{ ...sync, hook: 'customize' }, request],
    [{ hook: 'validate' }, review],
  ]
  const hooks = makeHooks(testSettings)
  for (const [call, value] of calls)
    t.strictSame(await worker.run(taskOf(call, value), never), evaluate(hooks, call, JSON.stringify(value)))
  await t.rejects(worker.run(taskOf(sync, '{"parent"'), never), {
    name: 'GatehouseError',
    code: 'BAD_REQUEST',
    message: 'the request body must be JSON',
  })
  await t.rejects(worker.run(taskOf(sync, { parent: 1 }), never), { message: /^parent: must be an object/ })
})

t.test(
  'worker: a worker that exits fails only its own task, and the next task gets a new worker',
  async (t) => {
    const options = { ...limits, deadlineMs: 1 }
    const worker = new EvaluationWorker(options)
    t.teardown(() => worker.close())
    const gone = new AbortController()
    const late = worker.run(taskOf(sync, request), never)
    const dropped = worker.run(taskOf(sync, request), gone.signal)
    gone.abort()
    await t.rejects(dropped, { message: 'the client disconnected' })
    options.deadlineMs = 60_000
    await t.rejects(late, { name: 'DeadlineExceeded', place: 'the worker thread ended' })
    t.match(await worker.run(taskOf(sync, request), never), { kind: 'VirtualMCPServer' })
    await worker.close()
    await t.rejects(
      Promise.all([worker.run(taskOf(sync, request), never), worker.close()]),
      { name: /Closed|Exit/ },
      'tasks end with the worker',
    )
  },
)

t.test('worker: users take turns, and the number of waiting tasks per user is limited', async (t) => {
  const worker = new EvaluationWorker({ ...limits, deadlineMs: 60_000 })
  t.teardown(() => worker.close())
  const ended: string[] = []
  const run = async (user: string) => {
    await worker.run(taskOf(sync, request), never, { address: '10.0.0.1', user })
    ended.push(user)
  }
  const greedy = Array.from({ length: 17 }, () => run('greedy'))
  await t.rejects(run('greedy'), {
    code: 'RATE_LIMITED',
    message: /^too many large reviews of this user or address/,
  })
  await Promise.all([run('a'), run('b')])
  t.ok(ended.length <= 5, 'every other user has a turn before the second round is over')
  await Promise.all(greedy)
  const gone = new AbortController()
  const first = run('greedy')
  const dropped = worker.run(taskOf(sync, request), gone.signal, { address: '10.0.0.1', user: 'greedy' })
  gone.abort()
  await t.rejects(dropped, { message: 'the client disconnected' })
  await first
})

t.test('worker: the memory for an OpenAPI document does not grow with its expanded schemas', async (t) => {
  const worker = new EvaluationWorker({ ...limits, heapMb: 48, deadlineMs: 60_000 })
  t.teardown(() => worker.close())
  const properties = Object.fromEntries(Array.from({ length: 700 }, (_, index) => [`p${index}`, {}]))
  const schema = { $ref: '#/components/schemas/Wide' }
  const get = { responses: { 200: { description: '', content: { 'application/json': { schema } } } } }
  const paths = Object.fromEntries(Array.from({ length: 1_500 }, (_, index) => [`/a${index}`, { get }]))
  const components = { schemas: { Wide: { type: 'object', properties } } }
  const text = JSON.stringify({ openapi: '3.1.0', info: {}, paths, components })
  const w = world(openApi('pets'), configMap('petstore', { 'openapi.json': text }))
  const call = { hook: 'sync', plural: 'mcpopenapiservers', events: false } as const
  const { text: response } = await worker.run(taskOf(call, w.request('MCPOpenAPIServer', 'pets')), never)
  t.match(JSON.parse(response), { status: { toolCount: 1_500, skippedCount: 0 } })
})
