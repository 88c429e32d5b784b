/**
 * Types of the console's API, shared by the server and the pages. From the runtime, the browser bundle imports only
 * this file, `api-overview.ts`, `api-calls.ts`, `api-pins.ts` and `calls/filter.ts`.
 *
 * All paths are below `<basePath>/api/v1/`. Errors are problem documents (RFC 9457) with a `code`. After 401
 * UNAUTHENTICATED, the page signs in at `<basePath>/login?to=<path of the page>`. Times are ISO 8601 in UTC. Text from
 * backends is not modified. The pages render this text as plain text, never as markup.
 *
 * In anonymous mode (`gatehouse dev`), the printed address ends in `#launch=<token>`. Every API request sends this
 * token in the header `X-Gatehouse-Launch`; the page stores the token in sessionStorage. Otherwise, a cookie identifies
 * the user. `GET <basePath>/login?to=` signs in. `POST <basePath>/logout` with the CSRF header signs out and returns `{
 * location }`, the address to open next. `index.html` contains `{{base}}` in `<base href>`, which the server replaces
 * with the base path.
 */
import type { CallResultKind, CallView, ListedSession, ListedTask, PayloadView } from './api-calls.ts'
import type { BackendView, Health, Overview } from './api-overview.ts'
import type { ApprovalResult, LockDifferenceDetail, LockDifference, PinnedBackend } from './api-pins.ts'

export type * from './api-calls.ts'
export { outcomes } from './api-calls.ts'
export type * from './api-overview.ts'
export type * from './api-pins.ts'
export { mostReviewed } from './api-pins.ts'

export type Role = 'viewer' | 'operator' | 'auditor'

/** GET `me`. */
export interface Me {
  /** The virtual server's name. */
  readonly server: string
  readonly version: string
  /** Absent in anonymous mode, which only `gatehouse dev` has. */
  readonly user?: { readonly sub: string; readonly name?: string }
  readonly anonymous: boolean
  /** All of the user's roles; empty for a signed-in user without a role. */
  readonly roles: readonly Role[]
  readonly permissions: readonly Permission[]
  /** Value of the header `X-Gatehouse-CSRF`, required for all requests except GET. */
  readonly csrf: string
  /** False when the last login is too old for operator actions. The user must then sign in again. */
  readonly freshLogin: boolean
  readonly replica: string
}

/** The signed-in user's permissions. The server checks each request again. */
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

/** Response from all list endpoints. `next` is an opaque cursor; absent on the last page. */
export interface ListPage<T> {
  readonly items: readonly T[]
  readonly next?: string
  readonly replica: string
  readonly asOf: string
  /** Time of the oldest record that is still stored, for lists whose records expire. */
  readonly oldest?: string
  /** True when records between this page and the previous page were dropped. */
  readonly gap?: boolean
}

/** `unpinned`: the tool is not compared, because pinning is off or the backend has no lock. */
export type ToolPinState = 'unpinned' | 'pinned' | 'new' | 'changed'

/** Item of GET `tools?text&backend&pin&cursor&limit`; GET `tools/{name}` returns a `ToolDetail`. */
export interface Tool {
  /** Name used in policies and settings, and by clients unless there is an alias. */
  readonly name: string
  /** Name that clients see when the full name is too long for them. */
  readonly alias?: string
  readonly backend: string
  /** Original name on the backend. */
  readonly original: string
  readonly title?: string
  /** First 200 characters of the description. */
  readonly summary: string
  readonly hints: {
    readonly readOnly?: boolean
    readonly destructive?: boolean
    readonly idempotent?: boolean
    readonly openWorld?: boolean
  }
  /** Estimated as the definition's size in bytes, divided by 4. */
  readonly tokens: number
  readonly pin: ToolPinState
  /** The rule that hides the tool from clients, in words. */
  readonly hidden?: string
  /** True when the tool's texts contain hidden or bidirectional control characters. */
  readonly suspicious: boolean
}

