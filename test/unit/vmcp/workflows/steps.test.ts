/** Workflows: order of steps, conditions, failures, retries, timeouts. */
import t from 'tap'
import { GatehouseError } from '../../../../schemas/index.ts'
import { proves } from '../../../helpers/proves.ts'
import { outcome, rig, type Rig, settled, toolEntry, workflow } from '../../../helpers/vmcp/workflow-rig.ts'

const tool = (id: string, more: object = {}) => ({ id, tool: 'x.a', arguments: { id }, ...more })
const failing = () => outcome({ isError: true, content: [{ type: 'text', text: 'no luck' }] })
const started = ({ calls }: Rig) => calls.map(({ args }) => args['id'])

/** Responses that wait until the test releases them. */
function gates() {
  const open = new Map<unknown, (value: unknown) => void>()
  return {
    response: ({ args }: { args: Record<string, unknown> }) =>
      new Promise((resolve) => open.set(args['id'], resolve)),
    async open(id: string, value: unknown = { from: id }) {
      open.get(id)?.(value)
      await settled()
    },
  }
}

t.test('steps: each starts as soon as its own dependencies have ended', async (t) => {
  proves('3.config.compositeTools.steps.dependsOn')
  const { response, open } = gates()
  const r = await rig(
    workflow({
      steps: [
        tool('last', { dependsOn: ['left2', 'right'] }),
        tool('left'),
        tool('left2', { dependsOn: ['left'] }),
        tool('right'),
      ],
    }),
    { response },
  )
  const done = r.run()
  await settled()
  t.strictSame(started(r), ['left', 'right'], 'in the order of the definition')
  await open('left')
  t.strictSame(started(r), ['left', 'right', 'left2'], 'right still runs')
  await open('left2')
  t.equal(r.calls.length, 3)
  await open('right')
  await open('last')
  t.strictSame((await done).structured, { from: 'last' })
})

t.test('steps: at most ten run at a time', async (t) => {
  const { response, open } = gates()
  const ids = Array.from({ length: 25 }, (_, i) => `s${i}`)
  const r = await rig(workflow({ steps: ids.map((id) => tool(id)) }), { response })
  const done = r.run()
  await settled()
  t.strictSame(started(r), ids.slice(0, 10))
  await open('s3')
  t.strictSame(started(r), ids.slice(0, 11))
  for (const id of ids) await open(id)
  t.equal((await done).isError, false)
  t.equal(r.calls.length, 25)
})

t.test('steps: data of earlier steps is available to later steps', async (t) => {
  const steps = [
    { id: 'get', tool: 'x.a', arguments: { id: '{{.params.who}}' } },
    {
      id: 'use',
      tool: 'x.b',
      dependsOn: ['get'],
      arguments: { text: '{{.steps.get.status}} {{.steps.get.output.id}} {{.workflow.step_count}}' },
    },
  ]
  const r = await rig(workflow({ steps }))
  t.strictSame((await r.run({ who: 'ada' })).structured, { text: 'completed ada 0' })
})

t.test(
  'condition: decides whether a step runs; a skipped step has its defaults, and dependent steps run',
  async (t) => {
    proves('3.config.compositeTools.steps.condition', '3.config.compositeTools.steps.defaultResults')
    const steps = [
      tool('maybe', { condition: ' {{eq .params.mode "full"}}\n', defaultResults: { id: 'default' } }),
      {
        id: 'after',
        tool: 'x.b',
        dependsOn: ['maybe'],
        arguments: { got: '{{.steps.maybe.status}} {{.steps.maybe.output.id}}' },
      },
    ]
    const r = await rig(workflow({ steps }))
    t.strictSame((await r.run({ mode: 'full' })).structured, { got: 'completed maybe' })
    t.strictSame((await r.run({ mode: 'none' })).structured, { got: 'skipped default' })
    t.strictSame(r.audited.filter(({ type }) => type === 'vmcp_workflow_step_skipped').length, 1)
    const wrong = await rig(workflow({ steps: [tool('a', { condition: 'maybe' })] }))
    t.match(await wrong.run(), {
      isError: true,
      text: /^Workflow execution failed: step "a": condition must evaluate to 'true' or 'false' \(steps: a failed\)$/,
    })
  },
)

t.test(
  'onError abort: running steps are cancelled, waiting steps never start, and the response reports the progress',
  async (t) => {
    const signals: AbortSignal[] = []
    const r = await rig(
      workflow({
        steps: [
          tool('done'),
          tool('bad', { dependsOn: ['done'] }),
          tool('slow', { dependsOn: ['done'] }),
          tool('later', { dependsOn: ['bad'] }),
        ],
      }),
      {
        response({ args, signal }) {
          if (args['id'] === 'done') return {}
          if (args['id'] === 'bad') return failing()
          signals.push(signal)
          return new Promise(() => {})
        },
      },
    )
    t.strictSame(await r.run(), {
      text: 'Workflow execution failed: step "bad": tool x.a: no luck (steps: done completed, bad failed, slow cancelled, later not started)',
      isError: true,
      structured: undefined,
    })
    t.equal(signals[0]?.aborted, true)
    t.strictSame(
      r.audited.map(({ type }) => type).filter((type) => String(type).includes('failed')),
      ['vmcp_workflow_step_failed', 'vmcp_workflow_step_failed', 'vmcp_workflow_failed'],
    )
  },
)

