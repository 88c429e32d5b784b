/**
 * Composite tools (workflows): the checks that the schema cannot say. Hooks run them at admission and in the sync, the
 * runtime at start. A door of its own, because it brings a JSON Schema compiler along that few need.
 */
export { workflowProblems } from './checks.ts'
