/**
 * The state of an execution. The server stores bytes, but templates read parsed values.
 *
 * A value is parsed when a template first reads it, so a large unused result costs nothing.
 * Source: docs/reference/specification/virtual-server.md#compositeTools, compositeTools (what templates see).
 */
import {
  type TemplateMeter,
  type TemplateValue,
  type ValueObject,
  isList,
  isObject,
  parseJson,
} from '../../../../expr/template/index.ts'
import type { WorkflowProgram } from './program.ts'
import { readToolResult } from './tool-result.ts'

/** JSON text of an execution in shared memory. The server stores the text, and workers read it without copying it. */
export type SharedBytes = Uint8Array<SharedArrayBuffer>

export function shared(bytes: Uint8Array): SharedBytes {
  const copy = new Uint8Array(new SharedArrayBuffer(bytes.length))
  copy.set(bytes)
  return copy
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
}

export interface IterationState {
  readonly status: 'completed' | 'failed' | 'skipped' | 'cancelled'
  /** Result as raw MCP JSON. */
  readonly result?: SharedBytes
  readonly error?: string
}

/** Source of a step's output. */
export type StepOutput =
  | { readonly kind: 'none' }
  | { readonly kind: 'defaults' }
  /** The result is raw MCP JSON. */
  | { readonly kind: 'result'; readonly bytes: SharedBytes }
  | {
      readonly kind: 'response'
      readonly action: string
      readonly content?: SharedBytes
      readonly skipped?: true
    }
  /** `items` is a JSON array. */
  | { readonly kind: 'loop'; readonly items: SharedBytes; readonly iterations: readonly IterationState[] }

export interface StepState {
  readonly status: string
  readonly output: StepOutput
  readonly error?: string
}

export interface ExecutionState {
  /** Arguments of the call as a raw JSON object. */
  readonly args: SharedBytes
  readonly steps: ReadonlyMap<string, StepState>
  readonly workflow: {
    readonly id: string
    readonly start_time: string
    readonly status: string
    readonly step_count: number
    readonly duration_ms: number
  }
}

/** Returns the root value for templates. Reading a member of this value can throw the meter's errors. */
export function dataOf(program: WorkflowProgram, state: ExecutionState, meter: TemplateMeter): ValueObject {
  const { args, steps, workflow } = state
  const members = [...steps].map(([id, step]) => [id, stepData(program, id, step, meter)] as const)
  return object(
    {
      // The object has no prototype, because step ids are arbitrary.
      steps: Object.assign(Object.create(null), Object.fromEntries(members)),
      vars: {},
      workflow: {
        ...workflow,
        step_count: BigInt(workflow.step_count),
        duration_ms: BigInt(Math.round(workflow.duration_ms)),
      },
    },
    { params: () => paramsOf(program, args, meter) },
  )
}

/**
 * Returns the arguments with the defaults applied. An argument that is present overrides its default, even if the
 * argument is null.
 */
function paramsOf({ defaults }: WorkflowProgram, args: SharedBytes, meter: TemplateMeter): ValueObject {
  const given = parseJson(textOf(args), meter)
  return isObject(given) ? withDefaults(defaults, given) : {}
}

export function withDefaults(defaults: Readonly<Record<string, unknown>>, given: ValueObject): ValueObject {
  const missing = Object.entries(defaults).filter(([name]) => !Object.hasOwn(given, name))
  return { ...(Object.fromEntries(missing) as ValueObject), ...given }
}

function stepData(
  program: WorkflowProgram,
  id: string,
  { status, output, error }: StepState,
  meter: TemplateMeter,
): ValueObject {
  const result = once(() => resultOf(program, id, output, meter))
  return object(
    { status, ...(error === undefined ? {} : { error }) },
    { output: () => result().output, content: () => result().content },
  )
}

/** Returns a step's output and content. */
export function resultOf(
  program: WorkflowProgram,
  id: string,
  output: StepOutput,
  meter: TemplateMeter,
): { readonly output: TemplateValue; readonly content: ValueObject } {
  switch (output.kind) {
    case 'result':
      return readToolResult(textOf(output.bytes), meter)
    case 'defaults':
      return { output: program.steps.get(id)?.defaultResults ?? {}, content: {} }
    case 'response':
      return { output: answerData(output, meter), content: {} }
    case 'loop':
      return { output: loopData(output, meter), content: {} }
    default:
      return { output: {}, content: {} }
  }
}

function answerData(
  { action, content, skipped }: Extract<StepOutput, { kind: 'response' }>,
  meter: TemplateMeter,
): ValueObject {
  return {
    action,
    ...(content === undefined ? {} : { content: parseJson(textOf(content), meter) }),
    ...(skipped ? { skipped } : {}),
  }
}

/** Returns `{iterations: [{index, item, status, output, error?}], count, completed, failed}`. */
function loopData(
  { items, iterations }: Extract<StepOutput, { kind: 'loop' }>,
  meter: TemplateMeter,
): ValueObject {
  const list = parseJson(textOf(items), meter)
  const count = (wanted: IterationState['status']) =>
    iterations.filter(({ status }) => status === wanted).length
  const completed = count('completed')
  return {
    iterations: iterations.map(({ status, result, error }, index): ValueObject => {
      meter.spend(4)
      return {
        index: BigInt(index),
        item: isList(list) ? list[index] : undefined,
        status,
        output: result ? readToolResult(textOf(result), meter).output : {},
        ...(error === undefined ? {} : { error }),
      }
    }),
    count: BigInt(iterations.length),
    completed: BigInt(completed),
    failed: BigInt(iterations.length - completed - count('skipped')),
  }
}

/** Returns an object. Some members of the object are computed on first read. */
function object(fixed: ValueObject, made: Readonly<Record<string, () => TemplateValue>>): ValueObject {
  const members = Object.entries(made).map(
    ([name, make]) => [name, { enumerable: true, get: once(make) }] as const,
  )
  return Object.defineProperties({ ...fixed }, Object.fromEntries(members))
}

/** Returns a function that calls `make` on its first call and returns the same value on every call. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}
