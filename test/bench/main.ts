/**
 * Runs all benchmarks one after the other: `make bench`, or `node test/bench/main.ts proxy vmcp:lists` for some
 * benchmarks or parts.
 *
 * Every figure is a ratio against direct access in the same run, on this machine; docs/evidence/performance.md explains
 * how to read them.
 */
import { cpus } from 'node:os'
import { aimsTable } from './aims.ts'
import { allCores, pin } from './common/cores.ts'
import { durationsTable, failed, timed } from './common/parts.ts'

interface Bench {
  /** Parts that can be measured separately. */
  readonly parts?: Readonly<Record<string, unknown>>
  run(parts?: readonly string[]): Promise<unknown>
}

const benches = [
  'programs',
  'proxy',
  'vmcp',
  'cost',
  'hooks',
  'authserver',
  'policy',
  'pinning',
  'optimizer',
  'toolhive',
] as const
/** Benchmarks with requirements that `make bench` does not provide. */
const onlyByName: ReadonlySet<string> = new Set(['toolhive'])

const wanted = process.argv.slice(2).map((word) => word.split(':'))
for (const [name = '', part] of wanted) {
  const bench = benches.find((each) => each === name)
  if (bench === undefined) fail(`no such benchmark: ${name}; there are ${benches.join(', ')}`)
  if (part === undefined) continue
  const names = Object.keys((await load(bench)).parts ?? {})
  if (!names.includes(part))
    fail(`${name} has no part ${part}; ${names.length > 0 ? `there are ${names.join(', ')}` : 'it has none'}`)
}

console.log(`Node ${process.version}, ${cpus().length} x ${cpus()[0]?.model ?? 'unknown processor'}`)
let good = true
for (const name of benches) {
  const words = wanted.filter(([bench]) => bench === name)
  if (words.length === 0 && (wanted.length > 0 || onlyByName.has(name))) continue
  const whole = words.some(([, part]) => part === undefined)
  console.log(`\n== ${name}`)
  const bench = await load(name)
  // The previous benchmark may have pinned this process.
  pin(process.pid, allCores)
  const parts = whole ? [] : words.flatMap(([, part]) => part ?? [])
  const run = (): Promise<unknown> => bench.run(parts).catch((error: unknown) => failed(name, error))
  // A benchmark with parts prints the duration of each part.
  if ((await (bench.parts ? run() : timed(name, run))) === false) good = false
}
console.log(`\n== durations\n\n${durationsTable()}`)
const aims = aimsTable()
if (aims !== '') console.log(`\n== aims\n\n${aims}`)
process.exit(good ? 0 : 1)

async function load(name: (typeof benches)[number]): Promise<Bench> {
  return (await import(`./${name}.ts`)) as Bench
}

function fail(message: string): never {
  console.error(message)
  process.exit(2)
}
