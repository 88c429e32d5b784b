/**
 * A forEach step, which makes one tool call for each item of a list, in list order and with limited concurrency.
 *
 * Unless failures are tolerated, the first failure ends the step and cancels running calls. The output is `{iterations:
 * [{index, item, status, output, error?}], count, completed, failed}`.
 * Source: docs/reference/specification/virtual-server.md#steps, steps (collection, itemVar, maxIterations, maxParallel,
 * step).
 */
import { reasonOf } from '../../../../net/index.ts'
import { formatDuration } from '../../../../../schemas/index.ts'
import type { CompiledStep, StepWork, ToolCall } from '../compile.ts'
import { type WorkflowContext, compute, keep } from '../context.ts'
import { StepError, StepTimeout } from '../errors.ts'
import { Limit } from '../limits.ts'
import { callTool, typesFor } from './tool-step.ts'
import type { ExecutionState, IterationState, StepOutput } from '../evaluation/state.ts'
import type { IterationPlan, StepPlan } from '../evaluation/tasks.ts'

type ForEach = Extract<StepWork, { readonly type: 'forEach' }>

export interface LoopRun {
  readonly step: CompiledStep
  readonly work: ForEach
  readonly plan: Extract<StepPlan, { readonly kind: 'loop' }>
  readonly state: ExecutionState
  readonly signal: AbortSignal
  readonly onRetry: () => void
}

/** Runs the loop. Rejects with StepError, WorkflowError, or with the signal's reason. */
export async function runForEach(context: WorkflowContext, run: LoopRun): Promise<StepOutput> {
  const { work, signal } = run
  const { count } = run.plan
  const items = keep(context, run.plan.items)
  const plans = new IterationPlans(context, run)
  const iterations = Array.from({ length: count }, (): IterationState => ({ status: 'cancelled' }))
  const stop = new AbortController()
  const both = AbortSignal.any([signal, stop.signal])
  let next = 0
  let failure: { readonly error: unknown } | undefined
  const worker = async (): Promise<void> => {
    while (!failure && !both.aborted && next < count) {
      const index = next++
      try {
        iterations[index] = await iterate(context, run, await plans.take(index, both), both)
      } catch (error) {
        iterations[index] = { status: 'failed', error: messageOf(error) }
        if (work.tolerant && error instanceof StepError && !signal.aborted) continue
        failure ??= {
          error: error instanceof StepError ? new StepError(`iteration ${index}: ${error.message}`) : error,
        }
        stop.abort(new Error('another iteration failed'))
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(work.maxParallel, count) }, worker))
  if (signal.aborted) throw reasonOf(signal)
  if (failure) throw failure.error
  return { kind: 'loop', items, iterations }
}

/**
 * Holds the plans for a loop's iterations. Plans are computed in batches. A plan is released when its iteration starts.
 */
class IterationPlans {
  readonly #context: WorkflowContext
  readonly #run: LoopRun
  readonly #planned = new Map<number, IterationPlan>()
  #end = 0
  #planning: Promise<void> | undefined

  constructor(context: WorkflowContext, run: LoopRun) {
    this.#context = context
    this.#run = run
  }

  async take(index: number, signal: AbortSignal): Promise<IterationPlan> {
    while (this.#end <= index) {
      this.#planning ??= this.#planNext(signal).finally(() => (this.#planning = undefined))
      await this.#planning
    }
    const plan = this.#planned.get(index)
    this.#planned.delete(index)
    if (!plan) throw new TypeError('an iteration can start only once')
    return plan
  }

  async #planNext(signal: AbortSignal): Promise<void> {
    const { step, work, plan, state } = this.#run
    const types = typesFor(this.#context, step.id, work.call)
    const task = { kind: 'iterations', step: step.id, items: plan.items, from: this.#end, types } as const
    for (const made of await compute(this.#context, state, task, signal)) this.#planned.set(this.#end++, made)
  }
}

async function iterate(
  context: WorkflowContext,
  { work, state, onRetry }: LoopRun,
  plan: IterationPlan,
  signal: AbortSignal,
): Promise<IterationState> {
  if (plan.kind === 'skip') return { status: 'skipped' }
  if (plan.kind === 'failed') throw new StepError(plan.message)
  const limit = limitOf(context, work.call, signal)
  try {
    const { args } = plan
    const result = await callTool(context, work.call, {
      args,
      state,
      signal: limit?.signal ?? signal,
      onRetry,
    })
    return { status: 'completed', result }
  } finally {
    limit?.end()
  }
}

function limitOf(
  { parts }: WorkflowContext,
  { timeoutMs }: ToolCall,
  signal: AbortSignal,
): Limit | undefined {
  if (timeoutMs === undefined) return undefined
  const late = () => new StepTimeout(timeoutMs, formatDuration(timeoutMs))
  return new Limit(parts.clock, signal, timeoutMs, late)
}

function messageOf(error: unknown): string {
  return error instanceof StepError ? error.message : 'cancelled'
}
