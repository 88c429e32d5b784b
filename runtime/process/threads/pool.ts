/**
 * A pool of worker threads. Each worker has a memory limit and runs one task at a time.
 *
 * Tasks wait for a worker in a queue. The caller with the fewest running tasks comes first, and no caller can occupy
 * all workers. The pool parks a task that waits for a user: the task keeps its worker but frees its slot for other
 * tasks. The memory of parked tasks is limited. A worker whose task was aborted is terminated.
 */
import { Worker } from 'node:worker_threads'
import { GatehouseError } from '../../../schemas/index.ts'
import type { PoolOptions } from './options.ts'
import { WorkerSlots } from './slots.ts'
import { workerFile, type WorkerProgram } from './worker-file.ts'

/** A worker, reserved for one task. */
export interface Lease {
  readonly worker: Worker
  /**
   * Frees the slot while the task waits for a user. `bytes` is the memory that the task keeps. Throws RATE_LIMITED when
   * too many tasks or bytes are parked.
   */
  park(bytes: number): void
  /** Waits for a slot again. Rejects with the reason of `signal`. */
  resume(signal: AbortSignal): Promise<void>
  /** Returns the worker to the pool, or terminates a worker that is not `usable`. */
  end(worker: { readonly usable: boolean }): void
}

export class WorkerPool {
  readonly #options: PoolOptions
  readonly #program: WorkerProgram
  readonly #slots: WorkerSlots
  /** Idle workers. The most recently used worker is last. */
  readonly #idle: { readonly worker: Worker; readonly timer: NodeJS.Timeout }[] = []
  readonly #all = new Set<Worker>()
  #closed = false

  constructor(program: WorkerProgram, options: PoolOptions) {
    this.#program = program
    this.#options = options
    this.#slots = new WorkerSlots(options)
  }

  /** Waits for a worker. Rejects with RATE_LIMITED when the queue is full, and with the reason of `signal`. */
  async take(caller: string, signal: AbortSignal): Promise<Lease> {
    this.#throwIfClosed()
    await this.#slots.take(caller, signal)
    if (this.#closed) this.#slots.release(caller)
    this.#throwIfClosed()
    return this.#lease(caller)
  }

  #throwIfClosed(): void {
    if (this.#closed) throw new GatehouseError('SHUTTING_DOWN')
  }

  #lease(caller: string): Lease {
    const worker = this.#wake() ?? this.#start()
    worker.ref()
    let state: 'running' | 'parked' | 'ended' = 'running'
    let held = 0
    const slots = this.#slots
    return {
      worker,
      park: (bytes) => {
        if (state !== 'running') return
        slots.park(caller, bytes)
        state = 'parked'
        held = bytes
      },
      resume: async (signal) => {
        if (state !== 'parked') return
        await slots.take(caller, signal, { resumes: true })
        // Frees the slot, because the task has ended in the meantime.
        if (state !== 'parked') return slots.release(caller)
        slots.unpark(caller, held)
        state = 'running'
      },
      end: ({ usable }) => {
        if (state === 'ended') return
        this.#release(worker, { usable })
        if (state === 'parked') slots.unpark(caller, held)
        else slots.release(caller)
        state = 'ended'
      },
    }
  }

  #wake(): Worker | undefined {
    const idle = this.#idle.pop()
    clearTimeout(idle?.timer)
    return idle?.worker
  }

  #release(worker: Worker, { usable }: { readonly usable: boolean }): void {
    worker.removeAllListeners('message')
    if (usable && !this.#closed && this.#all.has(worker) && this.#idle.length < this.#options.maxIdle) {
      worker.unref()
      const timer = setTimeout(() => {
        // Removes the worker immediately, because the next task must not receive a worker that is terminating.
        this.#forget(worker)
        void worker.terminate()
      }, this.#options.idleMs)
      timer.unref()
      this.#idle.push({ worker, timer })
    } else void worker.terminate()
  }

  #forget(worker: Worker): void {
    const at = this.#idle.findIndex((idle) => idle.worker === worker)
    for (const { timer } of at < 0 ? [] : this.#idle.splice(at, 1)) clearTimeout(timer)
  }

  #start(): Worker {
    const worker = new Worker(workerFile(this.#program), {
      // Starts the worker without this process's options and environment, which the worker's code must not see.
      argv: [],
      execArgv: [],
      env: {},
      name: this.#program.name,
      resourceLimits: { maxOldGenerationSizeMb: this.#options.heapMb, maxYoungGenerationSizeMb: 16 },
    })
    this.#all.add(worker)
    // Prevents an unhandled rejection. Callers that wait for the worker add their own handlers.
    worker.on('error', () => {})
    worker.on('exit', () => {
      this.#all.delete(worker)
      this.#forget(worker)
    })
    return worker
  }

  /** Terminates all workers. Running tasks fail. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#all].map((worker) => worker.terminate()))
  }
}
