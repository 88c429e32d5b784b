/** Guardrails on the messages before a call's result: progress, log messages, elicitation and its response. */
import t from 'tap'
import { startRawBackend, textResult } from '../../helpers/mcp/raw-backend.ts'
import { openSession } from '../../helpers/mcp/wire.ts'
import { startGuardrailRig } from '../../helpers/vmcp/guardrails/rig.ts'

const email = 'ada@example.com'
const key = `ghp_${'a1B2'.repeat(9)}`
const redact = [
  { name: 'mail', patterns: ['email'], direction: 'both' },
  { name: 'secrets', patterns: ['apiKey'], action: 'refuse' },
]

const event = (message: unknown) => `data: ${JSON.stringify({ jsonrpc: '2.0', ...(message as object) })}\n\n`
const note = (method: string, params: unknown) => event({ method: `notifications/${method}`, params })

t.test(
  'progress and log messages are masked in order before the result, and rejected ones are left out',
  async (t) => {
    const large = `${'x'.repeat(600_000)} ${email}`
    const backend = await startRawBackend({
      capabilities: '{"tools":{},"logging":{}}',
      responses: {
        'logging/setLevel': () => '{}',
        'tools/call': ({ id, params, res }) => {
          const { progressToken } = params['_meta'] as { progressToken: unknown }
          res.writeHead(200, { 'content-type': 'text/event-stream' })
          res.write(note('progress', { progressToken, progress: 1, message: `one ${email}` }))
          res.write(note('progress', { progressToken, progress: 2, message: large }))
          res.write(note('progress', { progressToken, progress: 3, message: key }))
          res.write(note('message', { level: 'error', data: { to: email } }))
          res.write(note('progress', { progressToken, progress: 4, message: 'four' }))
          res.end(`data: {"jsonrpc":"2.0","id":${id},"result":${textResult('done')}}\n\n`)
          return undefined
        },
      },
    })
    t.teardown(() => backend.close())
    const rig = await startGuardrailRig(t, { raw: backend.url }, { redact })
    const session = await openSession(rig.vmcp.url)
    await session.request('logging/setLevel', { level: 'debug' })
    const { messages, text } = await session.request('tools/call', {
      name: 'echo',
      _meta: { progressToken: email },
    })
    const shown = messages.map(({ method, params, result }) => ({
      method,
      progress: params?.['progress'],
      message: (params?.['message'] as string | undefined)?.slice(-20),
      result: result !== undefined,
    }))
    t.match(shown, [
      { progress: 1, message: 'one [redacted:mail]' },
      { progress: 2, message: /\[redacted:mail\]$/ },
      { method: 'notifications/message' },
      { progress: 4, message: 'four' },
      { result: true },
    ])
    t.equal(shown.length, 5)
    t.notMatch(text, key)
    t.notMatch(
      text.replaceAll(`"progressToken":"${email}"`, ''),
      email,
      'the client’s progress token is kept',
    )
    await session.request('ping')
    t.match((await rig.audited(1))[0]?.guardrails, [
      { rule: 'mail', outcome: 'masked', count: 3 },
      { rule: 'secrets', outcome: 'refused', count: 1 },
    ])
  },
)

t.test('elicitation: the message is masked for the client, its response for the backend', async (t) => {
  const heard: string[] = []
  const waiting = new Map<string, () => void>()
  const backend = await startRawBackend({
    before: (_req, res, body) => {
      if (!body.includes('"id":"ask-1"') || !/"result"|"error"/.test(body)) return false
      heard.push(body)
      res.writeHead(202).end()
      waiting.get('ask-1')?.()
      return true
    },
    responses: {
      'tools/call': ({ id, params, res }) => {
        const { message } = params['arguments'] as { message: string }
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        waiting.set('ask-1', () => {
          res.end(`data: {"jsonrpc":"2.0","id":${id},"result":${textResult('done')}}\n\n`)
        })
        const requestedSchema = { type: 'object', properties: { a: { type: 'string' } } }
        const asked = message === 'key' ? `give ${key}` : `write to ada@${message}.com`
        res.write(
          event({ id: 'ask-1', method: 'elicitation/create', params: { message: asked, requestedSchema } }),
        )
        return undefined
      },
    },
  })
  t.teardown(() => backend.close())
  const rig = await startGuardrailRig(t, { raw: backend.url }, { redact })
  const session = await openSession(rig.vmcp.url, { capabilities: { elicitation: {} } })
  const call = (message: string) => session.open('tools/call', { name: 'echo', arguments: { message } })
  const stream = await call('example')
  const question = await stream.next()
  t.match(question, { method: 'elicitation/create', params: { message: 'write to [redacted:mail]' } })
  await session.response(question?.id, { action: 'accept', content: { a: email } })
  t.match(await stream.next(), { result: { content: [{ text: 'done' }] } })
  t.match(heard[0], '"content":{"a":"[redacted:mail]"}')
  const { messages } = await session.request('tools/call', { name: 'echo', arguments: { message: 'key' } })
  t.match(messages, [{ result: { content: [{ text: 'done' }] } }])
  t.equal(messages.length, 1, 'the client was not asked')
  t.match(heard[1], '"error"', 'the backend gets an error for its question')
  t.notMatch(heard.join(''), email)
})
