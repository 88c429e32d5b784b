/**
 * Evaluates the tasks of an execution. Small tasks run immediately, and all other tasks run in a worker, so data from
 * callers and backends cannot block the server.
 *
 * A task starts in the server with a small work budget. When the budget is exhausted, the task runs again in a worker.
 * A task is passed directly to a worker if it exceeds the remaining budget of the current event loop turn. The whole
 * execution also has a budget. Schemas from outside a workflow are always compiled and evaluated in a worker.
 */
import { setImmediate } from 'node:timers'
import { GatehouseError } from '../../../../../schemas/index.ts'
import { type Log, ownMemory } from '../../../../net/index.ts'
import { visibleText } from '../../../../observe/index.ts'
import { type OperationClient, callerOf } from '../../../model/session.ts'
import { type Lease, type PoolOptions, WorkerPool, type WorkerProgram } from '../../../../process/index.ts'
import { StepError, WorkflowError } from '../errors.ts'
import { evaluate } from './evaluate.ts'
import type { WorkflowProgram } from './program.ts'
import { type ExecutionState, shared } from './state.ts'
import type {
  Evaluated,
  EvaluatedTask,
  EvaluationTask,
  SchemaTask,
  TaskKind,
  Tasks,
  ToEvaluationWorker,
} from './tasks.ts'

export const workflowWorker: WorkerProgram = {
  name: 'workflow-worker',
  source: new URL('./worker.ts', import.meta.url),
}

export interface EvaluatorLimits {
  /** Units of work (about 100 ns each) for one task in the server, and for all tasks in one event loop turn. */
  readonly inlineWork: number
  readonly turnWork: number
  /** Units of work for one task, and for all tasks of one execution. */
  readonly taskWork: number
  readonly executionWork: number
  /** Maximum run time of a task in a worker, which limits costs that the units do not measure. */
  readonly taskMs: number
}

export const evaluatorLimits: EvaluatorLimits = {
  inlineWork: 5_000,
  turnWork: 20_000,
  taskWork: 10_000_000,
  executionWork: 50_000_000,
  taskMs: 10_000,
}

const maxName = 128
const heapLimitMb = 256
const workerCount = 2

/** Returns the number of workers that fit into a quarter of the memory (in bytes), but at least one. */
export function evaluationPool(memory = ownMemory()): PoolOptions {
  const maxWorkers = Math.min(workerCount, Math.max(1, Math.floor(memory / 4 / (heapLimitMb * 1024 * 1024))))
  return {
    tasks: 'workflows and schema checks',
    maxWorkers,
    maxPerCaller: Math.max(1, maxWorkers - 1),
    maxWaiting: 200,
    maxParked: 0,
    maxParkedPerCaller: 0,
    maxParkedBytes: 0,
    maxIdle: maxWorkers,
    idleMs: 300_000,
    heapMb: heapLimitMb,
  }
}

/** The client and the budget of an evaluation. */
export interface EvaluationRequester {
  readonly client: Pick<OperationClient, 'caller' | 'session'>
  readonly signal: AbortSignal
  /** Units of work that the execution has used. */
  readonly budget: { spent: number }
}

export class Evaluator {
  readonly #limits: EvaluatorLimits
  readonly #log: Log
  readonly #pool: WorkerPool
  #turnLeft: number
  #turnEnds = false

  constructor(log: Log, limits = evaluatorLimits, pool = new WorkerPool(workflowWorker, evaluationPool())) {
    this.#log = log
    this.#limits = limits
    this.#pool = pool
    this.#turnLeft = limits.turnWork
  }

