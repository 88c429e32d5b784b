/** Messages between the console and the page of an app. */
import t from 'tap'
import {
  AppBridge,
  type AppBridgeOptions,
  type AppCall,
} from '../../../runtime/console/web/try/app-bridge.ts'

type Sent = Readonly<Record<string, unknown>>

function start(call: AppBridgeOptions['call'] = async () => ({ result: '{"content":[]}' })) {
  const sent: Sent[] = []
  const targets = new Set<string>()
  let calls: readonly AppCall[] = []
  const heights: number[] = []
  const frame = {
    postMessage(message: unknown, target: string) {
      sent.push(message as Sent)
      targets.add(target)
    },
  }
  const bridge = new AppBridge({
    frame,
    tool: { name: 'show' },
    input: { a: 1 },
    result: { content: [] },
    theme: 'light',
    call,
    onCalls: (waiting) => (calls = waiting),
    onHeight: (height) => heights.push(height),
  })
  const receive = (data: unknown, source: unknown = frame, origin = 'null') =>
    bridge.receive({ source, origin, data })
  const request = (id: number, method: string, params: unknown = {}) =>
    receive({ jsonrpc: '2.0', id, method, params })
  return { sent, targets, heights, receive, request, calls: () => calls }
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

t.test(
  'app bridge: messages are accepted only from the window and the opaque origin of the frame',
  async (t) => {
    const { sent, receive, request } = start()
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
    receive(ping, {})
    receive(ping, null)
    receive(ping, undefined, 'https://console.example.com')
    for (const origin of ['https://console.example.com', '']) start().receive(ping, undefined, origin)
    for (const data of [undefined, null, 1, 'ping', [], { ...ping, jsonrpc: '1.0' }, { ...ping, method: 1 }])
      receive(data)
    t.same(sent, [])
    request(1, 'ping')
    t.same(sent, [{ jsonrpc: '2.0', id: 1, result: {} }])
  },
)

t.test('app bridge: the arguments and the result are sent once, after the handshake', async (t) => {
  const { sent, receive, request } = start()
  request(1, 'ui/initialize', { protocolVersion: '2026-01-26' })
  t.match(sent, [
    {
      id: 1,
      result: { protocolVersion: '2026-01-26', hostContext: { toolInfo: { tool: { name: 'show' } } } },
    },
  ])
  for (let i = 0; i < 3; i++) receive({ jsonrpc: '2.0', method: 'ui/notifications/initialized' })
  t.same(sent.slice(1), [
    { jsonrpc: '2.0', method: 'ui/notifications/tool-input', params: { arguments: { a: 1 } } },
    { jsonrpc: '2.0', method: 'ui/notifications/tool-result', params: { content: [] } },
  ])
})

t.test('app bridge: methods that reach beyond the frame do not exist', async (t) => {
  const { sent, request } = start()
  const methods = [
    'ui/open-link',
    'ui/message',
    'ui/download-file',
    'ui/update-model-context',
    'sampling/createMessage',
  ]
  methods.push('resources/read', 'tools/list', '__proto__', 'constructor')
  for (const [id, method] of methods.entries()) request(id, method)
  t.same(
    sent.map(({ error }) => (error as { readonly code: number }).code),
    methods.map(() => -32601),
  )
})

t.test('app bridge: the user decides about each call', async (t) => {
  const made: string[] = []
  const bridge = start(async (name, args) => {
    made.push(`${name} ${args}`)
    if (name === 'broken') throw new Error('no such tool')
    return name === 'large' ? { result: '{', truncated: true } : { result: '{"content":[]}' }
  })
  bridge.request(1, 'tools/call', { name: 'one', arguments: { b: 2 } })
  bridge.request(2, 'tools/call', { name: 'two' })
  t.same(made, [])
  const [one, two] = bridge.calls()
  two?.refuse()
  one?.allow()
  one?.allow()
  one?.refuse()
  await settled()
  t.same(made, ['one {"b":2}'])
  t.match(bridge.sent, [
    { id: 2, error: { code: -32000 } },
    { id: 1, result: { content: [] } },
  ])
  bridge.request(3, 'tools/call', { name: 'broken' })
  bridge.request(4, 'tools/call', { name: 'large' })
  for (const call of bridge.calls()) call.allow()
  await settled()
  t.match(bridge.sent.slice(2), [
    { id: 3, error: { message: 'no such tool' } },
    { id: 4, error: {} },
  ])
})

t.test('app bridge: names, arguments, waiting calls, messages and heights are limited', async (t) => {
  const { sent, request, receive, calls, heights } = start()
  const cyclic: Record<string, unknown> = {}
  cyclic['self'] = cyclic
  for (const params of [
    {},
    { name: 'a', arguments: cyclic },
    { name: '' },
    { name: 1 },
    { name: 'x'.repeat(257) },
    { name: 'a', arguments: 'x'.repeat(65_536) },
  ])
    request(1, 'tools/call', params)
  t.ok(sent.every(({ error }) => (error as { readonly code: number }).code === -32602))
  for (let id = 0; id < 10; id++) request(id, 'tools/call', { name: 'a' })
  t.equal(calls().length, 4)
  for (const height of [1, 1e9, Infinity, NaN, '5', 300.2])
    receive({ jsonrpc: '2.0', method: 'ui/notifications/size-changed', params: { height } })
  t.same(heights, [80, 800, 301])
  const before = sent.length
  for (let id = 0; id < 1_000; id++) request(id, 'ping')
  t.equal(sent.length - before, 200 - 6 - 10 - 6)
})
