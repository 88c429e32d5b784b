/**
 * The server side of the session era, independent of the transport. Opens sessions, and handles requests in flight,
 * cancellation, log levels, and the client's answers to server requests.
 * Source: MCP 2025-11-25, lifecycle and utilities.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import {
  checkParamTypes,
  errorMessage,
  errorObject,
  inTurns,
  JsonError,
  largeBytes,
  type JsonObject,
  levelIn,
  type Message,
  MessageError,
  rawErrorMessage,
  resultMessage,
  rpcCode,
  sessionVersionFor,
  sessionResult,
  sessionResultInTurns,
} from '../../../mcp/index.ts'
import type { Caller, InFlight, Log } from '../../../net/index.ts'
import type { ExtensionSet } from '../../model/extensions.ts'
import type { Operation } from '../../model/operation.ts'
import type { Outcome } from '../../model/outcome.ts'
import { maxInFlight, maxSubscriptions, type ServerSession } from '../sessions/session.ts'
import type { SessionTable } from '../sessions/table.ts'
import { type Advertise, advertisedMembers } from '../advertised.ts'
import type { ClientResponse } from '../response.ts'
import { abilitiesOf, noAbilities, readInfo } from '../../model/client.ts'
import { LiveOperation } from '../live-operation.ts'

/** Maximum length of a request id, as JSON, for which cancellations are forwarded to other workers. */
const maxForwardedIdLength = 256

export interface SessionProtocolOptions {
  readonly sessions: SessionTable
  /** Performs client operations. Runs the whole chain. */
  readonly perform: (operation: Operation) => Promise<Outcome>
  /** Receives the events of each session. */
  readonly life: SessionLife
  readonly serverInfo: string
  readonly advertise: Advertise
  /** Returns the enabled protocol extensions. */
  readonly extensions: () => ExtensionSet
  /** Pending responses. Used to keep the connection alive while a response takes a long time. */
  readonly responses: InFlight<ClientResponse>
  readonly log: Log
}

export interface SessionLife {
  /** Called when the client has sent `notifications/initialized`. */
  onReady(session: ServerSession): void
  /** Called before the first of the session's messages is handled in this process. */
  onFirstMessage(session: ServerSession): void
  onSubscribed(session: ServerSession, uri: string): void
  onUnsubscribed(session: ServerSession, uri: string): void
  onLevelSet(session: ServerSession): void
  onRootsChanged(session: ServerSession): void
  /** Called when the client has received the current state of a list. */
  onListed(session: ServerSession, method: string): void
}

export class SessionProtocol {
  readonly #options: SessionProtocolOptions

  readonly sessions: SessionTable

  constructor(options: SessionProtocolOptions) {
    this.#options = options
    this.sessions = options.sessions
  }

