/** Code mode in isolation: names of functions, the description, settings. */
import t from 'tap'
import { JsonObject } from '../../../runtime/mcp/index.ts'
import { bindTools, functionName } from '../../../runtime/vmcp/features/scripts/binding.ts'
import { describeTool } from '../../../runtime/vmcp/features/scripts/description.ts'
import { scriptPool, scriptSettings } from '../../../runtime/vmcp/features/scripts/settings.ts'
import { responseOf } from '../../../runtime/vmcp/features/scripts/tool-response.ts'

const tool = (fields: Record<string, unknown>) => new JsonObject(Buffer.from(JSON.stringify(fields)))

function described(tools: readonly Record<string, unknown>[]): string {
  const shown = JSON.parse(describeTool(bindTools(tools.map(tool), 'x').tools)) as { description: string }
  return shown.description
}

t.test('settings: a limit of zero means unset', (t) => {
  const limits = { enabled: true, parallelMaxConcurrency: 10, stepLimit: 100_000 }
  for (const [toolCallTimeout, ms] of [
    ['0s', 30_000],
    ['0h0m', 30_000],
    ['2s', 2_000],
  ] as const)
    t.equal(scriptSettings({ ...limits, toolCallTimeout }).toolCallTimeoutMs, ms)
  t.end()
})

t.test('functionName: characters that are invalid in an identifier become _', (t) => {
  for (const [name, expected] of [
    ['get-it', 'get_it'],
    ['a.b c/d', 'a_b_c_d'],
    ['2nd', '_2nd'],
    ['', '_'],
    ['über', '_ber'],
    ['camelCase_9', 'camelCase_9'],
  ] as const)
    t.equal(functionName(name), expected)
  t.end()
})

t.test('bindTools: no built-in name or reserved word is used, including those of Python', (t) => {
  const names = ['len', 'print', 'call_tool', 'parallel', 'if', 'import', 'class', 'None', 'hidden', 'ok']
  const { tools, binding } = bindTools(
    names.map((name) => tool({ name })),
    'hidden',
  )
  t.same(
    tools.filter(({ fn }) => fn !== undefined).map(({ name }) => name),
    ['ok'],
  )
  t.same(binding.functions, [['ok', 8]])
  t.same(binding.ambiguous, [])
  t.end()
})

t.test('bindTools: unusual schemas are accepted', (t) => {
  const { tools } = bindTools(
    [
      tool({ name: 'none' }),
      tool({ name: 'text', inputSchema: 'x' }),
      tool({ name: 'odd', inputSchema: { properties: [], required: 'a' } }),
      tool({ name: 'good', inputSchema: { properties: { b: {}, a: {} }, required: ['a', 5] } }),
    ],
    'x',
  )
  t.same(
    tools.map(({ parameters }) => parameters),
    [[], [], [], ['b', 'a']],
  )
  t.same([...(tools[3]?.required ?? [])], ['a'])
  t.end()
})

t.test('description: long texts and long lists are truncated with a hint how to see more', (t) => {
  const long = described([{ name: 'a', description: `${'word '.repeat(40)}\nend` }])
  t.match(long, /^- a\(\): (word ){15}wo\.\.\.$/m)
  const many = described(Array.from({ length: 200 }, (_, i) => ({ name: `tool${i}` })))
  t.match(many, /- tool59\(\)\n\.\.\. and 140 more: find them with find_tool or tools\/list/)
  t.notMatch(many, /tool60/)
  const wide = described([
    {
      name: 'w',
      inputSchema: { properties: Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`p${i}`, {}])) },
    },
  ])
  t.match(wide, /- w\(p0, .*p11, \.\.\.\)/)
  t.match(described([]), 'No tools are available to you.')
  t.end()
})

t.test('responseOf: an unusable result is an error of the tool', (t) => {
  const result = (text: string) => responseOf({ kind: 'result', result: Buffer.from(text) })
  t.match(result('{"content":5}'), { kind: 'nothing' })
  t.match(result('{"content":[5]}'), { kind: 'nothing' })
  t.match(result('{"content":[5,{"type":"text"}]}'), {
    kind: 'content',
    bytes: Buffer.from('[{"type":"text"}]'),
  })
  t.match(result('[]'), { kind: 'error' })
  t.match(result('{"structuredContent":null,"content":[{"type":"text","text":"t"}]}'), { kind: 'text' })
  t.match(responseOf({ kind: 'error', error: Buffer.from('{"code":-1,"message":"no"}') }), {
    kind: 'error',
    message: 'no',
  })
  t.end()
})

t.test('pool: workers use at most half of the memory', async (t) => {
  const gib = 1024 ** 3
  t.match(scriptPool(16 * gib), { maxWorkers: 8, maxPerCaller: 6, maxIdle: 2 })
  t.match(scriptPool(3 * gib), { maxWorkers: 8 })
  t.match(scriptPool(gib), { maxWorkers: 2, maxPerCaller: 1, maxIdle: 2 })
  t.match(scriptPool(gib / 2), { maxWorkers: 1, maxPerCaller: 1, maxIdle: 1 })
  t.match(scriptPool(1), { maxWorkers: 1 })
  t.equal(scriptPool(gib).maxParkedBytes, gib / 4)
})
