/** A result that exceeds a JSON limit while it is streamed to a client. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { errorMessage, ResultSplitter } from '../../../runtime/mcp/index.ts'
import { Reply } from '../../../runtime/vmcp/clients/reply.ts'
import { GatehouseError } from '../../../schemas/index.ts'
import { post } from '../../helpers/mcp/wire.ts'

const large = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"${'x'.repeat(70_000)}"}]`
const tooDeep = `,"x":${'['.repeat(300)}`

/** Starts a server that responds with chunks of a result, and with an error if a chunk cannot be read. */
async function serve(t: Test, chunks: readonly string[], first?: string): Promise<string> {
  const server = createServer((req, res) => {
    const reply = new Reply(req, res)
    if (first !== undefined) reply.send(Buffer.from(first))
    const passage = reply.streamResult('1', 'session')
    if (!passage) throw new Error('the result cannot be streamed')
    const splitter = new ResultSplitter({ id: '1', passage, replaces: false })
    try {
      for (const chunk of chunks) void splitter.push(Buffer.from(chunk))
    } catch (cause) {
      reply.end(errorMessage('1', new GatehouseError('BACKEND_PROTOCOL', { cause })))
    }
  })
  t.teardown(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

const notice = '{"jsonrpc":"2.0","method":"notifications/message","params":{}}'

for (const [type, first] of [
  ['JSON', undefined],
  ['an event stream', notice],
] as const) {
  t.test(`${type}: an error that occurs before the first byte is sent to the client`, async (t) => {
    const { status, response } = await post(await serve(t, [large + tooDeep], first), '{}')
    t.equal(status, 200)
    t.match(response?.error, { code: -32603 })
  })
  t.test(`${type}: an error that occurs after the first byte closes the connection`, async (t) => {
    await t.rejects(post(await serve(t, [large, tooDeep], first), '{}'))
  })
}