  /**
   * Opens a session for an `initialize` request. Returns the session and the response message. Rejects with
   * MessageError.
   */
  async open(
    message: Message,
    params: JsonObject,
    caller: Caller,
    headers: Readonly<Record<string, string>>,
  ): Promise<{ session: ServerSession; response: Buffer }> {
    const { id } = message
    if (message.kind !== 'request' || id === undefined) {
      throw new MessageError('INVALID_REQUEST', id, { detail: 'Invalid Request: initialize requires an id' })
    }
    checkParamTypes(message.method, params)
    const requestedVersion = params.text('protocolVersion')
    const capabilities = params.raw('capabilities')
    if (requestedVersion === undefined || (capabilities !== undefined && capabilities[0] !== 0x7b)) {
      throw new MessageError('INVALID_PARAMS', id, {
        detail: 'Invalid params: protocolVersion and capabilities are required',
      })
    }
    const protocolVersion = sessionVersionFor(requestedVersion)
    const facts = {
      protocolVersion,
      abilities: capabilities
        ? abilitiesOf(capabilities, id, 'session', this.#options.extensions())
        : noAbilities,
      info: readInfo(params.raw('clientInfo')),
    }
    const advertised = await this.#options.advertise({
      era: 'session',
      ...facts,
      caller,
      headers,
      session: undefined,
    })
    const session = await this.#options.sessions.open(facts, caller)
    session.client = { ...session.client, caller, headers }
    this.#options.life.onFirstMessage(session)
    const result = `{"protocolVersion":"${protocolVersion}",${advertisedMembers(advertised)},"serverInfo":${this.#options.serverInfo}}`
    return { session, response: resultMessage(id, result) }
  }

  /**
   * Handles one message in a session. Only requests get a response. Rejects after failed authentication and for denied
   * operations, because these errors require an HTTP status.
   */
  async receive(
    session: ServerSession,
    message: Message,
    params: JsonObject,
    response: ClientResponse,
  ): Promise<void> {
    const { kind, method, id = '' } = message
    if (!session.onLost) this.#options.life.onFirstMessage(session)
    session.useExtensions(this.#options.extensions())
    if (kind === 'notification') {
      this.#handleNotification(session, message, params)
      return
    }
    if (kind !== 'request') {
      session.handleResponse(message)
      return
    }
    try {
      checkParamTypes(method, params)
    } catch (error) {
      response.end(errorMessage(id, error))
      return
    }
    if (method === 'ping') response.end(resultMessage(id, '{}'))
    else if (method === 'logging/setLevel') await this.#setLevel(session, id, params, response)
    else if (session.inFlight.size > 0 && session.inFlight.find((request) => request.id === id))
      response.end(invalidRequestMessage(id, 'the id is already in use'))
    else if (session.inFlight.size >= maxInFlight)
      response.end(invalidRequestMessage(id, 'too many requests at once'))
    else if (method === 'resources/subscribe' && session.subscriptions.size >= maxSubscriptions)
      response.end(invalidRequestMessage(id, 'too many subscriptions'))
    else await this.#operate(session, message, params, response)
  }

  async #setLevel(
    session: ServerSession,
    id: string,
    params: JsonObject,
    response: ClientResponse,
  ): Promise<void> {
    try {
      session.logLevel = levelIn(params)
    } catch (error) {
      response.end(errorMessage(id, error))
      return
    }
    await this.#options.sessions.save(session)
    this.#options.life.onLevelSet(session)
    response.end(resultMessage(id, '{}'))
  }

  async #operate(
    session: ServerSession,
    message: Message,
    params: JsonObject,
    response: ClientResponse,
  ): Promise<void> {
    const id = message.id ?? ''
    const send = (bytes: Buffer): boolean => response.send(bytes) || pushMessage(session, bytes)
    const live: LiveOperation = new LiveOperation({
      message,
      params,
      client: session.client,
      logLevel: session.logLevel,
      sendsLogs: true,
      sink: {
        send,
        ask: (request, signal) => session.askBy(send, request, eitherOf(live.signal, signal)),
        streamResult: () => response.streamResult?.(id, 'session'),
      },
    })
    let cancelled = false
    const request = session.inFlight.add({
      id,
      cancel(reason) {
        cancelled = true
        live.cancel(reason)
      },
    })
    response.onClose = () => live.cancel(new Error('the client disconnected'))
    const pendingResponse = this.#options.responses.add(response)
    try {
      const outcome = await this.#options.perform(live.operation)
      if (outcome.kind === 'error') response.end(rawErrorMessage(id, outcome.error))
      else {
        const passed = outcome.kind === 'result' ? outcome.passed : undefined
        const result = convertResult(message.method, outcome.result)
        response.endResult(id, result instanceof Promise ? await result : result, passed)
      }
      this.#reportToLife(session, message.method, params)
    } catch (error) {
      if (cancelled) response.drop()
      else if (needsHttpStatus(error) && !response.streaming) throw error
      else response.end(sessionError(id, error))
    } finally {
      response.onClose = undefined
      this.#options.responses.remove(pendingResponse)
      session.inFlight.remove(request)
    }
  }

  #reportToLife(session: ServerSession, method: string, params: JsonObject): void {
    const { life } = this.#options
    if (method === 'resources/subscribe') life.onSubscribed(session, params.text('uri') ?? '')
    else if (method === 'resources/unsubscribe') life.onUnsubscribed(session, params.text('uri') ?? '')
    else if (method.endsWith('/list')) life.onListed(session, method)
  }

  #handleNotification(session: ServerSession, message: Message, params: JsonObject): void {
    switch (message.method) {
      case 'notifications/initialized':
        this.#options.life.onReady(session)
        break
      case 'notifications/cancelled': {
        const id = params.raw('requestId')?.toString()
        if (id === undefined || session.cancelRequest(id)) break
        if (id.length <= maxForwardedIdLength) session.otherWorkers?.cancel(session.id, id)
        break
      }
      case 'notifications/roots/list_changed':
        this.#options.life.onRootsChanged(session)
        break
      default:
        this.#options.log.debug('ignored a client notification', { method: message.method })
    }
  }
}

/** True for failed authentication and denied operations. These errors must be reported with an HTTP status. */
export function needsHttpStatus(error: unknown): boolean {
  return error instanceof GatehouseError && (error.status === 401 || error.code === 'FORBIDDEN')
}

function invalidRequestMessage(id: string, why: string): Buffer {
  return errorMessage(id, new GatehouseError('INVALID_REQUEST', { detail: `Invalid Request: ${why}` }))
}

function eitherOf(a: AbortSignal, b: AbortSignal | undefined): AbortSignal {
  return b ? AbortSignal.any([a, b]) : a
}

function pushMessage(session: ServerSession, message: Buffer): boolean {
  session.push(message)
  return true
}

/** Converts a result for session-era clients. Throws or rejects with BACKEND_PROTOCOL if the JSON is ambiguous. */
function convertResult(method: string, result: Buffer): Buffer | Promise<Buffer> {
  // Gatehouse itself renders lists.
  if (method.endsWith('/list')) return result
  if (result.length >= largeBytes) return inTurns(sessionResultInTurns(result)).catch(throwUnreadable)
  try {
    return sessionResult(result)
  } catch (error) {
    return throwUnreadable(error)
  }
}

function throwUnreadable(error: unknown): never {
  throw error instanceof JsonError ? new GatehouseError('BACKEND_PROTOCOL', { cause: error }) : error
}

/** Encodes an error. The session era has a separate code for resources that do not exist. */
function sessionError(id: string, error: unknown): Buffer {
  if (error instanceof GatehouseError && error.code === 'RESOURCE_NOT_FOUND') {
    return rawErrorMessage(id, JSON.stringify({ ...errorObject(error), code: rpcCode.resourceNotFound }))
  }
  return errorMessage(id, error)
}
