/**
 * What a check reports: one finding per check, in the order in which a client meets the hops.
 *
 * Texts of peers are cleaned before they get in here (report/text.ts).
 */
import type { FindingCode } from './codes.ts'

/**
 * ok: as it must be. warning: works, but not for everybody. failed: a client cannot get past this. skipped: needs
 * something that failed or was not given. unknown: this program could not find out, by its own limits.
 */
export type Result = 'ok' | 'warning' | 'failed' | 'skipped' | 'unknown'

export interface Fix {
  readonly text: string
  /** Page of the provider. */
  readonly docs?: string | undefined
}

/** What one check found out; the walk adds the rest. */
export interface CheckOutcome {
  readonly result: Exclude<Result, 'skipped'> | 'skipped'
  /** Absent for ok and skipped. */
  readonly code?: FindingCode | undefined
  /** One line: what was seen. */
  readonly observed: string
  /** In place of the code's own text, when it depends on what was seen. */
  readonly fix?: string | undefined
  /** A command that shows the same. */
  readonly proof?: string | undefined
}

export interface Finding {
  readonly id: string
  readonly hop: string
  /** URL, host or file that was checked. */
  readonly object: string
  readonly result: Result
  readonly code?: FindingCode
  readonly observed: string
  readonly expected?: string
  readonly fix?: Fix
  readonly proof?: string
  /** The check whose failure made this one be skipped. */
  readonly needs?: string
  readonly ms: number
}

export function ok(observed: string): CheckOutcome {
  return { result: 'ok', observed }
}

export function skipped(observed: string): CheckOutcome {
  return { result: 'skipped', observed }
}

type More = Pick<CheckOutcome, 'fix' | 'proof'>

export function warning(code: FindingCode, observed: string, more: More = {}): CheckOutcome {
  return { result: 'warning', code, observed, ...more }
}

export function failed(code: FindingCode, observed: string, more: More = {}): CheckOutcome {
  return { result: 'failed', code, observed, ...more }
}
