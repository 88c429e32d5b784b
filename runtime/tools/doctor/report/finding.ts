/**
 * The result of a check. There is one finding per check, in hop order. Text from peers is cleaned first
 * (report/text.ts).
 */
import type { FindingCode } from './codes.ts'

/**
 * ok: meets the requirement. warning: works, but not for all clients. failed: clients stop here. skipped: depends on a
 * failed check or a missing option. unknown: the check was inconclusive.
 */
export type Result = 'ok' | 'warning' | 'failed' | 'skipped' | 'unknown'

export interface Fix {
  readonly text: string
  /** The provider's documentation page. */
  readonly docs?: string | undefined
}

/** A check's outcome. `walk` adds the remaining fields of the finding. */
export interface CheckOutcome {
  readonly result: Exclude<Result, 'skipped'> | 'skipped'
  /** Absent for the results `ok` and `skipped`. */
  readonly code?: FindingCode | undefined
  /** One-line description of the observation. */
  readonly observed: string
  /** All tools or pages concerned. `observed` shows only the first ones. */
  readonly items?: readonly string[] | undefined
  /** Replaces the code's general fix when the fix depends on the observation. */
  readonly fix?: string | undefined
  /** A command that reproduces the observation. */
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
  readonly items?: readonly string[]
  readonly expected?: string
  readonly fix?: Fix
  readonly proof?: string
  /** Id of the check whose failure caused this check to be skipped. */
  readonly needs?: string
  readonly ms: number
}

export function ok(observed: string): CheckOutcome {
  return { result: 'ok', observed }
}

export function skipped(observed: string): CheckOutcome {
  return { result: 'skipped', observed }
}

type More = Pick<CheckOutcome, 'fix' | 'proof' | 'items'>

export function warning(code: FindingCode, observed: string, more: More = {}): CheckOutcome {
  return { result: 'warning', code, observed, ...more }
}

export function failed(code: FindingCode, observed: string, more: More = {}): CheckOutcome {
  return { result: 'failed', code, observed, ...more }
}
