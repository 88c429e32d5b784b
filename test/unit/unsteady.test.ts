/** The second run of a few failed files: its counts, its report, and failures that it never excuses. */
import t from 'tap'
import { mostFiles, type Run, runAgain } from '../unsteady.ts'

const failedRun: Run = {
  ...{ passed: 100, failed: 2, skipped: 3, notRun: [] },
  failedFiles: [
    { file: 'a.test.ts', passed: 3 },
    { file: 'b.test.ts', passed: 4 },
  ],
}

async function again(first: Run, second: Run) {
  const ran: (readonly string[])[] = []
  const said: string[] = []
  const counts = await runAgain(
    first,
    async (files) => {
      ran.push(files)
      return second
    },
    (line) => said.push(line),
  )
  return { ...counts, ran, said }
}

await t.test(
  'all pass the second time: no failure, each assertion counted once, both files named',
  async (t) => {
    const run = await again(failedRun, { passed: 9, failed: 0, skipped: 1, failedFiles: [], notRun: [] })
    t.match(run, { passed: 102, failed: 0, skipped: 3, ran: [['a.test.ts', 'b.test.ts']] })
    t.same(run.said.at(-1), 'unsteady, passed only when run again: a.test.ts, b.test.ts')
  },
)

await t.test(
  'files that did not start because their process exited run again, and are not reported as unsteady',
  async (t) => {
    const run = await again(
      {
        passed: 10,
        failed: 1,
        skipped: 0,
        failedFiles: [{ file: 'a.test.ts', passed: 0 }],
        notRun: ['c.test.ts'],
      },
      { passed: 9, failed: 0, skipped: 0, failedFiles: [], notRun: [] },
    )
    t.match(run, { passed: 19, failed: 0, ran: [['a.test.ts', 'c.test.ts']] })
    t.same(run.said.at(-1), 'unsteady, passed only when run again: a.test.ts')
  },
)

await t.test('a file that fails again has failed, and the other file is named', async (t) => {
  const run = await again(failedRun, {
    ...{ passed: 8, failed: 1, skipped: 0, notRun: [] },
    failedFiles: [{ file: 'b.test.ts', passed: 4 }],
  })
  t.match(run, { passed: 101, failed: 1, said: [String, 'unsteady, passed only when run again: a.test.ts'] })
})

await t.test('a second run that fails without naming a file excuses nothing', async (t) => {
  const run = await again(failedRun, { passed: 0, failed: 1, skipped: 0, failedFiles: [], notRun: [] })
  t.match(run, { failed: 1 })
  t.equal(run.said.length, 1)
})

await t.test('no second run: nothing failed, no file named, or too many files', async (t) => {
  const second: Run = { passed: 9, failed: 0, skipped: 0, failedFiles: [], notRun: [] }
  const many = Array.from({ length: mostFiles + 1 }, (_, at) => ({ file: `${at}.test.ts`, passed: 0 }))
  for (const first of [
    { ...failedRun, failed: 0, failedFiles: [], notRun: [] },
    { ...failedRun, failedFiles: [], notRun: [] },
    { ...failedRun, failedFiles: many },
  ])
    t.match(await again(first, second), { failed: first.failed, passed: 100, ran: [] })
})
