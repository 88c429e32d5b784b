/**
 * What the console sees of the server that it shows: read-only data and a few operations, handed over by whoever starts
 * both. The server's own view fits these shapes.
 */
import type { DirectCall, DirectResult } from '../mcp/index.ts'
import type { Caller } from '../net/index.ts'
import type {
  ConsoleRecord,
  OpenProblem,
  PolicyRecord,
  RecentFailure,
  ShownSession,
  ShownTool,
} from '../observe/index.ts'
import type { DescribedPolicies } from '../policy/index.ts'
import type {
  ApprovalWay,
  CallResultKind,
  DeniedBy,
  Health,
  LockDifference,
  LockedKind,
  PinDriftState,
  TryRequest,
} from './api.ts'

export interface ConsoleBackend {
  readonly name: string
  readonly transport: string
  readonly authType: string
  /** Revision of the protocol that was last agreed on. */
  readonly revision: string | undefined
  readonly era: string
  readonly health: {
    readonly status: Health
    /** Milliseconds since the epoch, as all times here. */
    readonly lastTransitionAt: number | undefined
    readonly lastError:
      | { readonly category: string; readonly detail?: string | undefined; readonly at: number }
      | undefined
    readonly circuit: { readonly state: string; readonly changedAt: number } | undefined
  }
  readonly calls: { readonly latencyMs: { readonly p50: number; readonly p95: number } | undefined }
  /** Why the backend is not served; undefined when it is. */
  readonly excluded: readonly string[] | undefined
}

/** How a try has ended. */
export interface Tried {
  readonly request: TryRequest
  readonly caller: Caller
  readonly backend: string
  readonly ms: number
  readonly outcome: CallResultKind
  /** What refused it, if anything. */
  readonly denied?: DeniedBy | undefined
  /** Undefined where no policy was asked. */
  readonly policy: PolicyRecord | undefined
  readonly error?: { readonly code?: number; readonly message: string }
}

export interface ConsoleView {
  /** Name of the virtual server. */
  readonly server: string
  /** Sorted by name, the excluded ones included. */
  backends(): readonly ConsoleBackend[]
  /** What is wrong now, the oldest first. */
  problems(): readonly OpenProblem[]
  /** What failed call by call within the last hour, the latest first. */
  recent(): readonly RecentFailure[]
  sessionCount(): number
  sessions(): readonly ShownSession[]
  /** False when none has this hash. */
  endSession(hash: string): Promise<boolean>
  /** The configuration in force. */
  config(): unknown
  /** The policies in force, the same object as long as they are; undefined without policies. */
  policies(): DescribedPolicies | undefined
  /** URL of the external decision point that decides in their place. */
  decisionPoint?(): string | undefined
  /** `accounts`: the page of connected accounts of an embedded authorization server. */
  connection(): { readonly url: string; readonly auth: boolean; readonly accounts: string | undefined }
  /** Checks a backend now; false when there is none of that name. */
  recheck(backend: string): Promise<boolean>
  /** Raw JSON: a result, or an error object. Rejects with GatehouseError. */
  call(call: DirectCall): Promise<DirectResult>
  /** What this caller could name, and what is hidden from everybody; sorted by name. Never rejects. */
  tools(caller: Caller): Promise<readonly ShownTool[]>
  /** Audits what somebody did here. */
  acted(record: ConsoleRecord): void
  /** How backends compare with their locks, sorted by name; undefined while pinning is off. */
  pins(): readonly ShownPins[] | undefined
  /** One difference with both definitions; undefined when there is none of that name. */
  pinDetail(backend: string, kind: LockedKind, name: string): ReviewedDrift | undefined
}

/** What one backend offers beside what was approved of it. */
export interface ShownPins {
  readonly backend: string
  readonly lock: 'ok' | 'missing' | 'invalid'
  /** Names of its locks. */
  readonly locks: readonly string[]
  /** Why the lock cannot be used. */
  readonly failure: string | undefined
  /** There is no lock, and nothing of the backend is offered for that. */
  readonly closed: boolean
  readonly observed: boolean
  readonly counts: Readonly<Record<'pinned' | PinDriftState, number>>
  readonly drift: readonly LockDifference[]
}

/** A difference in full, for whoever reviews it. */
export interface ReviewedDrift extends LockDifference {
  /** JSON text of what is offered; undefined for a removed item. */
  readonly offered: string | undefined
  /** JSON text of what was approved, and its digest; undefined for a new item. */
  readonly approved: string | undefined
  readonly approvedDigest: string | undefined
  /** `cut`: something of it is not shown. */
  readonly diff: readonly {
    readonly part: string
    readonly lines: readonly string[]
    readonly cut: boolean
  }[]
  /** The backend shows callers different things. */
  readonly perCaller: boolean
  /** The lock of the configuration is another by now, and about to be in force. */
  readonly changing: boolean
}

/** Makes of a reviewed difference what was approved. */
export interface Approver {
  /** How that is done. Never throws. */
  way(reviewed: ReviewedDrift): ApprovalWay
  /** Writes it; the file that it stands in. Rejects with APPROVAL_STALE or LOCK_NOT_WRITTEN, and has changed nothing then. */
  approve(reviewed: ReviewedDrift): Promise<string>
}
