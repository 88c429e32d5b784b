/**
 * A workflow made ready to run: templates parsed, durations read, schemas compiled. Once per configuration.
 *
 * Expects a definition without problems (schemas/workflow); what only compiling a schema finds is a problem too.
 * Source: spec document 3, compositeTools.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import {
  type CompositeTool,
  fieldsOf,
  isFields,
  parseDuration,
  type WorkflowStep,
} from '../../../schemas/index.ts'
import { parseTemplate, type Template } from '../../../schemas/workflow/index.ts'
import type { TemplateValue } from '../../expr/template/index.ts'
import { type MirroredArgument, mirroredArguments } from '../../mcp/index.ts'
import { type Argument, compileArguments } from './steps/arguments.ts'
import type { Retry } from './limits.ts'
import { compileOutput, type OutputField } from './output.ts'

export type Reaction = 'abort' | 'continue' | 'skip_remaining'

export interface ToolCall {
  /** As the definition names it. */
  readonly tool: string
  readonly arguments: readonly Argument[]
  readonly retry: Retry
  /** How long one call may take; undefined: as long as the backend has. */
  readonly timeoutMs: number | undefined
}

export type StepWork =
  | ({ readonly type: 'tool' } & ToolCall)
  | {
      readonly type: 'elicitation'
      readonly message: Template
      /** Raw JSON. */
      readonly schema: string
      readonly accepts: ValidateFunction
      readonly onDecline: Reaction
      /** undefined: not said. */
      readonly onCancel: Reaction | undefined
    }
  | {
      readonly type: 'forEach'
      readonly collection: Template
      readonly itemVar: string
      readonly maxIterations: number
      readonly maxParallel: number
      readonly condition: Template | undefined
      readonly call: ToolCall
      /** True when failures of iterations do not fail the step. */
      readonly tolerant: boolean
    }

export interface CompiledStep {
  readonly id: string
  readonly dependsOn: readonly string[]
  readonly condition: Template | undefined
  readonly timeoutMs: number
  /** Goes on after a failure. */
  readonly continues: boolean
  readonly defaultResults: TemplateValue
  readonly work: StepWork
}

export interface Workflow {
  readonly name: string
  readonly definition: CompositeTool
  readonly steps: readonly CompiledStep[]
  readonly timeoutMs: number
  readonly defaults: Readonly<Record<string, unknown>>
  readonly accepts: ValidateFunction | undefined
  readonly output: readonly OutputField[] | undefined
  /** Tools that steps name, each once. */
  readonly tools: ReadonlySet<string>
  readonly mirrored: readonly MirroredArgument[]
}

const WORKFLOW_MS = 30 * 60_000
const STEP_MS = 5 * 60_000
/** Nobody is waited for longer than this. */
const QUESTION_MS = 10 * 60_000
const MAX_RETRIES = 10
const RETRY_MS = 1_000

/** Throws what is wrong with a schema or template, which is an Error with a message for operators. */
export function compileWorkflow(definition: CompositeTool): Workflow {
  const { name, parameters, output } = definition
  const steps = definition.steps.map(compileStep)
  const properties = Object.entries(fieldsOf(fieldsOf(parameters)['properties']))
  const defaults = properties.flatMap(([key, schema]) =>
    isFields(schema) && schema['default'] !== undefined ? [[key, schema['default']] as const] : [],
  )
  const hasParameters = Object.keys(fieldsOf(parameters)).length > 0
  return {
    name,
    definition,
    steps,
    timeoutMs: durationOf(definition.timeout) ?? WORKFLOW_MS,
    defaults: Object.fromEntries(defaults),
    accepts: hasParameters ? compileSchema(fieldsOf(parameters)) : undefined,
    output: output && compileOutput(output),
    tools: new Set(steps.flatMap(({ work }) => toolsOf(work))),
    mirrored: mirroredArguments(parameters),
  }
}

function toolsOf(work: StepWork): string[] {
  if (work.type === 'elicitation') return []
  return [work.type === 'tool' ? work.tool : work.call.tool]
}

function compileSchema(schema: Readonly<Record<string, unknown>>): ValidateFunction {
  const ajv = new Ajv2020({ strict: false, logger: false, allErrors: true })
  addFormats.default(ajv)
  const { $schema: _, ...plain } = schema
  return ajv.compile(plain)
}

function compileStep(step: WorkflowStep): CompiledStep {
  const continues = step.onError?.action === 'continue'
  const timeoutMs = durationOf(step.timeout) ?? STEP_MS
  return {
    id: step.id,
    dependsOn: step.dependsOn ?? [],
    condition: conditionOf(step.condition),
    timeoutMs: step.type === 'elicitation' ? Math.min(timeoutMs, QUESTION_MS) : timeoutMs,
    continues,
    defaultResults: step.defaultResults as TemplateValue,
    work: compileWork(step, continues),
  }
}

function compileWork(step: WorkflowStep, continues: boolean): StepWork {
  switch (step.type) {
    case 'elicitation': {
      const schema = fieldsOf(step.schema)
      return {
        type: 'elicitation',
        message: parseTemplate(step.message ?? ''),
        schema: JSON.stringify(schema),
        accepts: compileSchema(schema),
        onDecline: step.onDecline?.action ?? 'abort',
        onCancel: step.onCancel?.action,
      }
    }
    case 'forEach':
      return {
        type: 'forEach',
        collection: parseTemplate(step.collection ?? ''),
        itemVar: step.itemVar,
        maxIterations: step.maxIterations,
        maxParallel: step.maxParallel,
        condition: conditionOf(step.step?.condition),
        call: compileCall({ tool: '', ...step.step }),
        tolerant: continues || step.step?.onError?.action === 'continue',
      }
    default:
      return { type: 'tool', ...compileCall(step) }
  }
}

function compileCall(step: Pick<WorkflowStep, 'tool' | 'arguments' | 'onError' | 'timeout'>): ToolCall {
  const { onError } = step
  const retries = onError?.action === 'retry' ? (onError.retryCount ?? 0) : 0
  return {
    tool: step.tool ?? '',
    arguments: compileArguments(step.arguments),
    retry: { count: Math.min(retries, MAX_RETRIES), delayMs: durationOf(onError?.retryDelay) ?? RETRY_MS },
    timeoutMs: durationOf(step.timeout),
  }
}

function conditionOf(text: string | undefined): Template | undefined {
  return text === undefined || text === '' ? undefined : parseTemplate(text)
}

/** Milliseconds; nothing and zero mean that nothing was said. */
function durationOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseDuration(text) || undefined
}
