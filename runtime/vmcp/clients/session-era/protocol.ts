/**
 * What the session era demands of a server, whatever carries its messages: opening a session, requests in flight,
 * cancellation, log levels, answers to questions.
 * Source: MCP 2025-11-25, lifecycle and utilities.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import {
  assumedSessionVersion,
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
import type { OperationClient } from '../../model/session.ts'
import type { Operation } from '../../model/operation.ts'
import type { Outcome } from '../../model/outcome.ts'
import { maxInFlight, maxSubscriptions, type ServerSession } from '../sessions/session.ts'
import type { SessionTable } from '../sessions/table.ts'
import { type Advertise, advertisedMembers } from '../advertised.ts'
import type { ClientResponse } from '../response.ts'
import { abilitiesOf, noAbilities, readInfo } from '../../model/client.ts'
import { LiveOperation } from '../live-operation.ts'

/** Cancelled requests with ids up to this length, as JSON, are passed on to other workers. */
const maxToldId = 256

export interface SessionProtocolOptions {
  readonly sessions: SessionTable
  /** The core with everything that stands before it. */
  readonly perform: (operation: Operation) => Promise<Outcome>
  /** Called with everything that happens to a session. */
  readonly life: SessionLife
  readonly serverInfo: string
  readonly advertise: Advertise
  /** Answers in the making: held open while they take long. */
  readonly responses: InFlight<ClientResponse>
  readonly log: Log
}

export interface SessionLife {
  /** The client has said that it is ready. */
  ready(session: ServerSession): void
  /** The first message arrived of a session that was opened or restored in this process; before it is carried out. */
  began(session: ServerSession): void
  subscribed(session: ServerSession, uri: string): void
  unsubscribed(session: ServerSession, uri: string): void
  levelSet(session: ServerSession): void
  rootsChanged(session: ServerSession): void
  /** A list was answered: the client has seen the present state of it. */
  listed(session: ServerSession, method: string): void
}

export class SessionProtocol {
  readonly #options: SessionProtocolOptions

  readonly sessions: SessionTable

  constructor(options: SessionProtocolOptions) {
    this.#options = options
    this.sessions = options.sessions
  }

  /** Opens a session for an `initialize` request. Answers the response message. Throws MessageError. */
  async open(
    message: Message,
    params: JsonObject,
    caller: Caller,
    headers: Readonly<Record<string, string>>,
  ): Promise<{ session: ServerSession; response: Buffer }> {
    const { id } = message
    if (message.kind !== 'request' || id === undefined) {
      throw new MessageError('INVALID_REQUEST', id, { detail: 'Invalid Request: initialize needs an id' })
    }
    checkParamTypes(message.method, params)
    const asked = params.text('protocolVersion')
    const capabilities = params.raw('capabilities')
    if (asked === undefined || (capabilities !== undefined && capabilities[0] !== 0x7b)) {
      throw new MessageError('INVALID_PARAMS', id, {
        detail: 'Invalid params: protocolVersion and capabilities are required',
      })
    }
    const protocolVersion = sessionVersionFor(asked)
    const facts = {
      protocolVersion,
      abilities: capabilities ? abilitiesOf(capabilities, id) : noAbilities,
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
    session.sender = { caller, headers }
    this.#options.life.began(session)
    const result = `{"protocolVersion":"${protocolVersion}",${advertisedMembers(advertised)},"serverInfo":${this.#options.serverInfo}}`
    return { session, response: resultMessage(id, result) }
  }

  /**
   * Handles one message of a session. Only requests get a response. Rejects with the errors that HTTP reports itself: the
   * caller must sign in again, or may not do this.
   */
  async receive(
    session: ServerSession,
    message: Message,
    params: JsonObject,
    response: ClientResponse,
  ): Promise<void> {
    const { kind, method, id = '' } = message
    if (!session.onLost) this.#options.life.began(session)
    if (kind === 'notification') {
      this.#notification(session, message, params)
      return
    }
    if (kind !== 'request') {
      session.response(message)
      return
    }
    try {
      checkParamTypes(method, params)
    } catch (error) {
      response.end(errorMessage(id, error))
      return
    }
    if (method === 'ping') response.end(resultMessage(id, '{}'))
    else if (method === 'logging/setLevel') await this.#level(session, id, params, response)
    else if (session.inFlight.find((request) => request.id === id))
      response.end(refusal(id, 'the id is in use'))
    else if (session.inFlight.size >= maxInFlight) response.end(refusal(id, 'too many requests at a time'))
    else if (method === 'resources/subscribe' && session.subscriptions.size >= maxSubscriptions)
      response.end(refusal(id, 'too many subscriptions'))
    else await this.#operate(session, message, params, response)
  }

  async #level(
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
    this.#options.life.levelSet(session)
    response.end(resultMessage(id, '{}'))
  }

