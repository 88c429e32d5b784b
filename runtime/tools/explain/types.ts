/** Types for an explanation: a server as data, a question, and the steps that answer it. */
import type { Quota, RuntimeWebhooks } from '../../../schemas/index.ts'
import type { PolicySet, RuntimePoint } from '../../policy/index.ts'

type Action = 'call_tool' | 'get_prompt' | 'read_resource'

export interface ExplainedItem {
  readonly action: Action
  /** Name in policies and settings. Also the name for clients, unless there is an alias. */
  readonly name: string
  /** Name that clients see when `name` is too long for them. */
  readonly alias?: string | undefined
  /** Empty if the item is a workflow. */
  readonly backend: string
  readonly original: string
  /** The rule that hides the item from clients. */
  readonly hidden?: string | undefined
  /** Reason why pinning hides the item from clients. */
  readonly refused?: string | undefined
  readonly hints?: Readonly<Record<string, boolean>> | undefined
}

export interface ExplainedBackend {
  readonly name: string
  readonly health: 'healthy' | 'degraded' | 'unhealthy' | 'unauthenticated' | 'unknown'
  /** RFC 3339 time of the last health change. */
  readonly since?: string | undefined
  /** Description of the last error. */
  readonly error?: string | undefined
  /** The next step after the last error. */
  readonly fix?: string | undefined
  /** True if the backend waits for the user to sign in. */
  readonly requiresSignIn?: boolean
  readonly circuit?: string | undefined
  readonly authType: string
  /** Reason why the backend is excluded. */
  readonly excluded?: readonly string[] | undefined
  /** False when the backend's items are unknown. */
  readonly listed: boolean
}

export interface Snapshot {
  readonly server: string
  readonly items: readonly ExplainedItem[]
  /** Names that could not be offered to clients without a change. */
  readonly conflicts: readonly { readonly name: string; readonly message: string }[]
  /** The server's own tools. */
  readonly own: readonly string[]
  readonly backends: readonly ExplainedBackend[]
  /** Undefined when all callers are allowed. */
  readonly policies?: PolicySet | undefined
  /** External decision point, which decides each request instead of the policies. */
  readonly decisionPoint?: RuntimePoint | undefined
  /** Called before policies are evaluated, and on results. */
  readonly webhooks?: RuntimeWebhooks | undefined
  /** Describes the guardrails that apply to a call, one line each. */
  readonly guardrails?: (
    action: Action,
    origin: { readonly backend: string; readonly original: string },
  ) => readonly string[]
  /** Returns the name of the item for a URI, which is the resource itself or a template. */
  readonly resourceKey: (uri: string) => string | undefined
  /** Upstream provider whose claims the policies read instead of the token's claims. */
  readonly claimsOf?: string | undefined
  /** Backends with a tool lock that was not compared. */
  readonly locked: readonly string[]
  readonly limits: readonly { readonly tool?: string | undefined; readonly text: string }[]
  readonly quotas: readonly Quota[]
  /** Costs in micro-units, keyed by backend/tool or by backend. */
  readonly costs: Readonly<Record<string, number>>
  /** The used share of each quota's fullest budget, keyed by the quota's name. Empty when no usage is counted. */
  readonly quotaShares: Readonly<Record<string, number>>
  /** True when clients see the search tools instead of all other tools. */
  readonly searchOnly: boolean
  /** Name prefixes by backend, if names have prefixes. */
  readonly prefixes: Readonly<Record<string, string>>
}

export interface ExplainQuestion {
  /** Claims of the caller whose access is explained. */
  readonly claims: Readonly<Record<string, unknown>>
  /** The caller's name when the claims have no `sub`. */
  readonly subject?: string | undefined
  readonly action: Action
  readonly name: string
  /** Call arguments. */
  readonly arguments?: unknown
}

type Stage =
  | 'name'
  | 'conflict'
  | 'filter'
  | 'pin'
  | 'webhook'
  | 'guardrail'
  | 'policy'
  | 'limits'
  | 'quota'
  | 'credential'
  | 'backend'

export interface ExplainedStep {
  readonly stage: Stage
  /** The first `stop` is the reason for the rejection. Each later `stop` would also block the call. */
  readonly verdict: 'pass' | 'stop' | 'note'
  readonly message: string
  readonly details?: readonly string[]
}

export interface Explanation {
  /** `undecided` when an external decision point makes the decision but was not called. */
  readonly decision: 'allow' | 'deny' | 'not_found' | 'undecided'
  /** The item's backend and original name. */
  readonly target?: { readonly backend: string; readonly original: string } | undefined
  readonly steps: readonly ExplainedStep[]
}