export interface PinList extends ListPage<LockDifference> {
  /** False when pinning is off. */
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
  /** JSON text, which preserves all digits of numbers. */
  readonly inputSchema: string
  readonly outputSchema?: string
  readonly raw: string
  /** True if the tool has a page (MCP Apps). */
  readonly page: boolean
  /** Parts that differ from the lock. */
  readonly drift?: readonly { readonly part: string; readonly diff: string }[]
}

/** GET `policies`. */
export interface Policies {
  readonly enabled: boolean
  /** URL of the external decision point, which replaces policies. */
  readonly decisionPoint?: string
  readonly items: readonly {
    readonly id: string
    readonly effect: 'permit' | 'forbid'
    readonly text: string
    /**
     * True for a shadow policy, which is not enforced; `decided` then counts the decisions that would have differed.
     */
    readonly shadow: boolean
    readonly decided: number
  }[]
  readonly problems: readonly string[]
}

/** Body of POST `policies/explain`; response: `ExplainResponse`. */
export interface ExplainRequest {
  /** Claims of the caller. Default: the claims of the signed-in user. */
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

/** GET `config`: the running configuration, with references instead of secrets. */
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
  /** True if only Gatehouse's commands can connect a client, because the address requires a token. */
  readonly isLocalOnly: boolean
  readonly clients: readonly {
    readonly id: string
    readonly label: string
    /** Gatehouse command that edits the client's file. */
    readonly add?: string
    /** A shell command, the content of a file, both, or a link that the client opens. */
    readonly command?: string
    readonly file?: { readonly path: string; readonly content: string }
    readonly link?: string
  }[]
  /** URL of the connected accounts page; absent without an embedded authorization server. */
  readonly accounts?: string
  /** Time of the signed-in user's first call; absent before the first call. */
  readonly firstCall?: string
}

/** Body of POST `tries`; response: `{ id }`. DELETE `tries/{id}` cancels the try. */
export interface TryRequest {
  readonly name: string
  /** JSON text as typed, which preserves large integers. */
  readonly arguments: string
  readonly era: '2025-11-25' | '2026-07-28'
}

/** Server-sent event of GET `tries/{id}/events`. The event's name is the value of `type`. */
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
      /** JSON text of the form schema. */
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

/** Body of POST `apps`. The response contains the path of the tool's page, for one frame within a minute. */
export interface AppRequest {
  readonly name: string
}

/** POST `tries/{id}/answers/{ask}`. */
export interface AskAnswer {
  readonly action: 'accept' | 'decline' | 'cancel'
  /** JSON text. */
  readonly content?: string
}

/**
 * Server-sent event of GET `stream?topics=calls,health,catalog,sessions`. The stream can be resumed with
 * `Last-Event-ID`. The event's name is the value of `type`. Calls arrive in batches.
 */
export type StreamEvent =
  | { readonly type: 'calls'; readonly items: readonly CallView[] }
  | { readonly type: 'health'; readonly backend: string; readonly health: Health; readonly since: string }
  | { readonly type: 'catalog' }
  | { readonly type: 'sessions'; readonly count: number }
  /** Events for this reader were dropped, so the page must reload its lists. */
  | { readonly type: 'gap' }
  /** The server is closing the stream. Reconnect after `retryMs`. */
  | { readonly type: 'bye'; readonly retryMs: number }

/**
 * Response type of each path; `{}` is a percent-encoded name. For `stream` and `events`, the type of a single event.
 */
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
  readonly 'sessions/{}': undefined
  readonly tasks: ListPage<ListedTask>
  readonly 'tasks/{}': undefined
  readonly policies: Policies
  readonly 'policies/explain': ExplainResponse
  readonly config: ConfigView
  readonly connect: Connect
  readonly tries: { readonly id: string }
  /** DELETE cancels the try; the response has no content. */
  readonly 'tries/{}': undefined
  readonly 'tries/{}/events': TryEvent
  readonly 'tries/{}/answers/{}': undefined
  readonly apps: { readonly path: string }
  readonly stream: StreamEvent
}