t.test('onError continue: the run continues with the defaults after any failure', async (t) => {
  proves('3.config.compositeTools.steps.defaultResults')
  const after = {
    id: 'after',
    tool: 'x.b',
    dependsOn: ['bad'],
    arguments: { got: '{{.steps.bad.status}} {{.steps.bad.error}} {{.steps.bad.output.v}}' },
  }
  const kinds: [string, object, string][] = [
    ['the call', {}, 'failed tool x.a: no luck 7'],
    [
      'a template',
      { arguments: { id: '{{fromJson "x"}}' } },
      'failed argument "id": template expansion failed: fromJson: the text is not valid JSON 7',
    ],
    ['the condition', { condition: 'x' }, "failed condition must evaluate to 'true' or 'false' 7"],
  ]
  for (const [what, more, expected] of kinds) {
    const bad = tool('bad', { onError: { action: 'continue' }, defaultResults: { v: 7 }, ...more })
    const r = await rig(workflow({ steps: [bad, after] }), {
      response: ({ tool, args }) => (tool === 'x_a' ? failing() : args),
    })
    t.strictSame((await r.run()).structured, { got: expected }, what)
  }
})

t.test('onError retry: pauses grow, and only transient failures are retried', async (t) => {
  proves(
    '3.config.compositeTools.steps.onError.retryCount',
    '3.config.compositeTools.steps.onError.retryDelay',
  )
  const steps = (onError: object) => [tool('a', { onError: { action: 'retry', ...onError }, timeout: '1h' })]
  let failures = 3
  const r = await rig(workflow({ steps: steps({ retryCount: 3, retryDelay: '2s' }) }), {
    response: () => (failures-- > 0 ? failing() : { ok: true }),
  })
  const done = r.run()
  const pauses: number[] = []
  for (let i = 0; i < 3; i++) {
    await settled()
    const ms = Math.min(...r.timers.map((timer) => timer.ms))
    pauses.push(ms)
    r.advance(ms - 1)
    await settled()
    t.equal(r.calls.length, i + 1, 'not before the pause ends')
    r.advance(1)
  }
  t.strictSame((await done).structured, { ok: true })
  t.strictSame(pauses, [2000, 3000, 4500])
  t.match(
    r.audited.find(({ type }) => type === 'vmcp_workflow_step_completed'),
    { metadata: { extra: { retry_count: 3 } } },
  )

  const exhausted = await rig(workflow({ steps: steps({ retryCount: 1 }) }), { response: failing })
  const end = exhausted.run()
  await settled()
  exhausted.advance(1000)
  t.match(await end, { isError: true, text: /step "a": tool x\.a: no luck/ })
  t.equal(exhausted.calls.length, 2, 'the default pause is a second')

  const final: [string, () => unknown][] = [
    [
      'denied',
      () => {
        throw new GatehouseError('FORBIDDEN')
      },
    ],
    [
      'credentials',
      () => {
        throw new GatehouseError('BACKEND_AUTH_FAILED')
      },
    ],
    ['arguments', () => ({ kind: 'error', error: Buffer.from('{"code":-32602,"message":"bad"}') })],
  ]
  for (const [what, response] of final) {
    const once = await rig(workflow({ steps: steps({ retryCount: 5 }) }), { response })
    t.equal((await once.run()).isError, true, what)
    t.equal(once.calls.length, 1, what)
  }
  const passing: [string, () => unknown][] = [
    [
      'unreachable',
      () => {
        throw new GatehouseError('BACKEND_UNREACHABLE')
      },
    ],
    ['internal', () => ({ kind: 'error', error: Buffer.from('{"code":-32603,"message":"oops"}') })],
  ]
  for (const [what, response] of passing) {
    const again = await rig(workflow({ steps: steps({ retryCount: 1 }) }), { response })
    const run = again.run()
    await settled()
    again.advance(1000)
    t.equal((await run).isError, true, what)
    t.equal(again.calls.length, 2, what)
  }
})

