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
import type { CallResultKind, DeniedBy, Health, TryRequest } from './api.ts'

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
    readonly lastError: { readonly category: string; readonly at: number } | undefined
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
  /** What differs between the approved and the offered definition, part by part. */
  toolDrift(
    backend: string,
    original: string,
  ): readonly { readonly part: string; readonly lines: readonly string[] }[]
}
