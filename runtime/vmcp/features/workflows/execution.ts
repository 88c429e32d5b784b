/**
 * Executes a workflow. Starts each step when its dependencies have ended, in the order of the definition. At most ten
 * steps run at a time. The execution stops at the first failure that is not tolerated.
 *
 * No work outlives the execution. When an execution stops, running steps are cancelled. The execution waits until all
 * steps have ended.
 * Source: docs/reference/specification/virtual-server.md#compositeTools, compositeTools (steps, dependsOn, condition,
 * onError, timeout).
 */
import { reasonOf } from '../../../net/index.ts'
import { formatDuration } from '../../../../schemas/index.ts'
import type { CompiledStep } from './compile.ts'
import { auditWorkflow, type WorkflowContext, compute } from './context.ts'
import { StepError, StepTimeout, WorkflowError, WorkflowTimeout } from './errors.ts'
import { Limit } from './limits.ts'
import { elicit } from './steps/elicitation.ts'
import { runForEach } from './steps/for-each.ts'
import { callTool, typesFor } from './steps/tool-step.ts'
import type { ExecutionState, SharedBytes, StepOutput, StepState } from './evaluation/state.ts'
import type { StepPlan } from './evaluation/tasks.ts'

const maxRunning = 10

type Status = 'pending' | 'running' | 'completed' | 'failed' | 'skipped' | 'cancelled'

interface Done {
  readonly output: StepOutput
  readonly skipsRemaining?: boolean
}

const noOutput: StepOutput = { kind: 'none' }
const defaultResults: StepOutput = { kind: 'defaults' }

export class Execution {
  readonly #args: SharedBytes
  readonly #steps = new Map<string, StepState>()
  readonly #context: WorkflowContext
  readonly #statuses: Map<string, Status>
  readonly #limit: Limit
  readonly #startedAt: number
  #last: string | undefined
  #running = 0
  #ended = 0
  #failure: { readonly error: Error } | undefined
  #finish: (() => void) | undefined

