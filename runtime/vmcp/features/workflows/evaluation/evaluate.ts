/**
 * Evaluates a task without side effects and within its meter's limits. Small tasks run in the server, and all other
 * tasks run in a worker.
 */
import type { Fields } from '../../../../../schemas/index.ts'
import { schemaCheck } from '../../../../../schemas/workflow/index.ts'
import {
  EvaluationError,
  isList,
  isObject,
  jsonText,
  TemplateMeter,
  parseJson,
  structureOf,
  type TemplateValue,
  type ValueObject,
  WorkLimitError,
} from '../../../../expr/template/index.ts'
import { StepError, WorkflowError } from '../errors.ts'
import { type ArgumentTemplates, type ArgumentTypes, expandArguments } from './arguments.ts'
import { expandText, guarded, isWanted, type ExpansionScope, singleValue } from './expansion.ts'
import { buildOutput } from './output.ts'
import type { WorkflowProgram, StepProgram } from './program.ts'
import {
  dataOf,
  type ExecutionState,
  resultOf,
  withDefaults,
  type SharedBytes,
  shared,
  textOf,
} from './state.ts'
import type {
  Evaluated,
  EvaluatedTask,
  EvaluationTask,
  IterationPlan,
  SchemaTask,
  StepPlan,
  TaskKind,
  Tasks,
} from './tasks.ts'
import { failureIn } from './tool-result.ts'

/** Maximum size of the text from one template. */
const maxBytes = 10 * 1024 * 1024

/** Evaluates a task. Never throws. */
export function evaluate(
  program: WorkflowProgram,
  state: ExecutionState,
  task: EvaluationTask,
  maxWork: number,
): EvaluatedTask {
  return metered(maxWork, (meter) => carryOut(task, program, state, meter))
}

/** Returns the mismatches with the first schema that the value violates, one line each. Never throws. */
export function matchSchemas({ schemas, value }: SchemaTask, maxWork: number): Evaluated<readonly string[]> {
  return metered(maxWork, (meter) => {
    const plain: unknown = JSON.parse(textOf(value))
    for (const schema of JSON.parse(schemas) as readonly Fields[]) {
      const violations = schemaCheck(schema).violations(plain, (units) => meter.spend(units))
      if (violations.length > 0) return violations
    }
    return []
  })
}

function metered<Value>(maxWork: number, work: (meter: TemplateMeter) => Value): Evaluated<Value> {
  const meter = new TemplateMeter({ maxBytes, maxWork })
  try {
    const value = work(meter)
    return { kind: 'done', value, spent: meter.spent }
  } catch (error) {
    const { spent } = meter
    if (error instanceof WorkLimitError) return { kind: 'failed', error: 'limit', message: '', spent }
    if (error instanceof StepError) return { kind: 'failed', error: 'step', message: error.message, spent }
    if (error instanceof WorkflowError)
      return { kind: 'failed', error: 'workflow', message: error.message, spent }
    const message = error instanceof Error ? `${error.name}: ${error.message}` : 'unknown'
    return { kind: 'failed', error: 'internal', message, spent }
  }
}

function carryOut(
  task: EvaluationTask,
  program: WorkflowProgram,
  state: ExecutionState,
  meter: TemplateMeter,
): Tasks[TaskKind]['result'] {
  switch (task.kind) {
    case 'check':
      return check(program, state, meter)
    case 'failure':
      return failureIn(textOf(task.bytes), meter)
    case 'response':
      return response(program, task, meter)
    default: {
      const scope = { data: dataOf(program, state, meter), meter }
      if (task.kind === 'plan') return plan(stepOf(program, task), scope, task.types)
      if (task.kind === 'iterations') return iterations(stepOf(program, task), scope, task)
      return output(program, state, scope, task.last)
    }
  }
}

function stepOf({ steps }: WorkflowProgram, { step }: { readonly step: string }): StepProgram {
  const found = steps.get(step)
  if (!found) throw new TypeError('unknown step')
  return found
}

/** Checks arguments. Throws a WorkflowError with the mismatches between arguments and parameters. */
function check(
  { defaults, parameters }: WorkflowProgram,
  { args }: ExecutionState,
  meter: TemplateMeter,
): undefined {
  const text = textOf(args)
  // This parser detects numbers that are too long. The schema checks use ordinary JavaScript numbers.
  const exact = asWorkflowError('invalid arguments', () => parseJson(text, meter))
  if (!isObject(exact)) throw new WorkflowError('invalid arguments: expected an object')
  if (!parameters) return
  const plain: ValueObject = JSON.parse(text)
  const violations = parameters.violations(withDefaults(defaults, plain), (units) => meter.spend(units))
  if (violations.length > 0) throw new WorkflowError(`invalid arguments: ${violations.join('; ')}`)
}

function plan(step: StepProgram, scope: ExpansionScope, types: ArgumentTypes): StepPlan {
  let started = false
  try {
    if (!isWanted(step.condition, scope)) return { kind: 'skip' }
    started = true
    switch (step.type) {
      case 'elicitation':
        return { kind: 'ask', message: expandText(step.message, scope, 'message') }
      case 'forEach':
        return loop(step, scope)
      default:
        return { kind: 'call', args: callArguments(step.arguments, scope, types) }
    }
  } catch (error) {
    if (error instanceof StepError) return { kind: 'failed', message: error.message, started }
    throw error
  }
}

/** Maximum number of values in a call's arguments. The arguments are parsed again on their way to the backend. */
const maxArgumentValues = 200_000

