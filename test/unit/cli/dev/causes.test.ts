/** A cause names what failed and what to do, from the output of any program, and backends are counted by cause. */
import t from 'tap'
import { causeFix, causeText, decisiveLine, summarizeBackends } from '../../../../runtime/observe/index.ts'

t.test('decisive line: the error is found among stack frames, notices and excerpts', async (t) => {
  const cases: readonly (readonly [string, string])[] = [
    [
      "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '/srv/a.js'\n    at Module._load (node:internal:1)\n  code: 'MODULE_NOT_FOUND',\n}\n\nNode.js v24.1.0",
      "Error: Cannot find module '/srv/a.js'",
    ],
    [
      'Traceback (most recent call last):\n  File "/srv/a.py", line 1, in <module>\n    import nothing\nModuleNotFoundError: No module named \'nothing\'',
      "ModuleNotFoundError: No module named 'nothing'",
    ],
    [
      'npm error code E404\nnpm error 404 Not Found - GET https://registry.example.com/none\nnpm error 404\nnpm error A complete log of this run can be found in: /root/x.log',
      'npm error 404 Not Found - GET https://registry.example.com/none',
    ],
    ['starting\nDATABASE_URL is required\n\n', 'DATABASE_URL is required'],
    ['only this', 'only this'],
  ]
  for (const [output, line] of cases) t.equal(decisiveLine(output.split('\n')), line)
  t.equal(decisiveLine(['', '    at x (y.js:1:2)']), undefined)
})

t.test('decisive line: it is short and contains no credentials', async (t) => {
  t.notMatch(decisiveLine(['Error: bad token=hunter2hunter2']), 'hunter2')
  t.equal(decisiveLine([`Error: ${'x'.repeat(1000)}`])?.length, 300)
})

t.test('cause: exit code, HTTP status and the text of the backend are in the text', async (t) => {
  t.equal(
    causeText({ category: 'program_exited', exitCode: 3, detail: 'no licence' }),
    'The program exited with code 3: no licence',
  )
  t.equal(
    causeText({ category: 'backend_unavailable', httpStatus: 502, detail: 'down' }),
    'Backend unavailable (HTTP 502): down',
  )
  t.match(causeFix({ category: 'program_exited' }, 'a'), 'gatehouse logs a')
  t.equal(causeFix({ category: 'package_cache_broken', fix: 'run: rm -rf x' }, 'a'), 'run: rm -rf x')
  t.match(causeText({ category: 'constructor' }), 'Health check failed')
})

t.test('summary: backends that are down are counted by cause, the largest group first', async (t) => {
  const down = (name: string, category: string, fix?: string) => ({
    name,
    health: 'unhealthy',
    cause: { category, fix },
  })
  const { text, groups } = summarizeBackends([
    { name: 'a', health: 'healthy' },
    { name: 'b', health: 'degraded', cause: { category: 'slow' } },
    { name: 'new', health: 'unknown' },
    { name: 'c', health: 'unknown', cause: { category: 'package_installing' } },
    down('d', 'connection_failed'),
    down('e', 'program_not_found'),
    down('f', 'package_failed', 'start the container engine'),
    down('g', 'connection_failed'),
    down('h', 'package_failed'),
  ])
  t.equal(text, '6 of 9 backends are down: 2 unreachable, 2 not installable, 1 installing, 1 not found')
  t.strictSame(groups.find(({ label }) => label === 'unreachable')?.backends, ['d', 'g'])
  t.strictSame(
    groups.filter(({ label }) => label === 'not installable').map(({ backends, fix }) => [backends, fix]),
    [
      [['f'], 'start the container engine'],
      [['h'], 'correct the name and version of h, or the registry settings'],
    ],
    'each next step has its own group',
  )
  t.strictSame(summarizeBackends([{ name: 'a', health: 'healthy' }]), { text: undefined, groups: [] })
  t.equal(summarizeBackends([down('x', 'timeout')]).text, 'the backend is down: 1 not responding')
})
