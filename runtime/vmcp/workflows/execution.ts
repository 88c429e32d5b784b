/**
 * One execution of a workflow: starts each step as soon as its own dependencies have ended, in the order of the
 * definition, no more than ten at a time; stops at the first failure that is not tolerated.
 *
 * Nothing outlives it: what runs when it stops is cancelled, and it ends when all of that has ended.
 * Source: spec document 3, compositeTools (steps, dependsOn, condition, onError, timeout).
 */
import { formatDuration } from '../../../schemas/index.ts'
import { type TemplateValue, type ValueObject } from '../../expr/template/index.ts'
import type { CompiledStep } from './compile.ts'
import { isTrue } from './steps/condition.ts'
import { auditWorkflow, type Context, type TemplateData } from './context.ts'
import { elicit } from './steps/elicitation.ts'
import { StepError, StepTimeout, WorkflowError, WorkflowTimeout } from './errors.ts'
import { runForEach } from './steps/for-each.ts'
import { Limit, reasonOf } from './limits.ts'
import { callTool } from './steps/tool-step.ts'

const MAX_RUNNING = 10

type Status = 'pending' | 'running' | 'completed' | 'failed' | 'skipped' | 'cancelled'

interface Done {
  readonly output: TemplateValue
  readonly content?: ValueObject
  readonly skipsRemaining?: boolean
}

export class Execution {
  readonly data: TemplateData
  readonly #context: Context
  readonly #statuses: Map<string, Status>
  readonly #limit: Limit
  readonly #startedAt: number
  #last: TemplateValue = null
  #running = 0
  #ended = 0
  #failure: { readonly error: Error } | undefined
  #finish: (() => void) | undefined

  constructor(context: Context, params: ValueObject) {
    const { workflow, parts, operation, id } = context
    this.#context = context
    this.#startedAt = parts.clock.now()
    this.#statuses = new Map(workflow.steps.map((step) => [step.id, 'pending']))
    this.data = {
      params,
      // Without a prototype: a step may be called anything.
      steps: Object.create(null),
      vars: {},
      workflow: {
        id,
        start_time: new Date(this.#startedAt).toISOString().replace(/\.[0-9]+Z$/, 'Z'),
        status: 'pending',
        step_count: 0n,
        duration_ms: 0n,
      },
    }
    this.#limit = new Limit(
      parts.clock,
      operation.signal,
      workflow.timeoutMs,
      () => new WorkflowTimeout(formatDuration(workflow.timeoutMs)),
    )
  }

  /** Output of the step that completed last; null when none has. */
  get last(): TemplateValue {
    return this.#last
  }

