/** Guardrails: what is found in arguments and results of calls, and what becomes of it. */
export { explainGuardrails } from './explain.ts'
export type { Guard } from './guard.ts'
export { ListMarks } from './lists/list-marks.ts'
export { GuardSlot } from './slot.ts'
