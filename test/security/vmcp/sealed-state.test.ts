/** The state that a stateless client carries, and the answers that come with it, reach only the backend that asked. */
import t from 'tap'
import { openSession, stateless } from '../../helpers/mcp/wire.ts'
import { type AskingBackend, startAskingBackend } from '../../helpers/vmcp/asking-backend.ts'
import { bareNames, startTestVmcp, vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

t.setTimeout(120_000)

const capabilities = { elicitation: { form: {} } }
const call = { name: 'say', arguments: {} }
const answers = { inputResponses: { color: { action: 'accept', content: { color: 'secret-red' } } } }
const priority = { aggregation: bareNames('a', 'b') }

async function ask(url: string): Promise<string> {
  const { response } = await stateless(url, 'tools/call', call, { capabilities })
  if (response?.result?.['resultType'] !== 'input_required') throw new Error('the tool did not ask')
  return String(response?.result?.['requestState'])
}

function finish(url: string, requestState: string | undefined) {
  return stateless(url, 'tools/call', { ...call, ...answers, requestState }, { capabilities })
}

function heard(backend: AskingBackend): string {
  return JSON.stringify(backend.calls)
}

const invalid = { code: -32602, message: /requestState is not valid for this request/ }

t.test('a removed backend: its state and the answers go to no other backend', async (t) => {
  const a = await startAskingBackend('a')
  const b = await startAskingBackend('b')
  const vmcp = await startTestVmcp({ a: a.url, b: b.url }, priority)
  t.teardown(() => Promise.all([vmcp.close(), a.close(), b.close()]))
  const state = await ask(vmcp.url)
  vmcp.reload(vmcpConfig({ b: b.url }, { aggregation: bareNames('b') }))
  const { response } = await finish(vmcp.url, state)
  t.match(response?.error, invalid)
  t.equal(b.calls.length, 0)

  const again = await finish(vmcp.url, await ask(vmcp.url))
  t.match(again.response?.result, { content: [{ text: /^b got .*secret-red/ }] })
})

t.test('a backend at a new address does not receive the state', async (t) => {
  const a = await startAskingBackend('a')
  const moved = await startAskingBackend('moved')
  const vmcp = await startTestVmcp({ a: a.url }, { aggregation: bareNames('a') })
  t.teardown(() => Promise.all([vmcp.close(), a.close(), moved.close()]))
  const state = await ask(vmcp.url)
  vmcp.reload(vmcpConfig({ a: moved.url }, { aggregation: bareNames('a') }))
  t.match((await finish(vmcp.url, state)).response?.error, invalid)
  t.equal(moved.calls.length, 0)
})

t.test('a changed setting that keeps the address: the state stays valid', async (t) => {
  const a = await startAskingBackend('a')
  const vmcp = await startTestVmcp({ a: a.url }, { aggregation: bareNames('a') })
  t.teardown(() => Promise.all([vmcp.close(), a.close()]))
  const state = await ask(vmcp.url)
  const operational = { timeouts: { default: '17s' } }
  vmcp.reload(vmcpConfig({ a: a.url }, { aggregation: bareNames('a'), operational }))
  t.match((await finish(vmcp.url, state)).response?.result, { content: [{ text: /^a got .*secret-red/ }] })
})

t.test('a backend that asks without a state: the answers are bound to it all the same', async (t) => {
  const a = await startAskingBackend('a', { state: () => undefined })
  const b = await startAskingBackend('b', { state: () => undefined })
  const vmcp = await startTestVmcp({ a: a.url, b: b.url }, priority)
  t.teardown(() => Promise.all([vmcp.close(), a.close(), b.close()]))
  const state = await ask(vmcp.url)
  const done = await finish(vmcp.url, state)
  t.match(done.response?.result, { content: [{ text: /^a got .*secret-red/ }] })
  t.equal(a.calls.at(-1)?.['requestState'], undefined, 'the backend gets no state that it did not give')

  const other = await ask(vmcp.url)
  vmcp.reload(vmcpConfig({ b: b.url }, { aggregation: bareNames('b') }))
  t.match((await finish(vmcp.url, other)).response?.error, invalid)
  const unbound = await finish(vmcp.url, undefined)
  t.equal(
    unbound.response?.result?.['resultType'],
    'input_required',
    'answers without a question cause the question again',
  )
  t.notMatch(heard(b), 'secret-red')
})

t.test('state and answers that a session client invents reach no backend', async (t) => {
  const a = await startAskingBackend('a')
  const vmcp = await startTestVmcp({ a: a.url }, { aggregation: bareNames('a') })
  t.teardown(() => Promise.all([vmcp.close(), a.close()]))
  const session = await openSession(vmcp.url)
  await session.request('tools/call', { ...call, ...answers, requestState: 'made-up' })
  t.equal(a.calls.length, 1)
  t.notMatch(heard(a), /made-up|secret-red/)
})

t.test('a tool called through tool search has the same binding', async (t) => {
  const a = await startAskingBackend('a')
  const b = await startAskingBackend('b')
  const vmcp = await startTestVmcp({ a: a.url, b: b.url }, { ...priority, optimizer: {} })
  t.teardown(() => Promise.all([vmcp.close(), a.close(), b.close()]))
  const found = { name: 'call_tool', arguments: { tool_name: 'say', parameters: {} } }
  const start = async (): Promise<unknown> =>
    (await stateless(vmcp.url, 'tools/call', found, { capabilities })).response?.result?.['requestState']
  const end = async (requestState: unknown) =>
    (await stateless(vmcp.url, 'tools/call', { ...found, ...answers, requestState }, { capabilities }))
      .response
  t.match((await end(await start()))?.result, { content: [{ text: /^a got .*secret-red/ }] })
  const state = await start()
  const aggregation = bareNames('b')
  vmcp.reload(vmcpConfig({ b: b.url }, { aggregation, optimizer: {} }))
  t.match(JSON.stringify(await end(state)), /requestState is not valid|not found/)
  t.notMatch(heard(b), 'secret-red')
})

t.test('a state from another server with the same key is rejected', async (t) => {
  const env = { VMCP_SESSION_HMAC_SECRET: 'a key of thirty-two characters, shared' }
  const a = await startAskingBackend('a')
  const names = { aggregation: bareNames('a') }
  const [orders, replica, billing, staging] = await Promise.all([
    startTestVmcp({ a: a.url }, { ...names, name: 'orders' }, { env }),
    startTestVmcp({ a: a.url }, { ...names, name: 'orders' }, { env }),
    startTestVmcp({ a: a.url }, { ...names, name: 'billing' }, { env }),
    startTestVmcp({ a: a.url }, { ...names, name: 'orders', groupRef: 'staging' }, { env }),
  ])
  t.teardown(() => Promise.all([orders, replica, billing, staging, a].map((one) => one.close())))
  for (const other of [billing, staging])
    t.match((await finish(other.url, await ask(orders.url))).response?.error, invalid)
  const { response } = await finish(replica.url, await ask(orders.url))
  t.match(response?.result, { content: [{ text: /^a got/ }] }, 'a replica accepts it')
})

t.test('a backend gets its state back unchanged', async (t) => {
  const odd = 'é " \\ \u0000 \ud800 𝄞'
  const a = await startAskingBackend('a', { state: () => odd })
  const vmcp = await startTestVmcp({ a: a.url }, { aggregation: bareNames('a') })
  t.teardown(() => Promise.all([vmcp.close(), a.close()]))
  await finish(vmcp.url, await ask(vmcp.url))
  t.equal(a.calls.at(-1)?.['requestState'], odd)
})

t.test('a state over the limit is rejected at once, and one at the limit comes back', async (t) => {
  // Two of the bytes are the quotation marks of the JSON string.
  const limit = 192 * 1024
  let size = limit - 2
  const a = await startAskingBackend('a', { state: () => 'x'.repeat(size) })
  const vmcp = await startTestVmcp({ a: a.url }, { aggregation: bareNames('a') })
  t.teardown(() => Promise.all([vmcp.close(), a.close()]))
  const { response } = await finish(vmcp.url, await ask(vmcp.url))
  t.match(response?.result, { content: [{ text: /^a got/ }] })
  size++
  const refused = await stateless(vmcp.url, 'tools/call', call, { capabilities })
  t.match(refused.response?.result, {
    isError: true,
    content: [{ text: /backend a: requestState is larger than 196608 bytes/ }],
  })
})
