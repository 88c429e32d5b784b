/**
 * Implements the stateless-era protocol for a backend. Each request is independent and identifies the client.
 *
 * A backend that needs input returns `input_required`. For a stateless client, Gatehouse forwards this response
 * unchanged. For a session-era client (`relay.bridges`), the connection asks the questions and repeats the request with
 * the answers.
 * Source: MCP 2026-07-28, streamable HTTP, patterns/mrtr.
 */
import { Deadline } from '../../../net/index.ts'
import { own } from '../../../../schemas/index.ts'
import {
  type Ask,
  type Changes,
  emptyObject,
  foreignStatuses,
  headerName,
  JsonObject,
  type Message,
  namedMethods,
  protocolError,
  type SseEvent,
  requestMessage,
  respondToInputRequests,
  resultKind,
  rpcCode,
  sendInRounds,
  sessionError,
  statelessParams,
  statelessVersion,
  writeHeaderValue,
} from '../../../mcp/index.ts'
import type { Outcome } from '../../model/outcome.ts'
import { WrongEra } from '../session-era/channel.ts'
import type { ChannelTarget, Sender } from '../transport/target.ts'
import { type BackendConnection, type Request, type ServerInfo, makeSplitter } from '../connection.ts'
import { explainResponse, explainRpcError } from '../transport/backend-answer.ts'
import type { BackendResponse, ExchangeControl } from '../transport/http.ts'
import { forwardMessageIn, readBackendMessage } from '../transport/read-message.ts'
import { describeRequest, isOwnRequest, sendToBackend, unreadableResponse } from '../transport/send.ts'
import { readServerInfo } from '../server-info.ts'
import { errorOf, isDecisiveStatus } from '../transport/status-error.ts'

/** Time in milliseconds for which a stream may stay open after its response has arrived. */
const lingerMs = 2_000
/** Changes that remove the members of a request that answers a backend's questions. */
const withoutState: Changes = { inputResponses: undefined, requestState: undefined }

export interface StatelessConnectionOptions {
  readonly target: ChannelTarget
  /** Raw JSON of Gatehouse's `Implementation`. */
  readonly info: string
  readonly openTimeoutMs: number
}

export class StatelessConnection implements BackendConnection {
  readonly #options: StatelessConnectionOptions
  #server: ServerInfo | undefined
  #nextId = 1
  #busy = 0

  constructor(options: StatelessConnectionOptions) {
    this.#options = options
  }

  get inFlightCount(): number {
    return this.#busy
  }

  async open(sender: Sender, signal: AbortSignal): Promise<ServerInfo> {
    return this.#server ?? this.discover(sender, signal)
  }

  /** Sends `server/discover` and stores the server information. */
  async discover(sender: Sender, signal: AbortSignal): Promise<ServerInfo> {
    const outcome = await this.request({
      method: 'server/discover',
      params: emptyObject,
      sender,
      capabilities: emptyObject.bytes,
      signal,
      timeoutMs: this.#options.openTimeoutMs,
    })
    if (outcome.kind !== 'result') {
      const error = outcome.kind === 'error' ? outcome.error : undefined
      throw new WrongEra(
        'no discovery',
        undefined,
        explainRpcError(error, describeRequest(this.#options.target, undefined)),
      )
    }
    this.#server = readServerInfo(outcome.result, statelessVersion)
    return this.#server
  }

  async request(request: Request): Promise<Outcome> {
    const deadline = new Deadline(request.timeoutMs, request.signal)
    this.#busy++
    try {
      const { relay } = request
      if (!relay?.bridges) return await this.#sendOnce(request, deadline)
      return await sendInRounds(
        (changes) => this.#sendOnce({ ...request, changes: { ...request.changes, ...changes } }, deadline),
        (outcome) => (outcome.kind === 'input' ? outcome.result : undefined),
        async (interim) => {
          const resume = deadline.pause()
          const ask = (asked: Ask, signal: AbortSignal) => relay.ask(asked, signal)
          const changes = await respondToInputRequests(interim, ask, deadline.signal)
          resume()
          return changes
        },
      )
    } finally {
      this.#busy--
      deadline.end()
    }
  }

  async #sendOnce(request: Request, deadline: Deadline): Promise<Outcome> {
    const id = String(this.#nextId++)
    const outcome = await this.#exchange(request, id, deadline)
    return request.relay?.bridges ? convertForSession(request.method, outcome) : outcome
  }

  /** Sends a request. Resolves to the response, which may arrive before the stream ends. */
  #exchange(request: Request, id: string, deadline: Deadline): Promise<Outcome> {
    const { target, info } = this.#options
    const { relay, trace, capabilities } = request
    const changes = request.hasOwnState ? request.changes : { ...withoutState, ...request.changes }
    const params = statelessParams(
      {
        ...{ params: request.params, changes, trace },
        progress: relay?.progressToken !== undefined,
        logLevel: relay?.logLevel,
      },
      { info, capabilities },
      id,
    )
    return new Promise((resolve, reject) => {
      const control: ExchangeControl = {}
      let responded = false
      let linger: NodeJS.Timeout | undefined
      const onMessage = (message: Message): void => {
        const outcome = this.#receive(message, id, request)
        if (!outcome) return
        responded = true
        resolve(outcome)
        // The response should end the stream. Gatehouse closes the stream if the backend keeps it open.
        linger = setTimeout(
          () => control.exchange?.fail(new Error('the stream stayed open after the response')),
          lingerMs,
        )
      }
      const onEvent = (event: SseEvent): void | Promise<void> => {
        if (event.size === 0 || responded) return undefined
        return forwardMessageIn(event, target, onMessage)
      }
      sendToBackend(target, request.sender, {
        method: 'POST',
        headers: this.#headers(request),
        body: requestMessage(id, request.method, params),
        signal: deadline,
        rpcMethod: request.method,
        delivery: request.delivery,
        limit: request.limit,
        splitterFor: (event) => makeSplitter(request.relay, id, deadline, { replaces: event !== undefined }),
        control,
        onEvent,
      })
        .then(async (response) => {
          if (!responded) resolve(await responseOf(response, id, request, target))
        })
        .catch((error: unknown) => reject(error instanceof Error ? error : new Error('request failed')))
        .finally(() => clearTimeout(linger))
    })
  }

  #headers(request: Request): Record<string, string> {
    const headers: Record<string, string> = {
      ...request.headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      [headerName.protocolVersion]: statelessVersion,
      [headerName.method]: request.method,
    }
    const member = own(namedMethods, request.method)
    if (member !== undefined) {
      const changed = request.changes?.[member]
      const name: unknown =
        changed === undefined ? request.params.value(member) : JSON.parse(changed.toString())
      if (typeof name === 'string') headers[headerName.name] = writeHeaderValue(name)
    }
    return headers
  }

