import { type ErrorCode, GatehouseError } from '../../../../schemas/index.ts'
import type { Outcome } from '../../model/outcome.ts'

/**
 * A failed call whose result explains the failure to the model. The error code decides how the failure affects the
 * backend's health, and the client receives the outcome.
 */
export class ReadableFailure extends GatehouseError {
  readonly outcome: Outcome

  constructor(code: ErrorCode, detail: string, outcome: Outcome) {
    super(code, { detail })
    this.outcome = outcome
  }
}
