/**
 * One thing a client wants done, free of any protocol revision: what the core, the middlewares and the backend codecs
 * see. The client edges make it from the wire, the backend edges carry it out.
 *
 * Params and results stay JSON bytes. Times are milliseconds.
 * Source: ARCHITECTURE.md, "Two protocol eras"; docs/specification/virtual-server.md.
 */
import type { IncomingHttpHeaders } from 'node:http'
import {
  type Abilities,
  type Ask,
  type AskReply,
  type Era,
  JsonObject,
  type PassedMembers,
  type ResultPassage,
} from '../../mcp/index.ts'
import type { Caller, LazySignal } from '../../net/index.ts'
import { GatehouseError } from '../../../schemas/index.ts'
import { annotateDenial, type PolicyRecord } from '../../observe/index.ts'
import type { Origin } from '../../policy/index.ts'

/** What the client declared that it can do, reduced to what decides whether a backend may ask it. */
export interface ClientAbilities extends Abilities {
  /** The declared capabilities, raw JSON object, passed on to backends as they are. */
  readonly raw: Buffer
  /** Equal for clients whose declared capabilities are equal. */
  readonly signature: string
  /**
   * The same without what no revision of the protocol defines (extensions, experiments): there are few of these, while
   * anybody can make up any number of the others. Undefined when nothing is left out.
   */
  readonly plain?: ClientAbilities | undefined
}

export type { Ask, AskReply }

/** The client as the core sees it, during one operation. */
export interface OperationClient {
  readonly era: Era
  readonly protocolVersion: string
  readonly caller: Caller
  readonly abilities: ClientAbilities
  /** Raw `Implementation` object, when the client gave one. */
  readonly info: Buffer | undefined
  /** Request headers on the passthrough allowlist, lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** The session of a session-era client. Backends keep one live session for each. */
  readonly session: ClientSession | undefined
}

/** What a backend connection needs from the session it serves. */
export interface ClientSession {
  readonly id: string
  /** Relays a message that belongs to no operation in flight. */
  deliver(backend: string, method: string, params: Buffer | undefined): void
  /**
   * Returns the backend session of this client session, which another replica may have opened. Undefined when the
   * stored backend session has another binding.
   */
  resume?(backend: string, binding: string): BackendSession | undefined
  /** Told when a backend has opened a session for this one. */
  opened?(backend: string, session: BackendSession): void
  /** True once it is over: nothing is opened for it any more. */
  readonly over?: boolean
  /** Told when a backend has forgotten its session for this one. */
  lost?(backend: string): void
  /** Asks the client outside any operation. Rejects when it cannot be asked. */
  ask(request: Ask, signal: AbortSignal): Promise<AskReply>
}

/** What it takes to go on with a backend's session. */
export interface BackendSession {
  readonly sessionId: string
  readonly protocolVersion: string
  /** True when the backend takes `logging/setLevel`. */
  readonly logging: boolean
  /**
   * Digest of the backend's name and address and of the requester's identity. The session is not used for any other
   * combination.
   */
  readonly binding: string
}

export interface Operation {
  readonly method: string
  readonly params: JsonObject
  readonly client: OperationClient
  /** Raw JSON of the request's id; undefined for calls of the gateway itself. */
  readonly id?: string | undefined
  /** What the client sent, where webhooks have changed the params, or the tool is called by an alias. */
  readonly sent?: JsonObject | undefined
  /** Headers of the request, where they have to agree with the arguments that the client sent. */
  readonly headers?: IncomingHttpHeaders | undefined
  /** Fires when the client cancelled or went away. */
  readonly signal: AbortSignal
  /** The same, where `signal` is made with its first use. */
  readonly lazySignal?: LazySignal | undefined
  /** Raw JSON of the client's progress token; undefined when it wants no progress. */
  readonly progressToken: string | undefined
  /** Least severe log level the client wants to see during this operation; undefined: none. */
  readonly logLevel: string | undefined
  /**
   * What the decision about the operation rested on: the core takes it nowhere else. Set by the authorization, where
   * policies read where things come from, or by webhooks that are chosen by it.
   */
  origin?: Origin | undefined
  /**
   * Identity of the backend that `requestState` and `inputResponses` in the params are for (`backendIdentity`). The
   * core rejects the operation when it resolves to another backend. Without `stateFor`, neither member reaches a
   * backend.
   */
  readonly stateFor?: string | undefined
  /** A script or a workflow reads the result, and not the client. */
  readonly forProgram?: boolean | undefined
  /** Called with the decision about the operation. */
  readonly decided?: ((record: PolicyRecord) => void) | undefined
  /** Told which backend the operation is taken to. */
  readonly routed?: ((backend: string) => void) | undefined
  /** Passes on progress: raw params of the notification, the client's token already in place. */
  progress(params: Buffer): void
  /** Passes on a log message: raw params of the notification. */
  log(params: Buffer): void
  /**
   * Asks the client and waits; `signal` withdraws the question. Rejects with CAPABILITY_REQUIRED when the client did not
   * declare the ability.
   */
  ask(request: Ask, signal?: AbortSignal): Promise<AskReply>
  /**
   * The way of a large result to the client while it arrives. Absent where somebody reads results, so that they have to be
   * whole; undefined when the client has to get it whole.
   */
  passage?(): ResultPassage | undefined
}

