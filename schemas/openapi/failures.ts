/** The two ways in which a conversion fails: the whole document is rejected, or one operation is skipped. */
import { GatehouseError, ModuleError } from '../errors.ts'

/** Rules that reject a whole document. */
export type DocumentRule =
  | 'syntax'
  | 'version'
  | 'structure'
  | 'size'
  | 'depth'
  | 'values'
  | 'expansion'
  | 'duplicate-key'
  | 'aliases'
  | 'external-reference'
  | 'operation-count'
  | 'no-operations'

/** Returns the error for a rejected document. `data.rule` contains the rule. */
export function documentRejected(rule: DocumentRule, detail: string, data: object = {}): GatehouseError {
  return new GatehouseError('INVALID_CONFIG', {
    detail: `OpenAPI document rejected (${rule}): ${detail}`,
    data: { rule, ...data },
  })
}

/** Reasons to skip an operation, each with advice for the operator. */
export const skipReasons = {
  trace: 'TRACE requests can reveal credentials; exclude the operation.',
  callbacks: 'Exclude the operation. Gatehouse does not receive callbacks.',
  cookie_parameter: 'Make the cookie parameter optional, or pass the value in a header.',
  parameter: 'Correct the parameter in the document.',
  parameter_media_type: 'Use application/json for the content of the parameter.',
  parameter_style: 'Use a style that OpenAPI defines for this location.',
  path_reserved: 'Remove allowReserved from the path parameter.',
  path_template: 'Correct the path. Each name in braces needs a path parameter, and a query is not allowed.',
  restricted_header: 'Make the header optional, or exclude the operation.',
  argument_collision: 'Rename one of the parameters.',
  body_media_type:
    'Exclude the operation. Only bodies in application/json and application/x-www-form-urlencoded are supported.',
  body_on_get: 'Use POST for an operation with a body.',
  form_body: 'Describe the form as an object with properties.',
  schema_too_large: 'Simplify the schema.',
  too_many_members: 'Exclude the operation, or split the large object or list.',
  unresolved_reference: 'Correct the $ref, or add the missing component.',
  equal_names: 'Give each operation its own operationId, or exclude all but one of them.',
  invalid_name: 'Give the operation an operationId of at most 128 characters.',
  override: 'Correct the override, or exclude the operation.',
  structure: 'Correct the operation in the document.',
} as const

export type SkipReason = keyof typeof skipReasons

/** Ends the conversion of one operation. */
export class OperationSkipped extends ModuleError {
  readonly reason: SkipReason

  constructor(reason: SkipReason, message: string) {
    super(message)
    this.reason = reason
  }
}
