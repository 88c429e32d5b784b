/**
 * Checks of a composite tool that the schema cannot say: one validator for inline workflows, for definitions, and for
 * the syncs, so that no bad workflow ever reaches a running server.
 * Source: spec document 3, "compositeTools".
 */
import type { CompositeTool, OutputProperty, WorkflowStep } from '../generated/types.ts'
import { below, type Problem } from '../problems.ts'
import { fieldsOf, isFields } from '../fields.ts'
import { elicitationSchemaProblems, parameterProblems } from './json-schema.ts'
import { stepGraphProblems, successorsOf } from './graph.ts'
import { propertyOf, templateReads, type TemplateRead } from './templates.ts'

/** Problems of one workflow; `path` is where it stands. */
export function workflowProblems(tool: CompositeTool, path: string): Problem[] {
  const reads = templateReads(tool, path)
  return [
    ...parameterProblems(tool.parameters, `${path}.parameters`),
    ...tool.steps.flatMap((step, index) => stepProblems(step, `${path}.steps[${index}]`)),
    ...stepGraphProblems(tool.steps, `${path}.steps`),
    ...outputProblems(tool, path),
    ...reads.problems,
    ...readProblems(tool, path, reads.reads),
  ]
}

const toolName = /^[a-zA-Z0-9][a-zA-Z0-9._-]*$/

function stepProblems(step: WorkflowStep, path: string): Problem[] {
  return stepChecks[step.type](step, path)
}

const stepChecks: Readonly<Record<WorkflowStep['type'], (step: WorkflowStep, path: string) => Problem[]>> = {
  tool: toolStepProblems,
  elicitation: elicitationProblems,
  forEach: forEachProblems,
}

function toolStepProblems({ tool, message }: WorkflowStep, path: string): Problem[] {
  if (tool !== undefined && tool !== '' && message !== undefined) {
    return [{ path, message: 'has both tool and message; set type to say what it is' }]
  }
  return toolProblems(tool, path)
}

function toolProblems(tool: string | undefined, path: string): Problem[] {
  if (!tool) return [{ path: `${path}.tool`, message: 'is required for type tool' }]
  return toolName.test(tool) ? [] : [{ path: `${path}.tool`, message: 'is not a tool name' }]
}

function elicitationProblems({ message, schema, tool }: WorkflowStep, path: string): Problem[] {
  return [
    ...(tool === undefined ? [] : [{ path: `${path}.tool`, message: 'is not for type elicitation' }]),
    ...(message ? [] : [{ path: `${path}.message`, message: 'is required for type elicitation' }]),
    ...elicitationSchemaProblems(schema, `${path}.schema`),
  ]
}

function forEachProblems(step: WorkflowStep, path: string): Problem[] {
  const problems: Problem[] = []
  const refuse = (field: string, message: string) => problems.push({ path: `${path}.${field}`, message })
  if (step.tool !== undefined) refuse('tool', 'is not for type forEach; the inner step has the tool')
  if (step.message !== undefined) refuse('message', 'is not for type forEach')
  if (!step.collection) refuse('collection', 'is required for type forEach')
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(step.itemVar)) refuse('itemVar', 'must be an identifier')
  if (step.itemVar === 'index') refuse('itemVar', 'cannot be index, which is the number of the iteration')
  if (!step.step) refuse('step', 'is required for type forEach')
  return step.step ? [...problems, ...toolProblems(step.step.tool, `${path}.step`)] : problems
}

const maxDepth = 10

function outputProblems({ output }: CompositeTool, path: string): Problem[] {
  if (!output) return []
  const names = Object.keys(output.properties)
  const missing = (output.required ?? []).filter((name) => !names.includes(name))
  return [
    ...(names.length === 0 ? [{ path: `${path}.output.properties`, message: 'must not be empty' }] : []),
    ...missing.map((name) => ({
      path: `${path}.output.required`,
      message: `${JSON.stringify(name.slice(0, 80))} is not one of the properties`,
    })),
    ...Object.entries(output.properties).flatMap(([name, property]) =>
      propertyProblems(property, `${path}.output.properties.${name}`, 1),
    ),
  ]
}

const types: ReadonlySet<unknown> = new Set(['string', 'integer', 'number', 'boolean', 'object', 'array'])

function propertyProblems(property: OutputProperty, path: string, depth: number): Problem[] {
  const { type, value, properties } = property
  if (depth > maxDepth) return [{ path, message: `is nested more than ${maxDepth} deep` }]
  if (!types.has(type)) return [{ path: `${path}.type`, message: `must be one of ${[...types].join(', ')}` }]
  if (value !== undefined && properties !== undefined)
    return [{ path, message: 'has both value and properties' }]
  if (properties === undefined)
    return value === undefined ? [{ path, message: 'needs value or properties' }] : []
  if (type !== 'object') return [{ path: `${path}.properties`, message: 'is only for type object' }]
  return Object.entries(fieldsOf(properties)).flatMap(([name, inner]) =>
    isFields(inner)
      ? propertyProblems(propertyOf(inner), below(`${path}.properties`, name), depth + 1)
      : [{ path: below(`${path}.properties`, name), message: 'must be an object' }],
  )
}

/** What a template reads must exist, must have run by then, and must have a value when its step may be skipped. */
function readProblems(tool: CompositeTool, path: string, reads: readonly TemplateRead[]): Problem[] {
  const steps = new Map(tool.steps.map((step) => [step.id, step]))
  const before = successorsOf(tool.steps)
  const problems: Problem[] = []
  for (const {
    at,
    reader,
    path: [root, id, part, name],
  } of reads) {
    if (root !== 'steps' || id === undefined) continue
    const field = part === 'output' ? name : undefined
    const step = steps.get(id)
    if (!step) problems.push({ path: at, message: `reads the step ${id}, which does not exist` })
    else if (reader !== undefined && reader !== id && !before(id).has(reader)) {
      problems.push({
        path: at,
        message: `reads the step ${id}, which need not have run; name it in dependsOn`,
      })
    }
    if (step && field !== undefined && !mayHave(step, field)) {
      const names = partsOf[step.type]?.join(', ') ?? ''
      problems.push({
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
      problems.push({
        path: `${path}.steps[${index}].defaultResults`,
        message: `needs ${field}: the step may be skipped, and ${at} reads it`,
      })
    }
  }
  return [...new Map(problems.map((problem) => [`${problem.path} ${problem.message}`, problem])).values()]
}

/** What the output of a step has when that does not depend on a tool. */
const partsOf: Readonly<Partial<Record<WorkflowStep['type'], readonly string[]>>> = {
  elicitation: ['action', 'content', 'skipped'],
  forEach: ['iterations', 'count', 'completed', 'failed'],
}

function mayHave({ type, defaultResults }: WorkflowStep, field: string): boolean {
  const parts = partsOf[type]
  return !parts || parts.includes(field) || Object.hasOwn(fieldsOf(defaultResults), field)
}

function hintFor({ type }: WorkflowStep): string {
  return type === 'elicitation' ? '; what the user filled in is below content' : ''
}

function isSkippable({ condition, onError }: WorkflowStep): boolean {
  return (condition !== undefined && condition !== '') || onError?.action === 'continue'
}
