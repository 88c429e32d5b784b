/**
 * Clients that share one server: no client can use up another client's share, and each rejected client gets a reason.
 */
import t from 'tap'
import { type Message, scanMessage } from '../../../runtime/mcp/index.ts'
import { silentLog } from '../../../runtime/net/index.ts'
import { SharedServer } from '../../../runtime/proxy/stdio-server/attached/shared-server.ts'

const initialized = JSON.stringify({
  protocolVersion: '2025-11-25',
  capabilities: {},
  serverInfo: { name: 's', version: '1' },
})

function makeServer() {
  const warnings: unknown[] = []
  const log = { ...silentLog, warn: (_message: string, fields?: unknown) => void warnings.push(fields) }
  const server = new SharedServer({ log, info: '{"name":"test","version":"1"}' })
  const written: Buffer[] = []
  const wire = {
    unsent: 0,
    write(line: Buffer) {
      const { id, method } = JSON.parse(line.toString()) as { id: string; method: string }
      if (method !== 'ping') written.push(line)
      else
        queueMicrotask(() =>
          server.fromServer(scanMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, result: {} })))),
        )
    },
  }
  const attach = () => server.attached(wire, { era: 'session', result: initialized })
  return { server, written, warnings, attach }
}

function client(server: SharedServer) {
  const answers: Message[] = []
  const link = server.take((message) => answers.push(message))
  const call = (id: number, text = '') =>
    link.send(
      Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'x', text } })),
    )
  return { call, refusals: () => answers.map(({ error }) => String(error)) }
}

const ids = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

t.test('in flight: one client has at most a thousand requests, and other clients continue', async (t) => {
  const { server, written, attach } = makeServer()
  await attach()
  const [greedy, other] = [client(server), client(server)]
  for (const id of ids(1_001)) greedy.call(id)
  await Promise.resolve()
  t.match(greedy.refusals(), [/1000 requests of this session are in flight/])
  t.equal(greedy.refusals().length, 1)
  other.call(1)
  await Promise.resolve()
  t.strictSame(other.refusals(), [])
  t.equal(written.length, 1_001)
})

t.test('waiting for the server: one client has at most a hundred requests and 8 MiB', async (t) => {
  const { server, written, attach } = makeServer()
  const [greedy, large, other] = [client(server), client(server), client(server)]
  for (const id of ids(101)) greedy.call(id)
  for (const id of ids(3)) large.call(id, 'x'.repeat(4_000_000))
  other.call(1)
  await Promise.resolve()
  t.equal(greedy.refusals().length, 1)
  t.match(greedy.refusals(), [/the server is unavailable and the request was not sent/])
  t.equal(large.refusals().length, 1)
  t.strictSame(other.refusals(), [])
  await attach()
  t.equal(written.length, 100 + 2 + 1, 'the waiting requests are sent')
})

t.test('every request gets a response when the server sends a result that cannot be read', async (t) => {
  const { server, written, warnings, attach } = makeServer()
  await attach()
  const responses: Message[] = []
  const link = server.take((message) => responses.push(message))
  const respond = (result: string) => {
    const { id } = JSON.parse(String(written.at(-1))) as { id: string }
    server.fromServer(scanMessage(Buffer.from(`{"jsonrpc":"2.0","id":"${id}","result":${result}}`)))
    return id
  }
  const send = (id: number, method: string) =>
    link.send(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method, params: {} })))
  const duplicate = '{"content":[{"text":"io.modelcontextprotocol/subscriptionId"}],"x":1,"x":2}'

  send(1, 'tools/call')
  respond(duplicate)
  t.equal(responses.at(-1)?.id, '1')
  t.equal(String(responses.at(-1)?.result), duplicate, 'only the end of a subscription contains its id')

  send(2, 'subscriptions/listen')
  respond(duplicate)
  t.equal(responses.at(-1)?.id, '2')
  t.match(String(responses.at(-1)?.error), /not valid MCP/)
  t.match(warnings, [{ err: { message: /duplicate member/ } }], 'the log contains the cause')

  send(3, 'subscriptions/listen')
  const id = (JSON.parse(String(written.at(-1))) as { id: string }).id
  respond(`{"_meta":{"io.modelcontextprotocol/subscriptionId":"${id}"}}`)
  const mapped = '{"_meta":{"io.modelcontextprotocol/subscriptionId":3}}'
  t.equal(String(responses.at(-1)?.result), mapped)
  t.match(String(responses.at(-1)?.bytes), mapped)
  t.equal(server.inFlight, 0)
})
