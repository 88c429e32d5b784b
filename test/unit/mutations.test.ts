/**
 * Checks that the table of mutations still matches the sources and the tests. `make mutations` runs the mutations
 * themselves.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { chapterOf, chapters, mutate } from '../mutations/mutation.ts'
import { mutations } from '../mutations/mutations.ts'
import { requirements } from '../requirements/index.ts'

const root = resolve(import.meta.dirname, '../..')

await t.test('mutations: every row changes text that occurs once in its file', async (t) => {
  const seen = new Set<string>()
  for (const mutation of mutations) {
    const { id, file, from } = mutation
    const text = readFileSync(join(root, file), 'utf8')
    t.not(mutate(text, mutation), text, id)
    t.notOk(seen.has(`${file} ${from}`), `${id} changes other text than the rows before`)
    seen.add(`${file} ${from}`)
  }
  const row = { id: '1.x', file: 'x.ts', from: 'a', to: 'b', tests: [] }
  t.throws(() => mutate('no match', { ...row, from: 'z' }), /contains the old text 0 times/)
  t.throws(() => mutate('a a', row), /contains the old text 2 times/)
})

await t.test('mutations: every test that must fail exists', async (t) => {
  for (const { id, tests } of mutations) {
    t.ok(tests.length > 0, `${id} has a test`)
    for (const test of tests)
      t.ok(test.endsWith('.test.ts') && existsSync(join(root, 'test', test)), `${id}: ${test}`)
  }
})

await t.test(
  'mutations: at least 50 rows, and at least three for each chapter of the specification',
  async (t) => {
    t.ok(mutations.length >= 50, `${mutations.length} rows`)
    const unplaced = requirements.filter(({ id }) => chapterOf(id) === undefined)
    t.same(unplaced, [], 'every requirement belongs to a chapter')
    const counts = Map.groupBy(mutations, ({ id }) => chapterOf(id))
    t.notOk(counts.has(undefined), 'every row has the id of a requirement')
    for (const chapter of Object.keys(chapters))
      t.ok(
        (counts.get(chapter)?.length ?? 0) >= 3,
        `chapter ${chapter} has ${counts.get(chapter)?.length ?? 0} rows`,
      )
  },
)
