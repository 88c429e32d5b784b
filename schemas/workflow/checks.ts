/**
 * Checks composite tools (workflows) against rules that the schema cannot express. Inline workflows, definitions and
 * syncs share this code, so an invalid workflow never reaches a running server.
 * Source: docs/reference/specification/virtual-server.md#compositeTools, "compositeTools".
 */
import type { CompositeTool, WorkflowStep } from '../generated/types.ts'
import type { Violation } from '../validation/violations.ts'
import { fieldsOf } from '../validation/fields.ts'
import { serverTools } from '../names.ts'
import { CheckBudget } from './check-budget.ts'
import { parameterViolations } from './json-schema.ts'
import { stepGraphViolations, successorsOf } from './graph.ts'
import { outputViolations } from './output.ts'
import { stepViolations } from './steps.ts'
import { templateReads, type TemplateRead } from './templates.ts'

/** Returns the problems with one workflow at `path`. All workflows in one object share a budget. */
export function workflowViolations(
  tool: CompositeTool,
  path: string,
  budget = new CheckBudget(),
): Violation[] {
  const reads = templateReads(tool, path)
  return [
    ...nameViolations(tool, path),
    ...parameterViolations(tool.parameters, `${path}.parameters`, budget),
    ...tool.steps.flatMap((step, index) => stepViolations(step, `${path}.steps[${index}]`, budget)),
    ...stepGraphViolations(tool.steps, `${path}.steps`),
    ...outputViolations(tool, path),
    ...reads.violations,
    ...readViolations(tool, path, reads.reads),
  ]
}

/** The server's own tool with this name would hide the workflow. */
function nameViolations({ name }: CompositeTool, path: string): Violation[] {
  return Object.values<string>(serverTools).includes(name)
    ? [{ path: `${path}.name`, message: `${name} is reserved for one of the server's own tools` }]
    : []
}

/**
 * Every step that a template reads must exist, must have run before, and must have a value even if the step is skipped.
 */
function readViolations(tool: CompositeTool, path: string, reads: readonly TemplateRead[]): Violation[] {
  const steps = new Map(tool.steps.map((step) => [step.id, step]))
  const before = successorsOf(tool.steps)
  const violations: Violation[] = []
  for (const {
    at,
    reader,
    path: [root, id, part, name],
  } of reads) {
    if (root !== 'steps' || id === undefined) continue
    const field = part === 'output' ? name : undefined
    const step = steps.get(id)
    if (!step) violations.push({ path: at, message: `reads the step ${id}, which does not exist` })
    else if (reader === id)
      violations.push({ path: at, message: 'reads its own step, which has not run yet' })
    else if (reader !== undefined && !before(id).has(reader)) {
      violations.push({
        path: at,
        message: `reads the step ${id}, which may not have run yet; add it to dependsOn`,
      })
    }
    if (step && field !== undefined && !mayHave(step, field)) {
      const names = partsOf[step.type]?.join(', ') ?? ''
      violations.push({
        path: at,
        message: `reads output.${field} of the step ${id}, whose output has ${names}${hintFor(step)}`,
      })
    }
    if (
      step &&
      field !== undefined &&
      isSkippable(step) &&
      !Object.hasOwn(fieldsOf(step.defaultResults), field)
    ) {
      const index = tool.steps.indexOf(step)
      violations.push({
        path: `${path}.steps[${index}].defaultResults`,
        message: `needs ${field}, because the step may be skipped and ${at} reads the field`,
      })
    }
  }
  return [
    ...new Map(violations.map((violation) => [`${violation.path} ${violation.message}`, violation])).values(),
  ]
}

/** Fields in a step's output, for types whose output does not depend on a tool. */
const partsOf: Readonly<Partial<Record<WorkflowStep['type'], readonly string[]>>> = {
  elicitation: ['action', 'content', 'skipped'],
  forEach: ['iterations', 'count', 'completed', 'failed'],
}

function mayHave({ type, defaultResults }: WorkflowStep, field: string): boolean {
  const parts = partsOf[type]
  return !parts || parts.includes(field) || Object.hasOwn(fieldsOf(defaultResults), field)
}

function hintFor({ type }: WorkflowStep): string {
  return type === 'elicitation' ? '; the input of the user is in content' : ''
}

function isSkippable({ condition, onError }: WorkflowStep): boolean {
  return (condition !== undefined && condition !== '') || onError?.action === 'continue'
}
