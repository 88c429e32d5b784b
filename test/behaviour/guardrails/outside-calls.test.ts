/** Guardrails on messages of a backend outside of calls: log messages, updates, elicitation. */
import t, { type Test } from 'tap'
import { type RawBackend, startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { openSession } from '../../helpers/mcp/wire.ts'
import { startGuardrailRig } from '../../helpers/vmcp/guardrails/rig.ts'
import { until } from '../../helpers/redis.ts'

const email = 'ada@example.com'
const key = `ghp_${'a1B2'.repeat(9)}`
const redact = [
  { name: 'mail', patterns: ['email'], direction: 'both' },
  { name: 'secrets', patterns: ['apiKey'], action: 'refuse' },
  { name: 'of-one-tool', expressions: ['data'], match: { tools: ['echo'] } },
]

async function start(t: Test) {
  const responses: string[] = []
  const backend = await startRawBackend({
    capabilities: '{"tools":{},"logging":{},"resources":{"subscribe":true}}',
    before: (_req, res, body) => {
      if (!/"id":"ask-\d"/.test(body)) return false
      responses.push(body)
      res.writeHead(202).end()
      return true
    },
    responses: {
      'logging/setLevel': () => '{}',
      'resources/list': () => '{"resources":[{"uri":"test://r","name":"r"}]}',
      'resources/subscribe': () => '{}',
    },
  })
  t.teardown(() => backend.close())
  const rig = await startGuardrailRig(t, { raw: backend.url }, { redact })
  const session = await openSession(rig.vmcp.url, { capabilities: { elicitation: {} } })
  await session.request('logging/setLevel', { level: 'debug' })
  await session.request('tools/call', { name: 'echo', arguments: {} })
  const stream = await session.listen()
  await until(() => backend.streams.size > 0)
  return { backend, rig, session, stream, responses }
}

function say(backend: RawBackend, message: Record<string, unknown>): void {
  backend.push(JSON.stringify({ jsonrpc: '2.0', ...message }))
}

const logged = (data: unknown) => ({ method: 'notifications/message', params: { level: 'error', data } })

t.test(
  'log messages are masked or left out, in order, and rules for one tool do not apply to them',
  async (t) => {
    const { backend, rig, stream } = await start(t)
    say(backend, logged(`${'x'.repeat(400_000)} ${email}`))
    say(backend, logged(key))
    say(backend, logged({ who: email }))
    const first = await stream.next()
    t.match(first, { method: 'notifications/message', params: { data: /x \[redacted:mail\]$/ } })
    t.match(await stream.next(), { params: { data: { who: '[redacted:mail]' } } })
    t.match(
      await rig.metrics(),
      /gatehouse_guardrail_matches_total\{.*rule="secrets".*outcome="refused".*\} 1/,
    )
    t.notMatch(rig.log(), key)
    stream.close()
  },
)

t.test('questions and answers are masked, and a rejected question is not asked', async (t) => {
  const { backend, session, stream, responses } = await start(t)
  const requestedSchema = { type: 'object', properties: { a: { type: 'string' } } }
  const ask = (id: string, message: string) =>
    say(backend, { id, method: 'elicitation/create', params: { message, requestedSchema } })
  ask('ask-1', `are you ${email}?`)
  const asked = await stream.next()
  t.match(asked, { method: 'elicitation/create', params: { message: 'are you [redacted:mail]?' } })
  await session.response(asked.id, { action: 'accept', content: { a: email } })
  // Connections that read lists get each message too, but have no client to ask.
  const replies = (id: string) => responses.filter((body) => body.includes(`"id":"${id}"`))
  await until(() => replies('ask-1').some((body) => body.includes('"result"')))
  t.match(replies('ask-1').join(''), '"content":{"a":"[redacted:mail]"}')
  ask('ask-2', `is it ${key}?`)
  await until(() => replies('ask-2').length === backend.streams.size)
  for (const body of replies('ask-2')) t.match(body, '"error"')
  t.notMatch(responses.join(''), email)
  stream.close()
})

t.test(
  'updates: other members than the URI are masked, and an update whose URI matches is dropped',
  async (t) => {
    const { backend, session, stream } = await start(t)
    const updated = (uri: string, more: unknown) =>
      say(backend, { method: 'notifications/resources/updated', params: { uri, _meta: { more } } })
    await session.request('resources/subscribe', { uri: 'test://r' })
    updated('test://r', email)
    t.match(await stream.next(), { params: { uri: 'test://r', _meta: { more: '[redacted:mail]' } } })
    stream.close()
  },
)
