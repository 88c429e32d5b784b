/**
 * Composite tools, which are workflows that combine backend tools and are offered as tools.
 *
 * The engine creates a Composer and passes the Composer to the catalog. There is no other entry point.
 */
import { type CompositeTool, formatViolations } from '../../../../schemas/index.ts'
import { CheckBudget, workflowViolations } from '../../../../schemas/workflow/index.ts'
import type { Composer } from '../../model/catalog/entries.ts'
import { compileWorkflow } from './compile.ts'
import { type LeftOut, makeComposer } from './compose.ts'
import type { WorkflowParts } from './context.ts'

export { Evaluator, workflowWorker } from './evaluation/evaluator.ts'

/**
 * Creates the workflows of a server. Returns undefined if no workflow can be offered. Expects valid definitions. Omits
 * definitions that exceed the check budget.
 */
export function makeWorkflows(
  definitions: readonly CompositeTool[] | undefined,
  parts: WorkflowParts,
): Composer | undefined {
  if (!definitions || definitions.length === 0) return undefined
  const { usable, beyond } = checked(definitions)
  return makeComposer(usable.map(compileWorkflow), beyond, parts)
}

/**
 * Returns one line with a path for each error in the definitions. Includes errors that admission finds, and errors that
 * are found only by compiling.
 */
export function workflowErrors(definitions: readonly CompositeTool[] = []): readonly string[] {
  return checked(definitions).errors
}

/** Returns one line for each definition that is omitted because all definitions together exceed the check budget. */
export function workflowsBeyond(definitions: readonly CompositeTool[] = []): readonly string[] {
  return checked(definitions).beyond.map(({ reason }) => reason)
}

interface Checked {
  readonly errors: readonly string[]
  readonly usable: readonly CompositeTool[]
  readonly beyond: readonly LeftOut[]
}

/**
 * Results of checks. Results are cached because a check may be slow, and because the same definitions are checked
 * several times.
 */
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
    return [`${path}: ${error instanceof Error ? error.message : 'invalid definition'}`]
  }
}
