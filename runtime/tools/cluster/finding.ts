/** One line of what `why` found. */
import { plainReason, reasonRow } from '../../../schemas/reasons/index.ts'

export interface WhyFinding {
  /** Where in the order of cause. */
  readonly section: 'spec' | 'refers to' | 'workload' | 'pod' | 'event' | 'backend' | 'rights'
  /** Kind and name. */
  readonly object: string
  /** `unknown`: the caller may not read it. */
  readonly result: 'ok' | 'warning' | 'failed' | 'unknown'
  readonly reason?: string
  readonly message: string
  readonly step?: string
}

/** The next step for a reason, for a terminal; empty where there is none. */
export function stepOf(reason: string | undefined): { readonly step?: string } {
  const step = reason === undefined ? '' : (reasonRow(reason)?.step ?? '')
  return step === '' ? {} : { step: plainReason(step) }
}
