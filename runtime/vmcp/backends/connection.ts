/** The interface between the core and the backend codecs: one live connection to a backend of any protocol revision. */
import { type Changes, type JsonObject, type ResultPassage, ResultSplitter } from '../../mcp/index.ts'
import type { AnySignal, Deadline } from '../../net/index.ts'
import type { Ask, AskReply } from '../../mcp/index.ts'
import type { Outcome } from '../model/outcome.ts'
import type { Sender } from './transport/target.ts'
import type { Delivery, ResponseLimit } from '../model/delivery.ts'

/** The information that a backend declares about itself. */
export interface ServerInfo {
  readonly protocolVersion: string
  readonly capabilities: ServerCapabilities
  readonly instructions: string | undefined
}

export interface ServerCapabilities {
  readonly tools: boolean
  readonly resources: boolean
  readonly prompts: boolean
  readonly completions: boolean
  readonly logging: boolean
  readonly subscribe: boolean
  /** Kinds of lists for which the backend announces changes. */
  readonly listChanged: ReadonlySet<ListKind>
  /** Kinds of lists whose capability is declared but is not an object. */
  readonly misdeclared?: readonly ListKind[]
}

export type ListKind = 'tools' | 'resources' | 'prompts'

export interface Request {
  readonly method: string
  /** The client's params, unchanged. */
  readonly params: JsonObject
  /** Params members whose values differ for the backend, such as a tool's original name. */
  readonly changes?: Changes
  readonly sender: Sender
  /** The client's capabilities, raw JSON. A stateless backend receives them with each request. */
  readonly capabilities: Buffer
  readonly signal: AnySignal
  /** Time limit for the backend. Excludes the time it spends waiting for the client's answer. */
  readonly timeoutMs: number
  /** A limit for the response that is lower than the configured one. */
  readonly limit?: ResponseLimit | undefined
  /** Relays messages to the client; undefined for Gatehouse's own requests. */
  readonly relay?: Relay | undefined
  /** True for a read-only or idempotent tool: a call to it may be executed twice. */
  readonly repeatable?: boolean | undefined
  /** Records when the request itself is sent. Opening a connection does not count. */
  readonly delivery?: Delivery | undefined
  /** Mirrored argument headers (stateless era). */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Trace context for `_meta`, which replaces the client's trace context. */
  readonly trace?: Readonly<Record<string, string>>
}

/** Relays notifications and questions that belong to one request. */
export interface Relay {
  /** True if questions can be asked while the request runs. Otherwise, they end it with an `input` outcome. */
  readonly bridges: boolean
  readonly progressToken: string | undefined
  readonly logLevel: string | undefined
  progress(params: Buffer): void
  log(params: Buffer): void
  ask(request: Ask, signal: AbortSignal): Promise<AskReply>
  /** Streams a large result to the client as it arrives; undefined if the result must be read whole. */
  streamResult?(): ResultPassage | undefined
}

/**
 * Returns the splitter for a request's large result, or undefined if the result must be read whole. `id` is the request
 * id, raw JSON. The deadline is paused while the client is not reading.
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
   * Closes the connection. If `end` is true, also ends the backend session; otherwise, another replica can resume it.
   */
  close(sender: Sender, options: { readonly end: boolean }): Promise<void>
}

/** Messages on a connection that do not belong to a request. */
export interface ConnectionEvents {
  listChanged(kind: ListKind): void
  resourceUpdated(params: Buffer): void
  /** A log message or other notification that does not belong to a request in flight. */
  notification(method: string, params: Buffer | undefined): void
  /** Messages that do not belong to a request may have been lost. */
  announcementsLost(): void
  /** The backend session and its announcements have been lost. The next request opens another session. */
  sessionLost(): void
  /** A question that does not belong to a request in flight. */
  ask(request: Ask, signal: AbortSignal): Promise<AskReply>
  /**
   * Called when a message is dropped or rejected because it is unclear which request it belongs to: one of several in
   * flight, or an earlier one.
   */
  unassigned(method: string): void
}
