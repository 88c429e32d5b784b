/** guardrails.sizes: the largest arguments and results, on every call path, in both eras. */
import t from 'tap'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { startRawBackend, textResult, writeWithoutEnd } from '../../helpers/mcp/raw-backend.ts'
import { openSession } from '../../helpers/mcp/wire.ts'
import { until } from '../../helpers/redis.ts'
import { eras } from '../../helpers/decisions/decision-rig.ts'
import { startGuardrailRig } from '../../helpers/vmcp/guardrails/rig.ts'

const results = { name: 'results', maxResultBytes: 2_000 }
const args = { name: 'args', maxArgumentBytes: 500 }
const resultTold =
  'tool echo of backend fixture: the result is larger than guardrail results allows (2000 bytes)'
const argumentTold =
  'tool echo of backend fixture: the arguments are larger than guardrail args allows (500 bytes)'
const long = 'x'.repeat(5_000)
const error = (text: string) => ({ isError: true, content: [{ type: 'text', text }] })

const workflow = {
  name: 'flow',
  description: 'Echoes',
  parameters: { type: 'object', properties: { text: { type: 'string' } } },
  steps: [{ id: 'one', type: 'tool', tool: 'echo', arguments: { text: '{{.params.text}}' } }],
}

const transports = [
  ['session', 'session'],
  ['stateless', 'stateless'],
  ['session', 'sse'],
] as const

