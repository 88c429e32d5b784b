/** The memory for tasks and their results. Source: docs/guides/tasks.md, "Restarts and replicas". */
import t from 'tap'
import { TaskBudget } from '../../../../runtime/vmcp/features/tasks/owned/task-budget.ts'

const mebibyte = 1024 * 1024
const clientOf = (key: string) => Object({ caller: { key, token: 'token' }, session: undefined })

t.test('one caller cannot use the memory of other callers', async (t) => {
  let now = 0
  const budget = new TaskBudget(() => now)
  const ada = clientOf('ada')
  let stored = 0
  while (stored < 300 && budget.reserve(ada, mebibyte, 1_000)) stored++
  t.equal(stored, 32)
  t.ok(budget.reserve(clientOf('eve'), mebibyte, 1_000))
  now = 1_000
  t.ok(budget.reserve(ada, mebibyte, 2_000), 'expired tasks use no memory')
})

t.test('the tasks of all callers together are bounded', async (t) => {
  let now = 0
  const budget = new TaskBudget(() => now)
  let stored = 0
  while (stored < 300 && budget.reserve(clientOf(`caller ${stored}`), mebibyte, 1_000)) stored++
  t.equal(stored, 256)
  now = 1_000
  t.ok(budget.reserve(clientOf('late'), mebibyte, 2_000), 'expired tasks use no memory')
})

t.test('callers without a token share the whole memory', async (t) => {
  const budget = new TaskBudget(() => 0)
  const anonymous = Object({ caller: { key: 'anonymous', token: undefined }, session: undefined })
  let stored = 0
  while (stored < 300 && budget.reserve(anonymous, mebibyte, 1_000)) stored++
  t.equal(stored, 256)
})

t.test('released memory can be reserved again', async (t) => {
  const budget = new TaskBudget(() => 0)
  const ada = clientOf('ada')
  const release = budget.reserve(ada, 32 * mebibyte, 1_000)
  t.notOk(budget.reserve(ada, 1, 1_000))
  release?.()
  release?.()
  t.ok(budget.reserve(ada, 32 * mebibyte, 1_000))
  t.notOk(budget.reserve(ada, 1, 1_000), 'a second release has no effect')
})
