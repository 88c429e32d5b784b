import t from 'tap'
import { checkStateless, eraOf, metaKey, paramsOf, scanMessage } from '../../../runtime/mcp/index.ts'

const VERSION = '2026-07-28'

function request(method: string, params: unknown) {
  return scanMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 9, method, params })))
}

function era(method: string, params: unknown, header?: string) {
  const message = request(method, params)
  return eraOf(message, paramsOf(message), header)
}

t.test('era: the declared metadata decides, otherwise the header', async (t) => {
  t.equal(era('initialize', {}), 'session')
  t.equal(era('initialize', {}, VERSION), 'session')
  t.equal(era('initialize', { _meta: { [metaKey.protocolVersion]: VERSION } }, VERSION), 'stateless')
  t.equal(era('tools/list', {}), 'session')
  t.equal(era('tools/list', {}, '2025-11-25'), 'session')
  t.equal(era('tools/list', {}, VERSION), 'stateless')
  t.equal(era('tools/list', { _meta: { [metaKey.clientInfo]: {} } }), 'stateless')
  t.equal(era('tools/list', { _meta: { [metaKey.clientInfo]: {} } }, '2025-11-25'), 'session')
  t.equal(era('tools/list', { _meta: { [metaKey.protocolVersion]: 'v9' } }, '2025-11-25'), 'stateless')
})

const good = { [metaKey.protocolVersion]: VERSION, [metaKey.clientCapabilities]: {} }

function check(method: string, params: unknown, headers: Record<string, string>) {
  const message = request(method, params)
  return checkStateless(message, paramsOf(message), headers, [VERSION])
}

t.test("checkStateless: a valid request returns the client's metadata", async (t) => {
  const meta = check(
    'tools/call',
    { name: 'héllo', _meta: { ...good, [metaKey.logLevel]: 'info' } },
    { 'mcp-protocol-version': VERSION, 'mcp-method': 'tools/call', 'mcp-name': '=?base64?aMOpbGxv?=' },
  )
  t.equal(meta.clientCapabilities.toString(), '{}')
  t.equal(meta.logLevel, 'info')
})

t.test('checkStateless: each error has its code', async (t) => {
  const headers = { 'mcp-protocol-version': VERSION, 'mcp-method': 'tools/list' }
  const call = { 'mcp-protocol-version': VERSION, 'mcp-method': 'tools/call' }
  const cases: [string, unknown, Record<string, string>, number][] = [
    ['tools/list', {}, headers, -32602],
    ['tools/list', { _meta: { [metaKey.clientCapabilities]: {} } }, headers, -32602],
    ['tools/list', { _meta: { [metaKey.protocolVersion]: VERSION } }, headers, -32602],
    ['tools/list', { _meta: { ...good, [metaKey.clientCapabilities]: [] } }, headers, -32602],
    ['tools/list', { _meta: good }, { 'mcp-method': 'tools/list' }, -32020],
    ['tools/list', { _meta: { ...good, [metaKey.protocolVersion]: 'v9' } }, headers, -32020],
    [
      'tools/list',
      { _meta: { ...good, [metaKey.protocolVersion]: 'v9' } },
      { ...headers, 'mcp-protocol-version': 'v9' },
      -32022,
    ],
    ['tools/list', { _meta: good }, { 'mcp-protocol-version': VERSION }, -32020],
    ['tools/call', { name: 'a', _meta: good }, call, -32020],
    ['tools/call', { name: 'a', _meta: good }, { ...call, 'mcp-name': 'b' }, -32020],
    ['tools/call', { name: 'a', _meta: good }, { ...call, 'mcp-name': '=?base64?!!?=' }, -32020],
    ['tools/call', { _meta: good }, { ...call, 'mcp-name': 'b' }, -32602],
  ]
  for (const [method, params, sent, code] of cases) {
    t.match(
      thrownBy(() => check(method, params, sent)),
      { rpcCode: code, status: 400, id: '9' },
      JSON.stringify([method, params, sent]),
    )
  }
})

function thrownBy(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  return undefined
}
