/**
 * A client request, independent of the protocol revision. The client codecs build the operation from the wire format.
 * The links in the chain read the operation or derive another operation. The backend codecs send the final operation.
 *
 * An operation is an immutable record. `{ ...operation, params }` derives another operation. All operations derived for
 * one request share a context. Params and results stay JSON bytes. Times are milliseconds.
 * Source: ARCHITECTURE.md, "Two protocol eras"; docs/reference/specification/virtual-server.md.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { GatehouseError } from '../../../schemas/index.ts'
import { type Ask, type AskReply, type Changes, JsonObject, type ResultPassage } from '../../mcp/index.ts'
import type { LazySignal } from '../../net/index.ts'
import type { PolicyRecord } from '../../observe/index.ts'
import type { Origin } from '../../policy/index.ts'
import type { Delivery, ResponseLimit } from './delivery.ts'
import type { CatalogEntry } from './catalog/entry.ts'
import type { Outcome } from './outcome.ts'
import type { OperationClient } from './session.ts'
import type { TaskRef } from './task.ts'

export interface Operation {
  readonly method: string
  readonly params: JsonObject
  readonly client: OperationClient
  readonly context: OperationContext
  /** Raw JSON of the request id. Undefined for operations that Gatehouse starts itself. */
  readonly id?: string | undefined
  /** Original params, kept when a webhook changes the params or the client uses an alias. */
  readonly originalParams?: JsonObject | undefined
  /** Request headers. Present only when the headers must match the arguments (mirrored parameters). */
  readonly headers?: IncomingHttpHeaders | undefined
  /**
   * The backend and the original name on which the authorization decision was based. `resolveTarget` rejects the
   * operation if the name resolves to anything else. Set by `authorize`, or by a webhook that matched on the origin.
   */
  readonly origin?: Origin | undefined
  /**
   * Identity (`backendIdentity`) of the backend that issued the `requestState` and `inputResponses` in the params. The
   * operation is rejected if the target is another backend. Without `stateFor`, neither member is sent to a backend.
   */
  readonly stateFor?: string | undefined
  /** True for a tool call that an app may have made. Tool search then accepts the name of a tool that it hides. */
  readonly isAppCall?: boolean | undefined
  /** The task that a `tasks/*` request names. Set by the link that opens task ids. */
  readonly task?: TaskRef | undefined
  /**
   * Set by the task link. `declared` declares the tasks extension to a stateless backend. With `accepted`, the backend
   * may also respond to the call with a task.
   */
  readonly tasks?: 'declared' | 'accepted' | undefined
  /** True if a script or workflow consumes the result instead of the client. */
  readonly isForProgram?: boolean | undefined
  /** Set by `resolveTarget`. Undefined for lists and for Gatehouse's own tools. */
  readonly target?: Target | undefined
}

/** Connects an operation to the request that it serves. */
export interface OperationContext {
  /** Fires when the client cancels the request or disconnects. */
  readonly signal: AbortSignal
  /** An alternative to `signal` that is created on first use. */
  readonly lazySignal?: LazySignal | undefined
  /** Raw JSON of the client's progress token. Undefined if the client does not request progress. */
  readonly progressToken: string | undefined
  /** Least severe log level that the client requests. Undefined if the client does not request log messages. */
  readonly logLevel: string | undefined
  /** Receives the authorization decision. */
  readonly onDecision?: ((record: PolicyRecord) => void) | undefined
  /** Receives the name of the selected backend. */
  readonly onRouted?: ((backend: string) => void) | undefined
  /** Forwards the raw params of a progress notification. The params contain the client's progress token. */
  progress(params: Buffer): void
  /** Forwards the raw params of a log notification. */
  log(params: Buffer): void
  /**
   * Asks the client and waits for the response. `signal` withdraws the question. Rejects with CAPABILITY_REQUIRED if
   * the client did not declare the capability.
   */
  ask(request: Ask, signal?: AbortSignal): Promise<AskReply>
  /**
   * Streams a large result to the client as it arrives from the backend. Undefined if a link between the client and the
   * backend requires the whole result.
   */
  streamResult?(): ResultPassage | undefined
}

