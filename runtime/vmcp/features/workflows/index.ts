/**
 * Composite tools: workflows over the tools of backends, offered as tools of their own.
 *
 * The engine asks for a Composer and gives it to the catalog; nothing else enters here.
 */
import { type CompositeTool, formatViolations } from '../../../../schemas/index.ts'
import { CheckBudget, workflowViolations } from '../../../../schemas/workflow/index.ts'
import type { Composer } from '../../model/catalog/entries.ts'
import { compileWorkflow } from './compile.ts'
import { type LeftOut, makeComposer } from './compose.ts'
import type { WorkflowParts } from './context.ts'

export { Evaluator } from './evaluation/index.ts'
export { workflowWorker } from './worker-program.ts'

/** undefined when there is nothing to offer. Expects definitions without errors; those beyond the budget are left out. */
export function makeWorkflows(
  definitions: readonly CompositeTool[] | undefined,
  parts: WorkflowParts,
): Composer | undefined {
  if (!definitions || definitions.length === 0) return undefined
  const { usable, beyond } = checked(definitions)
  return makeComposer(usable.map(compileWorkflow), beyond, parts)
}

/** One line for every error of the definitions, with its path: the same checks as at admission, and compiling them. */
export function workflowErrors(definitions: readonly CompositeTool[] = []): readonly string[] {
  return checked(definitions).errors
}

/** One line for every definition that is left out, because all together would take too much to be checked. */
export function workflowsBeyond(definitions: readonly CompositeTool[] = []): readonly string[] {
  return checked(definitions).beyond.map(({ reason }) => reason)
}

interface Checked {
  readonly errors: readonly string[]
  readonly usable: readonly CompositeTool[]
  readonly beyond: readonly LeftOut[]
}

/** The check may take long, and the same definitions are asked about several times. */
const known = new WeakMap<readonly CompositeTool[], Checked>()

function checked(definitions: readonly CompositeTool[]): Checked {
  const before = known.get(definitions)
  if (before) return before
  const budget = new CheckBudget()
  const errors: string[] = []
  const usable: CompositeTool[] = []
  const beyond: LeftOut[] = []
  for (const [index, definition] of definitions.entries()) {
    let problems: readonly string[] = []
    const isWithin = budget.attempt(() => {
      problems = violationsOf(definition, `compositeTools[${index}]`, budget)
    })
    if (isWithin) {
      errors.push(...problems)
      usable.push(definition)
    } else beyond.push({ name: definition.name, reason: problems.join('; ') })
  }
  const result = { errors, usable, beyond }
  known.set(definitions, result)
  return result
}

function violationsOf(definition: CompositeTool, path: string, budget: CheckBudget): string[] {
  const violations = workflowViolations(definition, path, budget)
  if (violations.length > 0) return violations.map((violation) => formatViolations([violation]))
  try {
    compileWorkflow(definition)
    return []
  } catch (error) {
    return [`${path}: ${error instanceof Error ? error.message : 'cannot be used'}`]
  }
}
