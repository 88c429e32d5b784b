/** An execution's tasks and their results, which are messages between the server and a worker. */
import type { ArgumentTypes } from './arguments.ts'
import type { ExecutionState, SharedBytes } from './state.ts'

export interface Tasks {
  /** Checks the call's arguments against the parameters. */
  check: { task: object; result: undefined }
  /** Plans a step. */
  plan: { task: { readonly step: string; readonly types: ArgumentTypes }; result: StepPlan }
  /** Plans the next iterations of a loop, up to the limits for one task. */
  iterations: {
    task: {
      readonly step: string
      readonly items: SharedBytes
      readonly from: number
      readonly types: ArgumentTypes
    }
    result: readonly IterationPlan[]
  }
  /** Returns the failure message in a tool's result, or undefined after success. */
  failure: { task: { readonly bytes: SharedBytes }; result: string | undefined }
  /** Checks a user's response against the schema of the elicitation, and returns the accepted content. */
  response: { task: { readonly step: string; readonly content: SharedBytes }; result: SharedBytes }
  /**
   * Returns the call's result. If the workflow does not define an output, the result is the output of the step `last`.
   */
  output: { task: { readonly last: string | undefined }; result: SharedBytes }
}

export type TaskKind = keyof Tasks
export type EvaluationTask<K extends TaskKind = TaskKind> = {
  [Name in K]: { readonly kind: Name } & Tasks[Name]['task']
}[K]

export type StepPlan =
  | { readonly kind: 'skip' }
  /** `args` is a JSON object. */
  | { readonly kind: 'call'; readonly args: SharedBytes }
  | { readonly kind: 'ask'; readonly message: string }
  /** `items` is a JSON array. */
  | { readonly kind: 'loop'; readonly items: SharedBytes; readonly count: number }
  /** `started` is false if the step's condition could not be evaluated. */
  | { readonly kind: 'failed'; readonly message: string; readonly started: boolean }

export type IterationPlan = Extract<StepPlan, { readonly kind: 'skip' | 'call' | 'failed' }>

/**
 * A value and the schemas that the value must match, independent of any workflow. Both are JSON. `schemas` is a list.
 */
export interface SchemaTask<Bytes extends Uint8Array = Uint8Array> {
  readonly schemas: string
  readonly value: Bytes
}

/** `maxWork` is the maximum number of units of work for each task. */
export type ToEvaluationWorker = { readonly maxWork: number } & (
  | { readonly source: string; readonly state: ExecutionState; readonly task: EvaluationTask }
  | SchemaTask<SharedBytes>
)

export type EvaluatedTask = Evaluated<Tasks[TaskKind]['result']>

export type Evaluated<Value> =
  | { readonly kind: 'done'; readonly value: Value; readonly spent: number }
  | {
      readonly kind: 'failed'
      readonly error: 'step' | 'workflow' | 'limit' | 'internal'
      readonly message: string
      readonly spent: number
    }
