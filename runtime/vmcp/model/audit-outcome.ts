/** Determines audit outcomes for calls that scripts and the console start inside this server. */
import { GatehouseError } from '../../../schemas/index.ts'
import { type AuditOutcome, isToolError } from '../../observe/index.ts'
import type { Outcome } from './outcome.ts'

/** Returns the audit outcome for a call. `outcome` is undefined if the call failed with `failure`. */
export function auditOutcome(outcome: Outcome | undefined, failure: unknown): AuditOutcome {
  if (failure instanceof GatehouseError && failure.code === 'FORBIDDEN') return 'denied'
  if (!outcome) return 'error'
  return outcome.kind === 'result' && !isToolError(outcome.result) ? 'success' : 'application_error'
}
