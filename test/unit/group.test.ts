/** Several test files in one process: each file has its own name, result and timeout, and does not affect the next. */
import { spawnSync } from 'node:child_process'
import { join, relative } from 'node:path'
import t from 'tap'
import { readReport } from '../report.ts'

const header = "import t from 'tap'\n"

/** Runs files with the given sources in one process. Results are in the order of the files. */
function runGroup(
  t: { testdir(files: Record<string, string>): string },
  sources: readonly string[],
  env = {},
) {
  const names = sources.map((_, at) => `${at}.test.js`)
  const folder = t.testdir(Object.fromEntries(names.map((name, at) => [name, header + sources[at]])))
  const files = names.map((name) => relative('', join(folder, name)))
  const { stdout, status } = spawnSync(process.execPath, ['test/group.ts', ...files], {
    encoding: 'utf8',
    env: { ...process.env, TAP_TIMEOUT: '0', ...env },
  })
  return { ...readReport(stdout), files, status }
}

t.test('group: files report their own counts, failures and skips', async (t) => {
  const { results, failures, skipped, files, status } = runGroup(t, [
    "t.test('one', async (t) => { t.pass('a'); t.pass('b') })",
    "t.test('two', async (t) => { t.equal(1, 2, 'numbers') })\nt.test('three', { skip: 'no redis' }, () => {})",
    "throw new Error('broken at import')",
    "t.test('four', async (t) => { t.pass('c') })",
  ])
  t.same(
    results.map(({ seconds: _, cpuSeconds: __, ...result }) => result),
    [
      { file: files[0], passed: 2, failed: 0, skipped: 0 },
      { file: files[1], passed: 0, failed: 1, skipped: 1 },
      { file: files[2], passed: 0, failed: 1, skipped: 0 },
      { file: files[3], passed: 1, failed: 0, skipped: 0 },
    ],
  )
  t.equal(failures[0]?.split('\n')[0], `${files[1]} > two > numbers`)
  t.match(failures[0], /lineNumber: 2/, 'the line of the failure')
  t.match(failures.join('\n'), 'broken at import')
  t.same(skipped, [`${files[1]} > three: no redis`])
  t.equal(status, 1)
})

t.test('group: teardown and timeout belong to the file', async (t) => {
  const { results, failures, files } = runGroup(t, [
    "t.setTimeout(50)\nt.test('waits', () => new Promise(() => {}))",
    "globalThis.order = []\nt.teardown(() => order.push('ended'))\nt.test('runs', async (t) => { t.same(order, []) })",
    "t.test('after', async (t) => { t.same(order, ['ended']) })",
  ])
  t.match(failures[0]?.split('\n')[0], `${files[0]} > waits > timeout!`)
  t.same(
    results.map(({ failed }) => failed > 0),
    [true, false, false],
  )
})

t.test('group: an uncaught error fails the test that caused it', async (t) => {
  const uncaught = (statement: string) => `t.test('waits', async (t) => { t.pass() })
t.test('breaks', () => new Promise((resolve) => {
  setTimeout(() => { setTimeout(resolve, 50); ${statement} })
}))
t.test('goes on', async (t) => { t.pass() })`
  const { results, failures, files, status } = runGroup(t, [
    uncaught("throw new Error('thrown')"),
    uncaught("Promise.reject(new Error('rejected'))"),
    "t.test('last', async (t) => { t.pass() })",
  ])
  const [first, second] = files
  t.match(failures[0]?.split('\n')[0], `${first} > breaks > thrown`)
  t.ok(failures.some((text) => text.startsWith(`${second} > breaks > rejected\n`)))
  t.same(
    results.map(({ passed, failed }) => [passed, failed > 0]),
    [
      [2, true],
      [2, true],
      [1, false],
    ],
  )
  t.equal(status, 1)
})

t.test('group: a file fails when it leaves changes or open handles behind', async (t) => {
  const { results, failures, status } = runGroup(t, [
    "process.env.LEFT = 'x'\nt.test('sets', async (t) => { t.pass() })",
    "process.on('SIGUSR2', () => {})\nt.test('listens', async (t) => { t.pass() })",
    "process.chdir('runtime')\nt.test('moves', async (t) => { t.pass() })",
    "process.env.LAST = 'x'\nt.test('ends', async (t) => { t.pass() })",
  ])
  t.same(
    results.map(({ passed, failed }) => [passed, failed > 0]),
    [
      [1, true],
      [1, true],
      [1, true],
      [0, true],
    ],
    'the last one cannot be resolved from there',
  )
  t.match(failures.join('\n'), /variable LEFT[^]*listeners of SIGUSR2[^]*cwd/)
  t.equal(status, 1)
})

t.test('group: worker threads use the compile cache, and see no other variable of the process', async (t) => {
  const cache = t.testdir({})
  const thread = `import { parentPort } from 'node:worker_threads'; parentPort.postMessage({ ...process.env })`
  const { results } = runGroup(
    t,
    [
      `import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
const worker = new Worker(new URL(${JSON.stringify(`data:text/javascript,${thread}`)}), { env: { OWN: 'x' } })
t.test('variables', async (t) => {
  const [seen] = await once(worker, 'message')
  t.same(seen, { OWN: 'x', NODE_COMPILE_CACHE: ${JSON.stringify(cache)} })
})`,
    ],
    { NODE_COMPILE_CACHE: cache },
  )
  t.match(results, [{ passed: 1, failed: 0 }])
})
