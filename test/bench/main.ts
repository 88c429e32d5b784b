/**
 * All benchmarks, one after the other: `make bench`, or `node test/bench/main.ts proxy vmcp` for some of them.
 *
 * Every figure is a ratio against direct access in the same run, on this machine; see docs/performance.md for how to
 * read them.
 */
import { cpus } from 'node:os'

const benches = ['proxy', 'vmcp', 'hooks', 'authserver', 'policy'] as const

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !benches.some((bench) => bench === name))
if (unknown.length > 0) {
  console.error(`no such benchmark: ${unknown.join(', ')}; there are ${benches.join(', ')}`)
  process.exit(2)
}
console.log(`Node ${process.version}, ${cpus().length} x ${cpus()[0]?.model ?? 'unknown processor'}`)
for (const name of benches) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  console.log(`\n== ${name}`)
  const { run } = (await import(`./${name}.ts`)) as { run: () => Promise<void> }
  await run()
}
