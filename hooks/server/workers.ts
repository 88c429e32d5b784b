/**
 * Evaluates large bodies in a worker thread, so that they do not block the event loop for probes and other callers.
 *
 * A thread runs one task at a time, and callers with waiting tasks take turns. Callers must limit the number and the
 * total size of the bodies. After a very large body, the thread is replaced to return its heap to the system. When a
 * thread exits (for example, because its heap is full) or exceeds the deadline, its task fails and the next task gets a
 * new thread.
 */
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { type ErrorCode, GatehouseError, ModuleError } from '../../schemas/index.ts'
import type { HookSettings } from '../base/settings.ts'
import type { HookCall, EvaluatedCall } from './evaluate.ts'
import { type QueueRequester, FairQueue } from './fair-queue.ts'

export interface WorkerTask {
  readonly call: HookCall
  readonly body: Uint8Array<ArrayBuffer>
  /** Number of used bytes of the body, from the start. */
  readonly size: number
}

/** Maximum number of waiting tasks per user and per address; further tasks are rejected. */
const maxWaiting = { user: 16, address: 48 } as const

/** Result of a task. Exactly one of the first three fields is set. */
export interface WorkerOutcome {
  readonly done?: EvaluatedCall
  readonly refused?: {
    readonly code: ErrorCode
    readonly detail: string
    readonly headers: Readonly<Record<string, string>>
  }
  readonly failed?: { readonly name: string; readonly place: string }
  /** Number of policy engine failures in this task. */
  readonly engineFailures: number
}

export interface WorkerOptions {
  readonly settings: HookSettings
  /** Limit on the thread's V8 heap. */
  readonly heapMb: number
  /** Time limit for one task. Callers do not wait any longer than this. */
  readonly deadlineMs: number
  /** Called with the number of policy engine failures in the thread. */
  readonly onEngineFailures: (count: number) => void
}

/** A thread that has evaluated a larger body is replaced. */
const reusableBytes = 4 * 1024 * 1024

interface Waiting extends WorkerTask {
  readonly requester: QueueRequester
  readonly resolve: (evaluated: EvaluatedCall) => void
  readonly reject: (error: Error) => void
}

const anyRequester: QueueRequester = { address: '', user: '' }

/** A task did not finish. */
export class WorkerFailure extends ModuleError {
  /** Source location of the error, or the event that ended the thread. */
  readonly place: string

  constructor(name: string, place: string) {
    super('a task in a worker thread failed')
    this.name = name
    this.place = place
  }
}

export class EvaluationWorker {
  readonly #options: WorkerOptions
  readonly #queue = new FairQueue<Waiting>()
  #thread: Worker | undefined
  #running: Waiting | undefined
  #timer: NodeJS.Timeout | undefined
  #isEnding = false

  constructor(options: WorkerOptions) {
    this.#options = options
  }

  /**
   * Takes ownership of `body`. Rejects with GatehouseError for an invalid body, with WorkerFailure when the thread
   * exits, and with RATE_LIMITED when too many of the `requester`'s tasks are waiting (without a requester, there is no
   * limit). A task that is aborted before it starts is dropped.
   */
  run(task: WorkerTask, signal: AbortSignal, requester?: QueueRequester): Promise<EvaluatedCall> {
    return new Promise((resolve, reject) => {
      if (requester && this.#isFull(requester)) {
        const detail = 'too many large reviews of this user or address are waiting; try again'
        reject(new GatehouseError('RATE_LIMITED', { detail, headers: { 'retry-after': '5' } }))
        return
      }
      const waiting = { ...task, requester: requester ?? anyRequester, resolve, reject }
      this.#queue.push(waiting.requester, waiting)
      signal.addEventListener('abort', () => this.#drop(waiting), { once: true })
      this.#next()
    })
  }

  #isFull(requester: QueueRequester): boolean {
    const { user, address } = this.#queue.count(requester)
    return user >= maxWaiting.user || address >= maxWaiting.address
  }

  /** Stops the thread and fails all tasks. */
  async close(): Promise<void> {
    for (let waiting = this.#queue.shift(); waiting; waiting = this.#queue.shift())
      waiting.reject(new WorkerFailure('Closed', 'shutdown'))
    await this.#thread?.terminate()
  }

  #drop(waiting: Waiting): void {
    if (!this.#queue.remove(waiting.requester, waiting)) return
    waiting.reject(new GatehouseError('BAD_REQUEST', { detail: 'the client disconnected' }))
  }

  #next(): void {
    if (this.#running || this.#isEnding) return
    const waiting = this.#queue.shift()
    if (!waiting) return
    const { call, body, size } = waiting
    const thread = (this.#thread ??= this.#start())
    this.#running = waiting
    this.#timer = setTimeout(() => this.#fail(thread, 'DeadlineExceeded'), this.#options.deadlineMs)
    thread.postMessage({ call, body, size } satisfies WorkerTask, [body.buffer])
  }

  #start(): Worker {
    const here = fileURLToPath(import.meta.url)
    const file = extname(here) === '.ts' ? './worker.ts' : './hooks-worker.js'
    const thread = new Worker(new URL(file, import.meta.url), {
      workerData: this.#options.settings,
      argv: [],
      execArgv: [],
      env: {},
      name: 'hooks-worker',
      resourceLimits: { maxOldGenerationSizeMb: this.#options.heapMb, maxYoungGenerationSizeMb: 16 },
    })
    thread.unref()
    thread.on('message', (outcome: WorkerOutcome) => this.#finish(thread, outcome))
    thread.on('error', (error: unknown) =>
      this.#fail(thread, error instanceof Error && 'code' in error ? String(error.code) : 'Error'),
    )
    thread.on('exit', () => this.#fail(thread, 'Exit'))
    return thread
  }

  #finish(thread: Worker, { done, refused, failed, engineFailures }: WorkerOutcome): void {
    if (thread !== this.#thread) return
    if (engineFailures > 0) this.#options.onEngineFailures(engineFailures)
    if (this.#running && this.#running.size > reusableBytes) this.#replace(thread)
    this.#end((waiting) => {
      if (done) waiting.resolve(done)
      else if (refused) waiting.reject(new GatehouseError(refused.code, refused))
      else waiting.reject(new WorkerFailure(failed?.name ?? 'unknown', failed?.place ?? ''))
    })
  }

  /** Discards the thread and fails its task. */
  #fail(thread: Worker, what: string): void {
    if (thread !== this.#thread) return
    this.#replace(thread)
    this.#end((waiting) => waiting.reject(new WorkerFailure(what, 'the worker thread ended')))
  }

  /** Replaces the thread. The next task starts after the old thread has released its memory. */
  #replace(thread: Worker): void {
    this.#thread = undefined
    this.#isEnding = true
    void thread.terminate().then(() => {
      this.#isEnding = false
      this.#next()
    })
  }

  #end(answer: (waiting: Waiting) => void): void {
    const waiting = this.#running
    clearTimeout(this.#timer)
    this.#running = undefined
    if (waiting) answer(waiting)
    this.#next()
  }
}
