/** Evaluation of workflows: templates, schemas, results. Independent of calls, clocks and clients. */
export { argumentTypes, type ArgumentTypes } from './arguments.ts'
export { type SharedBytes, shared } from './bytes.ts'
export { Evaluator } from './evaluator.ts'
export { outputSchema } from './output.ts'
export { compileProgram, type WorkflowProgram } from './program.ts'
export type { ExecutionState, IterationState, StepOutput, StepState } from './state.ts'
export type { IterationPlan, StepPlan, TaskKind, Tasks } from './tasks.ts'
