/** Samples the server under test at fixed times, and writes the samples as CSV. */
import { appendFileSync, readdirSync, writeFileSync } from 'node:fs'
import type { Ledger } from './ledger.ts'
import type { LoadMinute } from './load.ts'
import { cpuMs, type ServerProcess } from './processes.ts'

export interface Sample {
  readonly seconds: number
  readonly rssMb: number
  readonly heapUsedMb: number
  readonly heapTotalMb: number
  readonly externalMb: number
  readonly arrayBuffersMb: number
  /** Value after a full collection, once a minute. */
  readonly liveHeapMb: number | undefined
  readonly liveExternalMb: number | undefined
  readonly sessions: number
  readonly sockets: number
  readonly timers: number
  readonly files: number
  /** Percent of one core since the last sample. */
  readonly cpuServer: number
  readonly cpuOthers: number
  readonly longestTurnMs: number
  readonly operations: number
  readonly failures: number
  /** Plain calls of the last complete minute, if there were any. Once a minute. */
  readonly callsPerSecond: number | undefined
  readonly p50Ms: number | undefined
  readonly p99Ms: number | undefined
}

const COLUMNS: readonly (keyof Sample)[] = [
  'seconds',
  'rssMb',
  'heapUsedMb',
  'heapTotalMb',
  'externalMb',
  'arrayBuffersMb',
  'liveHeapMb',
  'liveExternalMb',
  'sessions',
  'sockets',
  'timers',
  'files',
  'cpuServer',
  'cpuOthers',
  'longestTurnMs',
  'operations',
  'failures',
  'callsPerSecond',
  'p50Ms',
  'p99Ms',
]
const MB = 1024 * 1024
const SAMPLES_PER_COLLECTION = 6

export class Sampler {
  readonly samples: Sample[] = []
  readonly #server: ServerProcess
  readonly #ledger: Ledger
  readonly #file: string
  readonly #others: () => readonly number[]
  readonly #started = performance.now()
  #lastAt = performance.now()
  #lastServer = 0
  #lastOthers = 0
  #lastOwn = 0
  #minute: LoadMinute | undefined

  /** `others` are the ids of the processes whose CPU time counts for the soak itself. */
  constructor(server: ServerProcess, ledger: Ledger, file: string, others: () => readonly number[]) {
    this.#server = server
    this.#ledger = ledger
    this.#file = file
    this.#others = others
    this.#lastServer = cpuMs(server.pid)
    writeFileSync(file, `${COLUMNS.join(',')}\n`)
  }

  /** Adds a complete minute of plain calls to the next sample. */
  minuteOver(minute: LoadMinute): void {
    this.#minute = minute
  }

  /** Rejects when the server has exited or does not respond. */
  async take(): Promise<Sample> {
    const { pid, origin } = this.#server
    const ended = this.#server.exit()
    if (ended !== undefined) throw new Error(`the server has ended: ${ended}`)
    const collect = this.samples.length % SAMPLES_PER_COLLECTION === SAMPLES_PER_COLLECTION - 1
    const [memory, status] = await Promise.all([this.#server.ask({ collect }), fetch(`${origin}/status`)])
    const { sessions } = (await status.json()) as { sessions: number }
    const count = (pattern: RegExp): number =>
      Object.entries(memory.handles).reduce((sum, [type, n]) => sum + (pattern.test(type) ? n : 0), 0)
    const now = performance.now()
    const sample: Sample = {
      seconds: Math.round((now - this.#started) / 1_000),
      rssMb: memory.rss / MB,
      heapUsedMb: memory.heapUsed / MB,
      heapTotalMb: memory.heapTotal / MB,
      externalMb: memory.external / MB,
      arrayBuffersMb: memory.arrayBuffers / MB,
      liveHeapMb: inMb(memory.liveHeap),
      liveExternalMb: inMb(memory.liveExternal),
      sessions,
      sockets: count(/TCP.*Wrap/),
      timers: count(/Timeout|Immediate/),
      files: readdirSync(`/proc/${pid}/fd`).length,
      ...this.#cpu(now),
      longestTurnMs: memory.longestTurnMs,
      operations: this.#ledger.operations,
      failures: this.#ledger.failures,
      callsPerSecond: this.#minute?.perSecond,
      p50Ms: this.#minute?.p50Ms,
      p99Ms: this.#minute?.p99Ms,
    }
    this.#minute = undefined
    this.samples.push(sample)
    appendFileSync(this.#file, `${COLUMNS.map((name) => cell(sample[name])).join(',')}\n`)
    return sample
  }

  #cpu(now: number): { cpuServer: number; cpuOthers: number } {
    const elapsed = now - this.#lastAt
    const server = cpuMs(this.#server.pid)
    const own = process.cpuUsage()
    const ownMs = (own.user + own.system) / 1_000
    const others = this.#others().reduce((sum, pid) => sum + cpuMs(pid), 0)
    // The CPU time of a killed backend is no longer included.
    const spentByOthers = Math.max(0, others - this.#lastOthers) + ownMs - this.#lastOwn
    const cpu = {
      cpuServer: (100 * (server - this.#lastServer)) / elapsed,
      cpuOthers: (100 * spentByOthers) / elapsed,
    }
    this.#lastAt = now
    this.#lastServer = server
    this.#lastOthers = others
    this.#lastOwn = ownMs
    return cpu
  }
}

function inMb(bytes: number | undefined): number | undefined {
  return bytes === undefined ? undefined : bytes / MB
}

function cell(value: number | undefined): string {
  return value === undefined ? '' : String(Math.round(value * 100) / 100)
}
