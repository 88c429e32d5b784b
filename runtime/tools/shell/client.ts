/**
 * The MCP client behind the commands `tools`, `resources` and `prompts`. The client holds one session-era conversation
 * over two line streams. For stateless-era servers, a translator behind the streams converts the messages.
 *
 * A request ends when its response arrives, when the conversation ends, when the user interrupts it, or when nothing
 * related to it has arrived for `timeoutMs`. Progress and log messages are passed to callbacks. Elicitations are
 * answered; other server requests are rejected.
 * Source: MCP 2025-11-25, lifecycle, progress, elicitation.
 */
import type { PassThrough } from 'node:stream'
import { createInterface } from 'node:readline'
import { ModuleError } from '../../../schemas/index.ts'
import {
  JsonObject,
  latestSessionVersion,
  type Message,
  notificationMessage,
  paramsOf,
  rawErrorMessage,
  requestMessage,
  resultMessage,
  rpcCode,
  scanMessage,
} from '../../mcp/index.ts'
import { version } from '../../toolkit/terminal/self.ts'

/** The server returned an error for a request. */
export class ServerError extends ModuleError {
  readonly code: number
  /** HTTP status if the response was not JSON-RPC. */
  readonly status: number | undefined

  constructor(message: string, code: number, status: number | undefined) {
    super(message)
    this.code = code
    this.status = status
  }
}

/** The conversation ended because the server exited or timed out, or because the user interrupted it. */
export class ConversationOver extends ModuleError {}

export interface CallProgress {
  readonly progress: number
  readonly total: number | undefined
  readonly message: string | undefined
}

export interface ClientOptions {
  readonly toServer: PassThrough
  readonly fromServer: PassThrough
  readonly onProgress: (progress: CallProgress) => void
  readonly onLog: (level: string, text: string) => void
  /** Returns the result of an `elicitation/create` request as JSON text. */
  readonly elicit: (params: JsonObject) => Promise<string>
  /** Time without messages after which a request fails. */
  readonly timeoutMs: number
  /** Aborted when the user interrupts the conversation. */
  readonly signal: AbortSignal
}

interface Pending {
  readonly resolve: (result: Buffer) => void
  readonly reject: (error: Error) => void
  readonly timer: NodeJS.Timeout
}

export class McpClient {
  readonly #options: ClientOptions
  readonly #pending = new Map<string, Pending>()
  #nextId = 1
  #over: Error | undefined
  #openQuestions = 0
  #lastQuestion: Promise<string> = Promise.resolve('')

  constructor(options: ClientOptions) {
    this.#options = options
    createInterface({ input: options.fromServer }).on('line', (line) => this.#handleLine(line))
    options.signal.addEventListener('abort', () => this.#interrupt(), { once: true })
  }

  /** Initializes the session. Throws ServerError and ConversationOver, like `request`. */
  async open(): Promise<void> {
    const clientInfo = { name: 'gatehouse', version }
    const capabilities = { elicitation: { form: {}, url: {} } }
    const params = { protocolVersion: latestSessionVersion, capabilities, clientInfo }
    await this.request('initialize', new JsonObject(Buffer.from(JSON.stringify(params))))
    this.#send(notificationMessage('notifications/initialized'))
  }

  /** Returns the raw result. The request enables progress notifications. */
  request(method: string, params: JsonObject): Promise<Buffer> {
    const id = String(this.#nextId++)
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#giveUp(id), this.#options.timeoutMs)
      this.#pending.set(id, { resolve, reject, timer })
      if (this.#over) return this.end(this.#over)
      if (this.#options.signal.aborted) return this.#interrupt()
      const meta = method === 'initialize' ? undefined : `{"progressToken":${id}}`
      this.#send(requestMessage(id, method, params.with({ _meta: meta })))
    })
  }

  /** Rejects all pending and future requests with `error`. */
  end(error: Error): void {
    this.#over ??= error
    for (const [id] of this.#pending) this.#settle(id)?.reject(error)
  }

  #send(message: Buffer): void {
    if (!this.#options.toServer.writable) return
    this.#options.toServer.write(Buffer.concat([message, Buffer.from('\n')]))
  }

  #settle(id: string): Pending | undefined {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    clearTimeout(pending?.timer)
    return pending
  }

  #giveUp(id: string): void {
    // Do not time out while the user answers a question, because the server waits for the answer.
    if (this.#openQuestions > 0) return void this.#pending.get(id)?.timer.refresh()
    this.#cancel(id)
    const seconds = this.#options.timeoutMs / 1000
    this.#settle(id)?.reject(new ConversationOver(`no message from the server for ${seconds} s (--timeout)`))
  }

  #interrupt(): void {
    for (const [id] of this.#pending) this.#cancel(id)
    this.end(new ConversationOver('interrupted'))
  }

  #cancel(id: string): void {
    this.#send(notificationMessage('notifications/cancelled', `{"requestId":${id},"reason":"cancelled"}`))
  }

  #handleLine(line: string): void {
    let message: Message
    try {
      message = scanMessage(Buffer.from(line))
    } catch {
      this.#options.onLog('warning', 'dropped an invalid message from the server')
      return
    }
    if (message.kind === 'request') void this.#handleRequest(message)
    else if (message.kind === 'notification') this.#handleNotification(message)
    else this.#handleResponse(message)
  }

  #handleResponse({ id, result, error }: Message): void {
    const pending = id === undefined ? undefined : this.#settle(id)
    if (result) pending?.resolve(result)
    else if (error) pending?.reject(errorOf(new JsonObject(error)))
  }

  #handleNotification(message: Message): void {
    const params = paramsOf(message)
    if (message.method === 'notifications/progress') this.#handleProgress(params)
    if (message.method === 'notifications/message') {
      const data = params.value('data')
      const text = typeof data === 'string' ? data : JSON.stringify(data)
      this.#options.onLog(params.text('level') ?? 'info', text)
    }
  }

  #handleProgress(params: JsonObject): void {
    const pending = this.#pending.get(params.raw('progressToken')?.toString() ?? '')
    const progress = params.value('progress')
    if (!pending || typeof progress !== 'number') return
    pending.timer.refresh()
    const total = params.value('total')
    const message = params.text('message')
    this.#options.onProgress({ progress, total: typeof total === 'number' ? total : undefined, message })
  }

  async #handleRequest(message: Message): Promise<void> {
    const { id = '' } = message
    if (message.method === 'ping') return this.#send(resultMessage(id, '{}'))
    if (message.method !== 'elicitation/create') {
      const error = `{"code":${rpcCode.methodNotFound},"message":"Method not found"}`
      return this.#send(rawErrorMessage(id, error))
    }
    this.#openQuestions++
    // Ask one question at a time, because there is only one terminal.
    const ask = (): Promise<string> => this.#options.elicit(paramsOf(message))
    this.#lastQuestion = this.#lastQuestion.then(ask).catch(() => '{"action":"cancel"}')
    const reply = await this.#lastQuestion
    this.#openQuestions--
    this.#send(resultMessage(id, reply))
    for (const { timer } of this.#pending.values()) timer.refresh()
  }
}

function errorOf(error: JsonObject): ServerError {
  const code = error.value('code')
  const status = error.object('data')?.value('status')
  return new ServerError(
    error.text('message') ?? 'the server gave no reason',
    typeof code === 'number' ? code : rpcCode.internal,
    typeof status === 'number' ? status : undefined,
  )
}
