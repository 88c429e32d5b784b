/**
 * Hand-written MCP for tests of bytes, headers and status codes: POSTs of both eras, and event streams read one message
 * at a time, without retries.
 */
import { createParser } from 'eventsource-parser'

export interface RpcMessage {
  readonly jsonrpc: string
  readonly id?: unknown
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: Record<string, unknown>
  readonly error?: {
    readonly code: number
    readonly message: string
    readonly data?: Record<string, unknown>
  }
}

export interface WireAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** All messages of the response, in order: one for JSON, several for an event stream. */
  readonly messages: readonly RpcMessage[]
  /** The response among them. */
  readonly response: RpcMessage | undefined
}

const acceptHeader = 'application/json, text/event-stream'
const revision = '2026-07-28'

/** POSTs a body unchanged. */
export async function post(
  url: string,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
): Promise<WireAnswer> {
  const answer = await postUnread(url, body, headers)
  const stream = answer.headers.get('content-type')?.includes('event-stream') ?? false
  const messages = stream ? readEvents(answer.text) : readJson(answer.text)
  return {
    ...answer,
    messages,
    response: messages.find((message) => message.result !== undefined || message.error !== undefined),
  }
}

/** Like `post`, but does not parse the response, because parsing a large result takes a long time. */
export async function postUnread(
  url: string,
  body: string | Uint8Array,
  headers: Record<string, string> = {},
): Promise<Pick<WireAnswer, 'status' | 'headers' | 'text'>> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: acceptHeader, ...headers },
    body: body as string,
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

function readJson(text: string): RpcMessage[] {
  try {
    return [JSON.parse(text) as RpcMessage]
  } catch {
    return []
  }
}

function readEvents(text: string): RpcMessage[] {
  const messages: RpcMessage[] = []
  const parser = createParser({
    onEvent({ data }) {
      // An event without data only sets the id from which the stream can be resumed.
      if (data !== '') messages.push(JSON.parse(data) as RpcMessage)
    },
  })
  parser.feed(text)
  return messages
}

/** A POST or GET whose event stream is read one message at a time. */
export interface WireStream {
  readonly status: number
  readonly headers: Headers
  /** Resolves with the next message, or the next one that satisfies `wanted`. Rejects when the stream ends first. */
  next(wanted?: (message: RpcMessage) => boolean): Promise<RpcMessage>
  /** Resolves when the stream has ended. */
  readonly ended: Promise<void>
  /** Received messages that the test has not read. */
  readonly pending: readonly RpcMessage[]
  close(): void
}