t.test(
  "timeout of a step: five minutes by default, and the step's own timeout wins over the backend's",
  async (t) => {
    proves('3.config.compositeTools.steps.timeout')
    const forever = { response: () => new Promise(() => {}) }
    const plain = await rig(workflow({ steps: [tool('a')] }), forever)
    const first = plain.run()
    await settled()
    t.equal(plain.calls[0]?.timeoutMs, undefined, 'the backend decides')
    plain.advance(5 * 60_000 - 1)
    await settled()
    t.equal(plain.calls[0]?.signal.aborted, false)
    plain.advance(1)
    t.match(await first, {
      isError: true,
      text: 'Workflow execution failed: step "a": timed out after 5m (steps: a failed)',
    })
    t.equal(plain.calls[0]?.signal.aborted, true)

    const own = await rig(
      workflow({
        steps: [tool('a', { timeout: '90s', onError: { action: 'continue' }, defaultResults: { id: 'd' } })],
        output: { properties: { s: { type: 'string', value: '{{.steps.a.error}} {{.steps.a.output.id}}' } } },
      }),
      forever,
    )
    const second = own.run()
    await settled()
    t.equal(own.calls[0]?.timeoutMs, 90_000)
    own.advance(90_000)
    t.strictSame((await second).structured, { s: 'timed out after 1m30s d' })
  },
)

t.test('timeout of the workflow: thirty minutes by default', async (t) => {
  proves('3.config.compositeTools.timeout')
  for (const [timeout, ms, said] of [
    [undefined, 30 * 60_000, '30m'],
    ['20s', 20_000, '20s'],
  ] as const) {
    const r = await rig(
      workflow({ timeout, steps: [tool('a', { timeout: '2h' }), tool('b', { dependsOn: ['a'] })] }),
      {
        response: () => new Promise(() => {}),
      },
    )
    const done = r.run()
    await settled()
    r.advance(ms - 1)
    await settled()
    t.equal(r.calls[0]?.signal.aborted, false)
    r.advance(1)
    t.strictSame(await done, {
      text: `Workflow execution timeout exceeded: after ${said} (steps: a cancelled, b not started)`,
      isError: true,
      structured: undefined,
    })
    t.equal(r.calls[0]?.signal.aborted, true)
    t.ok(r.audited.some(({ type }) => type === 'vmcp_workflow_timed_out'))
    t.equal(r.timers.length, 0, 'nothing is left behind')
  }
})

t.test('cancellation: a client that cancels ends all steps', async (t) => {
  const r = await rig(workflow({ steps: [tool('a'), tool('b', { dependsOn: ['a'] })] }), {
    response: () => new Promise(() => {}),
  })
  const controller = new AbortController()
  const done = r.run({}, { signal: controller.signal })
  await settled()
  controller.abort(new Error('gone'))
  await t.rejects(done, { message: 'gone' })
  t.equal(r.calls[0]?.signal.aborted, true)
  t.equal(r.calls.length, 1)
  t.equal(r.timers.length, 0)
  const early = await rig(workflow({ steps: [tool('a')] }))
  await t.rejects(early.run({}, { signal: controller.signal }), { message: 'gone' })
  t.equal(early.calls.length, 0)
})

t.test('progress: one notification for each ended step, if the client requested progress', async (t) => {
  const steps = [tool('a'), tool('b', { dependsOn: ['a'], condition: 'false' })]
  const r = await rig(workflow({ steps }))
  await r.run({}, { progressToken: '"tok"' })
  t.strictSame(r.progress, [
    { progressToken: 'tok', progress: 1, total: 2, message: 'step a completed' },
    { progressToken: 'tok', progress: 2, total: 2, message: 'step b skipped' },
  ])
  const quiet = await rig(workflow({ steps }))
  await quiet.run()
  t.strictSame(quiet.progress, [])
})

t.test('audit: the run, its steps and each call are recorded', async (t) => {
  const r = await rig(workflow({ steps: [tool('a')] }))
  await r.run({ q: 1 })
  t.match(r.audited, [
    {
      type: 'vmcp_workflow_started',
      component: 'vmcp-composer',
      target: { workflow_name: 'w', type: 'workflow' },
      metadata: { extra: { timeout_ms: 1_800_000 } },
      data: { request: { q: 1 } },
    },
    {
      type: 'vmcp_workflow_step_started',
      target: { step_id: 'a', type: 'workflow_step' },
      metadata: { extra: { step_type: 'tool', tool_name: 'x.a' } },
    },
    { type: 'mcp_tool_call', outcome: 'success', target: { name: 'x_a' } },
    { type: 'vmcp_workflow_step_completed', metadata: { extra: { retry_count: 0 } } },
    { type: 'vmcp_workflow_completed', metadata: { extra: { step_count: 1 } } },
  ])
  t.equal(
    new Set(r.audited.flatMap(({ target }) => (target as { workflow_id?: string }).workflow_id ?? [])).size,
    1,
  )
})

t.test('ids: any step id is allowed', async (t) => {
  const steps = [
    tool('__proto__'),
    tool('constructor'),
    {
      id: 'z',
      tool: 'x.b',
      dependsOn: ['__proto__', 'constructor'],
      arguments: {
        got: '{{(index .steps "__proto__").output.id}} {{(index .steps "constructor").output.id}}',
      },
    },
  ]
  const r = await rig(workflow({ steps }), { tools: [toolEntry('x_a'), toolEntry('x_b')] })
  t.strictSame((await r.run()).structured, { got: '__proto__ constructor' })
})
