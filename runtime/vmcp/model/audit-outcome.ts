/** The outcome that the audit log has for a call that was made inside of this server: of a script, or of the console. */
import { GatehouseError } from '../../../schemas/index.ts'
import { type AuditOutcome, isToolError } from '../../observe/index.ts'
import type { Outcome } from './outcome.ts'

/** `outcome` undefined: there was none, and `failure` says why. */
export function auditOutcome(outcome: Outcome | undefined, failure: unknown): AuditOutcome {
  if (failure instanceof GatehouseError && failure.code === 'FORBIDDEN') return 'denied'
  if (!outcome) return 'error'
  return outcome.kind === 'result' && !isToolError(outcome.result) ? 'success' : 'application_error'
}
