/** What workflows compute: templates, schemas, results. Knows nothing of calls, clocks and clients. */
export { argumentTypes, type ArgumentTypes } from './arguments.ts'
export { bufferOf, type SharedBytes, shared } from './bytes.ts'
export { evaluationPool, Evaluator, type EvaluatorLimits, evaluatorLimits } from './evaluator.ts'
export { outputSchema } from './output.ts'
export { compileProgram, type Program } from './program.ts'
export type { ExecutionState, IterationState, StepOutput, StepState } from './state.ts'
export type { IterationPlan, Plan, Task, TaskKind, Tasks } from './tasks.ts'
