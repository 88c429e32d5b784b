/**
 * Workflows: forEach steps.
 */
import t from 'tap'
import { validateManifest } from '../../../../schemas/index.ts'
import { proves } from '../../../helpers/proves.ts'
import { outcome, rig, settled, workflow } from '../../../helpers/vmcp/workflow-rig.ts'

const each = (more: object = {}, inner: object = {}) => ({
  id: 'each',
  type: 'forEach',
  collection: '{{json .params.list}}',
  step: { tool: 'x.a', arguments: { v: '{{.forEach.item}}', i: '{{.forEach.index}}' }, ...inner },
  ...more,
})
const failsFor =
  (bad: string) =>
  ({ args }: { args: Record<string, unknown> }) =>
    args['v'] === bad ? outcome({ isError: true, content: [{ type: 'text', text: 'bad' }] }) : args

t.test('forEach: one call for each item, and the output lists each iteration', async (t) => {
  proves('3.config.compositeTools.steps.collection')
  const r = await rig(
    workflow({
      steps: [
        each({ itemVar: 'who' }, { arguments: { v: '{{.forEach.who.name}}', i: 'no. {{.forEach.index}}' } }),
        {
          id: 'use',
          tool: 'x.b',
          dependsOn: ['each'],
          arguments: {
            got: '{{(index .steps.each.output.iterations 1).output.v}} {{.steps.each.output.count}} {{json .steps.each.output}}',
          },
        },
      ],
    }),
  )
  const { structured } = await r.run({ list: [{ name: 'ada' }, { name: 'bob' }] })
  const { got } = structured as { got: string }
  t.match(got, /^bob 2 /)
  t.strictSame(JSON.parse(got.slice(6)), {
    iterations: [
      { index: 0, item: { name: 'ada' }, status: 'completed', output: { v: 'ada', i: 'no. 0' } },
      { index: 1, item: { name: 'bob' }, status: 'completed', output: { v: 'bob', i: 'no. 1' } },
    ],
    count: 2,
    completed: 2,
    failed: 0,
  })
})

