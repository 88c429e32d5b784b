/**
 * The compiled templates and schemas of a workflow. The step runner (execution.ts) does not depend on the program's
 * contents.
 *
 * The compiler expects a definition without violations (schemas/workflow). The compiler throws errors that are found
 * only by compiling a schema.
 */
import { type CompositeTool, fieldsOf, isFields, type WorkflowStep } from '../../../../../schemas/index.ts'
import {
  parseTemplate,
  type SchemaCheck,
  schemaCheck,
  type Template,
} from '../../../../../schemas/workflow/index.ts'
import type { TemplateValue } from '../../../../expr/template/index.ts'
import { type ArgumentTemplates, compileArguments } from './arguments.ts'
import { compileOutput, type OutputField } from './output.ts'

export type StepProgram = {
  readonly condition: Template | undefined
  readonly defaultResults: TemplateValue
} & (
  | { readonly type: 'tool'; readonly arguments: ArgumentTemplates }
  | { readonly type: 'elicitation'; readonly message: Template; readonly schema: SchemaCheck }
  | {
      readonly type: 'forEach'
      readonly collection: Template
      readonly itemVar: string
      readonly maxIterations: number
      /** Condition that is checked in each iteration. */
      readonly innerCondition: Template | undefined
      readonly arguments: ArgumentTemplates
    }
)

export interface WorkflowProgram {
  /** The definition as JSON. A worker compiles the same program from this text. */
  readonly source: string
  readonly parameters: SchemaCheck | undefined
  readonly defaults: Readonly<Record<string, unknown>>
  readonly steps: ReadonlyMap<string, StepProgram>
  readonly output: readonly OutputField[] | undefined
  /** True if checking a schema may take a long time even for a small value. */
  readonly isHeavy: boolean
}

/** Compiles a definition. Throws an Error with a message for operators if a schema or template is invalid. */
export function compileProgram(definition: CompositeTool): WorkflowProgram {
  const { parameters, output, steps } = definition
  const schema = fieldsOf(parameters)
  const check = Object.keys(schema).length > 0 ? compiledSchema(schema) : undefined
  const compiled = new Map(
    steps.map((step) => [step.id, compileStep(step, { nested: definition.nestedTemplates === true })]),
  )
  const checks = [
    check,
    ...[...compiled.values()].map((step) => ('schema' in step ? step.schema : undefined)),
  ]
  const defaults = Object.entries(fieldsOf(schema['properties'])).flatMap(([name, property]) =>
    isFields(property) && property['default'] !== undefined ? [[name, property['default']] as const] : [],
  )
  return {
    source: JSON.stringify(definition),
    parameters: check,
    defaults: Object.fromEntries(defaults),
    steps: compiled,
    output: output && compileOutput(output),
    isHeavy: checks.some((one) => one?.isHeavy),
  }
}

function compiledSchema(schema: Readonly<Record<string, unknown>>): SchemaCheck {
  const check = schemaCheck(schema)
  check.compile()
  return check
}

function compileStep(step: WorkflowStep, depth: { readonly nested: boolean }): StepProgram {
  const condition = templateOf(step.condition)
  const defaultResults = step.defaultResults as TemplateValue
  switch (step.type) {
    case 'elicitation':
      return {
        type: 'elicitation',
        condition,
        defaultResults,
        message: parseTemplate(step.message ?? ''),
        schema: compiledSchema(fieldsOf(step.schema)),
      }
    case 'forEach':
      return {
        type: 'forEach',
        condition,
        defaultResults,
        collection: parseTemplate(step.collection ?? ''),
        itemVar: step.itemVar,
        maxIterations: step.maxIterations,
        innerCondition: templateOf(step.step?.condition),
        arguments: compileArguments(step.step?.arguments, depth),
      }
    default:
      return { type: 'tool', condition, defaultResults, arguments: compileArguments(step.arguments, depth) }
  }
}

function templateOf(text: string | undefined): Template | undefined {
  return text === undefined || text === '' ? undefined : parseTemplate(text)
}
