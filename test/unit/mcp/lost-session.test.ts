import t from 'tap'
import { GatehouseError } from '../../../schemas/index.ts'
import {
  maxRefusalBytes,
  mayEnterNextSession,
  mayResend,
  refusalHeaders,
  scanMessage,
  sessionRefusal,
  sessionVerdict,
} from '../../../runtime/mcp/index.ts'

function rpcError(code: number, message: string, id = 'null'): Buffer {
  return Buffer.from(
    `{"jsonrpc":"2.0","error":{"code":${code},"message":${JSON.stringify(message)}},"id":${id}}`,
  )
}

t.test('lost session: responses of public servers after a restart are recognized', async (t) => {
  const cases: readonly [string, number, Buffer][] = [
    ['the rule', 404, Buffer.alloc(0)],
    ['gone', 410, Buffer.from('gone')],
    ['everything server', 400, rpcError(-32000, 'Bad Request: No valid session ID provided')],
    ['its id as sent', 400, rpcError(-32000, 'Bad Request: No valid session ID provided', '7')],
    [
      'id left out',
      400,
      Buffer.from('{"jsonrpc":"2.0","error":{"code":-32000,"message":"No valid session ID"}}'),
    ],
    ['one transport for all', 400, rpcError(-32000, 'Bad Request: Server not initialized')],
    ['an older Python SDK', 400, Buffer.from('Bad Request: No valid session ID provided')],
    ['the same as -32600', 400, rpcError(-32600, 'Bad Request: No valid session ID provided')],
    ['header by name', 400, rpcError(-32000, 'Bad Request: Unknown Mcp-Session-Id header')],
    ['the code alone', 400, rpcError(-32001, 'gone')],
    ['GET handler of the examples', 400, Buffer.from('Invalid or missing session ID')],
    ['an older Rust SDK', 401, Buffer.from('Unauthorized: Session not found')],
  ]
  for (const [name, status, body] of cases)
    t.equal(sessionRefusal(status, { headers: {}, requestId: '7' }, body), 'lost', name)
})

t.test('lost session: other errors are not treated as a lost session', async (t) => {
  const cases: readonly [string, number, Buffer, boolean?][] = [
    ['success', 200, rpcError(-32000, 'Session not found')],
    ['bad arguments', 400, rpcError(-32602, 'Invalid params: session must be a string')],
    ['unknown method', 400, rpcError(-32601, 'no session method')],
    ['header mismatch', 400, rpcError(-32020, 'Header mismatch: session')],
    ['revision', 400, rpcError(-32000, 'Bad Request: Unsupported protocol version: 1')],
    ['a word with session in it', 400, rpcError(-32000, 'an obsession')],
    ['nothing', 400, Buffer.alloc(0)],
    ['a login', 401, Buffer.from('Unauthorized: your session has expired, sign in again')],
    ['a challenge', 401, Buffer.from('Unauthorized: Session not found'), true],
    ['forbidden', 403, Buffer.from('session not found')],
    ['overload', 503, rpcError(-32000, 'Too many open sessions')],
    ['too long', 400, Buffer.concat([Buffer.from('session '), Buffer.alloc(maxRefusalBytes)])],
  ]
  for (const [name, status, body, challenged = false] of cases)
    t.equal(
      sessionRefusal(
        status,
        { headers: challenged ? { 'www-authenticate': 'Bearer' } : {}, requestId: '7' },
        body,
      ),
      'alive',
      name,
    )
})

t.test(
  "lost session: a response with the request's own id does not prove that the request was rejected",
  async (t) => {
    const own = rpcError(-32001, 'Session not found', '7')
    for (const status of [404, 410]) {
      const answered = sessionRefusal(status, { headers: {}, requestId: '7' }, own)
      t.equal(answered, 'answered')
      t.equal(mayResend(answered, { isRepeatable: false }), false)
      t.equal(mayResend(answered, { isRepeatable: true }), true)
      for (const requestId of ['"7"', '8', undefined])
        t.equal(sessionRefusal(status, { headers: {}, requestId }, own), 'lost')
      const result = Buffer.from('{"jsonrpc":"2.0","id":7,"result":{}}')
      t.equal(sessionRefusal(status, { headers: {}, requestId: '7' }, result), 'answered')
    }
    const headers = refusalHeaders(new GatehouseError('SESSION_NOT_FOUND'))
    t.equal(
      sessionRefusal(404, { headers, requestId: '7' }, own),
      'lost',
      'a Gatehouse server marks its rejection',
    )
    t.strictSame(refusalHeaders(new GatehouseError('BACKEND_TIMEOUT')), {})
    t.equal(mayResend('alive', { isRepeatable: true }), false)
  },
)

t.test('lost session: detected from the status and headers alone', async (t) => {
  t.equal(sessionVerdict(404, { headers: {} }), 'lost')
  t.equal(sessionVerdict(404, { headers: {}, requestId: '7' }), 'read')
  t.equal(sessionVerdict(400, { headers: {} }), 'read')
  t.equal(sessionVerdict(401, { headers: {} }), 'read')
  t.equal(sessionVerdict(401, { headers: { 'www-authenticate': 'Bearer' } }), 'alive')
  t.equal(sessionVerdict(500, { headers: {} }), 'alive')
})

t.test('lost session: messages of the lost session are not sent to the next one', async (t) => {
  const may = (message: unknown): boolean =>
    mayEnterNextSession(scanMessage(Buffer.from(JSON.stringify(message))))
  t.equal(may({ jsonrpc: '2.0', id: 1, method: 'tools/call' }), true)
  t.equal(may({ jsonrpc: '2.0', method: 'notifications/roots/list_changed' }), true)
  t.equal(may({ jsonrpc: '2.0', method: 'notifications/initialized' }), false)
  t.equal(may({ jsonrpc: '2.0', method: 'notifications/cancelled' }), false)
  t.equal(may({ jsonrpc: '2.0', id: 1, result: {} }), false)
  t.equal(may({ jsonrpc: '2.0', id: 1, error: { code: 1, message: 'm' } }), false)
})
