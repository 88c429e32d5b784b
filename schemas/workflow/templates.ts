/**
 * Every template of a workflow: where it stands, whether it parses, and what it reads of which step.
 */
import type { CompositeTool, OutputProperty, WorkflowStep } from '../generated/types.ts'
import type { Problem } from '../problems.ts'
import { fieldsOf, isFields } from '../fields.ts'
import { readTemplate, type StepRead } from './template.ts'

export interface TemplateRead extends StepRead {
  /** Path of the template. */
  readonly at: string
  /** Step that the template belongs to; undefined for the output, which comes last. */
  readonly reader: string | undefined
}

export interface TemplateReads {
  readonly problems: readonly Problem[]
  readonly reads: readonly TemplateRead[]
}

/** Deepest nesting of arguments that is looked into. */
const maxDepth = 100

export function templateReads(tool: CompositeTool, path: string): TemplateReads {
  const problems: Problem[] = []
  const reads: TemplateRead[] = []
  const take = (text: string | undefined, at: string, reader: string | undefined) => {
    if (text === undefined) return
    const result = readTemplate(text)
    if (typeof result === 'string') problems.push({ path: at, message: `is not a template: ${result}` })
    else reads.push(...result.map((read) => ({ ...read, at, reader })))
  }
  for (const [index, step] of tool.steps.entries()) {
    for (const [at, text] of textsOf(step, `${path}.steps[${index}]`)) take(text, at, step.id)
  }
  for (const [name, property] of Object.entries(tool.output?.properties ?? {})) {
    for (const [at, text] of outputTexts(property, `${path}.output.properties.${name}`, 0))
      take(text, at, undefined)
  }
  return { problems, reads }
}

function* textsOf(step: WorkflowStep, path: string): Iterable<[string, string | undefined]> {
  yield [`${path}.condition`, step.condition]
  yield [`${path}.message`, step.message]
  yield [`${path}.collection`, step.collection]
  yield* argumentTexts(step.arguments, `${path}.arguments`, 0)
  if (step.step) {
    yield [`${path}.step.condition`, step.step.condition]
    yield* argumentTexts(step.step.arguments, `${path}.step.arguments`, 0)
  }
}

function* argumentTexts(value: unknown, path: string, depth: number): Iterable<[string, string]> {
  if (typeof value === 'string') yield [path, value]
  if (depth > maxDepth) return
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* argumentTexts(item, `${path}[${index}]`, depth + 1)
  } else if (isFields(value)) {
    for (const [key, item] of Object.entries(value)) yield* argumentTexts(item, `${path}.${key}`, depth + 1)
  }
}

function* outputTexts(property: OutputProperty, path: string, depth: number): Iterable<[string, string]> {
  if (typeof property.value === 'string') yield [`${path}.value`, property.value]
  if (depth > maxDepth) return
  for (const [name, inner] of Object.entries(fieldsOf(property.properties))) {
    if (isFields(inner))
      yield* outputTexts(inner as unknown as OutputProperty, `${path}.properties.${name}`, depth + 1)
  }
}
