/** A finding reported by `why`. */
import { plainReason, reasonRow } from '../../../schemas/reasons/index.ts'

export interface WhyFinding {
  /** The section that contains the finding; the sections are in causal order. */
  readonly section: 'spec' | 'refers to' | 'workload' | 'pod' | 'event' | 'backend' | 'rights'
  /** Kind and name. */
  readonly object: string
  /** `unknown` when the caller has no permission to read the object. */
  readonly result: 'ok' | 'warning' | 'failed' | 'unknown'
  readonly reason?: string
  readonly message: string
  readonly step?: string
}

/** Returns the next step for a reason as plain text, or nothing. */
export function stepOf(reason: string | undefined): { readonly step?: string } {
  const step = reason === undefined ? '' : (reasonRow(reason)?.step ?? '')
  return step === '' ? {} : { step: plainReason(step) }
}
