/**
 * How long a sync of a VirtualMCPServer takes, for groups of 5, 50 and 500 backends, and how long it takes to answer for
 * a thousand VirtualMCPServers, as after an upgrade. In process, on one core. And whether the memory stays as it is.
 *
 * Percentiles are of the clock, so a busy machine shows in p99; the rest is processor time of this thread. The yardstick
 * in the same run is `JSON.parse` of the request, which the server must do in any case.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { reached } from './aims.ts'
import { makeHooks } from '../../hooks/index.ts'
import { testSettings } from '../hooks/world.ts'
import { requestOf } from './hooks/world.ts'

const sizes = [5, 50, 500] as const
const servers = 1000

export const parts = { syncs, memory }

/** False when a part has a verdict, and it is bad. */
export async function run(names: readonly string[] = []): Promise<boolean> {
  let good = true
  for (const [name, part] of Object.entries(parts))
    if (names.length === 0 || names.includes(name)) good = (await part()) && good
  return good
}

/** Prints one line per size. */
async function syncs(): Promise<boolean> {
  const hook = makeHooks(testSettings).byKind('VirtualMCPServer')
  if (!hook) throw new Error('no hook for VirtualMCPServer')
  const texts = sizes.map(requestOf)
  // The first thousand calls are the compiler's.
  for (let i = 0; i < 500; i++) for (const text of texts.slice(0, 2)) hook.sync(JSON.parse(text))
  const columns = [
    'backends',
    'request',
    'parse p50',
    'sync p50',
    'sync p99',
    'sync CPU',
    'CPU of parse',
    'resync of 1,000',
  ]
  console.log(columns.map((column) => column.padStart(16)).join(''))
  for (const [index, size] of sizes.entries()) {
    const text = texts[index] ?? ''
    const rounds = Math.max(400, Math.round(50_000 / size))
    const request: unknown = JSON.parse(text)
    const parse = measure(Math.ceil(rounds / 4), () => JSON.parse(text))
    const sync = measure(rounds, () => hook.sync(request))
    // What the server does for each call: read, answer, write.
    const resync = processorSeconds(() => {
      for (let i = 0; i < servers; i++) JSON.stringify(hook.sync(JSON.parse(text)))
    })
    if (size === 50) reached('sync50', at(sync.times, 0.99))
    const cells = [
      String(size),
      `${(text.length / 1024).toFixed(0)} KiB`,
      milliseconds(at(parse.times, 0.5)),
      milliseconds(at(sync.times, 0.5)),
      milliseconds(at(sync.times, 0.99)),
      milliseconds(sync.cpuMs),
      `${(sync.cpuMs / parse.cpuMs).toFixed(1)} ×`,
      `${resync.toFixed(1)} s`,
    ]
    console.log(cells.map((cell) => cell.padStart(16)).join(''))
    // Lets the next size start with a quiet heap.
    await new Promise(setImmediate)
  }
  return true
}

/** Set both for the whole proof: 500 backends and a million syncs take four hours. */
const memoryBackends = Number(process.env['BENCH_BACKENDS'] ?? 5)
const memorySyncs = Number(process.env['BENCH_SYNCS'] ?? 100_000)
/** Compiled code comes and goes. */
const noiseBytes = 512 * 1024

/** The heap after each tenth of many syncs; good when the second half of them leaves nothing behind. */
async function memory(): Promise<boolean> {
  const script = join(import.meta.dirname, 'hooks/memory.ts')
  const args = ['--expose-gc', script, String(memoryBackends), String(memorySyncs)]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  const heaps = JSON.parse(stdout) as number[]
  const [before = 0] = heaps.slice(4, 5)
  const growth = Math.min(...heaps.slice(-3)) - before
  const mebibytes = heaps.map((bytes) => (bytes / 1024 / 1024).toFixed(1)).join(', ')
  console.log(
    `\nheap after each tenth of ${memorySyncs} syncs of ${memoryBackends} backends, MiB: ${mebibytes}`,
  )
  const flat = growth <= noiseBytes
  console.log(flat ? 'flat' : `grows by ${(growth / 1024).toFixed(0)} KiB in the second half`)
  return flat
}

/** Seconds of processor time that this thread spends on `work`. */
function processorSeconds(work: () => void): number {
  const start = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(start)
  return (user + system) / 1e6
}

/** Milliseconds of each call by the clock, sorted, and of the processor on average; a tenth as many calls go before. */
function measure(rounds: number, work: () => unknown): { times: number[]; cpuMs: number } {
  for (let i = 0; i < Math.ceil(rounds / 10); i++) work()
  const times: number[] = []
  const seconds = processorSeconds(() => {
    for (let i = 0; i < rounds; i++) {
      const start = performance.now()
      work()
      times.push(performance.now() - start)
    }
  })
  return { times: times.sort((a, b) => a - b), cpuMs: (seconds * 1_000) / rounds }
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

function milliseconds(value: number): string {
  return `${value.toFixed(3)} ms`
}
