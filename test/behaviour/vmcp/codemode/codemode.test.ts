/**
 * Scripts through a virtual server, with real clients and backends of both eras: sequential and concurrent calls,
 * results, logs, errors, data, questions.
 */
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'
import { type ClientKind, connect } from '../../../helpers/mcp/clients.ts'
import { openSession } from '../../../helpers/mcp/wire.ts'
import { proves } from '../../../helpers/proves.ts'
import { type RawAnswer, startRawBackend, textResult } from '../../../helpers/mcp/raw-backend.ts'
import { bareNames, startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

proves('3.config.codeMode', '3.config.codeMode.enabled', '3.endpoint.execute-tool-script')

const TOOL = 'execute_tool_script'
const kinds: readonly ClientKind[] = ['sdk1', 'sdk2-session', 'sdk2-stateless']

interface Result {
  readonly content: readonly { readonly text?: string }[]
  readonly structuredContent?: unknown
  readonly isError?: boolean
}

const texts = ({ content }: Result): (string | undefined)[] => content.map(({ text }) => text)

interface Runner {
  readonly run: (script: string, data?: unknown) => Promise<Result>
  readonly client: Awaited<ReturnType<typeof connect>>
}

async function runner(t: Test, url: string, kind: ClientKind = 'sdk1'): Promise<Runner> {
  const client = await connect(kind, url)
  t.teardown(() => client.close())
  return {
    client,
    run: async (script, data) =>
      (await client.call(TOOL, data === undefined ? { script } : { script, data })) as unknown as Result,
  }
}

async function withFixture(t: Test, era: 'session' | 'stateless', codeMode: Record<string, unknown> = {}) {
  const fixture = await startFixture({ era })
  const vmcp = await startTestVmcp(
    { fixture: fixture.url },
    { aggregation: bareNames('fixture'), codeMode: { enabled: true, ...codeMode } },
  )
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  return { fixture, vmcp }
}

/** A virtual server with a backend of the given tools and responses. */
async function withTools(
  t: Test,
  tools: readonly Record<string, unknown>[],
  call?: RawAnswer,
  more: Record<string, unknown> = {},
) {
  const backend = await startRawBackend({
    tools: () => tools.map((tool) => JSON.stringify({ inputSchema: { type: 'object' }, ...tool })),
    ...(call ? { responses: { 'tools/call': call } } : {}),
  })
  const vmcp = await startTestVmcp(
    { raw: backend.url },
    { aggregation: bareNames('raw'), codeMode: { enabled: true, ...more } },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  return { backend, vmcp, ...(await runner(t, vmcp.url)) }
}

for (const era of ['session', 'stateless'] as const) {
  for (const kind of kinds) {
    t.test(
      `${kind} client, ${era} backend: a script calls tools, sequentially and concurrently`,
      async (t) => {
        const { vmcp } = await withFixture(t, era)
        const { client, run } = await runner(t, vmcp.url, kind)
        const listed = await client.listTools()
        t.equal(listed.at(-1)?.name, TOOL, 'it is listed last')
        t.match(listed.at(-1)?.description, /- test_elicitation\(message\*\): Asks the user for input/)
        const one = await run(
          'text = test_simple_text()\nreturn {"n": len(text), "echo": echo(a=1, b=[True, None])}',
        )
        t.strictSame(one.structuredContent, { n: 43, echo: { a: 1, b: [true, null] } })
        t.strictSame(JSON.parse(texts(one)[0] ?? ''), one.structuredContent)
        const many = await run(
          'return [r["n"] for r in parallel([lambda n=n: echo(n=n) for n in range(25)])]',
        )
        t.equal(texts(many)[0], JSON.stringify(Array.from({ length: 25 }, (_, i) => i)))
        t.equal(many.structuredContent, undefined, 'only objects are structured content')
      },
    )

    t.test(`${kind} client, ${era} backend: a tool in a script asks the user`, async (t) => {
      const { vmcp } = await withFixture(t, era)
      const { client, run } = await runner(t, vmcp.url, kind)
      const response = await run('return test_elicitation(message="who?")')
      t.match(texts(response)[0], /action=accept/)
      t.same(client.asked, ['elicitation/create'])
      const two = await run('return [test_sampling(prompt="p"), test_two_questions()]')
      t.not(two.isError, true, String(texts(two)[0]))
      t.match(texts(two)[0], /sampled text/)
    })
  }
}

t.test('off: the script tool does not exist', async (t) => {
  const fixture = await startFixture()
  const vmcp = await startTestVmcp({ fixture: fixture.url }, { codeMode: { enabled: false } })
  t.teardown(() => Promise.all([vmcp.close(), fixture.close()]))
  const { client, run } = await runner(t, vmcp.url)
  t.notOk((await client.listTools()).some(({ name }) => name === TOOL))
  await t.rejects(run('return 1'))
})

t.test('results: null without a return, numbers, big integers, texts in every script', async (t) => {
  const id = '12345678901234567890'
  const { run, backend } = await withTools(t, [{ name: 'find' }], () => textResult(`{"id":${id}}`))
  t.same(texts(await run('x = 1')), ['null'])
  t.same(texts(await run('return [1, 2.5, -7 // 2, 1 << 70, "é😀", (1, 2), range(3)]')), [
    '[1,2.5,-4,1180591620717411303424,"é😀",[1,2],[0,1,2]]',
  ])
  t.same(texts(await run(`return find(id=${id})["id"] + 1`)), ['12345678901234567891'])
  t.match(backend.requests.at(-1)?.body, `"arguments":{"id":${id}}`)
})

t.test('logs: returned with the result or the error, in list order', async (t) => {
  const { run } = await withTools(t, [{ name: 'echo' }])
  const good = await run(
    'print("a", 1)\ndef f(n):\n  echo()\n  print(n)\nparallel([lambda n=n: f(n) for n in range(3)])\nprint("z")\nreturn {}',
  )
  t.same(texts(good), ['{}', 'Script logs:\na 1\n0\n1\n2\nz'])
  const bad = await run('print("before")\nreturn 1 // 0')
  t.equal(bad.isError, true)
  t.same(texts(bad), [
    'script execution failed: script.star:2:10: floored division by zero',
    'Script logs:\nbefore',
  ])
  const flood = await run('for i in range(20000): print("x" * 100)\nreturn 1')
  t.ok((texts(flood)[1]?.length ?? 0) < 70_000, 'logs are bounded')
})

t.test('errors: in the text, in names, from tools, and from values that cannot be returned', async (t) => {
  const { run } = await withTools(t, [{ name: 'get-it' }, { name: 'fails' }], ({ params }) =>
    params['name'] === 'fails'
      ? JSON.stringify({ isError: true, content: [{ type: 'text', text: 'out of order' }] })
      : textResult('fine'),
  )
  const rows: readonly (readonly [script: string, message: string | RegExp])[] = [
    ['return 1 +', /^script\.star:1:11: syntax error: got newline, want primary expression$/],
    ['x = get_itt()', 'script.star:1:5: undefined: get_itt (did you mean get_it?)'],
    ['return fails()', 'script.star:1:13: fails: out of order'],
    ['return call_tool("nope")', 'script.star:1:17: call_tool: unknown tool "nope"'],
    ['return call_tool()', 'script.star:1:17: call_tool: requires at least 1 argument'],
    ['return call_tool(5)', 'script.star:1:17: call_tool: first argument must be a string'],
    ['return get_it(1)', 'script.star:1:14: get-it: accepts only keyword arguments'],
    ['return get_it(x=len)', /cannot convert a value of type builtin_function_or_method to JSON/],
    [
      'return len',
      /^failed to serialize script result: cannot convert a value of type builtin_function_or_method/,
    ],
    [
      'x = [1]\nx.append(x)\nreturn x',
      /^failed to serialize script result: cannot convert a value that contains itself/,
    ],
    ['return {1: 2}', /key of type int to JSON; use str\(key\)/],
    ['return float("nan")', /nan or infinity/],
    ['return parallel([1])', 'script.star:1:16: parallel: element 0 is not callable'],
    ['parallel([fails])', 'script.star:1:9: parallel: task 0 failed: fails: out of order'],
    ['return execute_tool_script(script="return 1")', /undefined: execute_tool_script/],
    ['return call_tool("execute_tool_script", script="")', /unknown tool "execute_tool_script"/],
    ['while True: pass', /does not support while loops/],
    ['try:\n  x = 1', /try is not part of Starlark: errors end the script/],
    ['load("a", "b")', /load statement within a function/],
    ['fail("no good")', 'script.star:1:5: fail: no good'],
    ['', /argument must be a string/],
  ]
  for (const [script, message] of rows) {
    const { isError, content } = await run(script)
    t.equal(isError, true, script)
    const text = content[0]?.text?.replace(/^script execution failed: /, '')
    t.match(text, message, script)
  }
})

t.test(
  'binding: names are cleaned, language keywords are avoided, and ambiguous names are not bound',
  async (t) => {
    const properties = { city: { type: 'string' }, days: { type: 'integer' } }
    const { client, run } = await withTools(t, [
      {
        name: 'get-weather',
        description: 'Weather',
        inputSchema: { type: 'object', properties, required: ['city'] },
      },
      { name: 'a.b' },
      { name: 'a-b' },
      { name: '2nd' },
      { name: 'list' },
      { name: 'for' },
      { name: 'parallel' },
      { name: TOOL, description: 'an impostor' },
    ])
    const listed = await client.listTools()
    t.equal(listed.filter(({ name }) => name === TOOL).length, 1)
    const description = listed.at(-1)?.description ?? ''
    t.notMatch(description, /impostor/)
    t.match(description, /^- get_weather\(city\*, days\): Weather$/m)
    t.match(description, /^- call_tool\("a\.b"\)$/m)
    t.match(description, /^- _2nd\(\)$/m)
    t.match(description, /^- call_tool\("list"\)$/m)
    t.same(texts(await run('return get_weather("Oslo", days=2)')), ['{"city":"Oslo","days":2}'])
    t.match(
      texts(await run('get_weather(1, 2, 3)'))[0],
      /accepts at most 2 positional arguments \(city, days\)/,
    )
    t.match(texts(await run('get_weather("a", city="b")'))[0], /multiple values for argument "city"/)
    t.same(
      texts(
        await run('return _2nd(x=1), call_tool("list", x=2), call_tool("for", x=3), call_tool("a.b", x=4)'),
      ),
      ['[{"x":1},{"x":2},{"x":3},{"x":4}]'],
    )
    t.same(texts(await run('return list((1, 2)), parallel([])')), ['[[1,2],[]]'])
    t.match(
      texts(await run('a_b(x=1)'))[0],
      /a_b is the name of several tools: use call_tool\("a-b", \.\.\.\) or call_tool\("a\.b", \.\.\.\)/,
    )
  },
)

t.test(
  'results: structured content, its wrapper, JSON texts, plain texts, several contents, nothing',
  async (t) => {
    const results: Record<string, string> = {
      structured: '{"content":[],"structuredContent":{"a":1.0,"b":2}}',
      wrapped: '{"content":[],"structuredContent":{"result":[1]}}',
      json: textResult('{"x": [1, 2.5]}'),
      plain: textResult('just text'),
      nothing: '{"content":[]}',
      several:
        '{"content":[{"type":"text","text":"{\\"n\\":1}"},{"type":"image","data":"","mimeType":"image/png"},{"type":"text","text":"two"}]}',
      image: '{"content":[{"type":"image","data":"aa","mimeType":"image/png"}]}',
      link: '{"content":[{"type":"resource_link","uri":"test://a","name":"a"},{"type":"text"}]}',
      silent: '{"content":[],"isError":true}',
      loud: '{"content":[{"type":"text","text":"first"},{"type":"image"},{"type":"text","text":"second"}],"isError":true}',
    }
    const { run } = await withTools(
      t,
      Object.keys(results).map((name) => ({ name })),
      ({ params }) => results[String(params['name'])],
    )
    t.same(texts(await run('return [structured(), wrapped(), json(), plain(), nothing()]')), [
      '[{"a":1,"b":2},[1],{"x":[1,2.5]},"just text",null]',
    ])
    t.same(texts(await run('return [several(), image(), link()]')), [
      '[[{"n":1},{"type":"image","data":"","mimeType":"image/png"},"two"],{"type":"image","data":"aa","mimeType":"image/png"},[{"type":"resource_link","uri":"test://a","name":"a"},{"type":"text"}]]',
    ])
    t.match(texts(await run('silent()'))[0], /silent: tool execution error/)
    t.match(texts(await run('loud()'))[0], /loud: first\nsecond/)
  },
)

t.test('data: keys are names and entries, and keys that would hide a tool are rejected', async (t) => {
  const { run } = await withTools(t, [{ name: 'echo' }])
  t.same(
    texts(await run('return [n * 2 for n in numbers], data["odd-key"]', { numbers: [1, 2], 'odd-key': 'x' })),
    ['[[2,4],"x"]'],
  )
  t.same(texts(await run('total += 1\nreturn total', { total: 1 })), ['2'])
  t.match(
    texts(await run('return 1', { echo: 1 }))[0],
    /data key "echo" conflicts with a builtin or tool name/,
  )
  t.match(texts(await run('return 1', { call_tool: 1 }))[0], /conflicts/)
  t.match(texts(await run('return 1', [1]))[0], /'data' argument must be an object/)
})

t.test('limits: steps, concurrent calls and the timeout of a call are configurable', async (t) => {
  proves(
    '3.config.codeMode.stepLimit',
    '3.config.codeMode.parallelMaxConcurrency',
    '3.config.codeMode.toolCallTimeout',
    '3.endpoint.execute-tool-script.limits',
    '3.error.script.timeout',
  )
  let [open, most] = [0, 0]
  const gate: (() => void)[] = []
  const { run, backend } = await withTools(
    t,
    [{ name: 'slow' }, { name: 'never' }],
    async ({ params, res }) => {
      if (params['name'] === 'never') {
        await once(res, 'close')
        return undefined
      }
      most = Math.max(most, ++open)
      if (open < 3) await new Promise<void>((resolve) => gate.push(resolve))
      else for (const go of gate.splice(0)) go()
      open--
      return textResult('done')
    },
    { parallelMaxConcurrency: 3, stepLimit: 2_000, toolCallTimeout: '300ms' },
  )
  const spun = await run('for i in range(10000): pass')
  t.match(
    texts(spun)[0],
    /^script execution failed: script\.star:1:5: Starlark computation cancelled: too many steps$/,
  )
  const many = await run(
    'def nested(): return parallel([lambda: slow(), lambda: slow(), lambda: slow()])\nreturn len(parallel([nested, nested, nested]))',
  )
  t.same(texts(many), ['3'])
  t.equal(most, 3, 'never more, at any nesting')
  const late = await run('print("calling")\nreturn never()')
  t.same(texts(late), [
    'script execution failed: script.star:2:13: never: timed out after 300ms',
    'Script logs:\ncalling',
  ])
  const spinning = await run('def spin():\n  for i in range(300): pass\nparallel([spin, spin, spin, spin])')
  t.match(texts(spinning)[0], /too many steps/, 'concurrent branches share the budget')
  t.equal(backend.requests.filter(({ params }) => params['name'] === 'never').length, 1)
})

t.test('limits: the defaults are 100000 steps, 10 concurrent calls, 30 s', async (t) => {
  proves('3.limit.codeMode')
  let [open, most] = [0, 0]
  const gate: (() => void)[] = []
  const { run } = await withTools(t, [{ name: 'slow' }], async () => {
    most = Math.max(most, ++open)
    if (open < 10) await new Promise<void>((resolve) => gate.push(resolve))
    else for (const go of gate.splice(0)) go()
    open--
    return textResult('1')
  })
  t.same(texts(await run('return len(parallel([slow for i in range(20)]))')), ['20'])
  t.equal(most, 10)
  t.same(texts(await run('for i in range(20000): pass\nreturn 1')), ['1'], 'well below the limit')
  t.match(texts(await run('for i in range(40000): pass\nreturn 1'))[0], /too many steps/, 'above it')
})

t.test('cancellation: a client that disconnects ends the script and its calls', async (t) => {
  const { fixture, vmcp } = await withFixture(t, 'session')
  const { client, run } = await runner(t, vmcp.url)
  const [waiting, cancelled] = [
    once(fixture.state.events, 'waiting'),
    once(fixture.state.events, 'cancelled'),
  ]
  const stop = new AbortController()
  const call = client.call(TOOL, { script: 'wait()\nreturn 1' }, { signal: stop.signal })
  await waiting
  stop.abort(new Error('enough'))
  await t.rejects(call)
  await cancelled
  t.same(texts(await run('return 2')), ['2'], 'the next script runs')
})

t.test('progress: calls of a script report under the client’s token, with rising values', async (t) => {
  const { vmcp } = await withFixture(t, 'session')
  const { client } = await runner(t, vmcp.url)
  const seen: number[] = []
  const script =
    'parallel([test_tool_with_progress, test_tool_with_progress])\nreturn test_tool_with_progress()'
  await client.call(TOOL, { script }, { onprogress: ({ progress }) => void seen.push(progress) })
  t.same(seen, [1, 2, 3, 4, 5, 6, 7, 8, 9])
})

t.test('a tool whose backend is down is unavailable for scripts, not unknown', async (t) => {
  let broken = false
  const backend = await startRawBackend({
    before: (_req, res) => {
      if (broken) res.writeHead(502).end()
      return broken
    },
  })
  const failureHandling = {
    partialFailureMode: 'best_effort',
    healthCheckInterval: '1h',
    circuitBreaker: { enabled: true, failureThreshold: 1 },
  }
  const vmcp = await startTestVmcp(
    { b: backend.url },
    { codeMode: { enabled: true }, operational: { failureHandling } },
  )
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const session = await openSession(vmcp.url)
  const run = async (script: string) =>
    (await session.request('tools/call', { name: 'execute_tool_script', arguments: { script } })).text
  t.match(await run('return b_echo(a=1)'), /"a\\*":1/)
  broken = true
  t.match(await run('return b_echo(a=1)'), 'HTTP 502')
  t.match(await run('return call_tool("b_echo", a=1)'), 'backend b is temporarily unavailable')
  t.match(await run('return call_tool("b_other", a=1)'), 'unknown tool')
})
