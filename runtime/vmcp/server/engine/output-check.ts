import type { CheckOutput } from '../../backends/openapi/output-check.ts'
import type { Evaluator } from '../../features/workflows/index.ts'

/** Returns a check that compares results of REST services with schemas in a worker. */
export function outputCheck(evaluator: Evaluator): CheckOutput {
  return (schema, value, { backend, tool, caller, signal }) => {
    const requester = { client: { caller, session: undefined }, signal, subject: { backend, tool } }
    return evaluator.violations({ schemas: JSON.stringify([schema]), value }, requester)
  }
}
