/**
 * Evaluation of workflows inline or in a worker: the results are equal, and limits on work, time and memory end only
 * the affected execution.
 */
import t, { type Test } from 'tap'
import { silentLog } from '../../../../runtime/net/index.ts'
import { WorkerPool } from '../../../../runtime/process/index.ts'
import { Evaluator } from '../../../../runtime/vmcp/features/workflows/index.ts'
import {
  evaluationPool,
  type EvaluatorLimits,
  evaluatorLimits,
  workflowWorker,
} from '../../../../runtime/vmcp/features/workflows/evaluation/evaluator.ts'
import { reply, rig, type RigOptions, toolEntry, workflow } from '../../../helpers/vmcp/workflow-rig.ts'

t.setTimeout(180_000)

/** No task is small enough to run inline. */
const IN_WORKER: Partial<EvaluatorLimits> = { turnWork: 0 }

function evaluatorFor(t: Test, limits: Partial<EvaluatorLimits> = {}, heapMb?: number): Evaluator {
  const options = { ...evaluationPool(), ...(heapMb === undefined ? {} : { heapMb }) }
  const evaluator = new Evaluator(
    silentLog,
    { ...evaluatorLimits, ...limits },
    new WorkerPool(workflowWorker, options),
  )
  t.teardown(() => evaluator.close())
  return evaluator
}

const step = (id: string, args: object = {}, more: object = {}) => ({
  id,
  tool: 'x.a',
  arguments: args,
  ...more,
})
const exact = '{"n":9007199254740993,"s":"é\\u2028","l":[1,null,{"x":2.5}]}'

const cases: Readonly<Record<string, { spec: object; args?: string; options?: RigOptions }>> = {
  'arguments, types and exact integers': {
    spec: {
      steps: [
        step('a', {
          n: '{{.params.n}}',
          s: 'x {{.params.s}}',
          l: '{{json .params.l}}',
          none: '{{.params.none}}',
        }),
      ],
    },
    args: exact,
    options: {
      tools: [
        toolEntry('x_a', { inputSchema: { properties: { n: { type: 'integer' }, l: { type: 'array' } } } }),
      ],
    },
  },
  'parameters that do not match': {
    spec: { steps: [step('a')], parameters: { type: 'object', properties: { n: { type: 'string' } } } },
    args: exact,
  },
  'a pattern': {
    spec: {
      steps: [step('a')],
      parameters: { type: 'object', properties: { s: { type: 'string', pattern: '^\\p{L}+$' } } },
    },
    args: exact,
  },
  'defaults of parameters': {
    spec: {
      steps: [step('a', { v: '{{.params.v}} {{.params.n}}' })],
      parameters: { type: 'object', properties: { v: { type: 'integer', default: 7 } } },
    },
    args: exact,
  },
  'conditions, skipped steps and their defaults': {
    spec: {
      steps: [
        step('a', {}, { condition: '{{eq .params.n 1}}', defaultResults: { x: [1] } }),
        step('b', { v: '{{json .steps.a.output}} {{.steps.a.status}}' }, { dependsOn: ['a'] }),
      ],
    },
    args: exact,
  },
  'a condition that is not a boolean': {
    spec: { steps: [step('a', {}, { condition: '{{.params.n}}' })] },
    args: exact,
  },
  'a loop with conditions and failures': {
    spec: {
      steps: [
        {
          id: 'f',
          type: 'forEach',
          collection: '{{.params.l}}',
          step: {
            tool: 'x.a',
            onError: { action: 'continue' },
            condition: '{{ne .forEach.index 1}}',
            arguments: { i: '{{.forEach.index}}', x: '{{.forEach.item.x}}' },
          },
        },
      ],
      output: {
        properties: {
          all: { type: 'object', value: '{{json .steps.f.output}}' },
          count: {
            type: 'integer',
            value: '{{.steps.f.output.completed}}{{printf "%d" .steps.f.output.count}}',
          },
        },
      },
    },
    args: exact,
  },
  'more iterations than are planned at a time': {
    spec: {
      steps: [
        {
          id: 'f',
          type: 'forEach',
          maxIterations: 200,
          collection: '[{{range 99}}{{.}},{{end}}99]',
          step: { tool: 'x.a', arguments: { v: '{{.forEach.item}}' } },
        },
      ],
    },
  },
  'a response of the user': {
    spec: {
      steps: [
        {
          id: 'q',
          type: 'elicitation',
          message: 'Hello {{.params.s}}',
          schema: { type: 'object', properties: { ok: { type: 'boolean' } } },
        },
        step('a', { v: '{{json .steps.q.output}}' }, { dependsOn: ['q'] }),
      ],
    },
    args: exact,
    options: { ask: () => reply({ action: 'accept', content: { ok: true } }) },
  },
  'a response that does not match': {
    spec: {
      steps: [
        {
          id: 'q',
          type: 'elicitation',
          message: 'Hello',
          schema: { type: 'object', properties: { ok: { type: 'boolean' } } },
        },
      ],
    },
    options: { ask: () => reply({ action: 'accept', content: { ok: 1 } }) },
  },
  'an output that cannot be built': {
    spec: {
      steps: [step('a')],
      output: { properties: { n: { type: 'integer', value: '{{.params.s}}' } } },
    },
    args: exact,
  },
  'a default of the output': {
    spec: {
      steps: [step('a')],
      output: {
        properties: {
          n: { type: 'integer', value: '{{.params.gone}}', default: '12' },
          o: {
            type: 'object',
            properties: { s: { type: 'string', value: '{{.workflow.status}} {{.workflow.step_count}}' } },
          },
        },
      },
    },
  },
}

