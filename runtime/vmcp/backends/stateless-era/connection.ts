/**
 * Stateless-era codec towards a backend: every request stands alone and says who asks.
 *
 * A backend that needs input answers `input_required`. For a stateless client that response travels on as it is; for a
 * session-era client (`relay.bridges`) the questions are asked here and the request is sent again with the responses.
 * Source: MCP 2026-07-28, streamable HTTP, patterns/mrtr.
 */
import { Deadline } from '../../../net/index.ts'
import { own } from '../../../../schemas/index.ts'
import {
  type Ask,
  emptyObject,
  foreignStatuses,
  headerName,
  isInterim,
  JsonObject,
  type Message,
  namedMethods,
  protocolError,
  type SseEvent,
  requestMessage,
  respondToInputRequests,
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
import { type BackendConnection, type Request, type ServerInfo, splitterOf } from '../connection.ts'
import { answerOf, rejectionOf } from '../transport/backend-answer.ts'
import type { BackendResponse, ExchangeControl } from '../transport/http.ts'
import { deliver, messageIn, readBackendMessage } from '../transport/read-message.ts'
import { answered, isOwnRequest, sendToBackend, unreadableResponse } from '../transport/send.ts'
import { readServerInfo } from '../server-info.ts'
import { errorOf, isDecisiveStatus } from '../transport/status-error.ts'

/** How long a stream may stay open after its response has arrived. */
const lingerMs = 2_000

export interface StatelessConnectionOptions {
  readonly target: ChannelTarget
  /** Raw JSON of our own `Implementation`. */
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

  get busy(): number {
    return this.#busy
  }

  async open(sender: Sender, signal: AbortSignal): Promise<ServerInfo> {
    return this.#server ?? this.discover(sender, signal)
  }

  /** Asks the backend again what it offers. */
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
        rejectionOf(error, answered(this.#options.target, undefined)),
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
      if (!relay?.bridges) return await this.#once(request, deadline)
      return await sendInRounds(
        (changes) => this.#once({ ...request, changes: { ...request.changes, ...changes } }, deadline),
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

  async #once(request: Request, deadline: Deadline): Promise<Outcome> {
    const id = String(this.#nextId++)
    const outcome = await this.#exchange(request, id, deadline)
    return request.relay?.bridges ? forSession(request.method, outcome) : outcome
  }

  /** Sends a request; resolves with its response, wherever on the way that arrives. */
  #exchange(request: Request, id: string, deadline: Deadline): Promise<Outcome> {
    const { target, info } = this.#options
    const { changes, relay, trace, capabilities } = request
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
        // The response ends the stream; a backend that does not end it keeps nobody waiting.
        linger = setTimeout(
          () => control.exchange?.fail(new Error('the stream stayed open after the response')),
          lingerMs,
        )
      }
      const onEvent = (event: SseEvent): void | Promise<void> => {
        if (event.size === 0 || responded) return undefined
        const message = messageIn(event, target)
        const take = (read: Message): void => deliver(read, target, onMessage)
        return message instanceof Promise ? message.then(take) : take(message)
      }
      sendToBackend(target, request.sender, {
        method: 'POST',
        headers: this.#headers(request),
        body: requestMessage(id, request.method, params),
        signal: deadline,
        rpcMethod: request.method,
        delivery: request.delivery,
        limit: request.limit,
        splitterFor: (event) => splitterOf(request.relay, id, deadline, { replaces: event !== undefined }),
        control,
        onEvent,
      })
        .then(async (response) => {
          if (!responded) resolve(await responseOf(response, id, request.method, target))
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

  /** Handles one message of an event stream; answers the outcome when it is the response. */
  #receive(message: Message, id: string, request: Request): Outcome | undefined {
    if (message.method === '') return outcomeOf(message, id)
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
    // The stateless era has no client notifications over HTTP.
  }

  setLogLevel(): void {
    // Each request says its own level.
  }

  async close(): Promise<void> {
    // Nothing is held open between requests.
  }
}

async function responseOf(
  response: BackendResponse,
  id: string,
  method: string,
  target: ChannelTarget,
): Promise<Outcome> {
  if (response.stream) throw protocolError('the stream ended before the response')
  let message: Message
  try {
    message = response.message ?? (await readBackendMessage(response.body, target))
  } catch (cause) {
    if (foreignStatuses.has(response.status))
      throw new WrongEra(
        `HTTP ${response.status} without a message`,
        undefined,
        answerOf(response, answered(target, method)),
      )
    throw errorOf(response, answered(target, method)) ?? unreadableResponse(response, target, method, cause)
  }
  if (message.error && isOwnRequest(method) && isDecisiveStatus(response.status))
    throw errorOf(response, answered(target, method))
  const outcome = outcomeOf(message, id)
  if (outcome?.kind === 'error' && isForeign(response.status, outcome.error))
    throw new WrongEra('an error that this era does not know', outcome)
  if (!outcome) throw errorOf(response, answered(target, method)) ?? protocolError('no response')
  return outcome
}

/** Codes by which this era refuses a request for what it says. */
const ownRefusals: ReadonlySet<unknown> = new Set([
  rpcCode.methodNotFound,
  rpcCode.invalidParams,
  rpcCode.headerMismatch,
  rpcCode.capabilityRequired,
])

function isForeign(status: number, error: Buffer): boolean {
  return foreignStatuses.has(status) && !ownRefusals.has(new JsonObject(error).value('code'))
}

/** Throws BACKEND_PROTOCOL for a kind of result that nobody has asked for, a task for instance. */
function outcomeOf(message: Message, id: string): Outcome | undefined {
  if (message.error && (message.id === id || message.id === undefined))
    return { kind: 'error', error: message.error }
  if (!message.result || message.id !== id) return undefined
  const { result, passed } = message
  return isInterim(result) ? { kind: 'input', result } : { kind: 'result', result, ...(passed && { passed }) }
}

/** Errors as clients of sessions know them; results take their form where they leave for such a client. */
function forSession(method: string, outcome: Outcome): Outcome {
  return outcome.kind === 'error' ? { kind: 'error', error: sessionError(method, outcome.error) } : outcome
}
