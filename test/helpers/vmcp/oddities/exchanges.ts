/** Oddities of exchanges other than lists: notifications, listening streams, pings and session ids. */
import { type BackendOddity, listKinds, type OddList, type OddReply } from './server.ts'
import { event, ofList, stream, text } from './shapes.ts'

const other = (
  name: string,
  change: BackendOddity['change'],
  loses: readonly OddList[] = [],
): BackendOddity => ({
  name,
  loses,
  touches: ['other'],
  change,
})

const notified = (
  name: string,
  status: number,
  content: string,
  fate: OddReply['fate'] = 'whole',
): BackendOddity =>
  other(`a notification is answered with ${name}`, (reply, { http, id, method }) => {
    if (http === 'POST' && id === undefined && method !== '')
      Object.assign(reply, { status, headers: { 'content-type': 'application/json' }, body: content, fate })
  })

export const notificationOddities: readonly BackendOddity[] = [
  ...[
    '',
    'null',
    '{}',
    '{"ok":true}',
    '[]',
    '"x"',
    '{"jsonrpc":"2.0","id":null,"result":{}}',
    '{"jsonrpc":',
    '<p>ok',
  ].map((content) => notified(`200 and ${content}`, 200, content)),
  notified('204', 204, ''),
  notified('202 and a body', 202, 'Accepted'),
  notified('a body that does not end', 200, '{', 'open'),
]

const listened = (name: string, make: (reply: OddReply) => Partial<OddReply>): BackendOddity =>
  other(`listening: ${name}`, (reply, { http, method }) => {
    if (http === 'GET' || method === 'subscriptions/listen') Object.assign(reply, make(reply))
  })

const announced = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'

export const listeningOddities: readonly BackendOddity[] = [
  ...[400, 401, 403, 404, 405, 429, 500, 502].map((code) =>
    listened(`HTTP ${code}`, () => ({ status: code, headers: {}, body: '', fate: 'whole' })),
  ),
  listened('the stream ends at once', () => ({ fate: 'whole' })),
  listened('the stream ends at once, with retry: 1', () => ({ body: 'retry: 1\n\n', fate: 'whole' })),
  listened('HTML', () => ({ headers: { 'content-type': 'text/html' }, body: '<p>', fate: 'whole' })),
  listened('an unreadable event', (reply) => ({ body: `${text(reply)}${event('hello')}` })),
  listened('a response to nothing', (reply) => ({
    body: text(reply) + event('{"jsonrpc":"2.0","id":77,"result":{}}'),
  })),
  listened('a hundred changes', (reply) => ({ body: text(reply) + event(announced).repeat(100) })),
  ...listKinds.map((kind) =>
    ofList(
      kind,
      stream('a change is announced with each response', (json) => event(announced) + event(json)),
      'keeps',
    ),
  ),
]

const pinged = (
  name: string,
  make: (id: string) => Partial<OddReply>,
  loses: readonly OddList[] = [],
): BackendOddity => ({
  ...other(
    `a ping is answered with ${name}`,
    (reply, { method, id }) => {
      if (method === 'ping' && id !== undefined) Object.assign(reply, make(id))
    },
    loses,
  ),
  era: 'session',
})

export const pingOddities: readonly BackendOddity[] = [
  ...['[]', 'null', 'pong', '', '{}'].map((content) =>
    pinged(`the body ${content}`, () => ({ body: content })),
  ),
  ...[-32601, -32602, -32603].map((code) =>
    pinged(`error ${code}`, (id) => ({
      body: `{"jsonrpc":"2.0","id":${id},"error":{"code":${code},"message":"no"}}`,
    })),
  ),
  ...[202, 204, 400, 404, 405, 422].map((code) =>
    pinged(`HTTP ${code}`, () => ({ status: code, headers: {}, body: '' })),
  ),
  ...[401, 403, 500, 503].map((code) =>
    pinged(`HTTP ${code}`, () => ({ status: code, headers: {}, body: '' }), listKinds),
  ),
]

const sessionId = (name: string, id: string | undefined): BackendOddity => ({
  ...other(`a session id ${name}`, ({ headers }) => {
    if (headers['mcp-session-id'] === undefined) return
    if (id === undefined) delete headers['mcp-session-id']
    else headers['mcp-session-id'] = id
  }),
  era: 'session',
})

export const sessionIdOddities: readonly BackendOddity[] = [
  sessionId('of 513 characters', 'i'.repeat(513)),
  sessionId('of 4,000 characters', 'i'.repeat(4_000)),
  sessionId('that is missing', undefined),
]
