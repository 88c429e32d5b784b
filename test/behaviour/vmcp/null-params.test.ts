/** Forms that clients vary: null for an absent member, and a slash at the end of a path. */
import t from 'tap'
import { startRawBackend, textResult } from '../../helpers/mcp/raw-backend.ts'
import {
  openSession,
  post,
  stateless,
  statelessRequest,
  statelessStream,
  stream,
} from '../../helpers/mcp/wire.ts'
import { startTokenIssuer } from '../../helpers/authserver/token-issuer.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

const backend = await startRawBackend({
  capabilities: '{"tools":{},"prompts":{},"resources":{"subscribe":true},"completions":{},"logging":{}}',
  responses: {
    'tools/call': ({ params }) => textResult(JSON.stringify(params)),
    'prompts/list': () => '{"prompts":[{"name":"p","arguments":[{"name":"a"}]}]}',
    'prompts/get': ({ params }) =>
      JSON.stringify({ messages: [], description: JSON.stringify(params['arguments'] ?? 'none') }),
    'resources/list': () => '{"resources":[{"uri":"test://a","name":"a"}]}',
    'resources/templates/list': () => '{"resourceTemplates":[]}',
    'resources/read': () => '{"contents":[]}',
    'resources/subscribe': () => '{}',
    'completion/complete': () => '{"completion":{"values":["v"]}}',
    'logging/setLevel': () => '{}',
  },
})
const vmcp = await startTestVmcp({ raw: backend.url }, { aggregation: bareNames('raw') })
t.teardown(() => Promise.all([vmcp.close(), backend.close()]))

/** Requests in which every optional member is null, and expected content of the result. */
const requests: readonly [string, Record<string, unknown>, RegExp][] = [
  ['tools/list', { cursor: null }, /"echo"/],
  ['prompts/list', { cursor: null }, /"p"/],
  ['resources/list', { cursor: null }, /test:\/\/a/],
  ['resources/templates/list', { cursor: null }, /resourceTemplates/],
  ['tools/call', { name: 'echo', arguments: null }, /content/],
  ['tools/call', { name: 'echo', arguments: {}, requestState: null, inputResponses: null }, /content/],
  ['prompts/get', { name: 'p', arguments: null }, /none/],
  ['prompts/get', { name: 'p', arguments: { a: null } }, /"description":"\{\}"/],
  ['resources/read', { uri: 'test://a' }, /contents/],
  [
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'p', uri: null }, argument: { name: 'a', value: '' }, context: null },
    /"v"/,
  ],
  [
    'completion/complete',
    {
      ref: { type: 'ref/prompt', name: 'p' },
      argument: { name: 'a', value: '' },
      context: { arguments: null },
    },
    /"v"/,
  ],
]

for (const era of ['session', 'stateless'] as const) {
  t.test(`null counts as absent: ${era} era`, async (t) => {
    const session = await openSession(vmcp.url)
    for (const [method, params, expected] of requests) {
      const { response, text } =
        era === 'session'
          ? await session.request(method, { ...params, _meta: null })
          : await stateless(vmcp.url, method, params, {
              meta: {
                progressToken: null,
                'io.modelcontextprotocol/clientInfo': null,
                'io.modelcontextprotocol/logLevel': null,
              },
            })
      t.equal(response?.error, undefined, `${method}: ${text}`)
      t.match(JSON.stringify(response?.result), expected, method)
    }
  })
}

t.test('null arguments reach the backend as no arguments, and nested nulls stay', async (t) => {
  const session = await openSession(vmcp.url)
  const called = async (params: unknown): Promise<unknown> => {
    const { response } = await session.request('tools/call', params)
    const content = response?.result?.['content'] as { text: string }[]
    return JSON.parse(content[0]?.text ?? '')
  }
  t.strictSame(await called({ name: 'echo', arguments: null, _meta: null }), { name: 'echo' })
  t.strictSame(
    await called({ name: 'echo', arguments: { a: null }, _meta: { progressToken: null, other: null } }),
    {
      name: 'echo',
      arguments: { a: null },
      _meta: { other: null },
    },
  )
})

