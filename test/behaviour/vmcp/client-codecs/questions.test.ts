/**
 * The most complex combination: a stateless client, and a session-era backend that asks a question during a call. The
 * call is parked and continues with the client's answers. Also covers the binding of the state that the client carries.
 */
import { once } from 'node:events'
import t from 'tap'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { stateless, type WireAnswer } from '../../../helpers/mcp/wire.ts'
import { startTokenIssuer } from '../../../helpers/authserver/token-issuer.ts'
import { bareNames, startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

const ABLE = { elicitation: {}, sampling: {}, roots: {} }
const CALL = { name: 'test_elicitation', arguments: { message: 'who?' } }
const ACCEPTED = { action: 'accept', content: { username: 'ada', email: 'ada@example.com' } }

async function start(
  t: { teardown(work: () => unknown): void },
  era: 'session' | 'stateless' = 'session',
  more: Record<string, unknown> = {},
) {
  const fixture = await startFixture({ era })
  const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture'), ...more })
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  return { fixture, vmcp }
}

/** The client's retry: the responses by key, and the state. */
function retry(response: WireAnswer, reply: unknown): Record<string, unknown> {
  const result = response.response?.result as {
    inputRequests: Record<string, unknown>
    requestState?: string
  }
  return {
    inputResponses: Object.fromEntries(Object.keys(result.inputRequests).map((key) => [key, reply])),
    ...(result.requestState === undefined ? {} : { requestState: result.requestState }),
  }
}

t.test(
  'a question from a session backend becomes input_required, and the responses complete the call',
  async (t) => {
    const { vmcp } = await start(t)
    const asked = await stateless(vmcp.url, 'tools/call', CALL, { capabilities: ABLE })
    t.equal(asked.status, 200)
    t.match(asked.response?.result, {
      resultType: 'input_required',
      inputRequests: {
        'ask-1': {
          method: 'elicitation/create',
          params: { message: 'who?', requestedSchema: { type: 'object' } },
        },
      },
      requestState: String,
    })
    t.notMatch(asked.text, /who\?.*who\?/, 'the state reveals nothing')
    const done = await stateless(
      vmcp.url,
      'tools/call',
      { ...CALL, ...retry(asked, ACCEPTED) },
      { capabilities: ABLE },
    )
    t.match(done.response?.result, { resultType: 'complete', content: [{ text: /ada@example.com/ }] })
  },
)

t.test('consecutive questions: each round has a new state', async (t) => {
  const { vmcp } = await start(t)
  const call = { name: 'test_two_questions', arguments: {} }
  const first = await stateless(vmcp.url, 'tools/call', call, { capabilities: ABLE })
  const second = await stateless(
    vmcp.url,
    'tools/call',
    { ...call, ...retry(first, ACCEPTED) },
    { capabilities: ABLE },
  )
  t.equal(second.response?.result?.['resultType'], 'input_required')
  t.not(second.response?.result?.['requestState'], first.response?.result?.['requestState'])
  const done = await stateless(
    vmcp.url,
    'tools/call',
    { ...call, ...retry(second, ACCEPTED) },
    { capabilities: ABLE },
  )
  t.equal(done.response?.result?.['resultType'], 'complete')
  const again = await stateless(
    vmcp.url,
    'tools/call',
    { ...call, ...retry(second, ACCEPTED) },
    { capabilities: ABLE },
  )
  t.match(again, { status: 400, response: { error: { code: -32602 } } }, 'responses are accepted once')
})

t.test('responses that do not match the question cause the same question again', async (t) => {
  const { vmcp } = await start(t)
  const asked = await stateless(vmcp.url, 'tools/call', CALL, { capabilities: ABLE })
  const { requestState } = retry(asked, ACCEPTED)
  const wrong = await stateless(
    vmcp.url,
    'tools/call',
    { ...CALL, requestState, inputResponses: { other: ACCEPTED } },
    { capabilities: ABLE },
  )
  t.match(wrong.response?.result, { resultType: 'input_required', inputRequests: { 'ask-1': {} } })
  const done = await stateless(
    vmcp.url,
    'tools/call',
    { ...CALL, ...retry(wrong, ACCEPTED) },
    { capabilities: ABLE },
  )
  t.equal(done.response?.result?.['resultType'], 'complete')
})

t.test('a client that did not declare the capability gets an error that names it', async (t) => {
  const { vmcp } = await start(t)
  const refused = await stateless(vmcp.url, 'tools/call', CALL, { capabilities: { sampling: {} } })
  t.match(refused, {
    status: 400,
    response: { error: { code: -32021, data: { requiredCapabilities: { elicitation: {} } } } },
  })
})

for (const era of ['session', 'stateless'] as const) {
  const call = era === 'session' ? CALL : { name: 'test_input_required_result_request_state', arguments: {} }
  const reply = era === 'session' ? ACCEPTED : { action: 'accept', content: { ok: true } }
  t.test(`state from a ${era} backend is valid only for its caller and its request`, async (t) => {
    const issuer = await startTokenIssuer()
    t.teardown(() => issuer.close())
    const { vmcp } = await start(t, era, { incomingAuth: issuer.incomingAuth })
    const as = async (who: string, params: Record<string, unknown>) =>
      stateless(vmcp.url, 'tools/call', params, {
        capabilities: ABLE,
        headers: { authorization: `Bearer ${await issuer.token(who)}` },
      })
    const asked = await as('ada', call)
    const responses = retry(asked, reply)
    const refusals = {
      'another caller': await as('eve', { ...call, ...responses }),
      'another tool': await as('ada', { ...call, ...responses, name: 'test_simple_text' }),
      'other arguments': await as('ada', { ...call, ...responses, arguments: { message: 'else' } }),
      'a changed state': await as('ada', {
        ...call,
        ...responses,
        requestState: `${String(responses['requestState'])}A`,
      }),
      'an invented state': await as('ada', { ...call, ...responses, requestState: 'AAAA' }),
    }
    for (const [what, response] of Object.entries(refusals)) {
      t.match(response, { status: 400, response: { error: { code: -32602 } } }, what)
    }
    const done = await as('ada', { ...call, ...responses })
    t.equal(done.response?.result?.['resultType'], 'complete')
  })
}

t.test('a call is cancelled when the client never returns for it', async (t) => {
  const fixture = await startFixture()
  const timers: { ms: number; work: () => void }[] = []
  const clock = {
    now: Date.now,
    after: (ms: number, work: () => void) => (timers.push({ ms, work }), () => {}),
  }
  const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation: bareNames('fixture') }, { clock })
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  const asked = await stateless(vmcp.url, 'tools/call', CALL, { capabilities: ABLE })
  t.equal(asked.response?.result?.['resultType'], 'input_required')
  for (const { ms, work } of timers) if (ms === 600_000) work()
  const late = await stateless(
    vmcp.url,
    'tools/call',
    { ...CALL, ...retry(asked, ACCEPTED) },
    { capabilities: ABLE },
  )
  t.match(late, { status: 400, response: { error: { code: -32602, message: /start a new request/ } } })
})

