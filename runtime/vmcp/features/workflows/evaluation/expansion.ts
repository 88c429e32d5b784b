/**
 * Expands templates, and reports failures with their location in the workflow. All functions throw WorkLimitError when
 * the meter is exhausted.
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

/** Data for templates, and the work budget for their expansion. */
export interface ExpansionScope {
  readonly data: TemplateValue
  readonly meter: TemplateMeter
}

/** Returns the text of a template. Throws a StepError with the location `where`. */
export function expandText(template: Template, { data, meter }: ExpansionScope, where: string): string {
  return guarded(where, () => expand(template, data, meter))
}

/**
 * Returns the value of a template with a single action, or undefined for other templates. Throws a StepError with the
 * location `where`.
 */
export function singleValue(
  template: Template,
  { data, meter }: ExpansionScope,
  where: string,
): { readonly value: TemplateValue } | undefined {
  return isSingleAction(template)
    ? guarded(where, () => ({ value: valueOf(template, data, meter) }))
    : undefined
}

/** Converts template errors to StepErrors with the location `where`. */
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
 * Returns the value of a condition. Returns true if there is no condition. Throws StepError for a value other than true
 * or false.
 */
export function isWanted(condition: Template | undefined, scope: ExpansionScope): boolean {
  if (!condition) return true
  const response = conditionIn(expandText(condition, scope, 'condition'))
  if (response === undefined) throw new StepError("condition must evaluate to 'true' or 'false'")
  return response
}
