/**
 * The HTTP side of `proxy stdio`: sends messages to one streamable-HTTP endpoint and hands every message that comes
 * back to `deliver`, byte for byte.
 *
 * Keeps the session id and the protocol revision, opens the standalone stream once the session is initialised, takes a
 * broken stream up again from its last event, and turns every failure into a JSON-RPC error with the request's id.
 * Opening a forgotten session again is the proxy's business (recovery.ts), behind which this client stands.
 * Source: MCP 2025-11-25 and 2026-07-28, transports, "Streamable HTTP".
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { GatehouseError } from '../../../schemas/index.ts'
import {
  errorMessage,
  HEADER,
  type Message,
  META,
  MessageError,
  metaOf,
  NAMED_METHODS,
  paramsOf,
  rawErrorMessage,
  scanMessage,
  sseReader,
  writeHeaderValue,
} from '../../mcp/index.ts'
import type { Dispatcher, Log } from '../../net/index.ts'

export interface ClientOptions {
  readonly dispatcher: Dispatcher
  readonly endpoint: URL
  /** Header lines (name, value, …) of every request. */
  readonly headers: readonly string[]
  readonly deliver: (message: Buffer | string) => Promise<void>
  readonly log: Log
}

const maxMessageBytes = 8_388_608
const firstRetryMs = 1_000
const longestRetryMs = 30_000
const maxResumes = 5

export class StdioClient {
  readonly #options: ClientOptions
  readonly #end = new AbortController()
  #sessionId: string | undefined
  #version: string | undefined
  #stream: Promise<void> | undefined
  /** True once any request got an answer from the target. */
  reached = false

  constructor(options: ClientOptions) {
    this.#options = options
  }

  /**
   * Sends one line. Resolves when it has been answered completely; never rejects: what goes wrong is delivered as an
   * error for the request, or logged for a notification.
   */
  async send(line: Buffer): Promise<void> {
    let message: Message
    try {
      message = scanMessage(line)
    } catch (error) {
      return this.#options.deliver(errorMessage(error instanceof MessageError ? error.id : undefined, error))
    }
    try {
      await this.#post(message)
    } catch (error) {
      await this.#fail(message, error)
    }
  }

