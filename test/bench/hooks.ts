/**
 * How long a sync of a VirtualMCPServer takes, for groups of 5, 50 and 500 backends, and how long it takes to answer for
 * a thousand VirtualMCPServers, as after an upgrade. In process, on one core. And whether the memory stays as it is.
 *
 * Percentiles are of the clock where nothing else is said, so a busy machine shows in p99; the rest is processor time of this
 * thread, and CPU p99 is what p99 would be without the others. The yardstick in the same run is `JSON.parse` of the request,
 * which the server must do in any case. `node test/bench/main.ts hooks` takes a minute and a half; BENCH_BACKENDS and
 * BENCH_SYNCS say of what and how long memory is watched.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { reached } from './aims.ts'
import { type Parts, runParts } from './common/parts.ts'
import { median } from './common/turns.ts'
import { type Measured, withVerdict } from './vmcp/steady/verdict.ts'
import { type Cell, quantile, sorted, table } from './vmcp/table.ts'
import { makeHooks } from '../../hooks/index.ts'
import { testSettings } from '../hooks/world.ts'
import { requestOf } from './hooks/world.ts'

const sizes = [5, 50, 500] as const
const servers = 1_000
/** CPU for each size, until the engine has compiled the whole path. */
const warmUpSeconds = 4
/** The percentiles are medians of those of so many slices: a disturbance of the machine is in one of them. */
const sliceCount = 9
/** The large ones again: fewer, because each takes long. */
const resyncs = (size: number): number => Math.min(servers, 50_000 / size)

export const parts: Parts = { syncs, memory }

/** Measures the named parts, or all. Resolves with whether all could be measured, and the verdict is good. */
export function run(wanted: readonly string[] = []): Promise<boolean> {
  return runParts('hooks', parts, { wanted, limitMs: 10 * 60 * 60_000, cleanUp() {} })
}

/** One row per size. */
async function syncs(): Promise<string> {
  const hook = makeHooks(testSettings).byKind('VirtualMCPServer')
  if (!hook) throw new Error('no hook for VirtualMCPServer')
  const rows: Cell[][] = []
  for (const size of sizes) {
    const text = requestOf(size)
    const request: unknown = JSON.parse(text)
    const sync = (): unknown => hook.sync(request)
    const whole = (): unknown => JSON.stringify(hook.sync(JSON.parse(text)))
    for (let spent = 0; spent < warmUpSeconds; ) spent += processorSeconds(whole)
    const calls = Math.max(40, Math.round(10_000 / size))
    const parse = measure(calls, () => JSON.parse(text))
    const slices = Array.from({ length: sliceCount }, () => measure(calls, sync))
    const at = (figure: keyof Times, share: number): number =>
      median(slices.map((slice) => quantile(slice[figure], share)))
    const cpu = median(slices.map(({ cpuMs }) => mean(cpuMs)))
    // What the server does for each call: read, answer, write.
    const resync = processorSeconds(() => {
      for (let i = 0; i < resyncs(size); i++) whole()
    })
    if (size === 50) reached('sync50', at('ms', 0.99))
    rows.push([
      size,
      text.length / 1024,
      quantile(parse.ms, 0.5),
      at('ms', 0.5),
      at('ms', 0.99),
      at('cpuMs', 0.99),
      cpu,
      `${(cpu / mean(parse.cpuMs)).toFixed(1)} ×`,
      (resync / resyncs(size)) * servers,
    ])
    // Lets the next size start with a quiet heap.
    await new Promise(setImmediate)
  }
  return table(
    [
      'a VirtualMCPServer with so many backends',
      'request KiB',
      '`JSON.parse` of it, p50 ms',
      'sync p50 ms',
      'sync p99 ms',
      'CPU p99 ms',
      'CPU ms',
      'CPU of parse',
      '1,000 of them again, CPU s',
    ],
    rows,
  )
}

/** Set both for the longest proof: a million syncs of 500 backends take four hours. */
const memoryBackends = Number(process.env['BENCH_BACKENDS'] ?? 500)
const memorySyncs = Number(process.env['BENCH_SYNCS'] ?? 2_000)
/** Of each sync. Compiled code comes and goes. */
const noiseBytes = 100

/** The heap after each tenth of many syncs; good when the second half of them leaves nothing behind. */
async function memory(): Promise<Measured> {
  const script = join(import.meta.dirname, 'hooks/memory.ts')
  const args = ['--expose-gc', script, String(memoryBackends), String(memorySyncs)]
  const { stdout } = await promisify(execFile)(process.execPath, args)
  const heaps = JSON.parse(stdout) as number[]
  const left = slope(heaps.slice(4)) / (memorySyncs / heaps.length)
  reached('syncMemory', left)
  const title = `heap KiB after each tenth of ${memorySyncs} syncs of ${memoryBackends} backends`
  const head = [title, ...heaps.map((_, tenth) => String(tenth + 1))]
  return withVerdict('hooks:memory', table(head, [['', ...heaps.map((bytes) => bytes / 1024)]]), [
    {
      what: `memory is flat: in the second half a sync leaves at most ${noiseBytes} bytes (${left.toFixed(0)})`,
      isMet: left <= noiseBytes,
    },
  ])
}

/** Of the straight line that is nearest to all of the values (least squares). */
function slope(values: readonly number[]): number {
  const middle = (values.length - 1) / 2
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const up = values.reduce((sum, value, at) => sum + (at - middle) * (value - mean), 0)
  return up / values.reduce((sum, _, at) => sum + (at - middle) ** 2, 0)
}

/** Seconds of processor time that this thread spends on `work`. */
function processorSeconds(work: () => unknown): number {
  const start = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(start)
  return (user + system) / 1e6
}

interface Times {
  /** Of each call, sorted: by the clock, and of the processor. */
  readonly ms: Float64Array
  readonly cpuMs: Float64Array
}

function measure(calls: number, work: () => unknown): Times {
  const ms: number[] = []
  const cpuMs: number[] = []
  for (let i = 0; i < calls; i++) {
    const start = performance.now()
    cpuMs.push(processorSeconds(work) * 1_000)
    ms.push(performance.now() - start)
  }
  return { ms: sorted(ms), cpuMs: sorted(cpuMs) }
}

function mean(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
