/**
 * Measures the duration of a sync of a VirtualMCPServer for groups of 5, 50 and 500 backends, and of a thousand
 * VirtualMCPServers, as after an upgrade. In process, on one core. Also checks that memory does not grow.
 *
 * Percentiles are wall-clock times unless noted, so a busy machine affects p99; all other values are CPU time of this
 * thread, and CPU p99 is p99 without other processes. The reference in the same run is `JSON.parse` of the request,
 * which the server needs in any case. `node test/bench/main.ts hooks` takes a minute and a half; BENCH_BACKENDS and
 * BENCH_SYNCS set the size and length of the memory check.
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
/** CPU seconds for each size until the engine has compiled the whole path. */
const warmUpSeconds = 4
/**
 * Number of slices. The percentiles are medians over the slices, so a disturbance of the machine affects only one of
 * them.
 */
const sliceCount = 9
/** Large sizes repeat less often, because each sync takes long. */
const resyncs = (size: number): number => Math.min(servers, 50_000 / size)

export const parts: Parts = { syncs, memory }

/** Measures the named parts, or all. Resolves with true when all were measured and the verdict is good. */
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
    // The work of the server for each call: parse, compute, serialize.
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
    // Empties the heap before the next size.
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

/** The longest check, a million syncs of 500 backends, takes four hours. */
const memoryBackends = Number(process.env['BENCH_BACKENDS'] ?? 500)
const memorySyncs = Number(process.env['BENCH_SYNCS'] ?? 2_000)
/** Bytes per sync. The amount of compiled code varies. */
const noiseBytes = 100

/** Measures the heap after each tenth of many syncs. Good when it does not grow in the second half. */
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

/** Returns the slope of the regression line (least squares). */
function slope(values: readonly number[]): number {
  const middle = (values.length - 1) / 2
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const up = values.reduce((sum, value, at) => sum + (at - middle) * (value - mean), 0)
  return up / values.reduce((sum, _, at) => sum + (at - middle) ** 2, 0)
}

/** Returns the CPU seconds of this thread for `work`. */
function processorSeconds(work: () => unknown): number {
  const start = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(start)
  return (user + system) / 1e6
}

interface Times {
  /** Returns the wall-clock and CPU times of all calls, sorted. */
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