  constructor(context: WorkflowContext, args: SharedBytes) {
    const { workflow, parts, operation } = context
    this.#context = context
    this.#args = args
    this.#startedAt = parts.clock.now()
    this.#statuses = new Map(workflow.steps.map((step) => [step.id, 'pending']))
    this.#limit = new Limit(
      parts.clock,
      operation.context.signal,
      workflow.timeoutMs,
      () => new WorkflowTimeout(formatDuration(workflow.timeoutMs)),
    )
  }

  /** The most recently completed step. */
  get last(): string | undefined {
    return this.#last
  }

  get completed(): number {
    return [...this.#statuses.values()].filter((status) => status === 'completed').length
  }

  /** State that templates see while steps run. */
  get state(): ExecutionState {
    return this.#stateAs('pending', 0, 0)
  }

  /** State that templates see after all steps have ended. */
  get finalState(): ExecutionState {
    const { clock } = this.#context.parts
    return this.#stateAs('completed', this.completed, clock.now() - this.#startedAt)
  }

  #stateAs(status: string, stepCount: number, durationMs: number): ExecutionState {
    return {
      args: this.#args,
      steps: this.#steps,
      workflow: {
        id: this.#context.id,
        start_time: new Date(this.#startedAt).toISOString().replace(/\.[0-9]+Z$/, 'Z'),
        status,
        step_count: stepCount,
        duration_ms: durationMs,
      },
    }
  }

  /** The readable status of each step. */
  get progress(): string {
    const words: Partial<Record<Status, string>> = { pending: 'not started', running: 'cancelled' }
    return [...this.#statuses].map(([id, status]) => `${id} ${words[status] ?? status}`).join(', ')
  }

  /**
   * Runs the workflow. Rejects with WorkflowError, WorkflowTimeout, or the reason why the client's call was cancelled.
   */
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
        if (this.#running >= maxRunning) break
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
    this.#put(step, 'running', noOutput)
    void this.#runStep(step)
      .catch((error: unknown) => this.#stop(error instanceof Error ? error : new Error('cancelled')))
      .then(() => {
        this.#running -= 1
        this.#reportStep(step)
        this.#advance()
      })
      .catch((error: unknown) => {
        // Respond to the call even if a listener throws.
        this.#stop(error instanceof Error ? error : new Error('cancelled'))
        if (this.#running === 0) this.#finish?.()
      })
  }

  #put(step: CompiledStep, status: Status, output: StepOutput, error?: string): void {
    this.#statuses.set(step.id, status)
    this.#steps.set(step.id, { status, output, ...(error === undefined ? {} : { error }) })
  }

  #stop(error: Error): void {
    this.#failure ??= { error }
    this.#limit.abort(error)
  }

  /** Runs a step. Does not reject for failures that the definition tolerates. */
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
      const plan = await this.#plan(step, limit.signal)
      if (plan.kind === 'skip') {
        this.#put(step, 'skipped', defaultResults)
        auditWorkflow(this.#context, 'vmcp_workflow_step_skipped', 'success', {
          stepId: step.id,
          extra: { condition: 'false' },
        })
        return
      }
      if (plan.kind !== 'failed' || plan.started) this.#auditStart(step)
      const done = await this.#work(step, plan, limit.signal, () => (retries += 1))
      this.#put(step, 'completed', done.output)
      this.#last = step.id
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

  #plan(step: CompiledStep, signal: AbortSignal): Promise<StepPlan> {
    const { work } = step
    const types = work.type === 'tool' ? typesFor(this.#context, step.id, work) : {}
    return compute(this.#context, this.state, { kind: 'plan', step: step.id, types }, signal)
  }

  async #work(step: CompiledStep, plan: StepPlan, signal: AbortSignal, onRetry: () => void): Promise<Done> {
    const context = this.#context
    const { work } = step
    const { state } = this
    if (plan.kind === 'failed') throw new StepError(plan.message)
    if (work.type === 'elicitation' && plan.kind === 'ask')
      return elicit(context, { step, work, message: plan.message, state, signal })
    if (work.type === 'forEach' && plan.kind === 'loop')
      return { output: await runForEach(context, { step, work, plan, state, signal, onRetry }) }
    if (work.type !== 'tool' || plan.kind !== 'call')
      throw new TypeError('the plan belongs to a different step')
    // The step's own timeout limits the call. The step's timeout overrides the backend's timeout only if the definition
    // sets a timeout.
    const bytes = await callTool(context, work, { args: plan.args, state, signal, onRetry })
    return { output: { kind: 'result', bytes } }
  }

  #failed(step: CompiledStep, error: unknown, extra: Readonly<Record<string, number>>): void {
    if (this.#limit.signal.aborted) {
      this.#put(step, 'cancelled', noOutput, 'cancelled')
      auditWorkflow(this.#context, 'vmcp_workflow_step_failed', 'failure', { stepId: step.id, extra })
      return
    }
    const isKnown = error instanceof StepError || error instanceof WorkflowError
    if (!isKnown) this.#context.parts.log.error('a workflow step failed', { step: step.id, err: error })
    const message = isKnown ? error.message : 'internal error'
    this.#put(step, 'failed', step.continues ? defaultResults : noOutput, message)
    auditWorkflow(this.#context, 'vmcp_workflow_step_failed', 'failure', { stepId: step.id, extra })
    // A step cannot tolerate an error that affects the whole workflow.
    if (!step.continues || error instanceof WorkflowError)
      this.#stop(new WorkflowError(`step ${JSON.stringify(step.id)}: ${message}`))
  }

  /** Skips every step that has not started. Running steps continue. */
  #skipRemaining(): void {
    for (const step of this.#context.workflow.steps) {
      if (this.#statuses.get(step.id) !== 'pending') continue
      this.#put(step, 'skipped', defaultResults)
      auditWorkflow(this.#context, 'vmcp_workflow_step_skipped', 'success', { stepId: step.id })
      this.#reportStep(step)
    }
  }

  /** Reports progress as the number of completed steps. */
  #reportStep({ id }: CompiledStep): void {
    const { operation, workflow } = this.#context
    const { progressToken } = operation.context
    this.#ended += 1
    if (progressToken === undefined || this.#failure) return
    const message = JSON.stringify(`step ${id} ${this.#statuses.get(id)}`)
    operation.context.progress(
      Buffer.from(
        `{"progressToken":${progressToken},"progress":${this.#ended},"total":${workflow.steps.length},"message":${message}}`,
      ),
    )
  }
}