t.test('evaluation: inline and worker results are equal', async (t) => {
  const [here, there] = [evaluatorFor(t), evaluatorFor(t, IN_WORKER)]
  for (const [what, { spec, args = '{}', options = {} }] of Object.entries(cases)) {
    const definition = workflow(spec)
    const [inline, worker] = await Promise.all(
      [here, there].map(async (evaluator) => {
        const r = await rig(definition, { ...options, evaluator })
        return {
          response: await r.run(args),
          calls: r.calls.map(({ raw }) => raw).sort(),
          questions: r.questions,
        }
      }),
    )
    t.strictSame(worker, inline, what)
  }
})

const list = (length: number) => ({ l: Array.from({ length }, (_, i) => i) })

t.test('evaluation: a task that is too large to run inline runs in a worker', async (t) => {
  const evaluator = evaluatorFor(t)
  const definition = workflow({
    steps: [
      step('a', { v: 'x{{json .params.l}}' }),
      {
        id: 'f',
        type: 'forEach',
        dependsOn: ['a'],
        collection: '[1,2,3]',
        step: { tool: 'x.b', arguments: { v: 'x{{json .steps.a.output}}' } },
      },
    ],
    output: { properties: { n: { type: 'integer', value: '{{len .steps.a.output.v}}' } } },
  })
  const r = await rig(definition, { evaluator })
  t.strictSame((await r.run(list(50_000))).structured, { n: 288_892 })
  t.equal(r.calls.length, 4)
})

t.test('evaluation: exceeding the budget ends an execution, even if a step tolerates errors', async (t) => {
  const evaluator = evaluatorFor(t, { executionWork: 2_000_000 })
  const definition = workflow({
    steps: Array.from({ length: 20 }, (_, i) =>
      step(`s${i}`, { v: 'x{{json .params.l}}' }, { onError: { action: 'continue' } }),
    ),
  })
  const r = await rig(definition, { evaluator })
  t.match(await r.run(list(50_000)), { isError: true, text: /work limit exceeded/ })
  t.notOk((await r.run(list(10))).isError, 'other executions have their own budget')
})

t.test('evaluation: a task that takes too long is ended, and the next task gets a new worker', async (t) => {
  const evaluator = evaluatorFor(t, { ...IN_WORKER, taskMs: 50, taskWork: 1e12, executionWork: 1e12 })
  const definition = workflow({ steps: [step('a', { v: 'x{{range .params.n}}{{end}}' })] })
  const r = await rig(definition, { evaluator })
  t.match(await r.run({ n: 1e12 }), { isError: true, text: /time limit exceeded/ })
  const ample = evaluatorFor(t, { ...IN_WORKER })
  t.notOk((await (await rig(definition, { evaluator: ample })).run({ n: 3 })).isError)
})

t.test("evaluation: data that exceeds a worker's memory fails only its execution", async (t) => {
  const evaluator = evaluatorFor(t, { ...IN_WORKER, taskWork: 1e12, executionWork: 1e12 }, 24)
  const definition = workflow({ steps: [step('a', { n: '{{len .params.l}}' })] })
  const r = await rig(definition, { evaluator })
  const text = `{"l":[${'[],'.repeat(900_000)}0]}`
  t.match(await r.run(text), { isError: true, text: /memory limit exceeded/ })
  t.notOk((await r.run('{"l":[1]}')).isError)
})

t.test('evaluation: the memory of an execution is bounded', async (t) => {
  const big = 'x'.repeat(7 * 1024 * 1024)
  const steps = Array.from({ length: 6 }, (_, i) =>
    step(`s${i}`, {}, i > 0 ? { dependsOn: [`s${i - 1}`] } : {}),
  )
  const r = await rig(workflow({ steps }), { response: () => ({ big }), evaluator: evaluatorFor(t) })
  t.match(await r.run(), {
    isError: true,
    text: /step "s4": tool x\.a: the workflow’s results exceed 32 MiB in total/,
  })
})

t.test('evaluation: overlong numbers and arguments are rejected by name', async (t) => {
  const evaluator = evaluatorFor(t)
  const r = await rig(workflow({ steps: [step('a', { v: '{{.params.n}} x' })] }), { evaluator })
  t.match(await r.run(`{"n":${'7'.repeat(60_000)}}`), {
    isError: true,
    text: /invalid arguments: a number has more than 400 digits/,
  })
  const many = await rig(workflow({ steps: [step('a', { v: '{{json .params.l}}' })] }), {
    evaluator,
    tools: [toolEntry('x_a', { inputSchema: { properties: { v: { type: 'array' } } } })],
  })
  t.match(await many.run(list(250_000)), {
    isError: true,
    text: /the arguments have more than 200000 values/,
  })
})

t.test('evaluation: an invalid result, or a result with an overlong number, fails its step', async (t) => {
  const evaluator = evaluatorFor(t)
  for (const [raw, text] of [
    ['[1]', /the backend sent a response that is not valid MCP/],
    [
      `{"content":[],"structuredContent":{"n":${'7'.repeat(401)}}}`,
      /the result: a number has more than 400 digits/,
    ],
  ] as const) {
    const r = await rig(workflow({ steps: [step('a')] }), {
      evaluator,
      response: () => ({ kind: 'result', result: Buffer.from(raw) }),
    })
    t.match(await r.run(), { isError: true, text })
  }
})

t.test('evaluation: close ends waiting tasks and starts no more', async (t) => {
  const evaluator = evaluatorFor(t, IN_WORKER)
  await evaluator.close()
  const r = await rig(workflow({ steps: [step('a')] }), { evaluator })
  t.match(await r.run(), { isError: true, text: /Workflow execution failed: / })
})
