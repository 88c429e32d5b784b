/**
 * The context of an operation for which a client is waiting. Connects the client's request with its reply and its
 * cancellation.
 */
import type { IncomingHttpHeaders } from 'node:http'
import {
  type JsonObject,
  type Message,
  notificationMessage,
  passesLevel,
  type ResultPassage,
  withoutReservedMeta,
} from '../../mcp/index.ts'
import { LazySignal } from '../../net/index.ts'
import type { Ask, AskReply } from '../../mcp/index.ts'
import type { OperationClient } from '../model/session.ts'
import type { Operation, OperationContext } from '../model/operation.ts'

/** Receives the messages that precede an operation's result. */
export interface OperationSink {
  /** Sends a message that precedes the result. Returns false if the message cannot be delivered. */
  readonly send: (message: Buffer) => boolean
  readonly ask: (request: Ask, signal?: AbortSignal) => Promise<AskReply>
  readonly streamResult?: () => ResultPassage | undefined
}

export interface LiveOperationOptions {
  readonly message: Message
  readonly params: JsonObject
  readonly client: OperationClient
  readonly headers?: IncomingHttpHeaders | undefined
  readonly logLevel: string | undefined
  readonly stateFor?: string | undefined
  /** False for a stateless client that has not set a log level. Such a client receives no log messages. */
  readonly sendsLogs: boolean
  readonly sink: OperationSink
}

export class LiveOperation implements OperationContext {
  /** The operation that has this context. */
  readonly operation: Operation
  readonly progressToken: string | undefined
  readonly logLevel: string | undefined
  /**
   * The sink of the current request. A parked operation receives a new sink when another request continues the
   * operation.
   */
  sink: OperationSink
  readonly lazySignal: LazySignal = new LazySignal()
  readonly #sendsLogs: boolean

  constructor({
    message,
    params,
    client,
    headers,
    logLevel,
    stateFor,
    sendsLogs,
    sink,
  }: LiveOperationOptions) {
    const { method, id } = message
    this.operation = { method, id, params, client, headers, stateFor, context: this }
    this.logLevel = logLevel
    this.sink = sink
    this.#sendsLogs = sendsLogs
    this.progressToken = params.raw('_meta') && progressTokenOf(params)
  }

  get signal(): AbortSignal {
    return this.lazySignal.signal
  }

  cancel(reason: Error): void {
    this.lazySignal.abort(reason)
  }

  progress(params: Buffer): void {
    this.#notify('notifications/progress', params)
  }

  log(params: Buffer): void {
    if (this.#sendsLogs && passesLevel(params, this.logLevel)) this.#notify('notifications/message', params)
  }

  #notify(method: string, params: Buffer): void {
    const allowedParams = this.operation.client.era === 'session' ? withoutReservedMeta(params) : params
    this.sink.send(notificationMessage(method, allowedParams))
  }

  ask(request: Ask, signal?: AbortSignal): Promise<AskReply> {
    return this.sink.ask(request, signal)
  }

  streamResult(): ResultPassage | undefined {
    return this.sink.streamResult?.()
  }
}

/** Returns the client's progress token. Only a string or a number is a valid token. */
function progressTokenOf(params: JsonObject): string | undefined {
  const token = params.object('_meta')?.raw('progressToken')?.toString()
  return token !== undefined && /^["\d-]/.test(token) ? token : undefined
}
