/**
 * Templates of one place in a workflow: expanding one, and what is said when that fails. Everything here throws
 * WorkLimitError when the meter has no more.
 */
import { conditionIn, type Template } from '../../../../../schemas/workflow/index.ts'
import {
  EvaluationError,
  expand,
  isSingleAction,
  type TemplateMeter,
  type TemplateValue,
  valueOf,
} from '../../../../expr/template/index.ts'
import { StepError } from '../errors.ts'

/** What templates see, and the budget that they use. */
export interface ExpansionScope {
  readonly data: TemplateValue
  readonly meter: TemplateMeter
}

/** The text of a template. Throws StepError naming `where`. */
export function expandText(template: Template, { data, meter }: ExpansionScope, where: string): string {
  return guarded(where, () => expand(template, data, meter))
}

/** The value of a template that is one action; undefined for any other template. Throws StepError naming `where`. */
export function singleValue(
  template: Template,
  { data, meter }: ExpansionScope,
  where: string,
): { readonly value: TemplateValue } | undefined {
  return isSingleAction(template)
    ? guarded(where, () => ({ value: valueOf(template, data, meter) }))
    : undefined
}

/** Turns errors of templates into errors of the step, naming `where`. */
export function guarded<T>(where: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof EvaluationError)
      throw new StepError(`${where}: template expansion failed: ${error.message}`)
    throw error
  }
}

/**
 * True unless there is a condition that says otherwise. Throws StepError for one that says neither true nor false.
 */
export function isWanted(condition: Template | undefined, scope: ExpansionScope): boolean {
  if (!condition) return true
  const response = conditionIn(expandText(condition, scope, 'condition'))
  if (response === undefined) throw new StepError("condition must evaluate to 'true' or 'false'")
  return response
}
