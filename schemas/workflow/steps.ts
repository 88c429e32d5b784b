/**
 * Validates single steps: a step must have the fields that its type requires, and no fields of other types.
 * Source: docs/reference/specification/virtual-server.md#compositeTools, compositeTools, "Step item".
 */
import type { CompositeTool, WorkflowStep } from '../generated/types.ts'
import { oneOf, type Violation } from '../validation/violations.ts'
import { withDefaults } from '../validation/validate.ts'
import type { CheckBudget } from './check-budget.ts'
import { elicitationSchemaViolations } from './json-schema.ts'

type StepType = WorkflowStep['type']

/** Fields that only one step type uses. */
const owners = {
  tool: 'tool',
  arguments: 'tool',
  message: 'elicitation',
  schema: 'elicitation',
  onDecline: 'elicitation',
  onCancel: 'elicitation',
  collection: 'forEach',
  itemVar: 'forEach',
  maxIterations: 'forEach',
  maxParallel: 'forEach',
  step: 'forEach',
} as const satisfies Partial<Record<keyof WorkflowStep, StepType>>

const hints: Readonly<Partial<Record<StepType, Readonly<Partial<Record<keyof WorkflowStep, string>>>>>> = {
  forEach: {
    tool: '; the inner step has the tool',
    arguments: '; the inner step has the arguments',
  },
}

export function stepViolations(step: WorkflowStep, path: string, budget: CheckBudget): Violation[] {
  return [
    ...foreignViolations(step, path),
    ...ownViolations[step.type](step, path, budget),
    ...errorViolations(step, path),
  ]
}

/**
 * Returns violations for fields that belong to another step type and would have no effect. Ignores fields with their
 * default values.
 */
function foreignViolations(step: WorkflowStep, path: string): Violation[] {
  if (step.type === 'tool' && step.tool && step.message !== undefined)
    return [{ path, message: 'has both tool and message; set type' }]
  const blank = blankStep()
  return Object.entries(owners).flatMap(([name, owner]) => {
    const field = name as keyof typeof owners
    if (owner === step.type || step[field] === undefined || step[field] === blank[field]) return []
    const hint = hints[step.type]?.[field] ?? `, only for type ${owner}`
    return [{ path: `${path}.${field}`, message: `is not for type ${step.type}${hint}` }]
  })
}

let blank: WorkflowStep | undefined

/** Returns a step that contains only the schema's defaults. */
function blankStep(): WorkflowStep {
  const kind = 'VirtualMCPCompositeToolDefinition' as const
  const spec: Pick<CompositeTool, 'name'> & { steps: object[] } = { name: 'w', steps: [{ id: 'a' }] }
  blank ??= withDefaults({ kind, spec } as { kind: typeof kind }).spec.steps[0]
  if (!blank) throw new TypeError('a step without fields has no defaults')
  return blank
}

const ownViolations: Readonly<
  Record<StepType, (step: WorkflowStep, path: string, budget: CheckBudget) => Violation[]>
> = {
  tool: ({ tool }, path) => toolViolations(tool, path),
  elicitation: elicitationViolations,
  forEach: forEachViolations,
}

const toolName = /^[a-zA-Z0-9][a-zA-Z0-9._-]*$/

function toolViolations(tool: string | undefined, path: string): Violation[] {
  if (!tool) return [{ path: `${path}.tool`, message: 'is required for type tool' }]
  return toolName.test(tool) ? [] : [{ path: `${path}.tool`, message: 'is not a tool name' }]
}

function elicitationViolations(
  { message, schema }: WorkflowStep,
  path: string,
  budget: CheckBudget,
): Violation[] {
  return [
    ...(message ? [] : [{ path: `${path}.message`, message: 'is required for type elicitation' }]),
    ...elicitationSchemaViolations(schema, `${path}.schema`, budget),
  ]
}

function forEachViolations(step: WorkflowStep, path: string): Violation[] {
  const violations: Violation[] = []
  const refuse = (field: string, message: string) => violations.push({ path: `${path}.${field}`, message })
  if (!step.collection) refuse('collection', 'is required for type forEach')
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(step.itemVar)) refuse('itemVar', 'must be an identifier')
  if (step.itemVar === 'index') refuse('itemVar', 'cannot be index, which is the number of the iteration')
  if (!step.step) refuse('step', 'is required for type forEach')
  return step.step
    ? [
        ...violations,
        ...toolViolations(step.step.tool, `${path}.step`),
        ...retryViolations(step.step, `${path}.step`),
      ]
    : violations
}

/** Checks retry settings, which require a tool call because only tool calls can be retried. */
function errorViolations(step: WorkflowStep, path: string): Violation[] {
  if (step.type === 'tool' || step.onError?.action !== 'retry') return retryViolations(step, path)
  const hint = step.type === 'forEach' ? '; set it in the inner step' : ''
  return [{ path: `${path}.onError.action`, message: `retry is not for type ${step.type}${hint}` }]
}

function retryViolations({ onError }: Pick<WorkflowStep, 'onError'>, path: string): Violation[] {
  if (!onError || onError.action === 'retry') return []
  const set = (['retryCount', 'retryDelay'] as const).filter((field) => onError[field] !== undefined)
  return set.length === 0
    ? []
    : [{ path: `${path}.onError`, message: `${oneOf(set)} needs action retry, found ${onError.action}` }]
}
