/**
 * Clients of both eras that record everything they receive, and respond to every request with their own mark. For tests
 * that search for data of another caller.
 */
import { createParser } from 'eventsource-parser'
import { type RpcMessage, statelessRequest } from '../../mcp/wire.ts'

const abilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }

export interface MarkedClientOptions {
  readonly url: string
  /** Text that only this client may receive. */
  readonly mark: string
  readonly headers: Readonly<Record<string, string>>
  readonly era: 'session' | 'stateless'
  /** True when it declares that it supports requests to the user. */
  readonly able: boolean
}

export interface CallOptions {
  readonly signal: AbortSignal
  readonly logs: boolean
}

export class MarkedClient {
  readonly #options: MarkedClientOptions
  /** Every received message. */
  readonly received: string[] = []
  #session: Record<string, string> | undefined
  #listening: AbortController | undefined
  #nextId = 1

  constructor(options: MarkedClientOptions) {
    this.#options = options
  }

  get #abilities() {
    return this.#options.able ? abilities : {}
  }

  async open(): Promise<void> {
    if (this.#options.era === 'stateless') return
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: this.#abilities,
      clientInfo: { name: 'c', version: '1' },
    }
    const response = await this.#post(this.#message('initialize', params), {})
    this.#session = { 'mcp-session-id': response.headers.get('mcp-session-id') ?? '' }
    await this.#read(response)
    await this.#send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    await this.#send(this.#message('logging/setLevel', { level: 'debug' }))
    const listening = new AbortController()
    this.#listening = listening
    const { url, headers } = this.#options
    const own = { accept: 'text/event-stream', ...headers, ...this.#session }
    const stream = await fetch(url, { headers: own, signal: listening.signal })
    this.#read(stream).catch(() => {})
  }

  /** Ends the session. */
  async close(): Promise<void> {
    this.#listening?.abort()
    const { url, headers } = this.#options
    if (this.#session) await fetch(url, { method: 'DELETE', headers: { ...headers, ...this.#session } })
    this.#session = undefined
  }

  async list(): Promise<void> {
    await this.#request('tools/list', {}, { signal: AbortSignal.timeout(30_000), logs: false })
  }

  /** Calls a tool to its end and responds to its requests. */
  async call(name: string, args: Record<string, unknown>, options: CallOptions): Promise<void> {
    await this.#request(
      'tools/call',
      { name, arguments: args, _meta: { progressToken: this.#options.mark } },
      options,
    )
  }

  async #request(
    method: string,
    params: Record<string, unknown>,
    { signal, logs }: CallOptions,
  ): Promise<void> {
    if (this.#options.era === 'session') {
      await this.#send(this.#message(method, params), signal)
      return
    }
    const meta = {
      ...(params['_meta'] as object | undefined),
      ...(logs ? { 'io.modelcontextprotocol/logLevel': 'debug' } : {}),
    }
    let more: Record<string, unknown> = {}
    for (let round = 0; round < 8; round++) {
      const { body, headers } = statelessRequest(
        method,
        { ...params, ...more },
        {
          capabilities: this.#abilities,
          meta,
        },
      )
      const last = (await this.#read(await this.#postText(body, headers, signal))).at(-1)
      const result = last?.result
      if (result?.['resultType'] !== 'input_required') return
      const asked = (result['inputRequests'] ?? {}) as Record<string, { method: string }>
      const inputResponses = Object.fromEntries(
        Object.entries(asked).map(([id, question]) => [id, this.#answer(question.method)]),
      )
      more = { requestState: result['requestState'], inputResponses }
    }
  }

  #answer(method: string): unknown {
    const { mark } = this.#options
    if (method === 'roots/list') return { roots: [{ uri: `file:///${mark}` }] }
    if (method === 'elicitation/create') return { action: 'accept', content: { who: mark } }
    return { role: 'assistant', model: 'm', content: { type: 'text', text: mark } }
  }

  #message(method: string, params: unknown): unknown {
    return { jsonrpc: '2.0', id: this.#nextId++, method, params }
  }

  async #send(message: unknown, signal?: AbortSignal): Promise<void> {
    await this.#read(await this.#post(message, this.#session ?? {}, signal))
  }

  #post(message: unknown, more: Record<string, string>, signal?: AbortSignal): Promise<Response> {
    return this.#postText(JSON.stringify(message), more, signal)
  }

  #postText(body: string, more: Record<string, string>, signal?: AbortSignal): Promise<Response> {
    const { url, headers } = this.#options
    return fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
        ...more,
      },
      body,
      ...(signal && { signal }),
    })
  }

  async #read(response: Response): Promise<readonly RpcMessage[]> {
    const messages: RpcMessage[] = []
    const take = (text: string): void => {
      if (text === '') return
      this.received.push(text)
      const message = JSON.parse(text) as RpcMessage
      messages.push(message)
      if (message.method !== undefined && message.id !== undefined)
        void this.#send({ jsonrpc: '2.0', id: message.id, result: this.#answer(message.method) }).catch(
          () => {},
        )
    }
    if (response.headers.get('content-type')?.includes('event-stream') !== true) {
      take(await response.text())
      return messages
    }
    const parser = createParser({ onEvent: ({ data }) => take(data) })
    const decoder = new TextDecoder()
    if (response.body)
      for await (const chunk of response.body)
        parser.feed(decoder.decode(chunk as Uint8Array, { stream: true }))
    return messages
  }
}
