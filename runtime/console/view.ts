/**
 * Interface between the console and its server: read-only data and a few operations. The server's view implements this
 * interface.
 */
import type { DirectCall, DirectResult } from '../mcp/index.ts'
import type { Caller } from '../net/index.ts'
import type {
  Cause,
  ConsoleRecord,
  OpenProblem,
  PolicyRecord,
  RecentFailure,
  ShownSession,
  ShownTask,
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
  /** Protocol revision from the last negotiation. */
  readonly revision: string | undefined
  readonly era: string
  readonly health: {
    readonly status: Health
    /** Time in milliseconds since the epoch, like all times in this interface. */
    readonly lastTransitionAt: number | undefined
    readonly lastError: (Cause & { readonly at: number }) | undefined
    readonly circuit: { readonly state: string; readonly changedAt: number } | undefined
  }
  readonly calls: { readonly latencyMs: { readonly p50: number; readonly p95: number } | undefined }
  /** Reason why the backend is excluded; undefined for a served backend. */
  readonly excluded: readonly string[] | undefined
}

/** Result of a try. */
export interface Tried {
  readonly request: TryRequest
  readonly caller: Caller
  readonly backend: string
  readonly ms: number
  readonly outcome: CallResultKind
  /** The check that rejected the call; undefined for a call that was not rejected. */
  readonly denied?: DeniedBy | undefined
  /** Policy decision; undefined when no policy was evaluated. */
  readonly policy: PolicyRecord | undefined
  readonly error?: { readonly code?: number; readonly message: string }
}

export interface ConsoleView {
  /** The virtual server's name. */
  readonly server: string
  /** Returns all backends, including excluded backends, sorted by name. */
  backends(): readonly ConsoleBackend[]
  /**
   * Returns the address where the user must sign in to a backend, with the key. Returns undefined if no sign-in is
   * required.
   */
  signInUrl?(backend: string): string | undefined
  /** Current problems, oldest first. */
  problems(): readonly OpenProblem[]
  /** Individual failures in the last hour, newest first. */
  recent(): readonly RecentFailure[]
  sessionCount(): number
  sessions(): readonly ShownSession[]
  /** Ends a session. Returns false when no session has this hash. */
  endSession(hash: string): Promise<boolean>
  /** The live tasks that were created through this replica. */
  tasks(): readonly ShownTask[]
  /** Cancels a task. Returns false when no live task has this hash. Rejects with GatehouseError. */
  cancelTask(hash: string): Promise<boolean>
  /** The current configuration. */
  config(): unknown
  /** Returns the current policies: the same object while the policies are unchanged. Undefined without policies. */
  policies(): DescribedPolicies | undefined
  /** URL of the external decision point, which replaces policies. */
  decisionPoint?(): string | undefined
  /** `accounts` is the connected accounts page of an embedded authorization server. */
  connection(): {
    readonly url: string
    readonly auth: boolean
    /** True if only programs of this machine's user can connect, with a token that Gatehouse adds. */
    readonly isLocalOnly: boolean
    readonly accounts: string | undefined
  }
  /** Checks a backend now. Returns false for an unknown backend. */
  recheck(backend: string): Promise<boolean>
  /** Calls a tool and returns raw JSON: a result or an error object. Rejects with GatehouseError. */
  call(call: DirectCall): Promise<DirectResult>
  /** Reads the page of a tool for a caller. Undefined if the tool has no page. Rejects with GatehouseError. */
  readPage(caller: Caller, tool: string): Promise<DirectResult | undefined>
  /** Returns the tools that this caller may use, and tools hidden from all clients, sorted by name. Never rejects. */
  tools(caller: Caller): Promise<readonly ShownTool[]>
  /** Writes an audit record of a user action. */
  acted(record: ConsoleRecord): void
  /** Results of comparing each backend with its locks, sorted by name. Undefined while pinning is off. */
  pins(): readonly ShownPins[] | undefined
  /** Returns one difference with both definitions, or undefined for an unknown item. */
  pinDetail(backend: string, kind: LockedKind, name: string): ReviewedDrift | undefined
}

/** Differences between one backend and its locks. */
export interface ShownPins {
  readonly backend: string
  readonly lock: 'ok' | 'missing' | 'invalid'
  /** Names of the backend's locks. */
  readonly locks: readonly string[]
  /** Reason why the lock cannot be used. */
  readonly failure: string | undefined
  /** True when the backend has no lock and therefore offers nothing. */
  readonly closed: boolean
  readonly observed: boolean
  readonly counts: Readonly<Record<'pinned' | PinDriftState, number>>
  readonly drift: readonly LockDifference[]
}

/** A complete difference, for review. */
export interface ReviewedDrift extends LockDifference {
  /** JSON text of the offered definition; undefined for a removed item. */
  readonly offered: string | undefined
  /** JSON text and digest of the approved definition; undefined for a new item. */
  readonly approved: string | undefined
  readonly approvedDigest: string | undefined
  /** `cut` is true when the diff was truncated. */
  readonly diff: readonly {
    readonly part: string
    readonly lines: readonly string[]
    readonly cut: boolean
  }[]
  /** True when the backend offers different definitions to different callers. */
  readonly perCaller: boolean
  /** True while a changed lock is being loaded. */
  readonly changing: boolean
}

/** Approves reviewed differences. */
export interface Approver {
  /** Returns how the difference can be approved. Never throws. */
  way(reviewed: ReviewedDrift): ApprovalWay
  /**
   * Writes the approval and returns the file that it was written to. Rejects with APPROVAL_STALE or LOCK_NOT_WRITTEN
   * without changing anything.
   */
  approve(reviewed: ReviewedDrift): Promise<string>
}
