/**
 * Templates of one place in a workflow: expanding one, and what is said when that fails.
 */
import type { Template } from '../../../schemas/workflow/index.ts'
import {
  EvaluationError,
  expand,
  isSingleAction,
  type TemplateValue,
  valueOf,
} from '../../expr/template/index.ts'
import { StepError } from './errors.ts'

/** The text of a template. Throws StepError naming `where`. */
export function expandText(template: Template, data: TemplateValue, where: string): string {
  return guarded(where, () => expand(template, data))
}

/** The value of a template that is one action; undefined for any other template. Throws StepError naming `where`. */
export function singleValue(
  template: Template,
  data: TemplateValue,
  where: string,
): { readonly value: TemplateValue } | undefined {
  return isSingleAction(template) ? guarded(where, () => ({ value: valueOf(template, data) })) : undefined
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
