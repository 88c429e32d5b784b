/**
 * Evaluates large bodies in a worker thread, so that no body takes a long turn of the event loop: probes and other callers
 * are answered meanwhile.
 *
 * One thread, one task at a time, the others wait, with turns for each caller; who is allowed in is bounded before, with what
 * the bodies hold. After a very large body the thread is replaced, so that its heap goes back to the system. A thread that ends (its
 * heap is full, say) or exceeds the deadline fails the task that it had, and the next task gets a new thread.
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
  /** Bytes of the body that are in use, from the start. */
  readonly size: number
}

/** Tasks that may wait, of one user and of all users at one address; the next one is refused. */
const maxWaiting = { user: 16, address: 48 } as const

/** What the thread answers; one of the first three. */
export interface WorkerOutcome {
  readonly done?: EvaluatedCall
  readonly refused?: {
    readonly code: ErrorCode
    readonly detail: string
    readonly headers: Readonly<Record<string, string>>
  }
  readonly failed?: { readonly name: string; readonly place: string }
  /** Failures of the policy engine in this task. */
  readonly engineFailures: number
}

export interface WorkerOptions {
  readonly settings: HookSettings
  /** Bound on V8's heap in the thread. */
  readonly heapMb: number
  /** How long one task may take; whoever asked waits no longer. */
  readonly deadlineMs: number
  /** Told how often the policy engine of the thread has failed. */
  readonly onEngineFailures: (count: number) => void
}

/** A thread that has evaluated a larger body is not used again. */
const reusableBytes = 4 * 1024 * 1024

interface Waiting extends WorkerTask {
  readonly requester: QueueRequester
  readonly resolve: (evaluated: EvaluatedCall) => void
  readonly reject: (error: Error) => void
}

const anybody: QueueRequester = { address: '', user: '' }

/** A task was not finished. */
export class WorkerFailure extends ModuleError {
  /** A place in the code, or what happened to the thread. */
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
   * Takes `body` over. Rejects with GatehouseError for a body that is not what it must be, with WorkerFailure when the
   * thread ends, with RATE_LIMITED when too many tasks of `requester` wait; without one there is no such bound. A task whose
   * signal is aborted before it starts is dropped.
   */
  run(task: WorkerTask, signal: AbortSignal, requester?: QueueRequester): Promise<EvaluatedCall> {
    return new Promise((resolve, reject) => {
      if (requester && this.#isFull(requester)) {
        const detail = 'too many large reviews of this user or address wait: try again'
        reject(new GatehouseError('RATE_LIMITED', { detail, headers: { 'retry-after': '5' } }))
        return
      }
      const waiting = { ...task, requester: requester ?? anybody, resolve, reject }
      this.#queue.push(waiting.requester, waiting)
      signal.addEventListener('abort', () => this.#drop(waiting), { once: true })
      this.#next()
    })
  }

  #isFull(requester: QueueRequester): boolean {
    const { user, address } = this.#queue.count(requester)
    return user >= maxWaiting.user || address >= maxWaiting.address
  }

  /** Ends the thread; tasks fail. */
  async close(): Promise<void> {
    for (let waiting = this.#queue.shift(); waiting; waiting = this.#queue.shift())
      waiting.reject(new WorkerFailure('Closed', 'shutdown'))
    await this.#thread?.terminate()
  }

  #drop(waiting: Waiting): void {
    if (!this.#queue.remove(waiting.requester, waiting)) return
    waiting.reject(new GatehouseError('BAD_REQUEST', { detail: 'the client has gone' }))
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

  /** The thread is of no more use. */
  #fail(thread: Worker, what: string): void {
    if (thread !== this.#thread) return
    this.#replace(thread)
    this.#end((waiting) => waiting.reject(new WorkerFailure(what, 'the worker thread ended')))
  }

  /** The next task gets a new thread, once this one has given its memory back. */
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