/** The catalog entry that an operation uses, and settings for the call to the entry's backend. */
export interface Target {
  readonly entry: CatalogEntry
  /** Members of `params` that Gatehouse changes for the backend, such as a tool's name. */
  readonly changes: Changes
  /** Runs one of Gatehouse's own tools, such as a workflow, instead of a backend. */
  readonly run?: Perform | undefined
  /** Lower bound for the backend's time limit, in milliseconds. */
  readonly timeoutMs?: number | undefined
  /** True if requests from the backend reach the client during the call, regardless of the client's protocol era. */
  readonly bridges?: boolean | undefined
  /** True for a workflow step. The result of a step is not sent to the client. */
  readonly isStep?: boolean | undefined
  /** True for a method of a custom extension. Rate limits and quotas count it like a tool call. */
  readonly isExtension?: boolean | undefined
  /** Set by guardrails. */
  readonly limit?: ResponseLimit | undefined
  /** True if a link reads the result. The backend connection must then buffer the result. */
  readonly needsWholeResult?: boolean | undefined
  /** Set by quotas. The quota link reads the result and removes the `_meta` members that only Gatehouse may write. */
  readonly delivery?: Delivery | undefined
}

/** Performs an operation. Rejects with GatehouseError. */
export type Perform = (operation: Operation) => Promise<Outcome>

/**
 * A link in the chain. `next` continues with the given operation, or with an operation derived from it. A link that
 * does not apply to an operation returns `next(operation)` unchanged. runtime/vmcp/call/chain.ts defines the order of
 * links.
 */
export type Link = (operation: Operation, next: Perform) => Promise<Outcome>

/** One of Gatehouse's own tools. */
export interface OwnTool {
  readonly name: string
  /** Runs the tool. `inside` runs an operation through the checks and all other links inside the feature's surface. */
  run(operation: Operation, inside: Perform): ReturnType<Perform>
}

/** A feature that changes which tools clients see (tool search, scripts). */
export interface Feature {
  readonly surface: Link
  /** Tools that clients call by name. Enabling the feature permits these tools, but a policy can still forbid them. */
  readonly tools: readonly OwnTool[]
  /** Returns problems for operators. The texts contain only names and states. */
  readonly problems?: () => readonly string[]
  close(): Promise<void>
}

/** Returns the error for a `requestState` that is unknown or expired, or that belongs to another request or backend. */
export function invalidRequestStateError(): GatehouseError {
  return new GatehouseError('INVALID_PARAMS', {
    detail: 'Invalid params: requestState is not valid for this request',
  })
}

/**
 * Derives an operation with different params. The original params are kept because the request headers match them. The
 * derived operation is treated as a client operation, so `isForProgram` is dropped.
 */
export function withParams(operation: Operation, params: JsonObject, origin = operation.origin): Operation {
  const { originalParams = operation.params } = operation
  return { ...operation, params, originalParams, origin, isForProgram: undefined }
}

/** Derives an operation with a buffered result. */
export function withWholeResult(operation: Operation): Operation {
  return { ...operation, context: deriveContext(operation.context, { streamResult: () => undefined }) }
}

/**
 * Starts another operation for the same client within one request. Cancellation, progress, log messages and server
 * requests belong to the request. Observers of the request do not see the inner operation. The inner operation's result
 * is buffered. The request headers are dropped because they do not match the new arguments.
 */
export function innerOperation(
  { client, context }: Operation,
  method: string,
  params: JsonObject,
): Operation {
  const { onDecision: _, onRouted: __, streamResult: ___, ...shared } = deriveContext(context, {})
  return { method, params, client, context: shared }
}

/** Starts one of Gatehouse's own operations on behalf of a client. The client cannot be prompted. */
export function ownOperation(
  client: OperationClient,
  method: string,
  params: unknown,
  signal: AbortSignal,
): Operation {
  return {
    method,
    params: new JsonObject(Buffer.from(JSON.stringify(params))),
    client,
    context: {
      signal,
      progressToken: undefined,
      logLevel: undefined,
      progress: () => {},
      log: () => {},
      ask: () => Promise.reject(new Error('the client cannot be prompted')),
    },
  }
}

/** Returns a copy of a context with the given members replaced. */
export function deriveContext(
  context: OperationContext,
  changes: Partial<OperationContext>,
): OperationContext {
  return {
    signal: context.signal,
    progressToken: context.progressToken,
    logLevel: context.logLevel,
    onDecision: context.onDecision,
    onRouted: context.onRouted,
    progress: (params) => context.progress(params),
    log: (params) => context.log(params),
    ask: (request, withdrawn) => context.ask(request, withdrawn),
    streamResult: () => context.streamResult?.(),
    ...changes,
  }
}
