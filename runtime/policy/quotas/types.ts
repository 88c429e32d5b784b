/** Quota interfaces and events. */
import type { Quota } from '../../../schemas/index.ts'
import type { Caller } from '../../net/index.ts'
import type { OutageEvent } from '../limits/outage.ts'
import type { Period } from './window.ts'

/** An event for metrics, logs and audit. */
export type QuotaEvent =
  | OutageEvent
  /** A call was not counted, or its cost was lost. */
  | { readonly kind: 'fail_open' }
  /** `share` is the used fraction of a budget; 1 or more when the budget is exhausted. */
  | { readonly kind: 'used'; readonly quota: Quota; readonly share: number; readonly period: Period }
  /** A call exceeded a quota. If `enforced` is false, the call was allowed. */
  | { readonly kind: 'exceeded'; readonly quota: Quota; readonly enforced: boolean }
  /** The memory store has no room for further callers' budgets; these callers then share one budget. */
  | { readonly kind: 'full' }

/** A call that has not been sent yet. */
export interface QuotaCall {
  readonly caller: Caller
  readonly backend: string
  /** The tool's name at its backend. */
  readonly tool: string
}

/** Outcome of a call. */
export interface QuotaUse {
  /** False when the call was not sent to the backend. */
  readonly sent: boolean
  readonly bytes: number
  /** Cost in micro-units, as reported by the backend. */
  readonly cost?: number | undefined
}

/** The state of a budget, as far as the caller is allowed to see it. */
export interface QuotaState {
  readonly quota: string
  readonly per: Quota['per']
  readonly unit: Quota['unit']
  readonly window: Quota['window']
  readonly limit: number
  readonly remaining: number
  /** End of the period, as an RFC 3339 timestamp. */
  readonly resetsAt: string
}

/** A call that was counted. */
export interface Reservation {
  /** True when costs reported by the backend are counted. */
  readonly readsCost: boolean
  /** Completes the call. Call this method exactly once. Returns the blocking budgets that are now at least 80% used. */
  settle(use: QuotaUse): readonly QuotaState[]
}

export interface Quotas {
  /** Counts a call. Returns undefined when no quota applies. Rejects with QUOTA_EXCEEDED. */
  reserve(call: QuotaCall): Promise<Reservation | undefined>
  /** Resolves when all pending writes are complete. */
  settled(): Promise<void>
}
