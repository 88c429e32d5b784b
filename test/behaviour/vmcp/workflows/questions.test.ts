/** Workflows that ask the user: over the open stream of the call, and as input_required without sessions. */
import t, { type Test } from 'tap'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { type ClientKind, connect } from '../../../helpers/mcp/clients.ts'
import { openSession, stateless } from '../../../helpers/mcp/wire.ts'
import { proves } from '../../../helpers/proves.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

const confirm = {
  name: 'confirm',
  steps: [
    { id: 'look', tool: 'fixture.echo', arguments: { what: '{{.params.what}}' } },
    {
      id: 'ask',
      type: 'elicitation',
      dependsOn: ['look'],
      message: 'Delete {{.params.what}}?',
      schema: {
        type: 'object',
        properties: { name: { type: 'string' }, ok: { type: 'boolean' } },
        required: ['ok'],
      },
      onDecline: { action: 'skip_remaining' },
      onCancel: { action: 'abort' },
    },
    {
      id: 'delete',
      tool: 'fixture.echo',
      dependsOn: ['ask'],
      arguments: { by: '{{.steps.ask.output.content.name}}', sure: '{{.steps.ask.output.content.ok}}' },
      defaultResults: { text: 'nothing was deleted' },
    },
  ],
  output: { properties: { did: { type: 'string', value: '{{.steps.delete.output.text}}' } } },
}

async function start(t: Test) {
  const fixture = await startFixture()
  const vmcp = await startTestVmcp({ fixture: fixture.url }, { compositeTools: [confirm] })
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  return vmcp.url
}
const CALL = { name: 'confirm', arguments: { what: 'everything' } }

t.test('the user is asked with every kind of client', async (t) => {
  proves('3.config.compositeTools.steps.message', '3.config.compositeTools.steps.schema')
  const url = await start(t)
  for (const kind of ['sdk1', 'sdk2-session', 'sdk2-stateless'] satisfies ClientKind[]) {
    const client = await connect(kind, url)
    t.teardown(() => client.close())
    const result = await client.call('confirm', { what: 'everything' })
    t.strictSame(result['structuredContent'], { did: '{"by":"ada","sure":true}' }, kind)
    t.strictSame(client.asked, ['elicitation/create'])
  }
})

t.test(
  'session era: the question arrives on the stream of the call, and no other stream is needed',
  async (t) => {
    proves('3.config.compositeTools.steps.onDecline', '3.config.compositeTools.steps.onCancel')
    const session = await openSession(await start(t), { capabilities: { elicitation: {} } })
    const ask = async (response: object) => {
      const call = await session.open('tools/call', CALL)
      t.teardown(() => call.close())
      const question = await call.next(({ method }) => method === 'elicitation/create')
      t.match(question.params, { message: 'Delete everything?', requestedSchema: { required: ['ok'] } })
      await session.response(question.id, response)
      return (await call.next(({ result }) => result !== undefined)).result
    }
    t.match(await ask({ action: 'accept', content: { name: 'Eve', ok: true } }), {
      structuredContent: { did: '{"by":"Eve","sure":true}' },
    })
    t.match(await ask({ action: 'decline' }), { structuredContent: { did: 'nothing was deleted' } })
    t.match(await ask({ action: 'cancel' }), {
      isError: true,
      content: [
        {
          text: /step "ask": elicitation request was cancelled by the user \(steps: look completed, ask failed, delete not started\)/,
        },
      ],
    })
    t.match(await ask({ action: 'accept', content: { ok: 'maybe' } }), {
      isError: true,
      content: [{ text: /the response does not match the schema: \/ok must be boolean/ }],
    })
  },
)

t.test('stateless era: the question ends the request, and the response continues the workflow', async (t) => {
  const url = await start(t)
  const options = { capabilities: { elicitation: {} } }
  const asked = await stateless(url, 'tools/call', CALL, options)
  const result = asked.response?.result as {
    resultType: string
    inputRequests: Record<string, unknown>
    requestState: string
  }
  t.match(result, { resultType: 'input_required' })
  const [[key, question] = []] = Object.entries(result.inputRequests)
  t.match(question, { method: 'elicitation/create', params: { message: 'Delete everything?' } })
  const inputResponses = { [key ?? '']: { action: 'accept', content: { ok: true, name: 'Ada' } } }
  const done = await stateless(
    url,
    'tools/call',
    { ...CALL, inputResponses, requestState: result.requestState },
    options,
  )
  t.match(done.response?.result, {
    resultType: 'complete',
    structuredContent: { did: '{"by":"Ada","sure":true}' },
  })
})

t.test('a client that cannot be prompted gets an error at once', async (t) => {
  const url = await start(t)
  const session = await openSession(url)
  const { response } = await session.request('tools/call', CALL)
  t.match(response?.result, {
    isError: true,
    content: [
      {
        text: /step "ask": elicitation request failed: the client has not declared the capability elicitation/,
      },
    ],
  })
  const plain = await stateless(url, 'tools/call', CALL)
  t.match(plain.response?.error, { code: -32021 }, 'the stateless era has its own error for that')
})
