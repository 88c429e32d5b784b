/**
 * The interface between the core and the backend codecs. A `Connection` is a live connection to a backend, regardless
 * of the backend's protocol revision.
 */
import { type Changes, type JsonObject, type ResultPassage, ResultSplitter } from '../../mcp/index.ts'
import type { AnySignal, Deadline } from '../../net/index.ts'
import type { Ask, AskReply } from '../../mcp/index.ts'
import type { ServerExtensions } from '../model/extensions.ts'
import type { Outcome } from '../model/outcome.ts'
import type { Sender } from './transport/target.ts'
import type { Delivery, ResponseLimit } from '../model/delivery.ts'

/** The information that a backend declares about itself. */
export interface ServerInfo {
  readonly protocolVersion: string
  readonly capabilities: ServerCapabilities
  readonly instructions: string | undefined
  readonly extensions: ServerExtensions
  /** Reasons for ignored extensions, one line each. */
  readonly extensionProblems?: readonly string[]
}

export interface ServerCapabilities {
  readonly tools: boolean
  readonly resources: boolean
  readonly prompts: boolean
  readonly completions: boolean
  readonly logging: boolean
  readonly subscribe: boolean
  /** True if a session-era backend can run tool calls as tasks. */
  readonly tasks?: boolean
  /** Kinds of lists for which the backend announces changes. */
  readonly listChanged: ReadonlySet<ListKind>
  /** Kinds of lists whose declared capability is not an object. */
  readonly misdeclared?: readonly ListKind[]
}

export type ListKind = 'tools' | 'resources' | 'prompts'

export interface Request {
  readonly method: string
  /** The client's params, unchanged. */
  readonly params: JsonObject
  /** Members of `params` that Gatehouse changes for the backend, such as a tool's name. */
  readonly changes?: Changes
  /**
   * True if this backend issued the `requestState` and `inputResponses` in the params. Otherwise, the client must have
   * invented these members, and the connection removes them.
   */
  readonly hasOwnState?: boolean
  readonly sender: Sender
  /** The client's capabilities as raw JSON. A stateless backend receives these capabilities with each request. */
  readonly capabilities: Buffer
  readonly signal: AnySignal
  /** Time limit for the backend in milliseconds, excluding the time spent waiting for the client's answer. */
  readonly timeoutMs: number
  /** True if the backend may respond with a task instead of a result. */
  readonly acceptsTask?: boolean | undefined
  /** A limit for the response, which is lower than the configured limit. */
  readonly limit?: ResponseLimit | undefined
  /** Relays messages to the client. Undefined for Gatehouse's own requests. */
  readonly relay?: Relay | undefined
  /** True for a read-only or idempotent tool, which is safe to call twice. */
  readonly repeatable?: boolean | undefined
  /** Records the time at which the request itself is sent, regardless of when the connection was opened. */
  readonly delivery?: Delivery | undefined
  /** Headers that mirror arguments in the stateless era. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Trace context for `_meta`, which replaces the client's trace context. */
  readonly trace?: Readonly<Record<string, string>>
}

/** Relays notifications and server requests that belong to one request. */
export interface Relay {
  /**
   * True if the client can answer server requests while its own request runs. Otherwise, a server request ends the
   * client's request with an `input` outcome.
   */
  readonly bridges: boolean
  readonly progressToken: string | undefined
  readonly logLevel: string | undefined
  progress(params: Buffer): void
  log(params: Buffer): void
  ask(request: Ask, signal: AbortSignal): Promise<AskReply>
  /** Streams a large result to the client as it arrives. Undefined if the result must be read whole. */
  streamResult?(): ResultPassage | undefined
}

/**
 * Returns the splitter for a request's large result, or undefined if the result must be read whole. `id` is the raw
 * JSON of the request id. The deadline is paused while the client is not reading.
 */
export function makeSplitter(
  relay: Relay | undefined,
  id: string,
  deadline: Deadline,
  { replaces }: { readonly replaces: boolean },
): ResultSplitter | undefined {
  const passage = relay?.streamResult?.()
  if (!passage) return undefined
  const timedStream: ResultPassage = {
    era: passage.era,
    begin: () => passage.begin(),
    write(parts) {
      const more = passage.write(parts)
      return more && more.finally(deadline.pause())
    },
  }
  return new ResultSplitter({ id, passage: timedStream, replaces })
}

export interface BackendConnection {
  /** Opens the connection if necessary. Concurrent callers share one attempt. Rejects with BACKEND_* errors. */
  open(sender: Sender, signal: AbortSignal): Promise<ServerInfo>
  request(request: Request): Promise<Outcome>
  /** Sends a notification. Errors are ignored. */
  notify(method: string, params: Buffer | undefined, sender: Sender): void
  /** Requests log messages at this level and above. Errors are ignored. */
  setLogLevel(level: string, sender: Sender): void
  /** Number of requests in flight. */
  readonly inFlightCount: number
  /**
   * Closes the connection. If `end` is true, also ends the backend session. Otherwise, another replica can resume the
   * session.
   */
  close(sender: Sender, options: { readonly end: boolean }): Promise<void>
}

/** Events and messages that arrive on a connection and do not belong to a request. */
export interface ConnectionEvents {
  listChanged(kind: ListKind): void
  resourceUpdated(params: Buffer): void
  /** Handles a log message or other notification that does not belong to a request in flight. */
  notification(method: string, params: Buffer | undefined): void
  /** Called when messages that do not belong to a request may have been lost. */
  announcementsLost(): void
  /** Called when the backend session and its announcements are lost. The next request opens another session. */
  sessionLost(): void
  /** Sends the client a server request that does not belong to a request in flight. */
  ask(request: Ask, signal: AbortSignal): Promise<AskReply>
  /**
   * Called when a message is dropped or rejected because the corresponding request is unclear. The message could belong
   * to several requests in flight or to an earlier request.
   */
  unassigned(method: string): void
}
