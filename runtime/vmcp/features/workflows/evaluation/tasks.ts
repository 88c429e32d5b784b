/** What can be computed for an execution, and what comes of it: the messages between the server and a worker. */
import type { ArgumentTypes } from './arguments.ts'
import type { SharedBytes } from './bytes.ts'
import type { ExecutionState } from './state.ts'

export interface Tasks {
  /** Whether the arguments of the call match the parameters. */
  check: { task: object; result: undefined }
  /** What a step does now. */
  plan: { task: { readonly step: string; readonly types: ArgumentTypes }; result: StepPlan }
  /** The next iterations of a loop, some of them. */
  iterations: {
    task: {
      readonly step: string
      readonly items: SharedBytes
      readonly from: number
      readonly types: ArgumentTypes
    }
    result: readonly IterationPlan[]
  }
  /** Why a tool failed, by its own result; undefined: it did not. */
  failure: { task: { readonly bytes: SharedBytes }; result: string | undefined }
  /** Whether what a user filled in matches the schema of the question; what counts of it. */
  response: { task: { readonly step: string; readonly content: SharedBytes }; result: SharedBytes }
  /** The result of the call; `last` is the step whose output is returned where the workflow has none. */
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
  /** `started` false: it is the condition that failed. */
  | { readonly kind: 'failed'; readonly message: string; readonly started: boolean }

export type IterationPlan = Extract<StepPlan, { readonly kind: 'skip' | 'call' | 'failed' }>

/** A value and the schemas that it must match, beside any workflow. Both are JSON; `schemas` is a list. */
export interface SchemaTask<Bytes extends Uint8Array = Uint8Array> {
  readonly schemas: string
  readonly value: Bytes
}

/** `maxWork`: most units of work for one task. */
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
