/** What quotas are asked, and what they tell. */
import type { Quota } from '../../../schemas/index.ts'
import type { Caller } from '../../net/index.ts'
import type { OutageEvent } from '../limits/outage.ts'
import type { Period } from './window.ts'

/** What happened, for metrics, events and audit. */
export type QuotaEvent =
  | OutageEvent
  /** A call went on uncounted, or what it cost was lost. */
  | { readonly kind: 'fail_open' }
  /** `share` is what a budget of the call has used of its limit; 1 and more: all of it. */
  | { readonly kind: 'used'; readonly quota: Quota; readonly share: number; readonly period: Period }
  /** A call over a quota. `enforced` false: it goes on. */
  | { readonly kind: 'exceeded'; readonly quota: Quota; readonly enforced: boolean }
  /** The memory has no space for budgets of further callers: they share one. */
  | { readonly kind: 'full' }

/** A call that is about to be made. */
export interface QuotaCall {
  readonly caller: Caller
  readonly backend: string
  /** Name of the tool at its backend. */
  readonly tool: string
}

/** What a call turned out to be. */
export interface QuotaUse {
  /** False: nothing of it reached the backend. */
  readonly sent: boolean
  readonly bytes: number
  /** In micro-units, as the backend reported it. */
  readonly cost?: number | undefined
}

/** The state of a budget, as its holder may know it. */
export interface QuotaState {
  readonly quota: string
  readonly per: Quota['per']
  readonly unit: Quota['unit']
  readonly window: Quota['window']
  readonly limit: number
  readonly remaining: number
  /** RFC 3339 time. */
  readonly resetsAt: string
}

/** A call that was counted. */
export interface Reservation {
  /** True when what the backend reports as cost counts. */
  readonly readsCost: boolean
  /** To be called once. The budgets that block and are used to 80 % and more by now. */
  settle(use: QuotaUse): readonly QuotaState[]
}

export interface Quotas {
  /** Undefined: nothing is counted. Rejects with QUOTA_EXCEEDED. */
  reserve(call: QuotaCall): Promise<Reservation | undefined>
  /** Resolves once everything that is to be written is written. */
  settled(): Promise<void>
}
