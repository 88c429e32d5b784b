/**
 * Handles requests from a session-era server to its client. Answers pings, rejects unknown methods, and forwards
 * questions to the client. The number of open questions is bounded.
 * Source: MCP 2025-11-25, client features, utilities.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { Message } from '../message.ts'
import { paramsOf } from '../param-types.ts'
import { errorMessage, responseMessage, resultMessage } from '../write.ts'
import { type Ask, askMethods, type AskReply } from './questions.ts'

const maxQuestions = 32

interface Question<O> {
  readonly stop: AbortController
  readonly owner: O
}

/** `O` is the type of Gatehouse's own request to which a question belongs. */
export class ServerRequests<O = undefined> {
  readonly #reply: (message: Buffer) => void
  readonly #open = new Map<string, Question<O>>()

  /** `reply` sends a message to the server. `reply` may throw after the server has exited. */
  constructor(reply: (message: Buffer) => void) {
    this.#reply = reply
  }

  get size(): number {
    return this.#open.size
  }

  /**
   * Responds to a server request that is not a question, or that cannot be forwarded to the client. For all other
   * requests, returns the request's id.
   */
  admit({ id = '', method }: Message): string | undefined {
    if (method === 'ping') this.#send(resultMessage(id, '{}'))
    else if (!askMethods.has(method)) this.refuse(id, new GatehouseError('METHOD_NOT_FOUND'))
    else if (this.#open.has(id))
      this.refuse(
        id,
        new GatehouseError('INVALID_REQUEST', { detail: 'Invalid Request: the id is already in use' }),
      )
    else if (this.#open.size >= maxQuestions)
      this.refuse(id, new GatehouseError('RATE_LIMITED', { detail: 'too many concurrent questions' }))
    else return id
    return undefined
  }

  refuse(id: string, error: GatehouseError): void {
    this.#send(errorMessage(id, error))
  }

  /**
   * Forwards an admitted question with `ask` and sends the reply to the server. Sends nothing if the question is
   * withdrawn. Never rejects.
   */
  async ask(
    { id = '', method, params }: Message,
    owner: O,
    ask: (request: Ask, signal: AbortSignal) => Promise<AskReply>,
  ): Promise<void> {
    const stop = new AbortController()
    this.#open.set(id, { stop, owner })
    let response: Buffer
    try {
      response = responseMessage(id, await ask({ method, params }, stop.signal))
    } catch (error) {
      response = errorMessage(id, error)
    }
    this.#open.delete(id)
    if (!stop.signal.aborted) this.#send(response)
  }

  #send(message: Buffer): void {
    try {
      this.#reply(message)
    } catch {
      // The server has exited. The requests in flight fail when the link ends.
    }
  }

  /** Withdraws the question that the server cancels with `notifications/cancelled`. */
  cancelled(message: Message): void {
    const id = paramsOf(message).raw('requestId')?.toString()
    if (id !== undefined) this.#open.get(id)?.stop.abort(withdrawn)
  }

  /** Withdraws all questions, or only those of one owner. Returns true if any questions were open. */
  withdraw(reason: Error, owner?: O): boolean {
    const found = [...this.#open.values()].filter(
      (question) => owner === undefined || question.owner === owner,
    )
    for (const { stop } of found) stop.abort(reason)
    return found.length > 0
  }
}

const withdrawn = new Error('the server withdrew its question')
