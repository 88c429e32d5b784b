/** Tasks that Gatehouse runs, with a real store: the end of a task and the bounds of stored tasks. */
import t, { type Test } from 'tap'
import { JsonObject } from '../../../../runtime/mcp/index.ts'
import { silentLog } from '../../../../runtime/net/index.ts'
import { makeMemoryStore, type MemoryStoreOptions, type Store } from '../../../../runtime/store/index.ts'
import { makeTaskIds } from '../../../../runtime/vmcp/features/tasks/ids.ts'
import { LiveTasks } from '../../../../runtime/vmcp/features/tasks/live-tasks.ts'
import { OwnedTasks } from '../../../../runtime/vmcp/features/tasks/owned/owned-tasks.ts'
import { ownOperation, type Perform } from '../../../../runtime/vmcp/model/operation.ts'

const client = Object({
  era: 'stateless',
  caller: { key: 'ada', token: 'token' },
  abilities: { tasks: true },
  session: undefined,
})
const textResult = (length: number) => Buffer.from(`{"text":"${'x'.repeat(length)}"}`)
const working: Perform = ({ context }) =>
  new Promise((_resolve, reject) =>
    context.signal.addEventListener('abort', () => reject(context.signal.reason), { once: true }),
  )

/** Lines of the log, as JSON. */
const warnings: string[] = []
const log = {
  ...silentLog,
  warn: (message: string, fields: unknown) => void warnings.push(JSON.stringify([message, fields])),
}

function startTasks(t: Test, options: MemoryStoreOptions = {}, wrap = (store: Store): Store => store) {
  const now = Date.now
  const settings = () =>
    Object({ max: 10_000, maxPerCaller: 1, maxTtlMs: 60_000, pollMs: 100, runAsTask: new Set() })
  const ids = makeTaskIds({ server: 'server', secrets: () => ['key'], now })
  const live = new LiveTasks(settings, now)
  const tasks = new OwnedTasks({ store: wrap(makeMemoryStore(options)), ids, live, settings, log, now })
  t.teardown(() => tasks.close())
  const { signal } = new AbortController()
  return {
    live,
    tasks,
    async create(next: Perform): Promise<string> {
      const call = ownOperation(client, 'tools/call', { name: 'tool' }, signal)
      const outcome = await tasks.start(call, next, 'session')
      if (outcome.kind !== 'task') throw new Error(`the call became a ${outcome.kind}`)
      return String(new JsonObject(outcome.result).object('task')?.text('taskId'))
    },
    async send(method: 'tasks/get' | 'tasks/cancel', taskId: string): Promise<unknown> {
      const outcome = await tasks.handle(
        ownOperation(client, method, { taskId }, signal),
        ids.open(taskId, client),
      )
      if (outcome.kind !== 'result') throw new Error(outcome.kind)
      return JSON.parse(outcome.result.toString())
    },
    async ended(): Promise<void> {
      for (let i = 0; i < 100 && live.size > 0; i++) await new Promise((resolve) => setTimeout(resolve, 10))
    },
  }
}

t.test('a task fails if the store has no space for its result', async (t) => {
  const { create, send, ended, live } = startTasks(t, { maxBytes: 20_000 })
  const taskId = await create(async () => ({ kind: 'result', result: textResult(50_000) }))
  await ended()
  t.equal(live.size, 0)
  t.match(await send('tasks/get', taskId), { status: 'failed', error: { message: String } })
})

t.test('a finished task that cannot be stored no longer counts as live', async (t) => {
  const store = (real: Store): Store => ({ ...real, swap: () => Promise.reject(new Error('unreachable')) })
  const { create, ended, live } = startTasks(t, {}, store)
  warnings.length = 0
  const taskId = await create(async () => ({ kind: 'result', result: textResult(10) }))
  await ended()
  t.equal(live.size, 0)
  t.match(warnings, [/failed to store the state of a task/], 'the log reports the failed write')
  t.match(warnings[0], /"task":"[0-9a-f]{32}"/)
  t.notMatch(warnings.join(), taskId, 'the log does not contain the id')
})

t.test('a cancelled task reserves no memory for its result', async (t) => {
  const { create, send, ended } = startTasks(t)
  const result = textResult(1_000_000)
  for (let i = 0; i < 40; i++) {
    const { promise, resolve } = Promise.withResolvers<Awaited<ReturnType<Perform>>>()
    const taskId = await create(() => promise)
    await send('tasks/cancel', taskId)
    resolve({ kind: 'result', result })
    t.match(await send('tasks/get', taskId), { status: 'cancelled' })
  }
  const taskId = await create(async () => ({ kind: 'result', result }))
  await ended()
  t.match(await send('tasks/get', taskId), { status: 'completed' })
})

t.test('cancelled tasks count until their lifetime is over', async (t) => {
  const { create, send, ended, tasks } = startTasks(t)
  for (let i = 0; i < 32; i++) {
    await create(async () => ({ kind: 'result', result: textResult(1_000_000) }))
    await ended()
  }
  let cancelled = 0
  const createAndCancel = async () => {
    for (; cancelled < 3_000; cancelled++) await send('tasks/cancel', await create(working))
  }
  await t.rejects(createAndCancel(), { code: 'RATE_LIMITED', message: /stored tasks use too much memory/ })
  t.ok(cancelled > 1_000, 'the caller may use 32 MiB')
  const call = ownOperation(client, 'tools/call', { name: 'tool' }, new AbortController().signal)
  const result = textResult(10)
  const outcome = await tasks.start(call, async () => ({ kind: 'result', result }), 'extension')
  t.same(outcome, { kind: 'result', result }, 'a client of the extension gets the finished result')
})
