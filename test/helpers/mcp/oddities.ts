/** Named oddities of backends, grouped by topic. */
import type { Deviation } from '../../../runtime/observe/index.ts'
import {
  event,
  eventStream,
  jsonHeaders,
  type Oddity,
  type OddityArea,
  type OddReply,
  type OddRequest,
} from './odd-backend.ts'

/** An oddity of every reply that contains a JSON-RPC message. */
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

/** Changes the text of the message at its position in the body. */
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

/** Changes of messages that keep their meaning unambiguous. */
export const envelopeOddities: readonly Oddity[] = [
  ofText(
    'error: null next to the result',
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

interface StreamedOptions {
  readonly reported?: Deviation
  /** The stream stays open after its last event. */
  readonly open?: boolean
  /** Empty: no content type. */
  readonly contentType?: string
  readonly area?: OddityArea
}

/** Responses as event streams. `body` returns the stream of the message. */
function asStream(
  name: string,
  body: (message: string) => string,
  { reported, open = false, contentType = 'text/event-stream', area = 'stream' }: StreamedOptions = {},
): Oddity {
  return ofResponses(
    name,
    (reply) => {
      if (!String(reply.body).startsWith('{')) return
      Object.assign(reply, eventStream(body(String(reply.body)), { open }))
      if (contentType === '') delete reply.headers['content-type']
      else reply.headers['content-type'] = contentType
    },
    reported,
    area,
  )
}

const notice = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'

/** Response streams that violate the standard, or stay open. */
export const streamOddities: readonly Oddity[] = [
  asStream('the response stream stays open after the response', event, { open: true }),
  asStream(
    'a priming event first, and the stream stays open',
    (text) => `id: 1\nretry: 1\ndata:\n\n${event(text)}`,
    { open: true },
  ),
  asStream('a notification before the response', (text) => event(notice) + event(text), { open: true }),
  asStream(
    'a notification with params: null before the response',
    (text) => event('{"jsonrpc":"2.0","method":"notifications/x","params":null}') + event(text),
    { reported: 'null_member' },
  ),
  asStream('CRLF and a byte order mark', (text) => `\ufeffdata: ${text}\r\n\r\n`),
  asStream('CR alone', (text) => `data:${text}\r\r`),
  asStream('data without an event name, in several lines', (text) => `data:{\ndata:${text.slice(1)}\n\n`),
  asStream('a huge retry value', (text) => `retry: 99999999999999999999\n${event(text)}`),
  asStream('a negative retry value', (text) => `retry: -1\n${event(text)}`),
  asStream('a retry value that is not a number', (text) => `retry: NaN\n${event(text)}`),
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
  asStream('an event stream with a charset, in capitals', event, {
    area: 'encoding',
    contentType: 'Text/Event-Stream; Charset=UTF-8',
  }),
  asStream('an event stream labelled as JSON', event, {
    area: 'encoding',
    contentType: 'application/json',
    reported: 'content_type',
  }),
  asStream('an event stream without a content type', event, {
    area: 'encoding',
    contentType: '',
    reported: 'content_type',
  }),
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

/** Responses of servers to notifications. */
export const notificationOddities: readonly Oddity[] = [
  ...Object.entries(bodies).map(([name, body]) =>
    notified(`200 and ${name}`, (reply) => {
      Object.assign(reply, { status: 200, headers: { ...jsonHeaders }, body })
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
    Object.assign(reply, eventStream(': open\n\n', { open: true }))
  }),
  notified('JSON that does not end', (reply) => {
    Object.assign(reply, { status: 200, headers: { ...jsonHeaders }, body: '{"a":', open: true })
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

/** Outcomes of the stream for unsolicited messages of a server. */
const listenOddities: readonly Oddity[] = [
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

const sessionIdOddities: readonly Oddity[] = [
  sessionId('of 513 characters', 'i'.repeat(513)),
  sessionId('of 8,000 characters', 'i'.repeat(8_000)),
  sessionId('with a blank in it', 'a b', 'session_id_unusable'),
]

/** A response to a ping, with the verdict of the health check. */
export interface OddPing extends Oddity {
  /** Error code of the health check. Undefined: the backend is healthy. */
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

/** Oddities that keep a backend fully usable. */
export const harmlessOddities: readonly Oddity[] = [
  ...encodingOddities,
  ...envelopeOddities,
  ...listenOddities,
  ...notificationOddities,
  ...sessionIdOddities,
  ...streamOddities,
]