t.test('null params, capabilities and notification ids are accepted', async (t) => {
  const initialize = {
    protocolVersion: '2025-11-25',
    capabilities: null,
    clientInfo: { name: 'c', version: null },
    _meta: null,
  }
  const opened = await post(
    vmcp.url,
    JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: initialize,
      result: null,
      error: null,
    }),
  )
  t.equal(opened.status, 200, opened.text)
  const headers = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' }
  const send = (message: string) => post(vmcp.url, message, headers)
  const notification = '{"jsonrpc":"2.0","id":null,"method":"notifications/initialized","params":null}'
  t.equal((await send(notification)).status, 202)
  for (const method of ['ping', 'tools/list', 'prompts/list', 'resources/list']) {
    const answered = await send(`{"jsonrpc":"2.0","id":2,"method":"${method}","params":null}`)
    t.match(answered, { status: 200, response: { result: {} } }, method)
  }
  const nameless = await send('{"jsonrpc":"2.0","id":null,"method":"ping"}')
  t.equal(nameless.status, 400, 'a request needs an id')
})

t.test('null for a required member is an error that names it', async (t) => {
  const session = await openSession(vmcp.url)
  for (const [method, params, named] of [
    ['tools/call', { name: null }, /name/],
    ['resources/read', { uri: null }, /uri/],
    ['completion/complete', { ref: null, argument: null }, /ref/],
    ['logging/setLevel', { level: null }, /level/],
  ] as const) {
    const { response } = await session.request(method, params)
    t.match(response?.error, { code: -32602, message: named }, method)
  }
})

t.test('a subscription with null kinds is accepted', async (t) => {
  const notifications = { toolsListChanged: true, promptsListChanged: null, resourceSubscriptions: null }
  const opened = await statelessStream(vmcp.url, 'subscriptions/listen', { notifications })
  const { params } = await opened.next()
  t.match(params, { notifications: { toolsListChanged: true } })
  opened.close()
})

t.test('a trailing slash works on every endpoint', async (t) => {
  const session = await openSession(`${vmcp.url}/`)
  t.match(await session.request('tools/list'), {
    status: 200,
    response: { result: { tools: [{ name: 'echo' }] } },
  })
  t.match(await stateless(`${vmcp.url}/`, 'tools/list'), { status: 200 })
  const listening = await session.listen()
  t.equal(listening.status, 200)
  listening.close()
  t.equal((await session.end()).status, 200)

  const sse = await stream(`${vmcp.origin}/sse/`)
  t.equal(sse.status, 200)
  const { params } = await sse.next(({ method }) => method === 'endpoint')
  const endpoint = String(params?.['data']).replace('/messages?', '/messages/?')
  const { body } = statelessRequest('ping')
  t.equal((await post(`${vmcp.origin}${endpoint}`, body)).status, 202)
  sse.close()

  for (const path of ['/mcp//', '/mcp/x', '//mcp', '/readyz/', '/mcp/?'])
    t.equal((await fetch(`${vmcp.origin}${path}`)).status, path === '/mcp/?' ? 406 : 404, path)
  t.match((await fetch(`${vmcp.url}/`, { method: 'PUT' })).headers.get('allow'), 'GET, POST, DELETE')
})

t.test('a trailing slash: authentication and metadata are those of the endpoint', async (t) => {
  const issuer = await startTokenIssuer()
  const guarded = await startTestVmcp({ raw: backend.url }, { incomingAuth: issuer.incomingAuth })
  t.teardown(() => Promise.all([guarded.close(), issuer.close()]))
  const { headers, body } = statelessRequest('tools/list')
  t.equal((await post(`${guarded.url}/`, body, headers)).status, 401)
  const metadata = `${guarded.origin}/.well-known/oauth-protected-resource/mcp/`
  t.equal((await fetch(metadata)).status, 404)
})
