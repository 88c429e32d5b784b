/** Requests from a server: the reply may fail because the server has ended, and a withdrawn request gets no reply. */
import t from 'tap'
import { type Message, scanMessage, ServerRequests } from '../../../runtime/mcp/index.ts'
import { GatehouseError } from '../../../schemas/index.ts'

function request(id: string, method: string): Message {
  return scanMessage(Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method, params: {} })))
}

const reply = { result: Buffer.from('{"action":"accept"}') }

t.test('a server that has ended fails neither the request nor the caller', async (t) => {
  const requests = new ServerRequests(() => {
    throw new GatehouseError('BACKEND_UNREACHABLE')
  })
  await requests.ask(request('q1', 'elicitation/create'), undefined, async () => reply)
  await requests.ask(request('q2', 'elicitation/create'), undefined, async () => {
    throw new GatehouseError('RATE_LIMITED')
  })
  t.equal(requests.size, 0)
  t.equal(requests.admit(request('p', 'ping')), undefined)
  t.equal(requests.admit(request('u', 'unknown/method')), undefined)
  requests.refuse('"r"', new GatehouseError('METHOD_NOT_FOUND'))
})

t.test('a withdrawn request gets no reply, even when the client has responded', async (t) => {
  const sent: string[] = []
  const requests = new ServerRequests((message) => sent.push(message.toString()))
  const answer = Promise.withResolvers<typeof reply>()
  const asked = requests.ask(request('q1', 'elicitation/create'), undefined, () => answer.promise)
  t.equal(requests.withdraw(new Error('over')), true)
  answer.resolve(reply)
  await asked
  t.strictSame(sent, [])
  t.equal(requests.size, 0)
})
