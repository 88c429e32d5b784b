/**
 * A backend of either era with named oddities: ways of real servers to deviate from the protocol. Each oddity changes the
 * replies of an otherwise correct server, so that several can be combined.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Deviation } from '../../../runtime/observe/index.ts'

export interface OddRequest {
  readonly http: 'GET' | 'POST' | 'DELETE'
  /** JSON-RPC method; empty for a GET, a DELETE and a response. */
  readonly method: string
  /** Raw JSON; undefined for a notification. */
  readonly id: string | undefined
}

/** The reply of the correct server, which oddities change. */
export interface OddReply {
  status: number
  headers: Record<string, string>
  body: string | Buffer
  /** The response stays open after its body. */
  open: boolean
}

export type OddityArea = 'encoding' | 'envelope' | 'notification' | 'ping' | 'session-id' | 'stream'

export interface Oddity {
  readonly name: string
  readonly area: OddityArea
  readonly change: (reply: OddReply, request: OddRequest) => void
  /** What `/status` reports of it; undefined: nothing has to be reported. */
  readonly reported?: Deviation | undefined
}

export interface OddBackend {
  readonly url: string
  readonly requests: OddRequest[]
  close(): Promise<void>
}

const tool = '{"name":"echo","inputSchema":{"type":"object"}}'

export interface OddBackendOptions {
  readonly era?: 'session' | 'stateless'
}

