/**
 * Compiles a workflow. The result contains the step order, durations, retries, and the program for the workflow's
 * templates and schemas (evaluation/). Each configuration is compiled once.
 *
 * The compiler expects a definition without violations (schemas/workflow). The compiler throws errors that are found
 * only by compiling a schema.
 * Source: docs/reference/specification/virtual-server.md#compositeTools, compositeTools.
 */
import { type CompositeTool, fieldsOf, parseDuration, type WorkflowStep } from '../../../../schemas/index.ts'
import { type MirroredArgument, mirroredArguments } from '../../../mcp/index.ts'
import type { Retry } from './limits.ts'
import { compileProgram, type WorkflowProgram } from './evaluation/program.ts'

export type Reaction = 'abort' | 'continue' | 'skip_remaining'

export interface ToolCall {
  /** The tool's name in the definition. */
  readonly tool: string
  readonly retry: Retry
  /** Timeout for a call. If undefined, the backend's timeout applies. */
  readonly timeoutMs: number | undefined
}

export type StepWork =
  | ({ readonly type: 'tool' } & ToolCall)
  | {
      readonly type: 'elicitation'
      /** The schema as raw JSON. */
      readonly schema: string
      readonly onDecline: Reaction
      /** The action to take if the user cancels. Undefined if the definition specifies no action. */
      readonly onCancel: Reaction | undefined
    }
  | {
      readonly type: 'forEach'
      readonly maxParallel: number
      readonly call: ToolCall
      /** True if a failed iteration does not fail the step. */
      readonly tolerant: boolean
    }

export interface CompiledStep {
  readonly id: string
  readonly dependsOn: readonly string[]
  readonly timeoutMs: number
  /** True if the workflow continues after the step fails. */
  readonly continues: boolean
  readonly work: StepWork
}

export interface Workflow {
  readonly name: string
  readonly definition: CompositeTool
  readonly steps: readonly CompiledStep[]
  readonly timeoutMs: number
  readonly program: WorkflowProgram
  /** The distinct tools that the workflow's steps use. */
  readonly tools: ReadonlySet<string>
  /** Tools in steps that continue with `defaultResults` if the tool fails. */
  readonly optionalTools: ReadonlySet<string>
  readonly mirrored: readonly MirroredArgument[]
}

const workflowMs = 30 * 60_000
const stepMs = 5 * 60_000
/** Maximum time in milliseconds for which a step waits for a user. */
const questionMs = 10 * 60_000
const maxRetries = 10
const retryMs = 1_000

/** Compiles a definition. Throws an Error with a message for operators if a schema or template is invalid. */
export function compileWorkflow(definition: CompositeTool): Workflow {
  const steps = definition.steps.map(compileStep)
  return {
    name: definition.name,
    definition,
    steps,
    timeoutMs: durationOf(definition.timeout) ?? workflowMs,
    program: compileProgram(definition),
    tools: new Set(steps.flatMap(({ work }) => toolsOf(work))),
    optionalTools: optionalTools(definition, steps),
    mirrored: mirroredArguments(definition.parameters),
  }
}

function optionalTools(definition: CompositeTool, steps: readonly CompiledStep[]): ReadonlySet<string> {
  const optional = new Set<string>()
  const required = new Set<string>()
  for (const [i, { continues, work }] of steps.entries()) {
    const hasDefaults = (definition.steps[i]?.defaultResults ?? undefined) !== undefined
    for (const tool of toolsOf(work)) (continues && hasDefaults ? optional : required).add(tool)
  }
  return optional.difference(required)
}

function toolsOf(work: StepWork): string[] {
  if (work.type === 'elicitation') return []
  return [work.type === 'tool' ? work.tool : work.call.tool]
}

function compileStep(step: WorkflowStep): CompiledStep {
  const continues = step.onError?.action === 'continue'
  const timeoutMs = durationOf(step.timeout) ?? stepMs
  return {
    id: step.id,
    dependsOn: step.dependsOn ?? [],
    timeoutMs: step.type === 'elicitation' ? Math.min(timeoutMs, questionMs) : timeoutMs,
    continues,
    work: compileWork(step, continues),
  }
}

function compileWork(step: WorkflowStep, continues: boolean): StepWork {
  switch (step.type) {
    case 'elicitation':
      return {
        type: 'elicitation',
        schema: JSON.stringify(fieldsOf(step.schema)),
        onDecline: step.onDecline?.action ?? 'abort',
        onCancel: step.onCancel?.action,
      }
    case 'forEach':
      return {
        type: 'forEach',
        maxParallel: step.maxParallel,
        call: compileCall({ tool: '', ...step.step }),
        tolerant: continues || step.step?.onError?.action === 'continue',
      }
    default:
      return { type: 'tool', ...compileCall(step) }
  }
}

function compileCall(step: Pick<WorkflowStep, 'tool' | 'onError' | 'timeout'>): ToolCall {
  const { onError } = step
  const retries = onError?.action === 'retry' ? (onError.retryCount ?? 0) : 0
  return {
    tool: step.tool ?? '',
    retry: { count: Math.min(retries, maxRetries), delayMs: durationOf(onError?.retryDelay) ?? retryMs },
    timeoutMs: durationOf(step.timeout),
  }
}

/** Returns a duration in milliseconds. Zero is treated like an absent value. */
function durationOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseDuration(text) || undefined
}
