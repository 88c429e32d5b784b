/** Public API of the guardrails, which scan the arguments and results of calls. */
export { explainGuardrails } from './explain.ts'
export type { Guard } from './guard.ts'
export { ListMarks } from './lists/list-marks.ts'
export { GuardSlot } from './slot.ts'