export async function stream(
  url: string,
  init: { method?: string; body?: string; headers?: Record<string, string> } = {},
): Promise<WireStream> {
  const abort = new AbortController()
  const response = await fetch(url, {
    method: init.method ?? 'GET',
    headers: {
      accept: init.method === 'POST' ? acceptHeader : 'text/event-stream',
      ...(init.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...init.headers,
    },
    ...(init.body === undefined ? {} : { body: init.body }),
    signal: abort.signal,
  })
  const pending: RpcMessage[] = []
  const waiting = new Set<() => void>()
  let over = false
  const parser = createParser({
    onEvent: ({ data, event }) => {
      if (data === '') return
      pending.push(
        event === 'endpoint'
          ? { jsonrpc: '2.0', method: 'endpoint', params: { data } }
          : (JSON.parse(data) as RpcMessage),
      )
      for (const wake of waiting) wake()
    },
  })
  const ended = (async () => {
    const decoder = new TextDecoder()
    const isJson = response.headers.get('content-type')?.includes('application/json') ?? false
    try {
      if (isJson) pending.push((await response.json()) as RpcMessage)
      else if (response.body)
        for await (const chunk of response.body)
          parser.feed(decoder.decode(chunk as Uint8Array, { stream: true }))
    } catch {
      // The test or the peer closed the stream.
    }
    over = true
    for (const wake of waiting) wake()
  })()
  return {
    status: response.status,
    headers: response.headers,
    pending,
    ended,
    async next(wanted = () => true) {
      for (;;) {
        const at = pending.findIndex(wanted)
        const [found] = at < 0 ? [] : pending.splice(at, 1)
        if (found) return found
        if (over) throw new Error('the stream ended')
        await new Promise<void>((resolve) => {
          const wake = (): void => {
            waiting.delete(wake)
            resolve()
          }
          waiting.add(wake)
        })
      }
    },
    close: () => abort.abort(),
  }
}

export interface WireSession {
  readonly url: string
  readonly id: string
  readonly initialized: RpcMessage
  readonly headers: Record<string, string>
  request(method: string, params?: unknown, headers?: Record<string, string>): Promise<WireAnswer>
  /** Sends a request whose response is read one message at a time. */
  open(method: string, params?: unknown): Promise<WireStream>
  notify(method: string, params?: unknown): Promise<WireAnswer>
  /** Responds to a request of the server. */
  response(id: unknown, result: unknown): Promise<WireAnswer>
  /** Opens the GET stream. */
  listen(): Promise<WireStream>
  end(): Promise<Response>
}

let nextId = 1

export async function openSession(
  url: string,
  options: { capabilities?: unknown; headers?: Record<string, string>; version?: string } = {},
): Promise<WireSession> {
  const extra = options.headers ?? {}
  const params = {
    protocolVersion: options.version ?? '2025-11-25',
    capabilities: options.capabilities ?? {},
    clientInfo: { name: 'wire', version: '1' },
  }
  const opened = await post(
    url,
    JSON.stringify({ jsonrpc: '2.0', id: 'init', method: 'initialize', params }),
    extra,
  )
  const id = opened.headers.get('mcp-session-id') ?? ''
  const initialized = opened.messages[0]
  if (opened.status !== 200 || !initialized) throw new Error(`initialize: ${opened.status} ${opened.text}`)
  const headers = { ...extra, 'mcp-session-id': id, 'mcp-protocol-version': options.version ?? '2025-11-25' }
  const body = (method: string, value: unknown) =>
    JSON.stringify({ jsonrpc: '2.0', id: nextId++, method, params: value })
  const session: WireSession = {
    url,
    id,
    initialized,
    headers,
    request: (method, value = {}, more = {}) => post(url, body(method, value), { ...headers, ...more }),
    open: (method, value = {}) => stream(url, { method: 'POST', body: body(method, value), headers }),
    notify: (method, value) => post(url, JSON.stringify({ jsonrpc: '2.0', method, params: value }), headers),
    response: (questionId, result) =>
      post(url, JSON.stringify({ jsonrpc: '2.0', id: questionId, result }), headers),
    listen: () => stream(url, { headers }),
    end: () => fetch(url, { method: 'DELETE', headers }),
  }
  await session.notify('notifications/initialized')
  return session
}

export interface StatelessOptions {
  readonly capabilities?: unknown
  readonly meta?: Record<string, unknown>
  readonly headers?: Record<string, string>
}

/** Body and headers of a stateless request. */
export function statelessRequest(
  method: string,
  params: Record<string, unknown> = {},
  options: StatelessOptions = {},
) {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': revision,
    'io.modelcontextprotocol/clientInfo': { name: 'wire', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': options.capabilities ?? {},
    ...options.meta,
  }
  const name = params['name'] ?? params['uri'] ?? params['taskId']
  return {
    body: JSON.stringify({ jsonrpc: '2.0', id: nextId++, method, params: { ...params, _meta: meta } }),
    headers: {
      'mcp-protocol-version': revision,
      'mcp-method': method,
      ...(typeof name === 'string' && /^(tools\/call|prompts\/get|resources\/read|tasks\/\w+)$/.test(method)
        ? { 'mcp-name': name }
        : {}),
      ...options.headers,
    } as Record<string, string>,
  }
}

export function stateless(
  url: string,
  method: string,
  params: Record<string, unknown> = {},
  options: StatelessOptions = {},
): Promise<WireAnswer> {
  const { body, headers } = statelessRequest(method, params, options)
  return post(url, body, headers)
}

export function statelessStream(
  url: string,
  method: string,
  params: Record<string, unknown> = {},
  options: StatelessOptions = {},
): Promise<WireStream> {
  const { body, headers } = statelessRequest(method, params, options)
  return stream(url, { method: 'POST', body, headers })
}
