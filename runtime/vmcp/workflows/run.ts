/**
 * Answers one call of a composite tool: arguments, execution, output, audit and telemetry.
 *
 * Whatever goes wrong in the workflow is a result that a model can read (`isError`), never an error of the protocol; only a
 * call that its client gave up is rejected.
 * Source: spec document 3, compositeTools.
 */
import { randomUUID } from 'node:crypto'
import { isFields } from '../../../schemas/index.ts'
import {
  EvaluationError,
  isObject,
  jsonText,
  parseJson,
  type TemplateValue,
  type ValueObject,
} from '../../expr/template/index.ts'
import { type Operation, type Outcome, resultOutcome } from '../pipeline/operation.ts'
import type { Workflow } from './compile.ts'
import { auditWorkflow, type BoundTool, type Context, type WorkflowParts } from './context.ts'
import { describe } from './steps/elicitation.ts'
import { Execution } from './execution.ts'
import { WorkflowError, WorkflowTimeout } from './errors.ts'
import { buildOutput } from './output.ts'

export async function runWorkflow(
  workflow: Workflow,
  tools: ReadonlyMap<string, BoundTool>,
  operation: Operation,
  parts: WorkflowParts,
): Promise<Outcome> {
  const context: Context = { id: randomUUID(), workflow, tools, operation, parts }
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
    return resultOutcome({ content: [{ type: 'text', text: end.text }], isError: true })
  })
}

type End =
  | { readonly kind: 'done'; readonly outcome: Outcome }
  | { readonly kind: 'failed'; readonly error: Error; readonly text: string }
  | { readonly kind: 'cancelled'; readonly error: Error }

/** Never rejects. */
async function execute(context: Context): Promise<End> {
  const { operation, workflow, parts } = context
  const startedAt = parts.clock.now()
  const raw = operation.params.raw('arguments')
  auditWorkflow(context, 'vmcp_workflow_started', 'success', {
    extra: { timeout_ms: workflow.timeoutMs },
    request: raw,
  })
  let execution: Execution | undefined
  try {
    execution = new Execution(context, paramsOf(workflow, raw))
    await execution.run()
    const output = workflow.output ? buildOutput(workflow.output, execution.finalData) : execution.last
    const outcome = response(output)
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

function failure({ operation, parts }: Context, thrown: unknown, execution: Execution | undefined): End {
  const error = thrown instanceof Error ? thrown : new Error('unknown')
  if (operation.signal.aborted) return { kind: 'cancelled', error }
  const steps = execution ? ` (steps: ${execution.progress})` : ''
  if (error instanceof WorkflowTimeout)
    return { kind: 'failed', error, text: `Workflow execution timeout exceeded: ${error.message}${steps}` }
  if (error instanceof WorkflowError)
    return { kind: 'failed', error, text: `Workflow execution failed: ${error.message}${steps}` }
  if (error instanceof EvaluationError)
    return { kind: 'failed', error, text: `Workflow execution failed: the output: ${error.message}` }
  parts.log.error('a workflow failed', { err: error })
  return { kind: 'failed', error, text: 'Workflow execution failed: internal error' }
}

/** The arguments with their defaults. Throws WorkflowError naming what does not match the parameters. */
function paramsOf({ defaults, accepts }: Workflow, raw: Buffer | undefined): ValueObject {
  const text = raw?.toString() ?? '{}'
  // Integers that a float cannot hold are exact for templates; for the schema they are plain numbers.
  const plain: unknown = JSON.parse(text)
  if (!isFields(plain)) throw new WorkflowError('invalid arguments: they must be an object')
  const filled = { ...missingOf(defaults, plain), ...plain }
  if (accepts && !accepts(filled)) throw new WorkflowError(`invalid arguments: ${describe(accepts.errors)}`)
  const exact = parseJson(text)
  return { ...(missingOf(defaults, plain) as ValueObject), ...(isObject(exact) ? exact : {}) }
}

/** An argument that is there, even as null, has no default. */
function missingOf(
  defaults: Readonly<Record<string, unknown>>,
  given: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(defaults).filter(([name]) => !Object.hasOwn(given, name)))
}

function response(output: TemplateValue): Extract<Outcome, { readonly kind: 'result' }> {
  const text = jsonText(output)
  const structured = isObject(output) ? `,"structuredContent":${text}` : ''
  return {
    kind: 'result',
    result: Buffer.from(`{"content":[{"type":"text","text":${JSON.stringify(text)}}]${structured}}`),
  }
}
