/**
 * Questions from backends across eras: their ids, and their end when the request ends or the backend withdraws them.
 */
import t from 'tap'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { openSession, stateless } from '../../../helpers/mcp/wire.ts'
import { startRawBackend, textResult } from '../../../helpers/mcp/raw-backend.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

t.setTimeout(180_000)

const ABLE = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }

t.test('URL questions have an id in sessions, and none in the stateless era', async (t) => {
  const modern = await startFixture({ era: 'stateless' })
  const legacy = await startFixture({ era: 'session' })
  const vmcp = await startTestVmcp({ modern: modern.url, legacy: legacy.url })
  t.teardown(() => Promise.all([vmcp.close(), modern.close(), legacy.close()]))
  const session = await openSession(vmcp.url, { capabilities: ABLE })
  const stream = await session.open('tools/call', { name: 'modern_test_elicitation_url' })
  const question = await stream.next(({ method }) => method === 'elicitation/create')
  t.match(question.params, {
    mode: 'url',
    url: 'https://example.com/sign-in',
    elicitationId: /^[0-9a-f-]{36}$/,
  })
  await session.response(question.id, { action: 'accept' })
  t.match((await stream.next()).result, { content: [{ text: 'action=accept' }] })

  const asked = await stateless(
    vmcp.url,
    'tools/call',
    { name: 'legacy_test_elicitation_url', arguments: {} },
    { capabilities: ABLE },
  )
  t.match(asked.response?.result, { inputRequests: { 'ask-1': { params: { mode: 'url' } } } })
  t.notMatch(asked.text, 'elicitationId')
})

t.test('a question ends with its request: the client is notified, and the slot is free again', async (t) => {
  let asked = 0
  const backend = await startRawBackend({
    responses: {
      'tools/call': ({ res, id }) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        const question = `{"jsonrpc":"2.0","id":"q${asked++}","method":"elicitation/create","params":{"message":"?"}}`
        res.end(
          `data: ${question}\n\ndata: {"jsonrpc":"2.0","id":${id},"result":${textResult('gave up')}}\n\n`,
        )
        return undefined
      },
    },
    before: (_req, res, body) => {
      if (!body.includes('"id":"q')) return false
      res.writeHead(202).end()
      t.fail(`a response that nobody waits for: ${body}`)
      return true
    },
  })
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url, { capabilities: ABLE })
  for (let i = 0; i < 70; i++) {
    const { messages } = await session.request('tools/call', { name: 'raw_echo' })
    const [question, withdrawal, result] = messages
    if (i > 0 && i < 69) continue
    t.equal(question?.method, 'elicitation/create')
    t.match(withdrawal, { method: 'notifications/cancelled', params: { requestId: question?.id } })
    t.match(result?.result, { content: [{ text: 'gave up' }] })
  }
})

t.test('a question that the backend withdraws is withdrawn from the client', async (t) => {
  let release: (() => void) | undefined
  const backend = await startRawBackend({
    responses: {
      'tools/call': ({ res, id }) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        res.write(
          'data: {"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"?"}}\n\n',
        )
        release = () => {
          const cancelled =
            '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q1","reason":"late"}}'
          res.write(`data: ${cancelled}\n\n`)
          res.end(`data: {"jsonrpc":"2.0","id":${id},"result":${textResult('moved on')}}\n\n`)
        }
        return undefined
      },
    },
  })
  const vmcp = await startTestVmcp({ raw: backend.url })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url, { capabilities: ABLE })
  const stream = await session.open('tools/call', { name: 'raw_echo' })
  const question = await stream.next(({ method }) => method === 'elicitation/create')
  release?.()
  t.match(await stream.next(), { method: 'notifications/cancelled', params: { requestId: question.id } })
  t.match((await stream.next()).result, { content: [{ text: 'moved on' }] })
})
