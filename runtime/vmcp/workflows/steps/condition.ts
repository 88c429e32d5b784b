/** Conditions: templates that must give true or false. Source: spec document 3, steps, condition. */
import type { Template } from '../../../../schemas/workflow/index.ts'
import type { TemplateData } from '../context.ts'
import { expandText } from '../expansion.ts'
import { StepError } from '../errors.ts'

const responses: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['True', true],
  ['TRUE', true],
  ['false', false],
  ['False', false],
  ['FALSE', false],
])

/** White space around the response does not count. Throws StepError for any other answer. */
export function isTrue(condition: Template, data: TemplateData): boolean {
  const response = responses.get(expandText(condition, data, 'condition').trim())
  if (response === undefined) throw new StepError("condition must evaluate to 'true' or 'false'")
  return response
}
