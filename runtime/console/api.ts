/**
 * Types of the console's API, for the server and for the pages: of the runtime the browser's bundle imports this file,
 * `api-pins.ts`, `calls/filter.ts`, and nothing else.
 *
 * All paths are below `<basePath>/api/v1/`. Errors are problem documents (RFC 9457) with a `code`: after 401
 * UNAUTHENTICATED the page signs in at `<basePath>/login?to=<path of the page>`. Times are ISO 8601 in UTC. Texts of
 * backends are as they came: the pages show them as text, never as markup.
 *
 * In anonymous mode (`gatehouse dev`) the address that is printed ends in `#launch=<token>`; every request of the API
 * carries that token in the header `X-Gatehouse-Launch`, and lasts as long as the page keeps it (sessionStorage).
 * Otherwise a cookie says who it is: `GET <basePath>/login?to=` signs in, `POST <basePath>/logout` with the CSRF header
 * signs out and answers `{ location }`, the address to go to. `index.html` holds `{{base}}` in `<base href>`: the server
 * puts the base path there.
 */
import type { ApprovalResult, LockDifferenceDetail, LockDifference, PinnedBackend } from './api-pins.ts'

export type * from './api-pins.ts'
export { mostReviewed } from './api-pins.ts'

export type Role = 'viewer' | 'operator' | 'auditor'

/** GET `me`. */
export interface Me {
  /** Name of the virtual server. */
  readonly server: string
  readonly version: string
  /** Absent in anonymous mode, which only `gatehouse dev` has. */
  readonly user?: { readonly sub: string; readonly name?: string }
  readonly anonymous: boolean
  /** Roles add up; empty for somebody who is signed in and has none. */
  readonly roles: readonly Role[]
  readonly permissions: readonly Permission[]
  /** Value of the header `X-Gatehouse-CSRF` for everything that is not GET. */
  readonly csrf: string
  /** False when the last login is too old for the actions of operators; sign in again. */
  readonly freshLogin: boolean
  readonly replica: string
}

/** What the signed-in user may see or do. The server checks each request again. */
export type Permission =
  | 'overview'
  | 'tools'
  | 'calls.own'
  | 'calls.all'
  | 'payloads'
  | 'sessions.all'
  | 'sessions.end'
  | 'policies'
  | 'explain'
  | 'config'
  | 'recheck'
  | 'pins'
  | 'try'

/** Every list. `next` is an opaque cursor; absent on the last page. */
export interface ListPage<T> {
  readonly items: readonly T[]
  readonly next?: string
  readonly replica: string
  readonly asOf: string
  /** Time of the oldest record that is still there, where records are dropped. */
  readonly oldest?: string
  /** Records were dropped between this page and the one before. */
  readonly gap?: boolean
}

export type Health = 'healthy' | 'degraded' | 'unhealthy' | 'unauthenticated' | 'unknown'

/** One minute of calls, the oldest first. */
export interface Minute {
  readonly at: string
  readonly calls: number
  readonly failed: number
  readonly denied: number
  /** Milliseconds; absent without a call. */
  readonly p95?: number
  /** The worst health within the minute. */
  readonly health?: Health
}

/** GET `overview`. */
export interface Overview {
  readonly healthy: boolean
  readonly asOf: string
  /** Of the last hour. */
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
  /** What failed call by call within the last hour, the latest first. */
  readonly failures: readonly FailureView[]
  readonly backends: readonly BackendView[]
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
  /** One of few words. */
  readonly reason?: string
  readonly message: string
  /** The next step. */
  readonly fix: string
  readonly count: number
  readonly first: string
  readonly last: string
}

/** GET `backends` lists these. */
export interface BackendView {
  readonly name: string
  readonly health: Health
  readonly since?: string
  readonly transport: string
  readonly authType: string
  readonly era: string
  readonly revision?: string
  readonly tools: number
  /** Of the last hour, as in `minutes`; a tool that reports an error counts as failed. */
  readonly calls: number
  readonly failed: number
  readonly p50?: number
  readonly p95?: number
  readonly circuit?: { readonly state: string; readonly since?: string }
  readonly lastError?: { readonly category: string; readonly message: string; readonly at: string }
  readonly excluded?: readonly string[]
  readonly minutes: readonly Minute[]
}

