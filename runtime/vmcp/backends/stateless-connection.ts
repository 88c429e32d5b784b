/**
 * Stateless-era codec towards a backend: every request stands alone and says who asks.
 *
 * A backend that needs input answers `input_required`. For a stateless client that answer travels on as it is; for a
 * session-era client (`relay.bridges`) the questions are asked here and the request is sent again with the answers.
 * Source: MCP 2026-07-28, streamable HTTP, patterns/mrtr.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import {
  type Changes,
  HEADER,
  JsonObject,
  type Message,
  NAMED_METHODS,
  requestMessage,
  scanMessage,
  STATELESS_VERSION,
  writeHeaderValue,
} from '../../mcp/index.ts'
import type { Outcome } from '../operation.ts'
import type { ChannelTarget, Sender } from './channel.ts'
import type { Connection, Request, ServerInfo } from './connection.ts'
import { Deadline } from './deadline.ts'
import type { BackendAnswer } from './http.ts'
import { answerInputRequests } from './input-requests.ts'
import { statelessParams } from './params.ts'
import { sendToBackend } from './send.ts'
import { readServerInfo } from './server-info.ts'
import { faultOf } from './status-fault.ts'

/** Rounds of questions within one request. */
const MAX_ROUNDS = 16
const EMPTY: JsonObject = new JsonObject(Buffer.from('{}'))

export interface StatelessConnectionOptions {
  readonly target: ChannelTarget
  /** Raw JSON of our own `Implementation`. */
  readonly info: string
  readonly openTimeoutMs: number
}

export class StatelessConnection implements Connection {
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
    if (this.#server) return this.#server
    const outcome = await this.request({
      method: 'server/discover',
      params: EMPTY,
      sender,
      capabilities: Buffer.from('{}'),
      signal,
      timeoutMs: this.#options.openTimeoutMs,
    })
    if (outcome.kind !== 'result')
      throw new GatehouseError('BACKEND_PROTOCOL', { cause: new Error('no discovery') })
    this.#server = readServerInfo(outcome.result, STATELESS_VERSION)
    return this.#server
  }

  /** Forgets what the backend said about itself. */
  refresh(): void {
    this.#server = undefined
  }

  async request(request: Request): Promise<Outcome> {
    const deadline = new Deadline(request.timeoutMs, request.signal)
    this.#busy++
    try {
      let changes: Changes = request.changes ?? {}
      for (let round = 0; round < MAX_ROUNDS; round++) {
        const outcome = await this.#once({ ...request, changes }, deadline)
        if (outcome.kind !== 'input' || !request.relay?.bridges) return outcome
        const resume = deadline.pause()
        const answers = await answerInputRequests(outcome.result, request.relay)
        resume()
        changes = { ...request.changes, ...answers }
      }
      throw new GatehouseError('BACKEND_PROTOCOL', { cause: new Error('the backend asks without end') })
    } finally {
      this.#busy--
      deadline.end()
    }
  }

  async #once(request: Request, deadline: Deadline): Promise<Outcome> {
    const { target, info } = this.#options
    const id = String(this.#nextId++)
    const params = statelessParams(request, { info, capabilities: request.capabilities }, id)
    const body = requestMessage(id, request.method, params)
    const headers = this.#headers(request)
    let outcome: Outcome | undefined
    const answer = await sendToBackend(target, request.sender, {
      method: 'POST',
      headers,
      body,
      signal: deadline.signal,
      onEvent: (event) => {
        if (event.data !== '') outcome ??= this.#receive(scanMessage(Buffer.from(event.data)), id, request)
      },
    }).catch((error: unknown) => {
      // A stream that breaks after the answer has done its work.
      if (outcome) return undefined
      throw error
    })
    if (outcome) return outcome
    return answerOf(answer, id)
  }

  #headers(request: Request): Record<string, string> {
    const headers: Record<string, string> = {
      ...request.headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      [HEADER.protocolVersion]: STATELESS_VERSION,
      [HEADER.method]: request.method,
    }
    const member = NAMED_METHODS[request.method]
    if (member !== undefined) {
      const changed = request.changes?.[member]
      const name: unknown =
        changed === undefined ? request.params.value(member) : JSON.parse(changed.toString())
      if (typeof name === 'string') headers[HEADER.name] = writeHeaderValue(name)
    }
    return headers
  }

  /** Handles one message of an event stream; answers the outcome when it is the answer. */
  #receive(message: Message, id: string, request: Request): Outcome | undefined {
    if (message.method === '') return outcomeOf(message, id)
    const { relay } = request
    if (message.kind !== 'notification' || !message.params || !relay) return undefined
    if (message.method === 'notifications/message') relay.log(message.params)
    if (message.method === 'notifications/progress' && relay.progressToken !== undefined) {
      relay.progress(new JsonObject(message.params).with({ progressToken: relay.progressToken }))
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

function answerOf(answer: BackendAnswer | undefined, id: string): Outcome {
  if (!answer || answer.stream) {
    throw new GatehouseError('BACKEND_PROTOCOL', { cause: new Error('the stream ended before the answer') })
  }
  let message: Message
  try {
    message = scanMessage(answer.body)
  } catch (cause) {
    throw faultOf(answer) ?? new GatehouseError('BACKEND_PROTOCOL', { cause })
  }
  const outcome = outcomeOf(message, id)
  if (!outcome)
    throw faultOf(answer) ?? new GatehouseError('BACKEND_PROTOCOL', { cause: new Error('no answer') })
  return outcome
}

function outcomeOf(message: Message, id: string): Outcome | undefined {
  if (message.error && (message.id === id || message.id === undefined))
    return { kind: 'error', error: message.error }
  if (!message.result || message.id !== id) return undefined
  const input = new JsonObject(message.result).text('resultType') === 'input_required'
  return { kind: input ? 'input' : 'result', result: message.result }
}
