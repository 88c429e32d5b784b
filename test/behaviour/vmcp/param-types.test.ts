/** A param of a wrong type is -32602 in every method and both eras. It is never treated as absent. */
import t from 'tap'
import { openSession, post, stateless } from '../../helpers/mcp/wire.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

type Params = Record<string, unknown>

/** Values that must be strings. */
const notStrings: readonly unknown[] = [5, true, [], {}]
const notObjects: readonly unknown[] = [5, 'x', true, []]
const lists = ['tools/list', 'resources/list', 'resources/templates/list', 'prompts/list']

/** `[method, params, name of the param in the message]` for each wrong type of each param. */
const wrong: readonly (readonly [string, Params, string])[] = [
  ...lists.flatMap((method) => each(method, {}, 'cursor', notStrings)),
  ...each('tools/call', { arguments: {} }, 'name', notStrings),
  ...each('tools/call', { name: 'raw_echo' }, 'arguments', notObjects),
  ...each('prompts/get', {}, 'name', notStrings),
  ...each('prompts/get', { name: 'x' }, 'arguments', notObjects),
  ['prompts/get', { name: 'x', arguments: { a: 5 } }, 'arguments.a'],
  ...each('resources/read', {}, 'uri', notStrings),
  ...each('completion/complete', {}, 'ref', notObjects),
  ['completion/complete', { ref: { type: 5 } }, 'ref.type'],
  ['completion/complete', { ref: { type: 'ref/prompt', name: 5 } }, 'ref.name'],
  ['completion/complete', { ref: { type: 'ref/resource', uri: 5 } }, 'ref.uri'],
  ...each('completion/complete', { ref: { type: 'ref/prompt', name: 'x' } }, 'argument', notObjects),
  ['completion/complete', { argument: { name: 5 } }, 'argument.name'],
  ['completion/complete', { argument: { name: 'a', value: 5 } }, 'argument.value'],
  ['completion/complete', { context: { arguments: { a: 5 } } }, 'context.arguments.a'],
  ...each('completion/complete', {}, 'context', notObjects),
]

function each(method: string, params: Params, name: string, values: readonly unknown[]) {
  return values.map((value) => [method, { ...params, [name]: value }, name] as const)
}

async function start(t: { teardown(work: () => unknown): void }) {
  const backend = await startRawBackend()
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  return vmcp
}

function refused(name: string) {
  return { error: { code: -32602, message: new RegExp(`^Invalid params: ${name} must be `) } }
}

t.test('session era: a param of a wrong type is rejected', async (t) => {
  const session = await openSession((await start(t)).url)
  const own: typeof wrong = [
    ...each('resources/subscribe', {}, 'uri', notStrings),
    ...each('resources/unsubscribe', {}, 'uri', notStrings),
    ...each('logging/setLevel', {}, 'level', notStrings),
    ...['tools/list', 'ping'].flatMap((method) => each(method, {}, '_meta', notObjects)),
    ['tools/list', { _meta: { progressToken: 1.5 } }, '_meta.progressToken'],
    ['tools/call', { name: 'raw_echo', _meta: { progressToken: {} } }, '_meta.progressToken'],
  ]
  for (const [method, params, name] of [...wrong, ...own]) {
    const response = await session.request(method, params)
    t.equal(response.status, 200)
    t.match(response.response, refused(name), `${method} ${JSON.stringify(params)}`)
  }
  for (const method of lists) t.ok((await session.request(method, { cursor: null })).response?.result, method)
})

t.test('stateless era: a param of a wrong type is rejected', async (t) => {
  const { url } = await start(t)
  const own: typeof wrong = [
    ...each('subscriptions/listen', {}, 'notifications', notObjects),
    [
      'subscriptions/listen',
      { notifications: { toolsListChanged: 'yes' } },
      'notifications.toolsListChanged',
    ],
    ...[5, 'x', {}, ['x', 5]].map(
      (value) =>
        [
          'subscriptions/listen',
          { notifications: { resourceSubscriptions: value } },
          'notifications.resourceSubscriptions',
        ] as const,
    ),
    ...each('tools/call', { name: 'raw_echo' }, 'requestState', notStrings),
    ...each('tools/call', { name: 'raw_echo' }, 'inputResponses', notObjects),
  ]
  for (const [method, params, name] of [...wrong, ...own]) {
    const response = await stateless(url, method, params)
    t.equal(response.status, 400)
    t.match(
      response.response,
      { error: { code: -32602, message: new RegExp(`^Invalid params: ${name} must be `) } },
      `${method} ${JSON.stringify(params)}`,
    )
  }
  for (const key of ['logLevel', 'clientInfo'])
    t.match(
      (await stateless(url, 'tools/list', {}, { meta: { [`io.modelcontextprotocol/${key}`]: 5 } })).response,
      { error: { code: -32602, message: new RegExp(`_meta\\.io\\.modelcontextprotocol/${key} must be `) } },
    )
})

t.test('initialize: a param of a wrong type is rejected', async (t) => {
  const { url } = await start(t)
  const good = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
  const own: typeof wrong = [
    ...each('initialize', good, 'protocolVersion', notStrings),
    ...each('initialize', good, 'capabilities', notObjects),
    ...each('initialize', good, 'clientInfo', notObjects),
    ['initialize', { ...good, clientInfo: { name: 5 } }, 'clientInfo.name'],
  ]
  for (const [method, params, name] of own) {
    const response = await post(url, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
    t.match(response.response, { id: 1, ...refused(name) }, JSON.stringify(params))
  }
})

t.test('an object or a list with too many members is rejected', async (t) => {
  const session = await openSession((await start(t)).url)
  const many = Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`a${i}`, '']))
  for (const [method, params] of [
    ['tools/list', many],
    ['prompts/get', { name: 'x', arguments: many }],
  ] as const) {
    t.match((await session.request(method, params)).response, {
      error: { code: -32602, message: /more than 10000/ },
    })
  }
  const whole = await post(
    session.url,
    JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', ...many }),
    session.headers,
  )
  t.match(whole, { status: 400, response: { error: { code: -32600, message: /more than 10000/ } } })
})