/** `unpinned`: nothing is compared, because pinning is off or the backend has no lock. */
export type ToolPinState = 'unpinned' | 'pinned' | 'new' | 'changed'

/** GET `tools?text&backend&pin&cursor&limit` lists these; GET `tools/{name}` gives a `ToolDetail`. */
export interface Tool {
  /** As policies and settings name it, and clients too unless it has an alias. */
  readonly name: string
  /** As clients call it, where the name is too long for them. */
  readonly alias?: string
  readonly backend: string
  /** The backend's own name. */
  readonly original: string
  readonly title?: string
  /** First 200 characters. */
  readonly summary: string
  readonly hints: {
    readonly readOnly?: boolean
    readonly destructive?: boolean
    readonly idempotent?: boolean
    readonly openWorld?: boolean
  }
  /** Estimate: bytes of the definition / 4. */
  readonly tokens: number
  readonly pin: ToolPinState
  /** Why clients do not see it: the rule, in words. */
  readonly hidden?: string
  /** Hidden or direction-changing characters are in its texts. */
  readonly suspicious: boolean
}

export interface PinList extends ListPage<LockDifference> {
  /** False: pinning is off. */
  readonly enabled: boolean
  readonly total: number
  readonly locks: readonly PinnedBackend[]
}

export interface ToolList extends ListPage<Tool> {
  readonly total: number
  readonly tokens: number
}

export interface ToolDetail extends Tool {
  readonly description: string
  /** JSON texts: numbers stay what they were. */
  readonly inputSchema: string
  readonly outputSchema?: string
  readonly raw: string
  /** Changed parts against the lock. */
  readonly drift?: readonly { readonly part: string; readonly diff: string }[]
}

export const outcomes = ['success', 'denied', 'failure', 'error', 'unauthenticated', 'cancelled'] as const
export type CallResultKind = (typeof outcomes)[number]

