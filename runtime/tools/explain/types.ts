/** What an explanation is made of: a server as data, a question about it, and the steps of the response. */
import type { Quota, RuntimeWebhooks } from '../../../schemas/index.ts'
import type { PolicySet, RuntimePoint } from '../../policy/index.ts'

type Action = 'call_tool' | 'get_prompt' | 'read_resource'

export interface ExplainedItem {
  readonly action: Action
  /** As policies and settings name it, and clients too unless it has an alias. */
  readonly name: string
  /** As clients call it, where the name is too long for them. */
  readonly alias?: string | undefined
  /** Empty for a workflow. */
  readonly backend: string
  readonly original: string
  /** The rule that keeps it from clients. */
  readonly hidden?: string | undefined
  /** Why pinning keeps it from clients. */
  readonly refused?: string | undefined
  readonly hints?: Readonly<Record<string, boolean>> | undefined
}

export interface ExplainedBackend {
  readonly name: string
  readonly health: 'healthy' | 'degraded' | 'unhealthy' | 'unauthenticated' | 'unknown'
  /** RFC 3339 time of the last change of health. */
  readonly since?: string | undefined
  /** What went wrong the last time, in words. */
  readonly error?: string | undefined
  readonly circuit?: string | undefined
  readonly authType: string
  /** Why it is not served. */
  readonly excluded?: readonly string[] | undefined
  /** False: what it offers is not known. */
  readonly listed: boolean
}

export interface Snapshot {
  readonly server: string
  readonly items: readonly ExplainedItem[]
  /** Names that could not be offered as they stand. */
  readonly conflicts: readonly { readonly name: string; readonly message: string }[]
  /** Tools of the server itself. */
  readonly own: readonly string[]
  readonly backends: readonly ExplainedBackend[]
  /** Undefined: everybody may do everything. */
  readonly policies?: PolicySet | undefined
  /** Asked about each request in place of policies. */
  readonly decisionPoint?: RuntimePoint | undefined
  /** Asked about calls before the policies are, and about results. */
  readonly webhooks?: RuntimeWebhooks | undefined
  /** What looks into arguments and results of a call, a line for each. */
  readonly guardrails?: (
    action: Action,
    origin: { readonly backend: string; readonly original: string },
  ) => readonly string[]
  /** Name of the item that a URI leads to: its own, or that of a template. */
  readonly resourceKey: (uri: string) => string | undefined
  /** Upstream provider whose claims the policies see in place of those of the token. */
  readonly claimsOf?: string | undefined
  /** Backends with a tool lock that nothing was compared with. */
  readonly locked: readonly string[]
  readonly limits: readonly { readonly tool?: string | undefined; readonly text: string }[]
  readonly quotas: readonly Quota[]
  /** In micro-units, by backend/tool or backend. */
  readonly costs: Readonly<Record<string, number>>
  /** What the fullest budget of a quota has used of it, by its name; empty where nothing counts. */
  readonly quotaShares: Readonly<Record<string, number>>
  /** True when clients see the tools of a search in place of all others. */
  readonly searchOnly: boolean
  /** Begins the names of each backend, where names tell their backend. */
  readonly prefixes: Readonly<Record<string, string>>
}

export interface ExplainQuestion {
  /** Claims of the caller in question. */
  readonly claims: Readonly<Record<string, unknown>>
  /** Name of the caller where the claims have no `sub`. */
  readonly subject?: string | undefined
  readonly action: Action
  readonly name: string
  /** Of a call. */
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
  /** The first `stop` is the reason; later ones would stop the call too. */
  readonly verdict: 'pass' | 'stop' | 'note'
  readonly message: string
  readonly details?: readonly string[]
}

export interface Explanation {
  /** `undecided`: the external decision point has the last word, and was not asked. */
  readonly decision: 'allow' | 'deny' | 'not_found' | 'undecided'
  /** Where the name leads. */
  readonly target?: { readonly backend: string; readonly original: string } | undefined
  readonly steps: readonly ExplainedStep[]
}