t.test('parked calls of one caller are bounded', async (t) => {
  const issuer = await startTokenIssuer()
  t.teardown(() => issuer.close())
  const { vmcp } = await start(t, 'session', { incomingAuth: issuer.incomingAuth })
  const headers = { authorization: `Bearer ${await issuer.token('ada')}` }
  const responses = await Promise.all(
    Array.from({ length: 101 }, () =>
      stateless(vmcp.url, 'tools/call', CALL, { capabilities: ABLE, headers }),
    ),
  )
  const codes = responses.map(({ response }) => response?.error?.code ?? response?.result?.['resultType'])
  t.equal(codes.filter((code) => code === 'input_required').length, 100)
  t.equal(codes.filter((code) => code === 429).length, 1)
})

t.test('disconnecting cancels a running call, but not a parked one', async (t) => {
  const { fixture, vmcp } = await start(t)
  const cancelled = once(fixture.state.events, 'cancelled')
  const asked = await stateless(vmcp.url, 'tools/call', CALL, { capabilities: ABLE })
  t.equal(asked.response?.result?.['resultType'], 'input_required')
  const done = await stateless(
    vmcp.url,
    'tools/call',
    { ...CALL, ...retry(asked, ACCEPTED) },
    { capabilities: ABLE },
  )
  t.equal(done.response?.result?.['resultType'], 'complete')
  const waiting = once(fixture.state.events, 'waiting')
  const abort = new AbortController()
  const request = fetch(vmcp.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'wait',
    },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}',
    signal: abort.signal,
  })
  await waiting
  abort.abort()
  await t.rejects(request)
  await cancelled
})