/** GET `calls?caller&backend&tool&outcome&from&to&text&cursor&limit` lists these, the newest first. */
export interface CallView {
  readonly id: string
  readonly at: string
  readonly method: string
  /** As the client called it. */
  readonly name?: string
  readonly original?: string
  readonly backend?: string
  readonly caller?: { readonly sub?: string; readonly name?: string; readonly client?: string }
  /** Twelve hex digits of a hash, never the id. */
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

/** GET `calls/{id}/payload`, for auditors, and for the caller of the call. */
export interface PayloadView {
  readonly id: string
  readonly arguments?: string
  readonly result?: string
  readonly truncated: boolean
}

/** GET `sessions` lists these. DELETE `sessions/{hash}` ends one. */
export interface ListedSession {
  readonly hash: string
  readonly caller?: { readonly sub?: string; readonly name?: string }
  readonly client?: string
  readonly era: string
  readonly openedAt: string
  readonly lastUsedAt: string
  readonly streams: number
  readonly mine: boolean
}

/** GET `policies`. */
export interface Policies {
  readonly enabled: boolean
  /** URL of the external decision point that decides in place of policies. */
  readonly decisionPoint?: string
  readonly items: readonly {
    readonly id: string
    readonly effect: 'permit' | 'forbid'
    readonly text: string
    /** Decides nothing; `decided` counts when it would have decided otherwise. */
    readonly shadow: boolean
    readonly decided: number
  }[]
  readonly problems: readonly string[]
}

/** POST `policies/explain`; answer: `ExplainResponse`. */
export interface ExplainRequest {
  /** Claims of the caller in question; the signed-in user when absent. */
  readonly claims?: Readonly<Record<string, unknown>>
  readonly action: 'call_tool' | 'get_prompt' | 'read_resource'
  readonly name: string
  /** JSON text. */
  readonly arguments?: string
}

export interface ExplainResponse {
  readonly decision: 'allow' | 'deny' | 'not_found' | 'undecided'
  readonly steps: readonly {
    readonly stage: string
    readonly verdict: 'pass' | 'stop' | 'note'
    readonly message: string
    readonly details?: readonly string[]
  }[]
}

/** GET `config`: what runs, secrets by reference only. */
export interface ConfigView {
  /** YAML. */
  readonly effective: string
  readonly problems: readonly {
    readonly path?: string
    readonly code?: string
    readonly message: string
    readonly fix?: string
  }[]
}

/** GET `connect`. */
export interface Connect {
  readonly url: string
  readonly name: string
  readonly auth: boolean
  readonly clients: readonly {
    readonly id: string
    readonly label: string
    /** A command for the shell, a file's content, or both; and a link that the client opens. */
    readonly command?: string
    readonly file?: { readonly path: string; readonly content: string }
    readonly link?: string
  }[]
  /** Page of connected accounts; absent without an embedded authorization server. */
  readonly accounts?: string
  /** Time of the signed-in user's first call, once there is one. */
  readonly firstCall?: string
}

/** POST `tries`; answer: `{ id }`. DELETE `tries/{id}` cancels. */
export interface TryRequest {
  readonly name: string
  /** JSON text, as it was typed: big integers stay. */
  readonly arguments: string
  readonly era: '2025-11-25' | '2026-07-28'
}

/** GET `tries/{id}/events`, server-sent; the event's name is the member `type`. */
export type TryEvent =
  | {
      readonly type: 'progress'
      readonly progress: number
      readonly total?: number
      readonly message?: string
    }
  | { readonly type: 'log'; readonly level: string; readonly text: string }
  | {
      readonly type: 'ask'
      readonly id: string
      readonly backend: string
      readonly message: string
      readonly mode: 'form' | 'url'
      /** JSON text of the schema, for a form. */
      readonly schema?: string
      readonly url?: string
    }
  | {
      readonly type: 'done'
      readonly outcome: CallResultKind
      readonly ms: number
      /** JSON text of the result, at most 256 KiB. */
      readonly result?: string
      readonly truncated?: boolean
      readonly error?: { readonly code?: number; readonly message: string }
    }

/** POST `tries/{id}/answers/{ask}`. */
export interface AskAnswer {
  readonly action: 'accept' | 'decline' | 'cancel'
  /** JSON text. */
  readonly content?: string
}

/**
 * GET `stream?topics=calls,health,catalog,sessions`, server-sent, resumable by `Last-Event-ID`; the event's name is
 * the member `type`. Calls arrive in batches.
 */
export type StreamEvent =
  | { readonly type: 'calls'; readonly items: readonly CallView[] }
  | { readonly type: 'health'; readonly backend: string; readonly health: Health; readonly since: string }
  | { readonly type: 'catalog' }
  | { readonly type: 'sessions'; readonly count: number }
  /** Events were dropped for this reader: read the lists again. */
  | { readonly type: 'gap' }
  /** The server ends the stream: connect again after `retryMs`. */
  | { readonly type: 'bye'; readonly retryMs: number }

/** What answers each path; `{}` stands for one name, percent-encoded. Those of `stream` and `events` are sent one by one. */
export interface Answers {
  readonly me: Me
  readonly overview: Overview
  readonly backends: ListPage<BackendView>
  /** POST: checks the backend now. */
  readonly 'backends/{}/recheck': BackendView
  readonly tools: ToolList
  readonly 'tools/{}': ToolDetail
  readonly pins: PinList
  readonly 'pins/item': LockDifferenceDetail
  readonly 'pins/approve': ApprovalResult
  readonly calls: ListPage<CallView>
  readonly 'calls/{}': CallView
  readonly 'calls/{}/payload': PayloadView
  readonly sessions: ListPage<ListedSession>
  /** DELETE; no content. */
  readonly 'sessions/{}': undefined
  readonly policies: Policies
  readonly 'policies/explain': ExplainResponse
  readonly config: ConfigView
  readonly connect: Connect
  readonly tries: { readonly id: string }
  /** DELETE cancels; no content. */
  readonly 'tries/{}': undefined
  readonly 'tries/{}/events': TryEvent
  readonly 'tries/{}/answers/{}': undefined
  readonly stream: StreamEvent
}
