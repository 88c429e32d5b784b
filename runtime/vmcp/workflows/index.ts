/**
 * Composite tools: workflows over the tools of backends, offered as tools of their own.
 *
 * The engine asks for a Composer and gives it to the catalog; nothing else enters here.
 */
import { type CompositeTool, formatViolations } from '../../../schemas/index.ts'
import { CheckBudget, workflowViolations } from '../../../schemas/workflow/index.ts'
import type { Composer } from '../catalog/types.ts'
import { compileWorkflow } from './compile.ts'
import { makeComposer } from './compose.ts'
import type { WorkflowParts } from './context.ts'

export { Evaluator } from './evaluation/index.ts'

/** undefined when there is nothing to offer. Expects definitions without problems. */
export function makeWorkflows(
  definitions: readonly CompositeTool[] | undefined,
  parts: WorkflowParts,
): Composer | undefined {
  if (!definitions || definitions.length === 0) return undefined
  return makeComposer(definitions.map(compileWorkflow), parts)
}

/** One line for every error of the definitions, with its path: the same checks as at admission, and compiling them. */
export function workflowErrors(definitions: readonly CompositeTool[] | undefined): string[] {
  const budget = new CheckBudget()
  return (definitions ?? []).flatMap((definition, index) => {
    const path = `compositeTools[${index}]`
    const problems = workflowViolations(definition, path, budget)
    if (problems.length > 0) return problems.map((problem) => formatViolations([problem]))
    try {
      compileWorkflow(definition)
      return []
    } catch (error) {
      return [`${path}: ${error instanceof Error ? error.message : 'cannot be used'}`]
    }
  })
}