/** How an operation ended. Errors of the gateway itself are thrown as GatehouseError instead. */
export type Outcome =
  | {
      readonly kind: 'result'
      readonly result: Buffer
      /** What has gone on to the client already: large members, for which something small stands in `result`. */
      readonly passed?: PassedMembers | undefined
      /** Why the gateway refused the call, as a code, where it tells that as a result of the tool. */
      readonly denial?: string
    }
  /** A JSON-RPC error object of the backend, passed on as it is. */
  | { readonly kind: 'error'; readonly error: Buffer }
  /** The stateless era's "ask again with these answers": a raw InputRequiredResult. */
  | {
      readonly kind: 'input'
      readonly result: Buffer
      /** Identity of the backend that asks; see `Operation.stateFor`. */
      readonly backend?: string | undefined
    }

/** Carries an operation out. Rejects with GatehouseError. */
export type Perform = (operation: Operation) => Promise<Outcome>

/**
 * Stands between the edges and the core. `next` goes on with the operation itself, or with another one that was made of
 * it. One that has nothing to do with an operation answers what `next` does: every `async` around a call costs it a
 * promise and 500 bytes. Order: runtime/vmcp/call/chain.ts.
 */
export type Middleware = (operation: Operation, next: Perform) => Promise<Outcome>

/** Bytes of what a backend has answered. */
export function sizeOf(outcome: Outcome): number {
  if (outcome.kind === 'error') return outcome.error.length
  return outcome.result.length + ((outcome.kind === 'result' && outcome.passed?.bytes) || 0)
}

/** Returns the error for a `requestState` that is unknown, expired, or for another request or backend. */
export function invalidRequestState(): GatehouseError {
  return new GatehouseError('INVALID_PARAMS', {
    detail: 'Invalid params: requestState is not valid for this request',
  })
}

export function resultOutcome(value: unknown): Outcome {
  return { kind: 'result', result: Buffer.from(JSON.stringify(value)) }
}

/** A refusal that a model can read: it looks like a result of the tool. */
export function refusedOutcome(denial: string, { code, message, data }: RefusalTold): Outcome {
  annotateDenial(denial)
  const told = { content: [{ type: 'text', text: message }], structuredContent: { code, message, data } }
  return { kind: 'result', result: Buffer.from(JSON.stringify({ ...told, isError: true })), denial }
}

interface RefusalTold {
  readonly code: number
  readonly message: string
  readonly data: unknown
}

/** The result of a tool that failed: text that a model can read, not an error of the protocol. */
export function toolErrorOutcome(text: string, more: readonly TextContent[] = []): Outcome {
  return resultOutcome({ content: [{ type: 'text', text }, ...more], isError: true })
}

export interface TextContent {
  readonly type: 'text'
  readonly text: string
}

/** The operation with other params. The headers of the request agree with what the client sent. */
export function withParams(
  operation: Operation,
  params: JsonObject,
  origin: Origin | undefined = operation.origin,
): Operation {
  const { method, client, id, headers, stateFor, signal, progressToken, logLevel, decided, routed } =
    operation
  return {
    method,
    params,
    stateFor,
    client,
    id,
    headers,
    sent: operation.sent ?? operation.params,
    signal,
    progressToken,
    logLevel,
    decided,
    routed,
    origin,
    progress: (given) => operation.progress(given),
    log: (given) => operation.log(given),
    ask: (request, within) => operation.ask(request, within),
    passage: () => operation.passage?.(),
  }
}

/** The operation of somebody who reads the result: it comes whole. */
export function withWholeResult(operation: Operation): Operation {
  const { sent, forProgram } = operation
  return { ...withParams(operation, operation.params), sent, forProgram, passage: () => undefined }
}

/**
 * Another operation within one that a client waits for: same client, same end, and what it says on its way or asks goes
 * the same way. Headers of the request no longer agree with the arguments and are left out.
 */
export function innerOperation(operation: Operation, method: string, params: JsonObject): Operation {
  return {
    method,
    params,
    client: operation.client,
    signal: operation.signal,
    progressToken: operation.progressToken,
    logLevel: operation.logLevel,
    progress: (sent) => operation.progress(sent),
    log: (sent) => operation.log(sent),
    ask: (request, signal) => operation.ask(request, signal),
  }
}

/** An operation of the gateway itself on behalf of a client. */
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
    signal,
    progressToken: undefined,
    logLevel: undefined,
    progress: () => {},
    log: () => {},
    ask: () => Promise.reject(new Error('nobody can be asked now')),
  }
}
