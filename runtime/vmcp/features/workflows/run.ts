/**
 * Handles a call to a composite tool, with its arguments, execution, output, audit and telemetry.
 *
 * Every failure of the workflow becomes a result that a model can read (`isError`), never a protocol error. The call
 * rejects only if the client cancelled it.
 * Source: docs/reference/specification/virtual-server.md#compositeTools, compositeTools.
 */
import { randomUUID } from 'node:crypto'
import type { Operation } from '../../model/operation.ts'
import { type Outcome, toolErrorOutcome } from '../../model/outcome.ts'
import type { Workflow } from './compile.ts'
import {
  auditWorkflow,
  type WorkflowTool,
  type WorkflowContext,
  compute,
  keep,
  type WorkflowParts,
} from './context.ts'
import { StepError, WorkflowError, WorkflowTimeout } from './errors.ts'
import { Execution } from './execution.ts'
import { emptyObjectBytes } from '../../../mcp/index.ts'

export async function runWorkflow(
  workflow: Workflow,
  tools: ReadonlyMap<string, WorkflowTool>,
  operation: Operation,
  parts: WorkflowParts,
): Promise<Outcome> {
  const used = { spent: 0, bytes: 0 }
  const context: WorkflowContext = { id: randomUUID(), workflow, tools, operation, parts, used }
  const { metrics, tracer } = parts.telemetry
  const labels = { 'workflow.name': workflow.name }
  const startedAt = parts.clock.now()
  metrics.workflowExecutions(1, labels)
  return tracer.internal('core.ExecuteWorkflow', labels, async (span) => {
    const end = await execute(context)
    metrics.workflowDuration((parts.clock.now() - startedAt) / 1000, labels)
    if (end.kind === 'done') return end.outcome
    metrics.workflowErrors(1, labels)
    span.fail(end.error.name)
    if (end.kind === 'cancelled') throw end.error
    return toolErrorOutcome(end.text)
  })
}

type End =
  | { readonly kind: 'done'; readonly outcome: Outcome }
  | { readonly kind: 'failed'; readonly error: Error; readonly text: string }
  | { readonly kind: 'cancelled'; readonly error: Error }

/** Executes the workflow. Never rejects. */
async function execute(context: WorkflowContext): Promise<End> {
  const { operation, workflow, parts } = context
  const startedAt = parts.clock.now()
  const raw = operation.params.raw('arguments')
  auditWorkflow(context, 'vmcp_workflow_started', 'success', {
    extra: { timeout_ms: workflow.timeoutMs },
    request: raw,
  })
  let execution: Execution | undefined
  try {
    const { signal } = operation.context
    const begun = new Execution(context, keep(context, raw ?? emptyObjectBytes))
    await compute(context, begun.state, { kind: 'check' }, signal)
    execution = begun
    await execution.run()
    const { finalState, last } = execution
    const bytes = await compute(context, finalState, { kind: 'output', last }, signal)
    const outcome = { kind: 'result', result: Buffer.from(bytes) } as const
    auditWorkflow(context, 'vmcp_workflow_completed', 'success', {
      extra: { duration_ms: parts.clock.now() - startedAt, step_count: execution.completed },
      response: outcome.result,
    })
    return { kind: 'done', outcome }
  } catch (error) {
    const end = failure(context, error, execution)
    const type = error instanceof WorkflowTimeout ? 'vmcp_workflow_timed_out' : 'vmcp_workflow_failed'
    auditWorkflow(context, type, 'failure', {
      extra: { duration_ms: parts.clock.now() - startedAt, step_count: execution?.completed ?? 0 },
    })
    return end
  }
}

function failure(
  { operation, parts }: WorkflowContext,
  thrown: unknown,
  execution: Execution | undefined,
): End {
  const error = thrown instanceof Error ? thrown : new Error('unknown')
  if (operation.context.signal.aborted) return { kind: 'cancelled', error }
  const steps = execution ? ` (steps: ${execution.progress})` : ''
  if (error instanceof WorkflowTimeout)
    return { kind: 'failed', error, text: `Workflow execution timeout exceeded: ${error.message}${steps}` }
  if (error instanceof WorkflowError || error instanceof StepError)
    return { kind: 'failed', error, text: `Workflow execution failed: ${error.message}${steps}` }
  parts.log.error('a workflow failed', { err: error })
  return { kind: 'failed', error, text: 'Workflow execution failed: internal error' }
}