  async #post(message: Message): Promise<void> {
    const answer = await this.#request('POST', message.bytes, headersFor(message))
    const { statusCode, headers } = answer
    if (statusCode >= 400) return this.#refused(message, answer)
    this.reached = true
    const id = headers[HEADER.sessionId]
    if (message.method === 'initialize' && typeof id === 'string') this.#sessionId = id
    if (message.method === 'notifications/initialized') this.#listen()
    if (message.kind !== 'request') await answer.body.dump()
    else if (isEventStream(answer)) await this.#readStream(message, answer)
    else await this.#deliver(message, Buffer.from(await answer.body.arrayBuffer()))
  }

  /** The answer stream of one request, taken up again where it breaks. */
  async #readStream(message: Message, first: Dispatcher.ResponseData): Promise<void> {
    let answered = false
    const position: Position = { lastEventId: undefined, retryMs: firstRetryMs }
    let answer = first
    for (let resumes = 0; ; resumes++) {
      await this.#follow(answer, position, async (data) => {
        answered ||= isAnswerTo(data, message.id)
        await this.#deliver(message, data)
      })
      if (answered) return
      if (position.lastEventId === undefined || resumes >= maxResumes || this.#end.signal.aborted) {
        throw new GatehouseError('BACKEND_PROTOCOL', { detail: 'the stream ended before the answer' })
      }
      await sleep(position.retryMs, undefined, { signal: this.#end.signal })
      answer = await this.#request('GET', null, ['Last-Event-ID', position.lastEventId])
      if (answer.statusCode !== 200 || !isEventStream(answer)) {
        await answer.body.dump()
        throw new GatehouseError('BACKEND_PROTOCOL', { detail: 'the stream ended before the answer' })
      }
    }
  }

  /** The standalone stream, for as long as the session lives. */
  #listen(): void {
    this.#stream ??= this.#keepListening().catch((error: unknown) => {
      if (!this.#end.signal.aborted) this.#options.log.debug('the standalone stream ended', { err: error })
    })
  }

  async #keepListening(): Promise<void> {
    const position: Position = { lastEventId: undefined, retryMs: firstRetryMs }
    for (let failures = 0; !this.#end.signal.aborted; ) {
      const resume = position.lastEventId === undefined ? [] : ['Last-Event-ID', position.lastEventId]
      const answer = await this.#request('GET', null, resume).catch(() => undefined)
      if (answer?.statusCode === 200 && isEventStream(answer)) {
        failures = 0
        await this.#follow(answer, position, (data) => this.#options.deliver(data)).catch(() => undefined)
      } else {
        await answer?.body.dump()
        // The server offers no such stream.
        if (answer && answer.statusCode < 500) return
        failures++
      }
      const wait = Math.min(position.retryMs * 2 ** Math.min(failures, 5), longestRetryMs)
      await sleep(wait, undefined, { signal: this.#end.signal })
    }
  }

  /** Delivers events until the stream ends; a stream that breaks counts as ended. */
  async #follow(
    answer: Dispatcher.ResponseData,
    position: Position,
    onMessage: (data: Buffer) => Promise<void>,
  ): Promise<void> {
    const queue: Buffer[] = []
    const reader = sseReader(
      maxMessageBytes,
      ({ data, id, event }) => {
        if (id !== undefined && id !== '') position.lastEventId = id
        if (data !== '' && (event === undefined || event === 'message')) queue.push(Buffer.from(data))
      },
      (retryMs) => {
        position.retryMs = Math.min(retryMs, longestRetryMs)
      },
    )
    try {
      for await (const chunk of answer.body) {
        reader.push(Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk)))
        for (const data of queue.splice(0)) await onMessage(data)
      }
    } catch (error) {
      if (error instanceof RangeError) throw error
      this.#options.log.debug('a stream broke off', { err: error })
    }
  }

  async #deliver(message: Message, data: Buffer): Promise<void> {
    if (message.method === 'initialize' && this.#version === undefined) this.#version = negotiated(data)
    await this.#options.deliver(data)
  }

  /** An HTTP refusal: the JSON-RPC error in its body, with the request's id, or one made of the status. */
  async #refused(message: Message, answer: Dispatcher.ResponseData): Promise<void> {
    const text = Buffer.from(await answer.body.arrayBuffer())
    const { statusCode } = answer
    this.reached ||= statusCode !== 502 && statusCode !== 504
    if (message.id === undefined) {
      this.#options.log.warn('a message was refused', { method: message.method, status: statusCode })
      return
    }
    const error = jsonRpcError(text)
    await this.#options.deliver(
      error === undefined
        ? errorMessage(
            message.id,
            new GatehouseError('BACKEND_PROTOCOL', { detail: `the server answered with HTTP ${statusCode}` }),
          )
        : rawErrorMessage(message.id, error),
    )
  }

  async #fail(message: Message, error: unknown): Promise<void> {
    const fault =
      error instanceof GatehouseError ? error : new GatehouseError('BACKEND_UNREACHABLE', { cause: error })
    this.#options.log.warn('a message could not be sent', { method: message.method, err: error })
    if (message.id !== undefined) await this.#options.deliver(errorMessage(message.id, fault))
  }

  #request(
    method: 'GET' | 'POST' | 'DELETE',
    body: Buffer | null,
    more: readonly string[],
  ): Promise<Dispatcher.ResponseData> {
    const { dispatcher, endpoint, headers } = this.#options
    const lines = [
      'Host',
      endpoint.host,
      'Accept',
      method === 'GET' ? 'text/event-stream' : 'application/json, text/event-stream',
      ...headers,
      ...more,
    ]
    if (body) lines.push('Content-Type', 'application/json')
    if (this.#sessionId !== undefined) lines.push('Mcp-Session-Id', this.#sessionId)
    if (this.#version !== undefined && !more.includes('MCP-Protocol-Version'))
      lines.push('MCP-Protocol-Version', this.#version)
    return dispatcher.request({
      origin: endpoint.origin,
      path: endpoint.pathname + endpoint.search,
      method,
      headers: lines,
      body,
      headersTimeout: 0,
      signal: this.#end.signal,
    })
  }

  /** Ends the session at the target, as far as it can be reached, and all streams. */
  async close(): Promise<void> {
    if (this.#sessionId !== undefined) {
      try {
        const answer = await this.#request('DELETE', null, [])
        await answer.body.dump()
      } catch (error) {
        this.#options.log.debug('the session could not be ended', { err: error })
      }
    }
    this.#end.abort(new Error('the bridge is ending'))
    await this.#stream
  }
}

interface Position {
  lastEventId: string | undefined
  retryMs: number
}

function isEventStream({ headers }: Dispatcher.ResponseData): boolean {
  return String(headers['content-type'] ?? '').startsWith('text/event-stream')
}

/** A stateless request repeats in headers what its body says. */
function headersFor(message: Message): readonly string[] {
  if (message.kind !== 'request' || message.params?.includes('io.modelcontextprotocol/') !== true) return []
  const params = paramsOf(message)
  const version = metaOf(message, params)?.text(META.protocolVersion)
  if (version === undefined) return []
  const member = NAMED_METHODS[message.method]
  const name = member === undefined ? undefined : params.text(member)
  return [
    'MCP-Protocol-Version',
    version,
    'Mcp-Method',
    message.method,
    ...(name === undefined ? [] : ['Mcp-Name', writeHeaderValue(name)]),
  ]
}

function scanned(data: Buffer): Message | undefined {
  try {
    return scanMessage(data)
  } catch {
    return undefined
  }
}

function isAnswerTo(data: Buffer, id: string | undefined): boolean {
  const message = scanned(data)
  return message !== undefined && (message.kind === 'result' || message.kind === 'error') && message.id === id
}

function jsonRpcError(text: Buffer): Buffer | undefined {
  const message = text.length > 0 ? scanned(text) : undefined
  return message?.error
}

function negotiated(data: Buffer): string | undefined {
  const result = scanned(data)?.result
  return result === undefined ? undefined : /"protocolVersion"\s*:\s*"([\w.-]+)"/.exec(result.toString())?.[1]
}
