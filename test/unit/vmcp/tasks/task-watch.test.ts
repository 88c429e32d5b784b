/** Watches of tasks for a stream: failed reads are retried. Source: ext-tasks, "Task Status Notifications". */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { mock } from 'node:test'
import t from 'tap'
import { GatehouseError } from '../../../../schemas/index.ts'
import { watchTask } from '../../../../runtime/vmcp/clients/stateless-era/task-watch.ts'

const stateOf = (status: string) =>
  ({ kind: 'result', result: Buffer.from(JSON.stringify({ status, pollIntervalMs: 1_000 })) }) as const

t.beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
t.afterEach(() => mock.timers.reset())

async function pass(ms: number): Promise<void> {
  for (let i = 0; i < 3; i++) await nextTurn()
  mock.timers.tick(ms)
  for (let i = 0; i < 3; i++) await nextTurn()
}

await t.test('watch: reports the end after many failed reads', async (t) => {
  const seen: unknown[] = []
  let reads = 0
  const watching = watchTask(
    async () => {
      reads++
      if (reads === 1) return stateOf('working')
      if (reads < 12) throw new GatehouseError('BACKEND_UNAVAILABLE')
      return stateOf('completed')
    },
    new AbortController().signal,
    (task) => seen.push(task.text('status')),
  )
  await pass(1_000)
  t.equal(reads, 2)
  for (const ms of [5_000, 10_000, 20_000, 40_000, 60_000]) {
    const before = reads
    await pass(ms - 1)
    t.equal(reads, before, `no read within ${ms} ms`)
    await pass(1)
    t.equal(reads, before + 1)
  }
  for (let left = 12 - reads; left > 0; left--) await pass(60_000)
  await watching
  t.same(seen, ['working', 'completed'])
})

await t.test('watch: ends when the id is no longer valid, or when the stream ends', async (t) => {
  let reads = 0
  await watchTask(
    async () => {
      reads++
      throw new GatehouseError('INVALID_PARAMS')
    },
    new AbortController().signal,
    () => t.fail(),
  )
  t.equal(reads, 1)
  const controller = new AbortController()
  const watching = watchTask(
    async () => {
      throw new GatehouseError('BACKEND_UNAVAILABLE')
    },
    controller.signal,
    () => t.fail(),
  )
  await pass(1)
  controller.abort()
  await watching
})
