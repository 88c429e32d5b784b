/** When a process optimizes its code, and when it gives memory back. */
import { execFileSync } from 'node:child_process'
import { getHeapSpaceStatistics } from 'node:v8'
import { resolve } from 'node:path'
import t from 'tap'
import { collect } from '../../../../schemas/process/index.ts'
import { Load } from '../../../../schemas/process/load.ts'

const small = 10 * 2 ** 20

/** What is said to samples, each a number of active milliseconds more than the one before. */
function said(load: Load, steps: readonly number[], heapBytes = small, from = 0): (string | undefined)[] {
  let activeMs = from
  let isOptimizing = false
  return steps.map((step) => {
    activeMs += step
    const todo = load.next({ activeMs, heapBytes, isOptimizing })
    if (todo === 'optimize') isOptimizing = true
    return todo
  })
}

t.test('load: optimizing begins once there was work for it, and only once', (t) => {
  const load = new Load()
  t.strictSame(said(load, [1_000, 400, 200, 1_000, 1_000]), [
    undefined,
    undefined,
    'optimize',
    undefined,
    undefined,
  ])
  t.end()
})

t.test('load: a process that a few requests disturb is not optimized', (t) => {
  t.notOk(said(new Load(), Array(600).fill(2)).includes('optimize'))
  t.end()
})

t.test('load: memory is given back after five seconds of rest, once for the work before it', (t) => {
  const load = new Load()
  t.strictSame(said(load, [250, 1, 1, 1, 1, 1, 1, 1]), [
    ...Array(5).fill(undefined),
    'collect',
    undefined,
    undefined,
  ])
  t.notOk(said(load, Array(60).fill(0.1), small, 257).includes('collect'), 'nothing came together since')
  t.ok(said(load, [60, 1, 1, 1, 1, 1], small, 270).includes('collect'), 'after more work')
  t.end()
})

t.test('load: a server that was busy keeps its compiled code until it has rested for ten minutes', (t) => {
  const heard = said(new Load(), [2_000, ...Array(700).fill(1)])
  t.equal(heard[0], 'optimize')
  t.equal(heard.indexOf('collect'), 600)
  t.end()
})

t.test('load: a server with a large heap is not held up, one under load neither', (t) => {
  t.notOk(said(new Load(), [250, ...Array(20).fill(1)], 2 ** 30).includes('collect'))
  t.notOk(said(new Load(), Array(60).fill(20)).includes('collect'))
  t.end()
})

t.test('load: collecting shrinks the young generation', (t) => {
  let kept: unknown[] = []
  for (let round = 0; round < 200; round++) kept = Array.from({ length: 5_000 }, (_, i) => ({ i, round }))
  t.equal(kept.length, 5_000)
  collect()
  t.ok(youngBytes() <= 2 ** 20, `${youngBytes()} bytes are left`)
  t.notOk('gc' in globalThis, 'and leaves no function behind')
  t.end()
})

function youngBytes(): number {
  return (
    getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')?.physical_space_size ??
    Number.NaN
  )
}

/** What a process prints that was started without optimizing compilers, and can ask whether a function of its own is optimized. */
function printedBy(text: string): string {
  const file = JSON.stringify(resolve(import.meta.dirname, '../../../../schemas/process/index.ts'))
  const prelude = `
    import { optimize, watchLoad } from ${file}
    const sum = (n) => { let s = 0; for (let i = 0; i < n; i++) s += i % 7; return s }
    const optimized = () => (%GetOptimizationStatus(sum) & 0b110000) !== 0
    const until = (ms) => { const end = performance.now() + ms; while (performance.now() < end) sum(1000) }`
  const flags = ['--no-opt', '--no-maglev', '--allow-natives-syntax', '--input-type=module']
  return execFileSync(process.execPath, [...flags, '-e', `${prelude}\n${text}`], { encoding: 'utf8' })
}

t.test('load: a process that was started without optimizing compilers gets them with its work', (t) => {
  const printed = printedBy(`
    watchLoad()
    until(300)
    process.stdout.write(String(optimized()) + ' ')
    const turn = () => { until(20); if (optimized()) process.stdout.write('true'); else setTimeout(turn, 1) }
    setTimeout(turn, 1)`)
  t.equal(printed, 'false true')
  t.end()
})

t.test('load: what asks for optimized code gets it at once', (t) => {
  const printed = printedBy(`
    until(100)
    process.stdout.write(String(optimized()) + ' ')
    optimize()
    for (let n = 0; n < 200 && !optimized(); n++) until(20)
    process.stdout.write(String(optimized()))`)
  t.equal(printed, 'false true')
  t.end()
})
