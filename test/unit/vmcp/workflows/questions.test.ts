/** Workflows: elicitation steps, and the effect of each response of the user. */
import t from 'tap'
import { GatehouseError } from '../../../../schemas/index.ts'
import { proves } from '../../../helpers/proves.ts'
import { reply, rig, settled, workflow } from '../../../helpers/vmcp/workflow-rig.ts'

const schema = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer' } },
  required: ['name'],
}
const ask = (more: object = {}) => ({
  id: 'ask',
  type: 'elicitation',
  message: 'Who is {{.params.who}}?',
  schema,
  ...more,
})
const use = { id: 'use', tool: 'x.b', dependsOn: ['ask'], arguments: { got: '{{json .steps.ask.output}}' } }
const waits = (_: unknown, signal: AbortSignal | undefined) =>
  new Promise<never>((_resolve, reject) =>
    signal?.addEventListener('abort', () => reject(new Error('withdrawn'))),
  )

t.test(
  'elicitation: the message is a template, the schema is sent unchanged, the response is the output',
  async (t) => {
    proves('3.config.compositeTools.steps.message', '3.config.compositeTools.steps.schema')
    const r = await rig(workflow({ steps: [ask(), use] }), {
      ask: () => reply({ action: 'accept', content: { name: 'Ada', age: 36 } }),
    })
    t.strictSame((await r.run({ who: 'she' })).structured, {
      got: '{"action":"accept","content":{"age":36,"name":"Ada"}}',
    })
    t.strictSame(r.questions, [{ message: 'Who is she?', requestedSchema: schema }])
  },
)

t.test('elicitation: a response may be nested at most ten levels deep', async (t) => {
  const nested = (depth: number): unknown => (depth === 0 ? 'x' : { a: nested(depth - 1) })
  const run = async (depth: number) => {
    const r = await rig(workflow({ steps: [ask({ schema: { type: 'object' } }), use] }), {
      ask: () => reply({ action: 'accept', content: nested(depth) }),
    })
    return r.run()
  }
  t.notOk((await run(10)).isError)
  t.match(await run(11), { isError: true, text: /the response is nested more than 10 levels deep/ })
})

t.test("elicitation: decline and cancel follow the step's settings", async (t) => {
  proves('3.config.compositeTools.steps.onDecline', '3.config.compositeTools.steps.onCancel')
  for (const [action, key, said] of [
    ['decline', 'onDecline', 'declined'],
    ['cancel', 'onCancel', 'cancelled'],
  ] as const) {
    const response = { ask: () => reply({ action }) }
    for (const more of [{}, { [key]: {} }, { [key]: { action: 'abort' } }]) {
      const r = await rig(workflow({ steps: [ask(more), use] }), response)
      t.match(await r.run(), {
        isError: true,
        text: new RegExp(`step "ask": elicitation request was ${said} by the user`),
      })
      t.equal(r.calls.length, 0)
    }
    const on = await rig(workflow({ steps: [ask({ [key]: { action: 'continue' } }), use] }), response)
    t.strictSame((await on.run()).structured, { got: `{"action":"${action}"}` })
    const tolerated = await rig(
      workflow({
        steps: [ask({ onError: { action: 'continue' }, defaultResults: { action: 'none' } }), use],
      }),
      response,
    )
    t.strictSame((await tolerated.run()).structured, { got: '{"action":"none"}' })
  }
})

t.test('elicitation: skip_remaining skips every step that has not started', async (t) => {
  proves('3.config.compositeTools.steps.onDecline', '3.config.compositeTools.steps.onCancel')
  const steps = [
    ask({ onDecline: { action: 'skip_remaining' } }),
    { ...use, defaultResults: { got: 'nothing' } },
    { id: 'more', tool: 'x.a', dependsOn: ['use'] },
  ]
  const output = {
    properties: {
      s: {
        type: 'string',
        value:
          '{{.steps.ask.output.skipped}} {{.steps.use.status}} {{.steps.use.output.got}} {{.steps.more.status}}',
      },
    },
  }
  const r = await rig(workflow({ steps, output }), { ask: () => reply({ action: 'decline' }) })
  t.strictSame((await r.run({}, { progressToken: '1' })).structured, { s: 'true skipped nothing skipped' })
  t.equal(r.calls.length, 0)
  t.strictSame(
    r.progress.map(({ progress }) => progress),
    [1, 2, 3],
  )
  t.equal(r.audited.filter(({ type }) => type === 'vmcp_workflow_step_skipped').length, 2)
})

t.test('elicitation: without a response, the step times out', async (t) => {
  const plain = await rig(workflow({ steps: [ask({ timeout: '1h' }), use] }), { ask: waits })
  const end = plain.run()
  await settled()
  plain.advance(10 * 60_000 - 1)
  await settled()
  plain.advance(1)
  t.match(await end, { isError: true, text: /step "ask": elicitation request timed out after 10m/ })
  const on = await rig(
    workflow({ steps: [ask({ timeout: '30s', onCancel: { action: 'continue' } }), use] }),
    { ask: waits },
  )
  const next = on.run()
  await settled()
  on.advance(30_000)
  t.strictSame((await next).structured, { got: '{"action":"timeout"}' })
})

t.test('elicitation: invalid responses fail the step', async (t) => {
  const cases: [object | string, RegExp][] = [
    [
      { action: 'accept', content: { name: 5 } },
      /the response does not match the schema: \/name must be string/,
    ],
    [{ action: 'accept' }, /must have required property 'name'/],
    [{ action: 'accept', content: ['x'] }, /must have required property 'name'/],
    [{ action: 'later' }, /invalid elicitation response action/],
    [{}, /invalid elicitation response action/],
    [{ action: 'accept', content: { name: 'x'.repeat(1_100_000) } }, /response content too large/],
  ]
  for (const [response, why] of cases) {
    const r = await rig(workflow({ steps: [ask(), use] }), { ask: () => reply(response as object) })
    const { isError, text } = await r.run()
    t.ok(isError)
    t.match(text, why)
    t.ok(text.length < 500)
  }
  const error = await rig(workflow({ steps: [ask()] }), {
    ask: () => Promise.resolve({ error: Buffer.from('{"code":-1,"message":"no"}') }),
  })
  t.match(await error.run(), { isError: true, text: /the client returned an error/ })
})

t.test('elicitation: fails at once if the client does not support it', async (t) => {
  const unable = () =>
    Promise.reject(
      new GatehouseError('CAPABILITY_REQUIRED', {
        detail: 'the client has not declared the capability elicitation',
      }),
    )
  const r = await rig(workflow({ steps: [ask(), use] }), { ask: unable, elicits: false })
  t.match(await r.run(), {
    isError: true,
    text: /step "ask": elicitation request failed: the client has not declared/,
  })
  t.equal(r.timers.length, 0)
  const on = await rig(
    workflow({ steps: [ask({ onError: { action: 'continue' }, defaultResults: {} }), use] }),
    { ask: unable, elicits: false },
  )
  t.equal((await on.run()).isError, false)
  t.equal(on.questions.length, 0, 'if the run can continue, the user is not asked')
})
