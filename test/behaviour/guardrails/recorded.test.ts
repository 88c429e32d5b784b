/** Matched text appears in no record of a call (audit log, console, spans), whatever its outcome and position. */
import t from 'tap'
import { CallRecorder } from '../../../runtime/console/calls/recorder.ts'
import { makeEvents } from '../../../runtime/observe/index.ts'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { startRawBackend, textResult } from '../../helpers/mcp/raw-backend.ts'
import { until } from '../../helpers/redis.ts'
import { openSession, stateless } from '../../helpers/mcp/wire.ts'
import { eras } from '../../helpers/decisions/decision-rig.ts'
import { startGuardrailRig } from '../../helpers/vmcp/guardrails/rig.ts'

const email = 'ada@example.com'
const number = 'EMP-123456'
const mail = { name: 'mail', patterns: ['email'], direction: 'both' }
const staff = { name: 'staff', expressions: ['EMP-[0-9]{6}'], direction: 'arguments', action: 'observe' }
const card = 4_111_111_111_111_111

/** Returns the positions of a text, with the text before each. */
const around = (log: string, found: string) =>
  log
    .split(found)
    .slice(0, -1)
    .map((before) => before.slice(-120))

const workflow = {
  name: 'flow',
  description: 'Echoes',
  parameters: { type: 'object', properties: { text: { type: 'string' } } },
  steps: [{ id: 'one', type: 'tool', tool: 'echo', arguments: { text: '{{.params.text}}' } }],
}

for (const era of eras) {
  t.test(`${era} era: successful calls, failed calls and calls without a check`, async (t) => {
    const fixture = await startFixture({ era: 'both' })
    t.teardown(() => fixture.close())
    const cards = { name: 'cards', patterns: ['paymentCard'], match: { backends: ['fixture'] } }
    const rig = await startGuardrailRig(
      t,
      { fixture: fixture.url },
      { redact: [{ ...mail, match: { backends: ['fixture'] } }, staff, cards] },
      {
        compositeTools: [workflow],
        incomingAuth: {
          type: 'anonymous',
          authz: {
            type: 'cedar',
            policies: [
              'permit(principal, action, resource);',
              'forbid(principal, action, resource) when { context has arg_deny && context.arg_deny == "yes" };',
            ],
          },
        },
      },
    )
    const ask = await rig.as(era)
    const call = (name: string, args: unknown) => ask('tools/call', { name, arguments: args })
    await call('echo', { text: `${email} ${number}`, [email]: card })
    await call('echo', { text: `${email} ${number}`, inner: JSON.stringify({ to: `x\n${email}` }), card })
    await call('flow', { text: `to ${email} ${number}` })
    await call('echo', { text: `${email} ${number}`, deny: 'yes' })
    await call('nothing', { text: `${email} ${number}` })
    await ask('resources/read', { uri: `test://template/${email}/data` })
    await ask('prompts/get', { name: email })
    if (era === 'session') await ask('ping')
    const recorded = await rig.auditTextWith(
      '[redacted:mail] [redacted:staff]',
      '[redacted:cards]',
      '"vmcp_workflow_started"',
      '"vmcp_workflow_completed"',
      '"inputs":',
      '"mcp_resource_read"',
      '"mcp_prompt_get"',
    )
    for (const found of [email, number, String(card)]) t.same(around(recorded, found), [])
    for (const found of [email, number, String(card)]) t.same(around(rig.log(), found), [])
  })
}

t.test("a user's answer is not recorded with the message that carries it", async (t) => {
  const waiting: (() => void)[] = []
  const backend = await startRawBackend({
    before: (_req, res, body) => {
      if (!body.includes('"id":"ask-1"') || !body.includes('"result"')) return false
      res.writeHead(202).end()
      waiting.pop()?.()
      return true
    },
    responses: {
      'tools/call': ({ id, res }) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        waiting.push(() => res.end(`data: {"jsonrpc":"2.0","id":${id},"result":${textResult('done')}}\n\n`))
        const params = {
          message: 'who?',
          requestedSchema: { type: 'object', properties: { a: { type: 'string' } } },
        }
        const asked = { jsonrpc: '2.0', id: 'ask-1', method: 'elicitation/create', params }
        res.write(`data: ${JSON.stringify(asked)}\n\n`)
        return undefined
      },
    },
  })
  t.teardown(() => backend.close())
  const rig = await startGuardrailRig(t, { raw: backend.url }, { redact: [mail] })
  const capabilities = { elicitation: {} }
  const session = await openSession(rig.vmcp.url, { capabilities })
  const stream = await session.open('tools/call', { name: 'echo', arguments: {} })
  const question = await stream.next()
  await session.response(question?.id, { action: 'accept', content: { a: email } })
  t.match(await stream.next(), { result: { content: [{ text: 'done' }] } })
  const params = { name: 'echo', arguments: {} }
  const asked = await stateless(rig.vmcp.url, 'tools/call', params, { capabilities })
  const { requestState, inputRequests = {} } = asked.response?.result ?? {}
  const [key = ''] = Object.keys(inputRequests as object)
  const inputResponses = { [key]: { action: 'accept', content: { a: email } } }
  const again = { ...params, requestState, inputResponses }
  t.match((await stateless(rig.vmcp.url, 'tools/call', again, { capabilities })).text, 'done')
  await session.request('ping')
  const answered = '"content":{"a":"[redacted:mail]"}'
  await until(async () => (await rig.auditTextWith(answered)).split(answered).length > 2)
  t.same(around(await rig.auditTextWith(), email), [])
})

t.test('the console records neither matching arguments nor matching results', async (t) => {
  const fixture = await startFixture({ era: 'both' })
  t.teardown(() => fixture.close())
  const recorder = new CallRecorder({ events: makeEvents(), payloads: 'all' })
  const rig = await startGuardrailRig(
    t,
    { fixture: fixture.url },
    { redact: [mail, staff] },
    {},
    { recorder },
  )
  const ask = await rig.as('stateless')
  await ask('tools/call', { name: 'echo', arguments: { text: `${email} ${number}`, card } })
  await ask('resources/read', { uri: `test://template/${email}/data` })
  await ask('ping')
  const entries = () => [...recorder.all.before(Number.MAX_SAFE_INTEGER)]
  await until(() => entries().length === 2)
  const kept = entries().map(({ seq, call }) => ({ call, payload: recorder.payloads.find(seq) }))
  t.match(JSON.stringify(kept), '[redacted:mail]')
  t.notMatch(JSON.stringify(kept), email)
  t.notMatch(JSON.stringify(kept), number)
})
