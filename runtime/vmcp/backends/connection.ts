/**
 * The seam between the core and the backend codecs: one live connection to a backend, whatever revision it speaks.
 */
import { type Changes, type JsonObject, type ResultPassage, ResultSplitter } from '../../mcp/index.ts'
import type { AnySignal, Deadline } from '../../net/index.ts'
import type { Ask, AskReply } from '../../mcp/index.ts'
import type { Outcome } from '../model/outcome.ts'
import type { Sender } from './transport/target.ts'
import type { Delivery, ResponseLimit } from '../model/delivery.ts'

/** What a backend said about itself. */
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
  /** Kinds whose changes the backend announces. */
  readonly listChanged: ReadonlySet<ListKind>
  /** Kinds whose capability is declared, but is not an object. */
  readonly misdeclared?: readonly ListKind[]
}

export type ListKind = 'tools' | 'resources' | 'prompts'

export interface Request {
  readonly method: string
  /** The client's params, unchanged. */
  readonly params: JsonObject
  /** What differs towards the backend, for instance the tool's own name. */
  readonly changes?: Changes
  readonly sender: Sender
  /** Capabilities of the client behind the request, raw JSON; a stateless backend is told with each request. */
  readonly capabilities: Buffer
  readonly signal: AnySignal
  /** Time that the backend has; time in which it waits for a response of the client does not count. */
  readonly timeoutMs: number
  /** Bounds the response more than the limits of the configuration do. */
  readonly limit?: ResponseLimit | undefined
  /** The client's side of an operation; absent for requests of the gateway itself. */
  readonly relay?: Relay | undefined
  /** True for a read-only or idempotent tool: executing a call twice does no harm. */
  readonly repeatable?: boolean | undefined
  /** Told when the request itself leaves, and not what opens the way to it. */
  readonly delivery?: Delivery | undefined
  /** Mirrored argument headers (stateless era). */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Trace context for `_meta`; replaces the client's own. */
  readonly trace?: Readonly<Record<string, string>>
}

/** Where notifications and questions that belong to one request go. */
export interface Relay {
  /** True when questions can be asked while the request runs; otherwise they end it (`input` outcome). */
  readonly bridges: boolean
  readonly progressToken: string | undefined
  readonly logLevel: string | undefined
  progress(params: Buffer): void
  log(params: Buffer): void
  ask(request: Ask, signal: AbortSignal): Promise<AskReply>
  /** The way of a large result to the client while it arrives; undefined: it has to be whole. */
  passage?(): ResultPassage | undefined
}

/**
 * What takes the large result of a request apart; undefined: it is read whole. `id` is that of the request, raw JSON. The
 * backend's time does not run while the client takes nothing.
 */
export function splitterOf(
  relay: Relay | undefined,
  id: string,
  deadline: Deadline,
  { replaces }: { readonly replaces: boolean },
): ResultSplitter | undefined {
  const passage = relay?.passage?.()
  if (!passage) return undefined
  const timed: ResultPassage = {
    era: passage.era,
    begin: () => passage.begin(),
    write(parts) {
      const more = passage.write(parts)
      return more && more.finally(deadline.pause())
    },
  }
  return new ResultSplitter({ id, passage: timed, replaces })
}

export interface BackendConnection {
  /** Opens when needed; concurrent callers share one opening. Rejects with BACKEND_* errors. */
  open(sender: Sender, signal: AbortSignal): Promise<ServerInfo>
  request(request: Request): Promise<Outcome>
  /** Sends a notification; errors are ignored. */
  notify(method: string, params: Buffer | undefined, sender: Sender): void
  /** Asks the backend for log messages of this level and above; errors are ignored. */
  setLogLevel(level: string, sender: Sender): void
  /** Requests in flight. */
  readonly busy: number
  /** With `end` the backend may forget the session; without, another replica goes on with it. */
  close(sender: Sender, options: { readonly end: boolean }): Promise<void>
}

/** What a connection says unasked. */
export interface ConnectionEvents {
  listChanged(kind: ListKind): void
  resourceUpdated(params: Buffer): void
  /** A log message or other notification that belongs to no request in flight. */
  notification(method: string, params: Buffer | undefined): void
  /** What the backend said unasked may not have been heard. */
  gap(): void
  /** The session is gone, and with it whatever the backend would have said unasked; the next request opens another. */
  lost(): void
  /** A question that belongs to no request in flight. */
  ask(request: Ask, signal: AbortSignal): Promise<AskReply>
  /**
   * Called when a message is dropped or rejected because it may belong to several requests in flight or to an earlier
   * one.
   */
  unassigned(method: string): void
}