  async #operate(
    session: ServerSession,
    message: Message,
    params: JsonObject,
    response: ClientResponse,
  ): Promise<void> {
    const id = message.id ?? ''
    const send = (bytes: Buffer): boolean => response.send(bytes) || pushed(session, bytes)
    const live: LiveOperation = new LiveOperation({
      message,
      params,
      client: clientOf(session),
      logLevel: session.logLevel,
      logs: true,
      sink: {
        send,
        ask: (request, signal) => session.askBy(send, request, eitherOf(live.signal, signal)),
        passage: () => response.passage?.(id, 'session'),
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
    response.onClose = () => live.cancel(new Error('the client went away'))
    const answering = this.#options.responses.add(response)
    try {
      const outcome = await this.#options.perform(live.operation)
      if (outcome.kind === 'error') response.end(rawErrorMessage(id, outcome.error))
      else {
        const passed = outcome.kind === 'result' ? outcome.passed : undefined
        const result = resultFor(message.method, outcome.result)
        response.endResult(id, result instanceof Promise ? await result : result, passed)
      }
      this.#note(session, message.method, params)
    } catch (error) {
      if (cancelled) response.drop()
      else if (isForHttp(error) && !response.streaming) throw error
      else response.end(sessionError(id, error))
    } finally {
      response.onClose = undefined
      this.#options.responses.remove(answering)
      session.inFlight.remove(request)
    }
  }

  #note(session: ServerSession, method: string, params: JsonObject): void {
    const { life } = this.#options
    if (method === 'resources/subscribe') life.subscribed(session, params.text('uri') ?? '')
    else if (method === 'resources/unsubscribe') life.unsubscribed(session, params.text('uri') ?? '')
    else if (method.endsWith('/list')) life.listed(session, method)
  }

  #notification(session: ServerSession, message: Message, params: JsonObject): void {
    switch (message.method) {
      case 'notifications/initialized':
        this.#options.life.ready(session)
        break
      case 'notifications/cancelled': {
        const id = params.raw('requestId')?.toString()
        if (id === undefined || session.cancelRequest(id)) break
        if (id.length <= maxToldId) session.elsewhere?.cancel(session.id, id)
        break
      }
      case 'notifications/roots/list_changed':
        this.#options.life.rootsChanged(session)
        break
      default:
        this.#options.log.debug('a notification of a client is not relayed', { method: message.method })
    }
  }
}

/** Who the caller is, or what the caller may do, is what is wrong: the status has to say so. */
export function isForHttp(error: unknown): boolean {
  return error instanceof GatehouseError && (error.status === 401 || error.code === 'FORBIDDEN')
}

function refusal(id: string, why: string): Buffer {
  return errorMessage(id, new GatehouseError('INVALID_REQUEST', { detail: `Invalid Request: ${why}` }))
}

function eitherOf(a: AbortSignal, b: AbortSignal | undefined): AbortSignal {
  return b ? AbortSignal.any([a, b]) : a
}

function pushed(session: ServerSession, message: Buffer): boolean {
  session.push(message)
  return true
}

/** The client behind a session, as it is at this request. */
export function clientOf(session: ServerSession): OperationClient {
  const { protocolVersion, abilities, info } = session.facts
  return {
    era: 'session',
    protocolVersion: protocolVersion || assumedSessionVersion,
    ...session.sender,
    abilities,
    info,
    session,
  }
}

/** Throws, or rejects with, BACKEND_PROTOCOL when the result can be read in two ways. */
function resultFor(method: string, result: Buffer): Buffer | Promise<Buffer> {
  // Lists are made here.
  if (method.endsWith('/list')) return result
  if (result.length >= largeBytes) return inTurns(sessionResultInTurns(result)).catch(unreadable)
  try {
    return sessionResult(result)
  } catch (error) {
    return unreadable(error)
  }
}

function unreadable(error: unknown): never {
  throw error instanceof JsonError ? new GatehouseError('BACKEND_PROTOCOL', { cause: error }) : error
}

/** Session-era clients know a code of their own for a resource that does not exist. */
function sessionError(id: string, error: unknown): Buffer {
  if (error instanceof GatehouseError && error.code === 'RESOURCE_NOT_FOUND') {
    return rawErrorMessage(id, JSON.stringify({ ...errorObject(error), code: rpcCode.resourceNotFound }))
  }
  return errorMessage(id, error)
}