for (const era of eras) {
  for (const [backend, transport] of transports) {
    t.test(
      `${era} client, ${transport} backend: both directions are limited, and reported by rule`,
      async (t) => {
        const fixture = await startFixture({ era: backend })
        t.teardown(() => fixture.close())
        const input =
          transport === 'sse' ? { url: fixture.sseUrl, transport: 'sse' as const } : { url: fixture.url }
        const rig = await startGuardrailRig(t, { fixture: input }, { sizes: [results, args] })
        const ask = await rig.as(era)
        const echo = (text: string, name = 'echo') => ask('tools/call', { name, arguments: { text } })
        t.match((await echo('fits')).text, 'fits')
        const before = fixture.state.requests.length
        const refused = await echo(long)
        t.match(refused.response?.result, error(argumentTold))
        t.notMatch(
          JSON.stringify(fixture.state.requests.slice(before)),
          'xxxx',
          'the backend gets no request',
        )
        const [line] = await rig.audited(1)
        t.match(line, {
          guardrails: [{ rule: 'args', direction: 'arguments', outcome: 'refused', count: 1 }],
          metadata: { extra: { denial_reason: 'guardrail_refused' } },
        })
        t.match(
          await rig.metrics(),
          /gatehouse_guardrail_matches_total\{.*rule="args".*outcome="refused".*\} 1/,
        )
        t.match(rig.log(), /"event":"guardrail_matched".*"rule":"args"/)
      },
    )

    t.test(
      `${era} client, ${transport} backend: a result over the limit is an error of the tool`,
      async (t) => {
        const fixture = await startFixture({ era: backend })
        t.teardown(() => fixture.close())
        const input =
          transport === 'sse' ? { url: fixture.sseUrl, transport: 'sse' as const } : { url: fixture.url }
        const failureHandling = { circuitBreaker: { enabled: true, failureThreshold: 1 } }
        const rig = await startGuardrailRig(
          t,
          { fixture: input },
          { sizes: [results] },
          { operational: { failureHandling } },
        )
        const ask = await rig.as(era)
        for (const length of [2_500, 100_000]) {
          const { response, text } = await ask('tools/call', {
            name: 'echo',
            arguments: { text: 'x'.repeat(length) },
          })
          t.match(response?.result, error(resultTold), `${length}`)
          t.notMatch(text, 'xxxx', 'no part of the result is forwarded')
        }
        t.match((await ask('tools/call', { name: 'echo', arguments: { text: 'well' } })).text, 'well')
        const lines = await rig.audited(2)
        t.match(lines[1], {
          guardrails: [{ rule: 'results', direction: 'results', outcome: 'refused', count: 1 }],
        })
        t.match(await rig.metrics(), /guardrail_matches_total\{.*rule="results".*\} 2/, 'once for each call')
        t.notMatch(rig.log(), 'xxxx')
      },
    )
  }

  t.test(`${era} era: tool search, workflows and scripts have the same limits`, async (t) => {
    const fixture = await startFixture({ era: 'both' })
    t.teardown(() => fixture.close())
    const call_tool = (tool_name: string, parameters: unknown) => ({
      name: 'call_tool',
      arguments: { tool_name, parameters },
    })
    const ways = {
      search: (text: string) => call_tool('echo', { text }),
      workflow: (text: string) => call_tool('flow', { text }),
      script: (text: string) => call_tool('execute_tool_script', { script: `return echo(text="${text}")` }),
    }
    for (const [rule, told] of [
      [{ ...results, match: { backends: ['fixture'], tools: ['echo'] } }, resultTold],
      [{ ...args, match: { backends: ['fixture'] } }, argumentTold],
    ] as const) {
      const rig = await startGuardrailRig(
        t,
        { fixture: fixture.url },
        { sizes: [rule] },
        { optimizer: {}, codeMode: { enabled: true }, compositeTools: [workflow] },
      )
      const ask = await rig.as(era)
      for (const [way, params] of Object.entries(ways)) {
        const { text } = await ask('tools/call', params(long))
        t.match(text, told, way)
        t.match((await ask('tools/call', params('small'))).text, 'small', way)
      }
    }
  })

  t.test(`${era} era: a workflow as a whole is limited like a tool`, async (t) => {
    const fixture = await startFixture({ era: 'both' })
    t.teardown(() => fixture.close())
    const rig = await startGuardrailRig(
      t,
      { fixture: fixture.url },
      { sizes: [{ ...results, maxArgumentBytes: 500, match: { tools: ['flow'] } }] },
      { compositeTools: [{ ...workflow, steps: [{ ...workflow.steps[0], arguments: { text: long } }] }] },
    )
    const ask = await rig.as(era)
    const flow = (text: string) => ask('tools/call', { name: 'flow', arguments: { text } })
    t.match(
      (await flow('a')).response?.result,
      error('tool flow: the result is larger than guardrail results allows (2000 bytes)'),
    )
    t.match(
      (await flow(long)).response?.result,
      error('tool flow: the arguments are larger than guardrail results allows (500 bytes)'),
    )
  })

  t.test(`${era} era: large prompts and resources are protocol errors`, async (t) => {
    const backend = await startRawBackend({
      capabilities: '{"tools":{},"resources":{},"prompts":{}}',
      responses: {
        'resources/list': () => '{"resources":[{"uri":"test://r","name":"r"}]}',
        'resources/read': () => JSON.stringify({ contents: [{ uri: 'test://r', text: long }] }),
        'prompts/list': () => '{"prompts":[{"name":"p","arguments":[{"name":"a"}]}]}',
        'prompts/get': () => JSON.stringify({ messages: [] }),
      },
    })
    t.teardown(() => backend.close())
    const rig = await startGuardrailRig(t, { raw: backend.url }, { sizes: [results, args] })
    const ask = await rig.as(era)
    const read = await ask('resources/read', { uri: 'test://r' })
    t.match(read.response?.error, {
      code: 403,
      message:
        'resources/read of backend raw: the result is larger than guardrail results allows (2000 bytes)',
    })
    t.ok((await ask('prompts/get', { name: 'p', arguments: { a: 'b' } })).response?.result)
    t.match((await ask('prompts/get', { name: 'p', arguments: { a: long } })).response?.error, {
      code: 403,
      message: 'prompts/get of backend raw: the arguments are larger than guardrail args allows (500 bytes)',
    })
  })
}