function callArguments(args: ArgumentTemplates, scope: ExpansionScope, types: ArgumentTypes): SharedBytes {
  const text = json(expandArguments(args, scope, types), scope.meter, 'arguments')
  if (structureOf(text) > maxArgumentValues)
    throw new StepError(`the arguments have more than ${maxArgumentValues} values`)
  return shared(Buffer.from(text))
}

function json(value: TemplateValue, meter: TemplateMeter, where: string): string {
  return guarded(where, () => jsonText(value, meter))
}

type Loop = Extract<StepProgram, { readonly type: 'forEach' }>

function loop(step: Loop, scope: ExpansionScope): StepPlan {
  const items = collectionOf(step, scope)
  if (items.length > step.maxIterations)
    throw new StepError(`collection size ${items.length} exceeds maxIterations ${step.maxIterations}`)
  const text = json(items, scope.meter, 'collection')
  return { kind: 'loop', items: shared(Buffer.from(text)), count: items.length }
}

/** Returns the list that a template produces, either as a value or as JSON text. Null is treated as an empty list. */
function collectionOf({ collection }: Loop, scope: ExpansionScope): readonly TemplateValue[] {
  const single = singleValue(collection, scope, 'collection')
  if (single && isList(single.value)) return single.value
  const text = expandText(collection, scope, 'collection')
  const value = parsed(text, scope.meter)
  if (isList(value)) return value
  if (value === null) return []
  throw new StepError('collection must resolve to a JSON array')
}

function parsed(text: string, meter: TemplateMeter): TemplateValue {
  try {
    return parseJson(text, meter)
  } catch (error) {
    if (error instanceof WorkLimitError) throw error
    return undefined
  }
}

/** Limits on the number of iterations and bytes in one planning task. */
const maxPlanned = 32
const maxPlannedBytes = 256 * 1024

function iterations(
  step: StepProgram,
  { data, meter }: ExpansionScope,
  { items, from, types }: EvaluationTask<'iterations'>,
): readonly IterationPlan[] {
  if (step.type !== 'forEach' || !isObject(data)) throw new TypeError('the step is not a loop')
  const list = parseJson(textOf(items), meter)
  if (!isList(list)) throw new TypeError('the items are not a list')
  const plans: IterationPlan[] = []
  let bytes = 0
  for (
    let index = from;
    index < list.length && plans.length < maxPlanned && bytes < maxPlannedBytes;
    index++
  ) {
    const forEach = { [step.itemVar]: list[index], index: BigInt(index) }
    const made = iteration(step, { data: withMember(data, forEach), meter }, types)
    if (made.kind === 'call') bytes += made.args.length
    plans.push(made)
  }
  return plans
}

/** Returns the data with the loop's members added. All iterations share values that are created on first read. */
function withMember(data: ValueObject, forEach: ValueObject): ValueObject {
  const members = Object.getOwnPropertyDescriptors(data)
  return Object.defineProperties({}, { ...members, forEach: { value: forEach, enumerable: true } })
}

function iteration(step: Loop, scope: ExpansionScope, types: ArgumentTypes): IterationPlan {
  try {
    if (!isWanted(step.innerCondition, scope)) return { kind: 'skip' }
    return { kind: 'call', args: callArguments(step.arguments, scope, types) }
  } catch (error) {
    if (error instanceof StepError) return { kind: 'failed', message: error.message, started: true }
    throw error
  }
}

const maxAnswerDepth = 10

/** Returns the content of the user's response. Content that is not an object is treated as empty. Throws StepError. */
function response(
  program: WorkflowProgram,
  task: EvaluationTask<'response'>,
  meter: TemplateMeter,
): SharedBytes {
  const step = stepOf(program, task)
  if (step.type !== 'elicitation') throw new TypeError('the step is not an elicitation')
  const text = textOf(task.content)
  const isFilled = isObject(guarded('response', () => parseJson(text, meter)))
  // The schema checks use ordinary JavaScript numbers.
  const plain: TemplateValue = isFilled ? JSON.parse(text) : {}
  if (isDeeper(plain, maxAnswerDepth))
    throw new StepError(
      `elicitation request failed: the response is nested more than ${maxAnswerDepth} levels deep`,
    )
  const violations = step.schema.violations(plain, (units) => meter.spend(units))
  if (violations.length > 0)
    throw new StepError(`the response does not match the schema: ${violations.join('; ')}`)
  return isFilled ? task.content : shared(Buffer.from('{}'))
}

function isDeeper(value: TemplateValue, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return depth === 0 || Object.values(value).some((inner: TemplateValue) => isDeeper(inner, depth - 1))
}

/** Returns the result of the workflow call. Throws WorkflowError. */
function output(
  program: WorkflowProgram,
  state: ExecutionState,
  scope: ExpansionScope,
  last: string | undefined,
): SharedBytes {
  const { meter } = scope
  const value = program.output
    ? buildOutput(program.output, scope)
    : asWorkflowError('the output', () => outputOf(program, state, last, meter))
  const text = asWorkflowError('the output', () => jsonText(value, meter))
  const structured = isObject(value) ? `,"structuredContent":${text}` : ''
  return shared(Buffer.from(`{"content":[{"type":"text","text":${JSON.stringify(text)}}]${structured}}`))
}

function outputOf(
  program: WorkflowProgram,
  { steps }: ExecutionState,
  last: string | undefined,
  meter: TemplateMeter,
): TemplateValue {
  const step = last === undefined ? undefined : steps.get(last)
  return step && last !== undefined ? resultOf(program, last, step.output, meter).output : null
}

function asWorkflowError<T>(where: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof EvaluationError || error instanceof StepError)
      throw new WorkflowError(`${where}: ${error.message}`)
    throw error
  }
}
