/** One task that this replica runs. */
import { GatehouseError } from '../../../../../schemas/index.ts'
import { inputRequests } from '../../../../mcp/index.ts'
import { deriveContext, type Operation, type Perform } from '../../../model/operation.ts'
import { type Outcome, sizeOf } from '../../../model/outcome.ts'
import { Questions } from '../held-inputs.ts'
import { endedWith, failedWith, leaseMs, type OwnedRecord, type OwnedRecords } from './record.ts'
import { type Release, tooMuchMemory } from './task-budget.ts'

/** Interval of the checks for cancellations and answers from other replicas, in milliseconds. */
const checkMs = 1_000
/** Maximum size of a stored result. */
const maxResultBytes = 1024 * 1024

export interface RunOptions {
  readonly taskId: string
  readonly ttlMs: number
  readonly records: OwnedRecords
  /** Reserves memory for a result. Returns undefined if stored tasks already use too much memory. */
  readonly reserve: (bytes: number) => Release | undefined
  /** Called after each change of the stored state. */
  readonly onChange: (record: OwnedRecord) => void
  /** Called when the store rejects a change of the state. */
  readonly onWriteFailed: (error: unknown) => void
}

export class OwnedRun {
  readonly questions = new Questions()
  /** Resolves when the task has ended and the store has accepted or rejected its end. Never rejects. */
  readonly ended: Promise<void>
  readonly #options: RunOptions
  readonly #controller = new AbortController()
  #writes: Promise<unknown> = Promise.resolve()
  #renewedAt = performance.now()

  /** Performs the operation. `next` performs the rest of the chain. */
  constructor(operation: Operation, next: Perform, options: RunOptions) {
    this.#options = options
    const {
      onDecision: _,
      onRouted: __,
      lazySignal: ___,
      ...context
    } = deriveContext(operation.context, {
      signal: this.#controller.signal,
      progress: () => {},
      log: () => {},
      streamResult: () => undefined,
      ask: async (request, signal) => {
        const answer = this.questions.ask(request, signal ?? this.#controller.signal)
        this.#storeQuestions()
        try {
          return await answer
        } finally {
          this.#storeQuestions()
        }
      },
    })
    const timer = setInterval(() => void this.#check().catch(() => {}), checkMs)
    timer.unref()
    const expiry = setTimeout(
      () => this.cancel(new GatehouseError('BACKEND_TIMEOUT', { detail: 'the task has expired' })),
      options.ttlMs,
    )
    expiry.unref()
    this.ended = this.#finish(async () => next({ ...operation, id: undefined, context })).finally(() => {
      clearInterval(timer)
      clearTimeout(expiry)
      this.questions.end()
    })
  }

  cancel(reason: Error): void {
    this.#controller.abort(reason)
  }

  async #finish(work: () => Promise<Outcome>): Promise<void> {
    let release: Release | undefined
    let end: Partial<OwnedRecord>
    try {
      const outcome = await work()
      const bytes = sizeOf(outcome)
      if (bytes > maxResultBytes) {
        const detail = `the result is larger than a task can store (${maxResultBytes} bytes)`
        throw new GatehouseError('BACKEND_RESULT_TOO_LARGE', { detail })
      }
      release = this.#options.reserve(bytes)
      if (!release) throw tooMuchMemory()
      end = endedWith(outcome)
    } catch (error) {
      const { aborted, reason } = this.#controller.signal
      end = failedWith(aborted ? reason : error)
    }
    try {
      // A task that was cancelled in the meantime stores no result.
      if (!(await this.#write(end))) release?.()
    } catch (error) {
      release?.()
      this.#options.onWriteFailed(error)
      // An error needs less space than a result. If this write fails too, the task fails when its lease expires.
      await this.#write(failedWith(error)).catch(() => {})
    }
  }

  #storeQuestions(): void {
    const open = this.questions.entries()
    void this.#write(
      open.length > 0
        ? { status: 'input_required', inputRequests: inputRequests(open).toString() }
        : { status: 'working', inputRequests: undefined },
    ).catch(this.#options.onWriteFailed)
  }

  /**
   * Writes in order, because later changes replace earlier ones. Returns undefined if the task has already ended.
   */
  #write(changes: Partial<OwnedRecord>): Promise<OwnedRecord | undefined> {
    const { records, taskId, onChange } = this.#options
    const write = this.#writes.then(async () => {
      const changed = await records.change(taskId, () => changes)
      if (changed) onChange(changed)
      return changed
    })
    this.#writes = write.catch(() => {})
    return write
  }

  /** Renews the lease, and reads what other replicas received for this task. */
  async #check(): Promise<void> {
    const { records, taskId } = this.#options
    if (performance.now() - this.#renewedAt > leaseMs / 3) {
      this.#renewedAt = performance.now()
      await records.renew(taskId)
    }
    if (await records.takeCancel(taskId)) this.cancel(new Error('the client cancelled the task'))
    for (const [key] of this.questions.entries()) {
      const answer = await records.takeAnswer(taskId, key)
      if (answer) this.questions.answer(key, answer)
    }
  }
}