  /**
   * Evaluates a task. Rejects with StepError or WorkflowError, or with the signal's reason. Rejects with WorkflowError
   * if too many tasks are waiting for a worker.
   */
  async evaluate<K extends TaskKind>(
    program: WorkflowProgram,
    state: ExecutionState,
    task: { readonly kind: K } & Tasks[K]['task'],
    requester: EvaluationRequester,
  ): Promise<Tasks[K]['result']> {
    const { taskWork, executionWork } = this.#limits
    const { budget } = requester
    const maxWork = Math.min(taskWork, executionWork - budget.spent)
    const made =
      this.#inline(program, state, task as EvaluationTask) ??
      (await this.#inWorker<Tasks[TaskKind]['result']>(
        { source: program.source, state, task: task as EvaluationTask, maxWork },
        requester,
      ).catch((error: unknown) => {
        throw error instanceof GatehouseError && !requester.signal.aborted
          ? new WorkflowError(error.message)
          : error
      }))
    budget.spent += made.spent
    if (made.kind === 'done') return made.value
    throw this.#errorOf(made)
  }

  /**
   * Returns the mismatches between a value and the schemas, one line each. An incomplete check counts as a mismatch.
   * Rejects with RATE_LIMITED if too many tasks are waiting for a worker, or with the signal's reason.
   */
  async violations(
    { schemas, value }: SchemaTask,
    requester: Omit<EvaluationRequester, 'budget'> & {
      /** Subject of the check, as shown in the log. */
      readonly subject: { readonly backend: string; readonly tool: string }
    },
  ): Promise<readonly string[]> {
    const made = await this.#inWorker<readonly string[]>(
      { schemas, value: shared(value), maxWork: this.#limits.taskWork },
      requester,
    )
    if (made.kind === 'done') return made.value
    const { backend, tool } = requester.subject
    const subject = { backend, tool: visibleText(tool.slice(0, maxName)).slice(0, maxName) }
    if (made.error === 'limit') {
      this.#log.warn('checking a value against a schema exceeded the work limit', subject)
      return ['the check exceeded the work limit']
    }
    this.#log.error('failed to check a value against a schema', { ...subject, reason: made.message })
    return ['the check failed']
  }

  /** Evaluates a task in the server. Returns undefined if the task must run in a worker. */
  #inline(program: WorkflowProgram, state: ExecutionState, task: EvaluationTask): EvaluatedTask | undefined {
    const { inlineWork, turnWork } = this.#limits
    const checksSchema = task.kind === 'check' || task.kind === 'response'
    if (this.#turnLeft < inlineWork || (checksSchema && program.isHeavy)) return undefined
    const made = evaluate(program, state, task, inlineWork)
    this.#turnLeft -= made.spent
    if (!this.#turnEnds) {
      this.#turnEnds = true
      setImmediate(() => {
        this.#turnEnds = false
        this.#turnLeft = turnWork
      })
    }
    return made.kind === 'failed' && made.error === 'limit' ? undefined : made
  }

  async #inWorker<Value>(
    message: ToEvaluationWorker,
    { client, signal }: Omit<EvaluationRequester, 'budget'>,
  ): Promise<Evaluated<Value>> {
    const lease = await this.#pool.take(callerOf(client), signal)
    return new Run(lease, this.#limits.taskMs, signal).send<Value>(message)
  }

  #errorOf({ error, message }: Extract<EvaluatedTask, { kind: 'failed' }>): Error {
    if (error === 'step') return new StepError(message)
    if (error === 'workflow') return new WorkflowError(message)
    if (error === 'limit') return new WorkflowError('work limit exceeded')
    this.#log.error('a workflow could not be evaluated', { reason: message })
    return new WorkflowError('internal error')
  }

  async close(): Promise<void> {
    await this.#pool.close()
  }
}

/** A task that runs in a worker. */
class Run {
  readonly #lease: Lease
  readonly #taskMs: number
  readonly #signal: AbortSignal

  constructor(lease: Lease, taskMs: number, signal: AbortSignal) {
    this.#lease = lease
    this.#taskMs = taskMs
    this.#signal = signal
  }

  async send<Value>(message: ToEvaluationWorker): Promise<Evaluated<Value>> {
    const { worker } = this.#lease
    const signal = this.#signal
    const ended = Promise.withResolvers<Evaluated<Value>>()
    const fail = (why: string): void =>
      ended.resolve({ kind: 'failed', error: 'workflow', message: why, spent: 0 })
    let usable = false
    const onMessage = (value: Evaluated<Value>): void => {
      usable = true
      ended.resolve(value)
    }
    const onError = (error: Error): void =>
      'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
        ? fail('memory limit exceeded')
        : ended.resolve({ kind: 'failed', error: 'internal', message: String(error), spent: 0 })
    const onExit = (): void => fail('the evaluation was terminated')
    const onAbort = (): void =>
      ended.reject(signal.reason instanceof Error ? signal.reason : new Error('cancelled'))
    const timer = setTimeout(() => fail('time limit exceeded'), this.#taskMs)
    worker.once('message', onMessage).once('error', onError).once('exit', onExit)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      if (signal.aborted) onAbort()
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
      else worker.postMessage(message)
      return await ended.promise
    } finally {
      clearTimeout(timer)
      worker.off('message', onMessage).off('error', onError).off('exit', onExit)
      signal.removeEventListener('abort', onAbort)
      this.#lease.end({ usable })
    }
  }
}
