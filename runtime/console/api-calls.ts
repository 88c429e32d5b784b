/** Types for calls, callers and sessions in the console's API. */
export const outcomes = ['success', 'denied', 'failure', 'error', 'unauthenticated', 'cancelled'] as const
export type CallResultKind = (typeof outcomes)[number]

export interface CallerView {
  readonly sub?: string
  readonly name?: string
  /** The client that acts for the caller (outermost `act`). */
  readonly actor?: string
}

/** Item of GET `calls?caller&backend&tool&outcome&from&to&text&cursor&limit`, newest first. */
export interface CallView {
  readonly id: string
  readonly at: string
  readonly method: string
  /** Name that the client used. */
  readonly name?: string
  readonly original?: string
  readonly backend?: string
  readonly caller?: CallerView & { readonly client?: string }
  /** Twelve hex digits of a hash, never the session id. */
  readonly session?: string
  readonly era?: string
  readonly ms: number
  readonly outcome: CallResultKind
  readonly denied?: { readonly by: DeniedBy; readonly policies?: readonly string[] }
  readonly error?: { readonly code?: number; readonly message?: string }
  readonly payload: 'none' | 'recorded' | 'withheld' | 'evicted' | 'elsewhere'
  readonly trace?: string
}

export type DeniedBy = 'policy' | 'rate_limit' | 'quota' | 'origin' | 'pin' | 'webhook' | 'guardrail'

/** GET `calls/{id}/payload`, for auditors and the call's caller. */
export interface PayloadView {
  readonly id: string
  readonly arguments?: string
  readonly result?: string
  readonly truncated: boolean
}

/** Item of GET `sessions`. DELETE `sessions/{hash}` ends a session. */
export interface ListedSession {
  readonly hash: string
  readonly caller?: CallerView
  readonly client?: string
  readonly era: string
  readonly openedAt: string
  readonly lastUsedAt: string
  readonly streams: number
  readonly mine: boolean
}

/** Item of GET `tasks`. DELETE `tasks/{hash}` cancels a task. */
export interface ListedTask {
  readonly hash: string
  readonly caller: CallerView
  readonly tool: string
  /** Absent for a task that Gatehouse itself runs, such as a workflow. */
  readonly backend?: string
  /** The state when the client last read the task. */
  readonly state: 'working' | 'input_required'
  readonly startedAt: string
  readonly expiresAt: string
  readonly mine: boolean
}