  /** Handles one message from an event stream. Returns the outcome if the message is the response. */
  #receive(message: Message, id: string, request: Request): Outcome | undefined {
    if (message.method === '') return outcomeOf(message, id, request)
    const { relay } = request
    if (message.kind !== 'notification' || !message.params || !relay) return undefined
    if (message.method === 'notifications/message') relay.log(message.params)
    if (message.method === 'notifications/progress' && relay.progressToken !== undefined) {
      const params = new JsonObject(message.params, { ignoreCase: true })
      relay.progress(params.with({ progressToken: relay.progressToken }))
    }
    return undefined
  }

  notify(): void {
    // The stateless era does not define client notifications over HTTP.
  }

  setLogLevel(): void {
    // Each request contains its log level.
  }

  async close(): Promise<void> {
    // No connection stays open between requests.
  }
}

async function responseOf(
  response: BackendResponse,
  id: string,
  request: Request,
  target: ChannelTarget,
): Promise<Outcome> {
  const { method } = request
  if (response.stream) throw protocolError('the stream ended before the response arrived')
  let message: Message
  try {
    message = response.message ?? (await readBackendMessage(response.body, target))
  } catch (cause) {
    if (foreignStatuses.has(response.status))
      throw new WrongEra(
        `no message in the HTTP ${response.status} response`,
        undefined,
        explainResponse(response, describeRequest(target, method)),
      )
    throw (
      errorOf(response, describeRequest(target, method)) ??
      unreadableResponse(response, target, method, cause)
    )
  }
  if (message.error && isOwnRequest(method) && isDecisiveStatus(response.status))
    throw errorOf(response, describeRequest(target, method))
  const outcome = outcomeOf(message, id, request)
  if (outcome?.kind === 'error' && belongsToOtherEra(response.status, outcome.error))
    throw new WrongEra('an error code that this protocol era does not define', outcome)
  if (!outcome) throw errorOf(response, describeRequest(target, method)) ?? protocolError('no response')
  return outcome
}

/** Codes of errors with which stateless servers reject the content of a request. */
const ownRefusals: ReadonlySet<unknown> = new Set([
  rpcCode.methodNotFound,
  rpcCode.invalidParams,
  rpcCode.headerMismatch,
  rpcCode.capabilityRequired,
])

function belongsToOtherEra(status: number, error: Buffer): boolean {
  return foreignStatuses.has(status) && !ownRefusals.has(new JsonObject(error).value('code'))
}

/** Returns the outcome of a response. Throws BACKEND_PROTOCOL for a kind of result that was not requested. */
function outcomeOf(message: Message, id: string, request: Request): Outcome | undefined {
  if (message.error && (message.id === id || message.id === undefined))
    return { kind: 'error', error: message.error }
  if (!message.result || message.id !== id) return undefined
  const { result, passed } = message
  const kind = resultKind(result, request)
  return kind === 'result' ? { kind, result, ...(passed && { passed }) } : { kind, result }
}

/** Converts an error for session-era clients. The client codec converts results. */
function convertForSession(method: string, outcome: Outcome): Outcome {
  return outcome.kind === 'error' ? { kind: 'error', error: sessionError(method, outcome.error) } : outcome
}