export async function startOddBackend(
  oddities: readonly Oddity[],
  { era = 'session' }: OddBackendOptions = {},
): Promise<OddBackend> {
  const requests: OddRequest[] = []
  const handle = (req: IncomingMessage, res: ServerResponse, body: string): void => {
    const request = readRequest(req, body)
    requests.push(request)
    const reply = era === 'session' ? sessionReply(request) : statelessReply(request)
    for (const { change } of oddities) change(reply, request)
    res.writeHead(reply.status, reply.headers)
    if (!reply.open) return void res.end(reply.body)
    res.flushHeaders()
    res.write(reply.body)
  }
  const server = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => handle(req, res, Buffer.concat(chunks).toString()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    requests,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function readRequest(req: IncomingMessage, body: string): OddRequest {
  const http = req.method as OddRequest['http']
  const message = body === '' ? {} : (JSON.parse(body) as { id?: unknown; method?: string })
  const id = message.id === undefined ? undefined : JSON.stringify(message.id)
  return { http, method: message.method ?? '', id }
}

const json = { 'content-type': 'application/json' }
const results: Readonly<Record<string, string>> = {
  initialize:
    '{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"odd","version":"1"}}',
  'server/discover':
    '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"odd","version":"1"}}',
  'tools/list': `{"tools":[${tool}]}`,
  'tools/call': '{"content":[{"type":"text","text":"called"}]}',
  ping: '{}',
}

function sessionReply({ http, method, id }: OddRequest): OddReply {
  if (http === 'GET') return eventStream(': open\n\n', true)
  if (http === 'DELETE' || id === undefined || method === '')
    return { status: http === 'DELETE' ? 200 : 202, headers: {}, body: '', open: false }
  if (method === 'server/discover') return response(id, undefined)
  const reply = response(id, results[method])
  if (method === 'initialize') reply.headers['mcp-session-id'] = 'session-1'
  return reply
}

function statelessReply({ http, method, id }: OddRequest): OddReply {
  if (http !== 'POST' || id === undefined) return { status: 405, headers: {}, body: '', open: false }
  if (method === 'initialize')
    return {
      status: 400,
      headers: json,
      body: `{"jsonrpc":"2.0","id":${id},"error":{"code":-32022,"message":"unsupported","data":{"supported":["2026-07-28"]}}}`,
      open: false,
    }
  if (method === 'subscriptions/listen')
    return eventStream(
      event('{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}'),
      true,
    )
  return response(id, results[method]?.replace(/^\{(?!"resultType")/, '{"resultType":"complete",'))
}

function response(id: string, result: string | undefined): OddReply {
  const rest =
    result === undefined ? '"error":{"code":-32601,"message":"Method not found"}' : `"result":${result}`
  return { status: 200, headers: { ...json }, body: `{"jsonrpc":"2.0","id":${id},${rest}}`, open: false }
}

function eventStream(body: string, open: boolean): OddReply {
  return { status: 200, headers: { 'content-type': 'text/event-stream' }, body, open }
}

export function event(message: string): string {
  return `event: message\ndata: ${message}\n\n`
}

/** An oddity of the replies to requests, wherever the reply is a JSON-RPC message. */
function ofResponses(
  name: string,
  change: (reply: OddReply, request: OddRequest & { readonly id: string }) => void,
  reported?: Deviation,
  area: OddityArea = 'envelope',
): Oddity {
  return {
    name,
    area,
    reported,
    change(reply, request) {
      const { http, id } = request
      if (http === 'POST' && id !== undefined && request.method !== '' && reply.body.length > 0)
        change(reply, { ...request, id })
    },
  }
}

/** Changes the text of the message, wherever it stands in the body. */
function ofText(name: string, change: (text: string, id: string) => string, reported?: Deviation): Oddity {
  return ofResponses(
    name,
    (reply, { id }) => {
      reply.body = change(String(reply.body), id)
    },
    reported,
  )
}

function isPlainResult(text: string): boolean {
  return text.startsWith('{"jsonrpc"') && text.includes('"result":')
}

/** What backends can do to their messages, and still mean only one thing. */
export const envelopeOddities: readonly Oddity[] = [
  ofText(
    'error: null beside the result',
    (text) => (isPlainResult(text) ? text.replace(/\}$/, ',"error":null}') : text),
    'null_member',
  ),
  ofText(
    'all members of the envelope, most of them null',
    (text) =>
      isPlainResult(text) ? text.replace(/\}$/, ',"error":null,"method":null,"params":null}') : text,
    'null_member',
  ),
  ofText('a response in a list', (text) => (text.startsWith('{') ? `[${text}]` : text), 'response_in_list'),
  ofText('the id as a text', (text, id) => text.replace(`"id":${id}`, `"id":"${id}"`), 'id_type'),
  ofText('the id as a float', (text, id) => text.replace(`"id":${id}`, `"id":${id}.0`), 'id_type'),
  ofText('no jsonrpc member', (text) => text.replace('"jsonrpc":"2.0",', ''), 'version_missing'),
  ofText('jsonrpc: null', (text) => text.replace('"jsonrpc":"2.0"', '"jsonrpc":null'), 'version_missing'),
  ofText('unknown members', (text) => text.replace(/^\{/, '{"took_ms":3,"meta":[null],')),
  ofText('blanks and line ends around', (text) => (text.startsWith('{') ? `\r\n\t ${text} \r\n\r\n` : text)),
]

function asStream(name: string, body: (message: string) => string, reported?: Deviation, open = false) {
  return ofResponses(
    name,
    (reply) => {
      if (!String(reply.body).startsWith('{')) return
      Object.assign(reply, eventStream(body(String(reply.body)), open))
    },
    reported,
    'stream',
  )
}

const notice = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'

/** Response streams that are not what the standard asks for, or stay open. */
export const streamOddities: readonly Oddity[] = [
  asStream('the response stream stays open after the response', event, undefined, true),
  asStream(
    'a priming event first, and the stream stays open',
    (text) => `id: 1\nretry: 1\ndata:\n\n${event(text)}`,
    undefined,
    true,
  ),
  asStream('a notification before the response', (text) => event(notice) + event(text), undefined, true),
  asStream('a notification with params: null before the response', (text) =>
    event('{"jsonrpc":"2.0","method":"notifications/x","params":null}') + event(text),
    'null_member',
  ),
  asStream('CRLF and a byte order mark', (text) => `\ufeffdata: ${text}\r\n\r\n`),
  asStream('CR alone', (text) => `data:${text}\r\r`),
  asStream('data without an event name, in several lines', (text) =>
    `data:{\ndata:${text.slice(1)}\n\n`),
  asStream('a huge retry value', (text) => `retry: 99999999999999999999\n${event(text)}`),
  asStream('a negative retry value', (text) => `retry: -1\n${event(text)}`),
  asStream('a retry value that is no number', (text) => `retry: NaN\n${event(text)}`),
]

function typed(name: string, contentType: string | undefined, reported?: Deviation): Oddity {
  return ofResponses(
    name,
    (reply) => {
      if (!String(reply.body).startsWith('{')) return
      if (contentType === undefined) delete reply.headers['content-type']
      else reply.headers['content-type'] = contentType
    },
    reported,
    'encoding',
  )
}

/** Oddities of content types and bytes. */
export const encodingOddities: readonly Oddity[] = [
  typed('no content type', undefined),
  typed('a content type with a charset, in capitals', 'Application/JSON; Charset=UTF-8'),
  typed('text/plain', 'text/plain'),
  typed('JSON labelled as an event stream', 'text/event-stream', 'content_type'),
  asStream('an event stream with a charset, in capitals', event),
  {
    ...asStream('an event stream labelled as JSON', event, 'content_type'),
    area: 'encoding',
    change(reply, { http, id, method }) {
      if (http !== 'POST' || id === undefined || method === '' || !String(reply.body).startsWith('{')) return
      reply.body = event(String(reply.body))
      reply.headers['content-type'] = 'application/json'
    },
  },
  {
    ...asStream('an event stream without a content type', event, 'content_type'),
    area: 'encoding',
    change(reply, { http, id, method }) {
      if (http !== 'POST' || id === undefined || method === '' || !String(reply.body).startsWith('{')) return
      reply.body = event(String(reply.body))
      delete reply.headers['content-type']
    },
  },
  ofText('a byte order mark', (text) => (text.startsWith('{') ? `\ufeff${text}` : text), 'byte_order_mark'),
  ofResponses(
    'HTTP 202 with the response in its body',
    (reply) => {
      if (reply.status === 200) reply.status = 202
    },
    undefined,
    'encoding',
  ),
]

function notified(name: string, change: (reply: OddReply) => void): Oddity {
  return {
    name: `a notification is answered with ${name}`,
    area: 'notification',
    change(reply, { http, id }) {
      if (http === 'POST' && id === undefined) change(reply)
    },
  }
}

const bodies: Readonly<Record<string, string>> = {
  null: 'null',
  '{}': '{}',
  '{"ok":true}': '{"ok":true}',
  'a result with id null': '{"jsonrpc":"2.0","id":null,"result":{}}',
  'an error with id null': '{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no"}}',
  'broken JSON': '{"jsonrpc":',
}

/** What servers respond to notifications with. */
export const notificationOddities: readonly Oddity[] = [
  ...Object.entries(bodies).map(([name, body]) =>
    notified(`200 and ${name}`, (reply) => {
      Object.assign(reply, { status: 200, headers: { ...json }, body })
    }),
  ),
  ...Object.entries({ text: 'text/plain', HTML: 'text/html' }).map(([name, type]) =>
    notified(`200 and ${name}`, (reply) => {
      Object.assign(reply, { status: 200, headers: { 'content-type': type }, body: '<p>ok</p>' })
    }),
  ),
  notified('204', (reply) => {
    reply.status = 204
  }),
  notified('202 and a body', (reply) => {
    reply.body = 'Accepted'
  }),
  notified('an event stream that stays open', (reply) => {
    Object.assign(reply, eventStream(': open\n\n', true))
  }),
  notified('JSON that does not end', (reply) => {
    Object.assign(reply, { status: 200, headers: { ...json }, body: '{"a":', open: true })
  }),
]

function get(name: string, change: (reply: OddReply) => void, reported?: Deviation): Oddity {
  return {
    name: `GET: ${name}`,
    area: 'stream',
    reported,
    change(reply, { http, method }) {
      if (http === 'GET' || method === 'subscriptions/listen') change(reply)
    },
  }
}

/** What becomes of the stream for what a server sends on its own. */
export const listenOddities: readonly Oddity[] = [
  get(
    'the stream closes at once, with retry: 1',
    (reply) => {
      reply.body = `retry: 1\n${reply.body === ': open\n\n' ? '\n' : String(reply.body)}`
      reply.open = false
    },
    'stream_not_kept',
  ),
  get(
    'an unreadable event',
    (reply) => {
      reply.body = `${String(reply.body)}data: hello\n\n`
    },
    'event_unreadable',
  ),
  ...[400, 401, 403, 404, 405, 406, 500].map((status) =>
    get(`HTTP ${status}`, (reply) => {
      Object.assign(reply, { status, headers: {}, body: '', open: false })
    }),
  ),
  get('HTTP 429 with a Retry-After of an hour', (reply) => {
    Object.assign(reply, { status: 429, headers: { 'retry-after': '3600' }, body: '', open: false })
  }),
  get('HTTP 200 with HTML', (reply) => {
    Object.assign(reply, { headers: { 'content-type': 'text/html' }, body: '<p>', open: false })
  }),
]

function sessionId(name: string, id: string, reported?: Deviation): Oddity {
  return {
    name: `a session id ${name}`,
    area: 'session-id',
    reported,
    change(reply) {
      if (reply.headers['mcp-session-id'] !== undefined) reply.headers['mcp-session-id'] = id
    },
  }
}

export const sessionIdOddities: readonly Oddity[] = [
  sessionId('of 513 characters', 'i'.repeat(513)),
  sessionId('of 8,000 characters', 'i'.repeat(8_000)),
  sessionId('with a blank in it', 'a b', 'session_id_unusable'),
]

/** How a ping can be answered, and what that proves. */
export interface OddPing extends Oddity {
  /** What a health check makes of it: undefined for alive, otherwise the code that it rejects with. */
  readonly code?: string | undefined
}

function ping(name: string, change: (reply: OddReply) => void, more: Partial<OddPing> = {}): OddPing {
  return {
    name: `a ping is answered with ${name}`,
    area: 'ping',
    change(reply, { method }) {
      if (method === 'ping') change(reply)
    },
    ...more,
  }
}

function pingBody(name: string, body: (id: string) => string, more?: Partial<OddPing>): OddPing {
  return ping(
    name,
    (reply) => {
      const { id } = JSON.parse(String(reply.body)) as { id: number }
      reply.body = body(String(id))
    },
    more,
  )
}

const pingError = (code: number) => (id: string) =>
  `{"jsonrpc":"2.0","id":${id},"error":{"code":${code},"message":"no"}}`

const unanswered = { reported: 'ping_unanswered' } as const

function pingStatus(status: number, code?: string, more: Partial<OddPing> = {}): OddPing[] {
  return [
    ping(`HTTP ${status}`, (reply) => Object.assign(reply, { status, headers: {}, body: '' }), {
      code,
      ...more,
    }),
    ping(
      `HTTP ${status} and a JSON-RPC error`,
      (reply) => {
        const { id } = JSON.parse(String(reply.body)) as { id: number }
        Object.assign(reply, { status, body: pingError(-32603)(String(id)) })
      },
      { code, ...more },
    ),
  ]
}

export const pingOddities: readonly OddPing[] = [
  ...[-32600, -32601, -32602, -32603, -32000].map((code) => pingBody(String(code), pingError(code))),
  pingBody('an empty list', () => '[]', unanswered),
  pingBody('null', () => 'null', unanswered),
  pingBody('text', () => 'pong', unanswered),
  pingBody('nothing', () => '', unanswered),
  pingBody('a result that is null', (id) => `{"jsonrpc":"2.0","id":${id},"result":null}`, {
    reported: 'null_member',
  }),
  pingBody('a result that is an empty list', (id) => `{"jsonrpc":"2.0","id":${id},"result":[]}`, {
    reported: 'null_member',
  }),
  pingBody('a result that is a text', (id) => `{"jsonrpc":"2.0","id":${id},"result":"pong"}`, unanswered),
  ping('202', (reply) => Object.assign(reply, { status: 202, headers: {}, body: '' }), unanswered),
  ping('204', (reply) => Object.assign(reply, { status: 204, headers: {}, body: '' }), unanswered),
  ...pingStatus(400),
  ...pingStatus(404, undefined, unanswered),
  ...pingStatus(405),
  ...pingStatus(422),
  ...pingStatus(401, 'BACKEND_AUTH_FAILED'),
  ...pingStatus(403, 'BACKEND_AUTH_FAILED'),
  ...pingStatus(408, 'BACKEND_UNAVAILABLE'),
  ...pingStatus(429, 'BACKEND_UNAVAILABLE'),
  ...pingStatus(500, 'BACKEND_FAILED'),
  ...pingStatus(502, 'BACKEND_FAILED'),
  ...pingStatus(503, 'BACKEND_FAILED'),
]

/** Oddities that leave a backend fully usable. */
export const harmlessOddities: readonly Oddity[] = [
  ...encodingOddities,
  ...envelopeOddities,
  ...listenOddities,
  ...notificationOddities,
  ...sessionIdOddities,
  ...streamOddities,
]