t.test('the limits are exact to the byte, and the smallest limit of several rules applies', async (t) => {
  const sized = (length: number) => textResult('x'.repeat(length - textResult('').length))
  const backend = await startRawBackend({
    tools: () =>
      ['echo', 'other', 'free'].map((name) => `{"name":"${name}","inputSchema":{"type":"object"}}`),
    responses: {
      'tools/call': ({ params }) => sized((params['arguments'] as { length: number }).length),
    },
  })
  t.teardown(() => backend.close())
  const rig = await startGuardrailRig(
    t,
    { raw: backend.url },
    {
      sizes: [
        { name: 'all', maxResultBytes: 3_000, maxArgumentBytes: 100, except: [{ tools: ['free'] }] },
        { name: 'echo', maxResultBytes: 1_000, match: { tools: ['echo'] } },
        { name: 'wide', maxResultBytes: 9_000, match: { tools: ['other'] } },
      ],
    },
    { operational: { maxResultBytes: 20_000 } },
  )
  const ask = await rig.as('stateless')
  const call = async (name: string, length: number, more: Record<string, unknown> = {}) =>
    (await ask('tools/call', { name, arguments: { length, ...more } })).response
  for (const [tool, bytes, rule] of [
    ['echo', 1_000, 'echo'],
    ['other', 3_000, 'all'],
    ['free', 20_000, undefined],
  ] as const) {
    t.notMatch(await call(tool, bytes), { result: { isError: true } }, tool)
    const told =
      rule === undefined ? /operational\.maxResultBytes/ : `guardrail ${rule} allows (${bytes} bytes)`
    t.match((await call(tool, bytes + 1))?.result, { isError: true }, tool)
    t.match(JSON.stringify(await call(tool, bytes + 1)), told, tool)
  }
  const filled = (bytes: number) => ({ a: 'x'.repeat(bytes - '{"length":100,"a":""}'.length) })
  t.notMatch(await call('other', 100, filled(100)), { result: { isError: true } })
  t.match(JSON.stringify(await call('other', 100, filled(101))), 'guardrail all allows (100 bytes)')
})

for (const type of ['application/json', 'text/event-stream']) {
  t.test(`reading stops at the limit: ${type}`, async (t) => {
    const closed = Promise.withResolvers<number>()
    const backend = await startRawBackend({
      responses: {
        'tools/call': ({ id, res }) => {
          const { socket } = res
          res.once('close', () => closed.resolve(socket?.bytesWritten ?? 0))
          res.writeHead(200, { 'content-type': type })
          const start = type === 'application/json' ? '' : 'data: '
          writeWithoutEnd(
            res,
            `${start}{"jsonrpc":"2.0","id":${id},"result":{"content":[{"type":"text","text":"`,
          )
          return undefined
        },
      },
    })
    t.teardown(() => backend.close())
    const rig = await startGuardrailRig(t, { fixture: backend.url }, { sizes: [results] })
    const { response } = await (await rig.as('session'))('tools/call', { name: 'echo' })
    t.match(response?.result, error(resultTold))
    t.ok((await closed.promise) < 16_000_000, 'only what the kernel buffers is sent')
  })
}

t.test("a user's response to a backend is treated as an argument", async (t) => {
  const heard: string[] = []
  let finish = (): void => {}
  const backend = await startRawBackend({
    before: (_req, res, body) => {
      if (!body.includes('"id":"ask-1"') || !/"result"|"error"/.test(body)) return false
      heard.push(body)
      res.writeHead(202).end()
      finish()
      return true
    },
    responses: {
      'tools/call': ({ id, res }) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        finish = () => void res.end(`data: {"jsonrpc":"2.0","id":${id},"result":${textResult('done')}}\n\n`)
        const params = { message: 'm', requestedSchema: { type: 'object', properties: {} } }
        const asked = { jsonrpc: '2.0', id: 'ask-1', method: 'elicitation/create', params }
        res.write(`data: ${JSON.stringify(asked)}\n\n`)
        return undefined
      },
    },
  })
  t.teardown(() => backend.close())
  const rig = await startGuardrailRig(t, { raw: backend.url }, { sizes: [args] })
  const session = await openSession(rig.vmcp.url, { capabilities: { elicitation: {} } })
  for (const [text, expected] of [
    ['short', /"content":\{"a":"short"\}/],
    [long, /"error"/],
  ] as const) {
    const stream = await session.open('tools/call', { name: 'echo', arguments: {} })
    const question = await stream.next()
    await session.response(question?.id, { action: 'accept', content: { a: text } })
    t.match(await stream.next(), { result: { content: [{ text: 'done' }] } })
    t.match(heard.at(-1), expected)
    t.notMatch(heard.at(-1), 'xxxx')
  }
  await until(() => rig.log().includes('"rule":"args"'))
})