  get completed(): number {
    return [...this.#statuses.values()].filter((status) => status === 'completed').length
  }

  /** What templates see when all steps have ended. */
  get finalData(): TemplateData {
    const { clock } = this.#context.parts
    const workflow = {
      ...this.data.workflow,
      status: 'completed',
      step_count: BigInt(this.completed),
      duration_ms: BigInt(Math.round(clock.now() - this.#startedAt)),
    }
    return { ...this.data, workflow }
  }

  /** How far each step came, for people. */
  get progress(): string {
    const words: Partial<Record<Status, string>> = { pending: 'not started', running: 'cancelled' }
    return [...this.#statuses].map(([id, status]) => `${id} ${words[status] ?? status}`).join(', ')
  }

  /** Rejects with WorkflowError, WorkflowTimeout, or the reason for which the client's call was cancelled. */
  async run(): Promise<void> {
    const { signal } = this.#limit
    const onAbort = () => {
      this.#failure ??= { error: reasonOf(signal) }
      this.#advance()
    }
    try {
      await new Promise<void>((resolve) => {
        this.#finish = resolve
        signal.addEventListener('abort', onAbort, { once: true })
        if (signal.aborted) onAbort()
        else this.#advance()
      })
    } finally {
      signal.removeEventListener('abort', onAbort)
      this.#limit.end()
    }
    if (this.#failure) throw this.#failure.error
  }

  #advance(): void {
    const { steps } = this.#context.workflow
    if (!this.#failure) {
      for (const step of steps) {
        if (this.#running >= MAX_RUNNING) break
        if (this.#statuses.get(step.id) === 'pending' && step.dependsOn.every((id) => this.#hasEnded(id)))
          this.#start(step)
      }
    }
    if (this.#running === 0) this.#finish?.()
  }

  #hasEnded(id: string): boolean {
    const status = this.#statuses.get(id)
    return status !== 'pending' && status !== 'running'
  }

  #start(step: CompiledStep): void {
    this.#running += 1
    this.#put(step, 'running', { output: {} })
    void this.#runStep(step)
      .catch((error: unknown) => this.#stop(error instanceof Error ? error : new Error('cancelled')))
      .then(() => {
        this.#running -= 1
        this.#told(step)
        this.#advance()
      })
      .catch((error: unknown) => {
        // Whatever a listener does wrong, the call gets a response.
        this.#stop(error instanceof Error ? error : new Error('cancelled'))
        if (this.#running === 0) this.#finish?.()
      })
  }

  #put(step: CompiledStep, status: Status, { output, content = {} }: Done, error?: string): void {
    this.#statuses.set(step.id, status)
    this.data.steps[step.id] = { status, output, content, ...(error === undefined ? {} : { error }) }
  }

  #stop(error: Error): void {
    this.#failure ??= { error }
    this.#limit.abort(error)
  }

  /** Never rejects for what the definition tolerates. */
  async #runStep(step: CompiledStep): Promise<void> {
    const { clock } = this.#context.parts
    const startedAt = clock.now()
    let retries = 0
    const limit = new Limit(
      clock,
      this.#limit.signal,
      step.timeoutMs,
      () => new StepTimeout(step.timeoutMs, formatDuration(step.timeoutMs)),
    )
    const facts = () => ({ duration_ms: clock.now() - startedAt, retry_count: retries })
    try {
      if (step.condition && !isTrue(step.condition, this.data)) {
        this.#put(step, 'skipped', { output: step.defaultResults ?? {} })
        auditWorkflow(this.#context, 'vmcp_workflow_step_skipped', 'success', {
          stepId: step.id,
          extra: { condition: 'false' },
        })
        return
      }
      this.#auditStart(step)
      const done = await this.#work(step, limit.signal, () => (retries += 1))
      this.#put(step, 'completed', done)
      this.#last = done.output
      auditWorkflow(this.#context, 'vmcp_workflow_step_completed', 'success', {
        stepId: step.id,
        extra: facts(),
      })
      if (done.skipsRemaining) this.#skipRemaining()
    } catch (error) {
      this.#failed(step, error, facts())
    } finally {
      limit.end()
    }
  }

  #auditStart({ id, work }: CompiledStep): void {
    const tool = work.type === 'tool' ? work.tool : work.type === 'forEach' ? work.call.tool : undefined
    auditWorkflow(this.#context, 'vmcp_workflow_step_started', 'success', {
      stepId: id,
      extra: { step_type: work.type, tool_name: tool },
    })
  }

  async #work(step: CompiledStep, signal: AbortSignal, onRetry: () => void): Promise<Done> {
    const context = this.#context
    const { work } = step
    switch (work.type) {
      case 'elicitation':
        return elicit(context, work, step, this.data, signal)
      case 'forEach':
        return { output: await runForEach(context, work, this.data, signal, onRetry) }
      default: {
        // The step's own time is what the call has; only one that the definition names wins over the backend's.
        return callTool(context, work, this.data, signal, onRetry)
      }
    }
  }

  #failed(step: CompiledStep, error: unknown, extra: Readonly<Record<string, number>>): void {
    if (this.#limit.signal.aborted) {
      this.#put(step, 'cancelled', { output: {} }, 'cancelled')
      auditWorkflow(this.#context, 'vmcp_workflow_step_failed', 'failure', { stepId: step.id, extra })
      return
    }
    if (!(error instanceof StepError))
      this.#context.parts.log.error('a step of a workflow failed', { step: step.id, err: error })
    const message = error instanceof StepError ? error.message : 'internal error'
    this.#put(step, 'failed', { output: step.continues ? (step.defaultResults ?? {}) : {} }, message)
    auditWorkflow(this.#context, 'vmcp_workflow_step_failed', 'failure', { stepId: step.id, extra })
    if (!step.continues) this.#stop(new WorkflowError(`step ${JSON.stringify(step.id)}: ${message}`))
  }

  /** Every step that has not started yet is skipped; what runs goes on. */
  #skipRemaining(): void {
    for (const step of this.#context.workflow.steps) {
      if (this.#statuses.get(step.id) !== 'pending') continue
      this.#put(step, 'skipped', { output: step.defaultResults ?? {} })
      auditWorkflow(this.#context, 'vmcp_workflow_step_skipped', 'success', { stepId: step.id })
      this.#told(step)
    }
  }

  /** Progress of the workflow is the number of steps that have ended. */
  #told({ id }: CompiledStep): void {
    const { operation, workflow } = this.#context
    const { progressToken } = operation
    this.#ended += 1
    if (progressToken === undefined || this.#failure) return
    const message = JSON.stringify(`step ${id} ${this.#statuses.get(id)}`)
    operation.progress(
      Buffer.from(
        `{"progressToken":${progressToken},"progress":${this.#ended},"total":${workflow.steps.length},"message":${message}}`,
      ),
    )
  }
}