t.test('forEach: the collection may be a list, JSON text or empty; any other value fails', async (t) => {
  proves('3.config.compositeTools.steps.collection')
  const counts: [string, object, number][] = [
    ['{{.params.list}}', { list: ['a', 'b'] }, 2],
    ['{{json .params.list}}', { list: ['a'] }, 1],
    ['{{.params.text}}', { text: '["a","b","c"]' }, 3],
    ['["x"]', {}, 1],
    ['{{json .params.none}}', {}, 0],
    ['[]', {}, 0],
  ]
  for (const [collection, params, count] of counts) {
    const r = await rig(workflow({ steps: [each({ collection })] }))
    t.match((await r.run(params)).structured, { count, completed: count }, collection)
    t.equal(r.calls.length, count)
  }
  for (const collection of ['{{.params.text}}', '{{.params.none}}', '{"a":1}']) {
    const r = await rig(workflow({ steps: [each({ collection })] }))
    t.match(
      await r.run({ text: 'secret' }),
      { isError: true, text: /step "each": collection must resolve to a JSON array \(/ },
      collection,
    )
  }
})

t.test('forEach: a collection over maxIterations (100 by default) fails before any call', async (t) => {
  proves('3.config.compositeTools.steps.maxIterations')
  const list = (length: number) => ({ list: Array.from({ length }, (_, i) => `v${i}`) })
  const plain = await rig(workflow({ steps: [each()] }))
  t.match(await plain.run(list(101)), {
    isError: true,
    text: /collection size 101 exceeds maxIterations 100/,
  })
  t.equal(plain.calls.length, 0)
  t.match((await plain.run(list(100))).structured, { completed: 100 })
  const own = await rig(workflow({ steps: [each({ maxIterations: 2 })] }))
  t.match(await own.run(list(3)), { isError: true, text: /exceeds maxIterations 2/ })
  const capped = { maxIterations: 1001, maxParallel: 51 }
  const kind = 'VirtualMCPCompositeToolDefinition'
  const violations = validateManifest({
    apiVersion: 'gatehouse.dev/v1beta1',
    kind,
    metadata: { name: 'w' },
    spec: { name: 'w', steps: [each(capped)] },
  })
  t.strictSame(
    violations.map(({ path }) => path),
    ['spec.steps[0].maxIterations', 'spec.steps[0].maxParallel'],
    'the caps',
  )
})

t.test(
  'forEach: at most maxParallel calls (10 by default) run at a time, in the order of the list',
  async (t) => {
    proves('3.config.compositeTools.steps.maxParallel')
    for (const [maxParallel, expected] of [
      [undefined, 10],
      [3, 3],
      [1, 1],
    ] as const) {
      const waiting: (() => void)[] = []
      let running = 0
      let most = 0
      const r = await rig(workflow({ steps: [each({ maxParallel })] }), {
        response: async ({ args }) => {
          most = Math.max(most, ++running)
          await new Promise<void>((resolve) => waiting.push(resolve))
          running -= 1
          return args
        },
      })
      const done = r.run({ list: Array.from({ length: 12 }, (_, i) => `v${i}`) })
      for (await settled(); waiting.length > 0; await settled()) waiting.shift()?.()
      t.match((await done).structured, { completed: 12 })
      t.equal(most, expected)
      t.strictSame(
        r.calls.map(({ args }) => args['v']),
        Array.from({ length: 12 }, (_, i) => `v${i}`),
      )
    }
  },
)

t.test(
  'forEach: the first failure ends the step, or is tolerated while the other iterations continue',
  async (t) => {
    const list = { list: ['a', 'b', 'c', 'd'] }
    const abort = await rig(workflow({ steps: [each({ maxParallel: 1 })] }), { response: failsFor('b') })
    t.match(await abort.run(list), { isError: true, text: /step "each": iteration 1: tool x\.a: bad/ })
    t.equal(abort.calls.length, 2)

    for (const step of [
      each({ onError: { action: 'continue' } }),
      each({}, { onError: { action: 'continue' } }),
    ]) {
      const tolerant = await rig(workflow({ steps: [step] }), { response: failsFor('b') })
      const { structured } = await tolerant.run(list)
      t.match(structured, { count: 4, completed: 3, failed: 1 })
      t.match((structured as { iterations: unknown[] }).iterations[1], {
        status: 'failed',
        error: 'tool x.a: bad',
      })
    }

    const signals: AbortSignal[] = []
    const parallel = await rig(workflow({ steps: [each()] }), {
      response: async ({ args, signal }) => {
        if (args['v'] === 'b') return outcome({ isError: true, content: [] })
        signals.push(signal)
        return new Promise(() => {})
      },
    })
    t.match(await parallel.run(list), { isError: true })
    t.ok(signals.length > 0 && signals.every(({ aborted }) => aborted), 'running calls are cancelled')
  },
)

t.test('forEach: the inner step has its own retries, timeouts and conditions', async (t) => {
  let failures = 1
  const retried = await rig(
    workflow({ steps: [each({}, { onError: { action: 'retry', retryCount: 2, retryDelay: '1s' } })] }),
    {
      response: ({ args }) => (failures-- > 0 ? outcome({ isError: true, content: [] }) : args),
    },
  )
  const done = retried.run({ list: ['a'] })
  await settled()
  retried.advance(1000)
  t.match((await done).structured, { completed: 1 })
  t.equal(retried.calls.length, 2)

  const timed = await rig(
    workflow({ steps: [each({ onError: { action: 'continue' } }, { timeout: '7s' })] }),
    {
      response: ({ args }) => (args['v'] === 'slow' ? new Promise(() => {}) : args),
    },
  )
  const slow = timed.run({ list: ['slow', 'a'] })
  await settled()
  t.equal(timed.calls[0]?.timeoutMs, 7000)
  timed.advance(7000)
  t.match((await slow).structured, { completed: 1, failed: 1 })

  const chosen = await rig(workflow({ steps: [each({}, { condition: '{{ne .forEach.item "b"}}' })] }))
  const { structured } = await chosen.run({ list: ['a', 'b'] })
  t.match(structured, { count: 2, completed: 1, failed: 0 })
  t.match((structured as { iterations: unknown[] }).iterations[1], { status: 'skipped' })
})
