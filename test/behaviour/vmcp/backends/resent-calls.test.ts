/**
 * A call whose session was lost is only repeated if the backend has not executed it, or if repeating it is harmless.
 */
import t from 'tap'
import { type RawBackend, startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { openSession, stateless } from '../../../helpers/mcp/wire.ts'
import { bridgeTo, program } from '../../proxy/stdio/bridge/rig.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

function tool(name: string, annotations: Record<string, boolean> = {}): string {
  return JSON.stringify({ name, inputSchema: { type: 'object' }, annotations })
}

const tools = [
  tool('plain'),
  tool('destructive', { destructiveHint: true, readOnlyHint: false, idempotentHint: false }),
  tool('reading', { readOnlyHint: true }),
  tool('idempotent', { idempotentHint: true }),
]
const isSafe = (name: string): boolean => name === 'reading' || name === 'idempotent'

/** A backend that executes calls, and then sends the configured response. */
async function startBackend(refuse: (id: string) => { status: number; body: string }) {
  const executed: string[] = []
  let refuses = false
  const backend: RawBackend = await startRawBackend({
    tools: () => tools,
    responses: {
      'tools/call'({ params, res, id }) {
        executed.push(String(params['name']))
        if (!refuses) return '{"content":[{"type":"text","text":"done"}]}'
        refuses = false
        const { status, body } = refuse(id)
        res.writeHead(status, { 'content-type': 'application/json' }).end(body)
        return undefined
      },
    },
  })
  return {
    backend,
    executed,
    refuseNext: () => {
      refuses = true
    },
  }
}

const error = (id: string): string =>
  `{"jsonrpc":"2.0","id":${id},"error":{"code":-32001,"message":"Session not found"}}`

for (const status of [404, 410])
  t.test(`resend: HTTP ${status} with a response to the call itself`, async (t) => {
    const { backend, executed, refuseNext } = await startBackend((id) => ({ status, body: error(id) }))
    const vmcp = await startTestVmcp({ raw: backend.url })
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const session = await openSession(vmcp.url)
    const callAs = {
      session: (name: string) => session.request('tools/call', { name: `raw_${name}` }),
      stateless: (name: string) => stateless(vmcp.url, 'tools/call', { name: `raw_${name}` }),
    }
    for (const [era, call] of Object.entries(callAs))
      for (const name of ['plain', 'destructive', 'reading', 'idempotent']) {
        await call(name)
        executed.length = 0
        refuseNext()
        const { response } = await call(name)
        t.equal(executed.length, isSafe(name) ? 2 : 1, `${era} ${name}: executed`)
        if (isSafe(name)) t.match(response?.result, { content: [{ text: 'done' }] })
        else t.match(response?.error, { message: 'Session not found' })
        const opened = backend.requests.filter(({ method }) => method === 'initialize').length
        t.match((await call(name)).response?.result, { content: [{ text: 'done' }] })
        if (!isSafe(name) && era === 'session')
          t.equal(
            backend.requests.filter(({ method }) => method === 'initialize').length,
            opened + 1,
            'the next call opens another session',
          )
      }
  })

for (const [what, body] of Object.entries({
  'no body': '',
  'an error without id': '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}',
  'the id of another request': error('"another"'),
  text: 'session not found',
}))
  t.test(`resend: HTTP 404 with ${what}`, async (t) => {
    const { backend, executed, refuseNext } = await startBackend(() => ({ status: 404, body }))
    const vmcp = await startTestVmcp({ raw: backend.url })
    t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
    const session = await openSession(vmcp.url)
    await session.request('tools/call', { name: 'raw_plain' })
    executed.length = 0
    refuseNext()
    const { response } = await session.request('tools/call', { name: 'raw_plain' })
    t.match(response?.result, { content: [{ text: 'done' }] })
    t.equal(executed.length, 2)
  })

t.test('resend: a Gatehouse proxy marks responses about unknown sessions', async (t) => {
  const first = await bridgeTo(t, [program, 'session'])
  const vmcp = await startTestVmcp({ stdio: first.url })
  t.teardown(() => vmcp.close())
  const session = await openSession(vmcp.url)
  const call = () => session.request('tools/call', { name: 'stdio_test_simple_text' })
  const done = { content: [{ type: 'text' }] }
  t.match((await call()).response?.result, done)
  await first.close()
  await bridgeTo(t, [program, 'session'], { port: Number(new URL(first.url).port) })
  t.match((await call()).response?.result, done)
})
