/** Types of the console's overview: the backends with their health and problems. */

export type Health = 'healthy' | 'degraded' | 'unhealthy' | 'unauthenticated' | 'unknown'

/** One minute of calls. Lists start with the oldest minute. */
export interface Minute {
  readonly at: string
  readonly calls: number
  readonly failed: number
  readonly denied: number
  /** Duration in milliseconds; absent when there were no calls. */
  readonly p95?: number
  /** The worst health during the minute. */
  readonly health?: Health
}

/** GET `overview`. */
export interface Overview {
  /** Number of backends that are down, by cause. Absent if no backend is down. */
  readonly summary?: string
  /** Backends that are down, grouped by cause, from the largest group to the smallest. */
  readonly down: readonly DownGroup[]
  readonly healthy: boolean
  readonly asOf: string
  /** Totals for the last hour. */
  readonly totals: {
    readonly calls: number
    readonly denied: number
    readonly failed: number
    readonly p50?: number
    readonly p95?: number
  }
  readonly minutes: readonly Minute[]
  readonly sessions: number
  readonly problems: readonly ProblemView[]
  /** Individual failures in the last hour, newest first. */
  readonly failures: readonly FailureView[]
  readonly backends: readonly BackendView[]
}

/** Backends that are down for the same cause. */
export interface DownGroup {
  readonly category: string
  /** Short label that follows a count, as in "3 …". */
  readonly label: string
  /** Description and next step for the first backend in the group. */
  readonly text: string
  readonly fix: string
  readonly backends: readonly string[]
}

export interface ProblemView {
  readonly type: string
  readonly backend?: string
  readonly since: string
  readonly message: string
  /** The next step. */
  readonly fix: string
}

export interface FailureView {
  readonly type: string
  readonly backend?: string
  /** Cause, from a fixed set of words. */
  readonly reason?: string
  readonly message: string
  /** The next step. */
  readonly fix: string
  readonly count: number
  readonly first: string
  readonly last: string
}

/** Item of GET `backends`. */
export interface BackendView {
  readonly name: string
  readonly health: Health
  readonly since?: string
  readonly transport: string
  readonly authType: string
  readonly era: string
  readonly revision?: string
  readonly tools: number
  /** Calls in the last hour, counted as in `minutes`. A tool that reports an error counts as failed. */
  readonly calls: number
  readonly failed: number
  readonly p50?: number
  readonly p95?: number
  readonly circuit?: { readonly state: string; readonly since?: string }
  readonly lastError?: {
    readonly category: string
    readonly message: string
    /** The next step. */
    readonly fix: string
    readonly at: string
  }
  readonly excluded?: readonly string[]
  readonly signInUrl?: string
  readonly minutes: readonly Minute[]
}
