/** Guardrails on arguments: what a backend receives on every call path, user answers, and recorded data. */
import t from 'tap'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { eras } from '../../helpers/decisions/decision-rig.ts'
import { startGuardrailRig } from '../../helpers/vmcp/guardrails/rig.ts'

const email = 'ada@example.com'
const number = 'EMP-123456'
const mail = { name: 'mail', patterns: ['email'], direction: 'arguments' }
const staff = { name: 'staff', expressions: ['EMP-[0-9]{6}'], direction: 'both', action: 'refuse' }

const workflow = {
  name: 'flow',
  description: 'Echoes',
  parameters: { type: 'object', properties: { text: { type: 'string' } } },
  steps: [{ id: 'one', type: 'tool', tool: 'echo', arguments: { text: '{{.params.text}}' } }],
}

for (const era of eras) {
  t.test(`${era} era: backends get masked arguments on every call path`, async (t) => {
    const fixture = await startFixture({ era: 'both' })
    t.teardown(() => fixture.close())
    const rig = await startGuardrailRig(
      t,
      { fixture: fixture.url },
      { redact: [mail, staff] },
      { optimizer: {}, codeMode: { enabled: true }, compositeTools: [workflow] },
    )
    const ask = await rig.as(era)
    const call = (name: string, args: unknown) => ask('tools/call', { name, arguments: args })
    const found = (tool_name: string, parameters: unknown) => call('call_tool', { tool_name, parameters })
    const script = (text: string) =>
      call('call_tool', {
        tool_name: 'execute_tool_script',
        parameters: { script: `return echo(text="${text}")` },
      })
    const ways = {
      search: (text: string) => found('echo', { text }),
      workflow: (text: string) => found('flow', { text }),
      script,
    }
    for (const [way, echo] of Object.entries(ways)) {
      const { text } = await echo(`to ${email}`)
      t.match(text, 'to [redacted:mail]', way)
      t.notMatch(text, email, way)
      t.match((await echo(number)).text, 'call rejected by guardrail staff', way)
    }
    const recorded = await rig.auditTextWith('[redacted:mail]')
    t.notMatch(recorded, email, 'the match is not recorded')
    t.notMatch(recorded, number)
    t.notMatch(rig.log(), number)
  })

  t.test(`${era} era: matches in member names and in the call's target are rejected`, async (t) => {
    const fixture = await startFixture({ era: 'both' })
    t.teardown(() => fixture.close())
    const rig = await startGuardrailRig(t, { fixture: fixture.url }, { redact: [mail] })
    const ask = await rig.as(era)
    const keyed = await ask('tools/call', { name: 'echo', arguments: { [email]: 1 } })
    t.match(keyed.response?.result, { isError: true, content: [{ text: 'call rejected by guardrail mail' }] })
    const read = await ask('resources/read', { uri: `test://template/${email}/data` })
    t.match(read.response?.error, { code: 403, message: 'call rejected by guardrail mail' })
    await ask('ping')
    const lines = await rig.audited(2)
    t.match(
      lines.find(({ outcome }) => outcome === 'denied'),
      {
        outcome: 'denied',
        metadata: { extra: { denial_reason: 'guardrail_refused' } },
      },
    )
  })
}

t.test('arguments in headers are masked like the arguments', async (t) => {
  const fixture = await startFixture({ era: 'stateless' })
  t.teardown(() => fixture.close())
  const rig = await startGuardrailRig(t, { fixture: fixture.url }, { redact: [mail] })
  const ask = await rig.as('session')
  const { response } = await ask('tools/call', { name: 'test_mirrored_header', arguments: { region: email } })
  t.match(response?.result, { content: [{ text: 'ok' }] })
  t.notMatch(JSON.stringify(fixture.state.requests), email)
})

t.test('masked arguments are checked against the approved schema', async (t) => {
  const backend = await startRawBackend({})
  t.teardown(() => backend.close())
  const rig = await startGuardrailRig(t, { raw: backend.url }, { redact: [mail] })
  const ask = await rig.as('stateless')
  await ask('tools/call', {
    name: 'echo',
    arguments: { a: [1.0e3, email], b: { c: 12345678901234567890n.toString() } },
  })
  const { body = '' } = backend.requests.find(({ method }) => method === 'tools/call') ?? {}
  t.match(body, '"[redacted:mail]"')
  t.notMatch(body, email)
})
