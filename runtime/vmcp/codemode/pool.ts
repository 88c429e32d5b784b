/**
 * Workers for scripts: a few, each with a bound on its memory, each for one script at a time.
 *
 * A script that has to wait for a worker stands in a line; of those in the line the caller with the fewest scripts under
 * way comes first, and no caller gets all workers. A worker whose script was ended from outside is thrown away.
 */
import { totalmem } from 'node:os'
import { Worker } from 'node:worker_threads'
import { GatehouseError } from '../../../schemas/index.ts'
import { workerFile } from './worker-file.ts'

export interface PoolOptions {
  readonly maxWorkers: number
  /** Of which one caller gets at most so many. */
  readonly maxPerCaller: number
  /** How many scripts may stand in the line. */
  readonly maxWaiting: number
  /** Workers that are kept for the next script, and for how long. */
  readonly maxIdle: number
  readonly idleMs: number
  /** Heap of one worker, in MiB. */
  readonly heapMb: number
}

const MAX_WORKERS = 8
const HEAP_MB = 192

/**
 * As many workers as half of the memory (bytes) can hold when all of them use theirs up: 8 from 3 GiB on, and at least
 * one. A container's limit counts as the memory.
 */
export function poolFor(memory: number): PoolOptions {
  const held = Math.floor(memory / 2 / (HEAP_MB * 1024 * 1024))
  const maxWorkers = Math.min(MAX_WORKERS, Math.max(1, held))
  return {
    maxWorkers,
    maxPerCaller: Math.max(1, Math.floor(maxWorkers * 0.75)),
    maxWaiting: 200,
    maxIdle: Math.min(2, maxWorkers),
    idleMs: 300_000,
    heapMb: HEAP_MB,
  }
}

/** The container's limit when there is one; systems without one answer zero or more than there is. */
function ownMemory(): number {
  const limit = process.constrainedMemory()
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem()
}

/** A worker for the time of one script. */
export interface Lease {
  readonly worker: Worker
  /** Gives the worker back; `usable` false: it is ended. */
  end(usable: boolean): void
}

interface Waiting {
  readonly caller: string
  readonly start: () => void
}

export class WorkerPool {
  readonly #options: PoolOptions
  /** The one used last comes last. */
  readonly #idle: { readonly worker: Worker; readonly timer: NodeJS.Timeout }[] = []
  readonly #all = new Set<Worker>()
  readonly #running = new Map<string, number>()
  readonly #line: Waiting[] = []
  #busy = 0
  #closed = false

  constructor(options: PoolOptions = poolFor(ownMemory())) {
    this.#options = options
  }

  /** Waits for a worker. Rejects with RATE_LIMITED when the line is full, and with the reason of `signal`. */
  take(caller: string, signal: AbortSignal): Promise<Lease> {
    if (this.#closed) return Promise.reject(new GatehouseError('SHUTTING_DOWN'))
    if (signal.aborted) return Promise.reject(reasonOf(signal))
    if (this.#mayStart(caller)) return Promise.resolve(this.#lease(caller))
    if (this.#line.length >= this.#options.maxWaiting)
      return Promise.reject(new GatehouseError('RATE_LIMITED', { detail: 'too many scripts at a time' }))
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        const at = this.#line.indexOf(entry)
        if (at >= 0) this.#line.splice(at, 1)
        reject(reasonOf(signal))
      }
      const entry: Waiting = {
        caller,
        start: () => {
          signal.removeEventListener('abort', leave)
          resolve(this.#lease(caller))
        },
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#line.push(entry)
    })
  }

  #mayStart(caller: string): boolean {
    return this.#busy < this.#options.maxWorkers && this.#count(caller) < this.#options.maxPerCaller
  }

  #count(caller: string): number {
    return this.#running.get(caller) ?? 0
  }

  #lease(caller: string): Lease {
    const worker = this.#wake() ?? this.#start()
    worker.ref()
    this.#busy++
    this.#running.set(caller, this.#count(caller) + 1)
    let ended = false
    return {
      worker,
      end: (usable) => {
        if (ended) return
        ended = true
        this.#release(worker, caller, usable)
      },
    }
  }

  #wake(): Worker | undefined {
    const idle = this.#idle.pop()
    clearTimeout(idle?.timer)
    return idle?.worker
  }

  #release(worker: Worker, caller: string, usable: boolean): void {
    this.#busy--
    const left = this.#count(caller) - 1
    if (left > 0) this.#running.set(caller, left)
    else this.#running.delete(caller)
    worker.removeAllListeners('message')
    if (usable && !this.#closed && this.#all.has(worker) && this.#idle.length < this.#options.maxIdle) {
      worker.unref()
      const timer = setTimeout(() => void worker.terminate(), this.#options.idleMs)
      timer.unref()
      this.#idle.push({ worker, timer })
    } else void worker.terminate()
    this.#startNext()
  }

  #startNext(): void {
    const able = this.#line.filter(({ caller }) => this.#mayStart(caller))
    const [first] = able.toSorted((a, b) => this.#count(a.caller) - this.#count(b.caller))
    if (!first) return
    this.#line.splice(this.#line.indexOf(first), 1)
    first.start()
  }

  #start(): Worker {
    const worker = new Worker(workerFile(), {
      // Neither options nor environment of this process: a script has no business with them.
      argv: [],
      execArgv: [],
      env: {},
      name: 'script',
      resourceLimits: { maxOldGenerationSizeMb: this.#options.heapMb, maxYoungGenerationSizeMb: 16 },
    })
    this.#all.add(worker)
    // An end that nobody waits for; whoever waits listens too.
    worker.on('error', () => {})
    worker.on('exit', () => {
      this.#all.delete(worker)
      const at = this.#idle.findIndex((idle) => idle.worker === worker)
      for (const { timer } of at < 0 ? [] : this.#idle.splice(at, 1)) clearTimeout(timer)
    })
    return worker
  }

  /** Ends all workers; scripts under way fail. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#all].map((worker) => worker.terminate()))
  }
}

function reasonOf(signal: AbortSignal): Error {
  return signal.reason instanceof Error ? signal.reason : new Error('cancelled')
}
