/** The memory for the results of tasks. Source: docs/guides/tasks.md, "Safety". */
import t from 'tap'
import { ResultBudget } from '../../../../runtime/vmcp/features/tasks/owned/result-budget.ts'

const mebibyte = 1024 * 1024
const clientOf = (key: string) => Object({ caller: { key, token: 'token' }, session: undefined })

t.test('one caller cannot use the memory of other callers', async (t) => {
  let now = 0
  const budget = new ResultBudget(() => now)
  const ada = clientOf('ada')
  let stored = 0
  while (stored < 300 && budget.reserve(ada, mebibyte, 1_000)) stored++
  t.equal(stored, 32)
  t.ok(budget.reserve(clientOf('eve'), mebibyte, 1_000))
  now = 1_000
  t.ok(budget.reserve(ada, mebibyte, 2_000), 'expired results use no memory')
})

t.test('the results of all callers together are bounded', async (t) => {
  let now = 0
  const budget = new ResultBudget(() => now)
  let stored = 0
  while (stored < 300 && budget.reserve(clientOf(`caller ${stored}`), mebibyte, 1_000)) stored++
  t.equal(stored, 256)
  now = 1_000
  t.ok(budget.reserve(clientOf('late'), mebibyte, 2_000), 'expired results use no memory')
})

t.test('callers without a token share the whole memory', async (t) => {
  const budget = new ResultBudget(() => 0)
  const anonymous = Object({ caller: { key: 'anonymous', token: undefined }, session: undefined })
  let stored = 0
  while (stored < 300 && budget.reserve(anonymous, mebibyte, 1_000)) stored++
  t.equal(stored, 256)
})

t.test('small results are bounded too', async (t) => {
  const budget = new ResultBudget(() => 0)
  let stored = 0
  while (stored < 100_000 && budget.reserve(clientOf('ada'), 2, 1_000)) stored++
  t.equal(stored, 32 * 1024)
})
