/** Which test files share a process, and in which order processes start. */
import { globSync } from 'node:fs'
import t from 'tap'
import { scheduleFiles } from '../schedule.ts'

const files = globSync('test/**/*.test.ts', { exclude: ['**/fixtures/**'] })
const processes = scheduleFiles(files)
const processOf = (file: string) => processes.find((list) => list.includes(file))

t.test('schedule: every file runs once', async (t) => {
  t.same(processes.flat().toSorted(), files.toSorted())
})

t.test('schedule: unit tests share processes, tests of whole programs do not', async (t) => {
  t.ok((processOf('test/unit/mcp/message.test.ts')?.length ?? 0) > 10)
  t.same(processOf('test/e2e/cli.test.ts'), ['test/e2e/cli.test.ts'])
})

t.test('schedule: a file with fake timers has its own process', async (t) => {
  const file = 'test/unit/vmcp/workers/workers.test.ts'
  t.same(processOf(file), [file])
})

t.test('schedule: long files have their own process and start first', async (t) => {
  const file = 'test/behaviour/policy/recorded-run.test.ts'
  t.same(processOf(file), [file])
  const firstShared = processes.findIndex((list) => list.length > 1)
  t.ok(processes.findIndex((list) => list.includes(file)) < firstShared)
})
