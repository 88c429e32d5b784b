/** The configuration file of a virtual server: strict parsing, frozen values, and detection of every kind of change. */
import { hash } from 'node:crypto'
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadVmcpConfig, parseVmcpConfig, watchFile } from '../../../runtime/config/index.ts'

const MINIMAL =
  'name: v\ngroupRef: g\nincomingAuth: {type: anonymous}\noutgoingAuth: {source: inline}\naggregation: {}\n'

t.test('a file is read with defaults, deeply frozen, and identified by its checksum', async (t) => {
  const file = join(t.testdir({ 'vmcp.yaml': MINIMAL }), 'vmcp.yaml')
  const { config, checksum } = loadVmcpConfig(file)
  t.equal(config.aggregation.conflictResolution, 'prefix')
  t.equal(config.operational.timeouts.default, '30s')
  t.equal(config.operational.failureHandling.partialFailureMode, 'fail')
  t.equal(checksum, hash('sha256', MINIMAL, 'hex'))
  t.ok(Object.isFrozen(config) && Object.isFrozen(config.operational.failureHandling))
})

t.test('a block whose fields all have defaults may be absent or empty', (t) => {
  const without = MINIMAL.replace('aggregation: {}\n', '')
  const expected = parseVmcpConfig(MINIMAL)
  for (const text of [without, `${without}aggregation:\n`, `${without}aggregation: null\noperational:\n`])
    t.same(parseVmcpConfig(text), expected, text)
  t.throws(() => parseVmcpConfig(`${without}aggregation: {conflictResolution: priority}\n`), /priorityOrder/)
  t.end()
})

t.test('invalid YAML, duplicate keys and unknown fields are rejected by name', (t) => {
  const refused = (text: string, message: RegExp): void =>
    void t.throws(() => parseVmcpConfig(text), { code: 'INVALID_CONFIG', message }, text)
  refused('name: [', /invalid configuration/)
  refused(`${MINIMAL}name: w\n`, /line 6: the key "name" is repeated/)
  refused(`${MINIMAL}nonsense: 1\n`, /nonsense/)
  refused(`${MINIMAL}optimizer: {size: 1}\n`, /optimizer\.size|optimizer/)
  refused('', /invalid configuration/)
  refused('- a\n', /invalid configuration/)
  t.throws(() => loadVmcpConfig(join(t.testdir({}), 'absent.yaml')), {
    code: 'INVALID_CONFIG',
    message: /cannot be read/,
  })
  t.end()
})

t.test('a small file with many aliases is rejected', async (t) => {
  const levels = Array.from({ length: 9 }, (_, i) =>
    i === 0
      ? 'l0: &l0 [x, x, x, x, x, x, x, x, x]'
      : `l${i}: &l${i} [${Array(9)
          .fill(`*l${i - 1}`)
          .join(', ')}]`,
  )
  t.throws(() => parseVmcpConfig(`${MINIMAL}${levels.join('\n')}\n`), {
    code: 'INVALID_CONFIG',
    message: /alias/,
  })
})

/** Watches a file; `changed` resolves at the next change. */
function watching(t: Test, file: string): { changed: () => Promise<void>; calls: () => number } {
  let calls = 0
  // The watcher does not keep the process alive.
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  let wake: () => void = () => {}
  t.teardown(
    watchFile(file, () => {
      calls++
      wake()
    }),
  )
  return {
    calls: () => calls,
    changed: () =>
      new Promise((resolve) => {
        wake = resolve
      }),
  }
}

t.test('a change is detected when the file is overwritten, replaced, or deleted and recreated', async (t) => {
  const file = join(t.testdir({ 'vmcp.yaml': 'one' }), 'vmcp.yaml')
  const { changed, calls } = watching(t, file)
  let next = changed()
  writeFileSync(file, 'two')
  await next
  next = changed()
  writeFileSync(`${file}.tmp`, 'three')
  renameSync(`${file}.tmp`, file)
  await next
  next = changed()
  unlinkSync(file)
  writeFileSync(file, 'four')
  await next
  t.equal(calls(), 3, 'once for each new content')
})

t.test('a mounted ConfigMap is reloaded when its symbolic link moves', async (t) => {
  const dir = t.testdir({})
  const version = (name: string, text: string): void => {
    mkdirSync(join(dir, name))
    writeFileSync(join(dir, name, 'vmcp.yaml'), text)
    symlinkSync(name, join(dir, '..data_tmp'))
    renameSync(join(dir, '..data_tmp'), join(dir, '..data'))
  }
  version('..2026_01', 'one')
  symlinkSync(join('..data', 'vmcp.yaml'), join(dir, 'vmcp.yaml'))
  const { changed } = watching(t, join(dir, 'vmcp.yaml'))
  const next = changed()
  version('..2026_02', 'two')
  rmSync(join(dir, '..2026_01'), { recursive: true })
  await next
  t.pass('noticed')
})
