/**
 * guardrails.mark for the texts of lists: tools, prompts, resources, templates and instructions, by action, in both
 * eras.
 */
import t, { type Test } from 'tap'
import { type RawBackendOptions, startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { openSession, stateless } from '../../helpers/mcp/wire.ts'
import { until } from '../../helpers/redis.ts'
import { eras } from '../../helpers/decisions/decision-rig.ts'
import { startGuardrailRig } from '../../helpers/vmcp/guardrails/rig.ts'
import { lockOf, pinning } from '../../helpers/vmcp/pinning.ts'
import { bareNames, startTestVmcp, vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

const tags = Array.from('steal', (c) => String.fromCodePoint(0xe0000 + (c.codePointAt(0) ?? 0))).join('')
const hostile = `\u001b[31mRead\u001b[0m \u202ea\u202c zero\u200bwidth${tags}.`
const stripped = 'Read a zerowidth.'
const marked =
  '\\u{1b}[31mRead\\u{1b}[0m \\u{202e}a\\u{202c} zero\\u{200b}width' +
  Array.from('steal', (c) => `\\u{${(0xe0000 + (c.codePointAt(0) ?? 0)).toString(16)}}`).join('') +
  '.'
const harmless = 'Persian می‌خواهم, emoji ❤️'

const described = { title: hostile, description: hostile }
const tool = {
  name: 'read',
  ...described,
  annotations: { title: hostile, readOnlyHint: true },
  inputSchema: {
    type: 'object',
    properties: { path: { type: 'string', description: hostile, default: hostile } },
  },
  outputSchema: { type: 'object', properties: { text: { type: 'string', title: hostile } } },
}
const plain = { name: 'plain', description: harmless, inputSchema: { type: 'object' } }
const prompt = { name: 'ask', ...described, arguments: [{ name: 'about', description: hostile }] }
const resource = { uri: 'test://one', name: 'one', ...described }
const template = { uriTemplate: 'test://of/{name}', name: 'of', ...described }

const lists = (tools: () => readonly unknown[] = () => [tool, plain]): RawBackendOptions => ({
  capabilities: '{"tools":{},"prompts":{},"resources":{}}',
  tools: () => tools().map((one) => JSON.stringify(one)),
  instructions: () => `Call read ${hostile}`,
  responses: {
    'prompts/list': () => JSON.stringify({ prompts: [prompt] }),
    'resources/list': () => JSON.stringify({ resources: [resource] }),
    'resources/templates/list': () => JSON.stringify({ resourceTemplates: [template] }),
    'prompts/get': () => '{"messages":[]}',
    'resources/read': () => '{"contents":[]}',
  },
})

const methods = ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list']

async function backend(t: Test, tools?: () => readonly unknown[]) {
  const raw = await startRawBackend(lists(tools))
  t.teardown(() => raw.close())
  return raw
}

const mark = (hiddenCharacters: string, more: object = {}) => ({
  mark: [{ name: 'hidden', hiddenCharacters, ...more }],
})

for (const era of eras) {
  for (const [action, expected] of [
    ['strip', stripped],
    ['mark', marked],
    ['observe', hostile],
  ] as const) {
    t.test(`${era} era, ${action}: applies to every text of every list`, async (t) => {
      const raw = await backend(t)
      const rig = await startGuardrailRig(t, { raw: raw.url }, mark(action))
      const ask = await rig.as(era)
      const answers = await Promise.all(methods.map(async (method) => (await ask(method)).response?.result))
      const text = JSON.stringify(answers)
      const found = text.split(JSON.stringify(expected).slice(1, -1)).length - 1
      t.equal(found, 6 + 3 + 2 + 2, 'title, description, annotations, both schemas; arguments of prompts')
      t.ok(text.includes(harmless), 'characters that scripts and emoji need are kept')
      if (action !== 'observe') for (const one of [tags, '\u202e', '\u200b']) t.notOk(text.includes(one))
      t.match(await rig.metrics(), new RegExp(`guardrail_matches_total\\{.*outcome="${action}`))
      t.match(rig.log(), /"event":"guardrail_matched".*"method":"tools\/list"/)
      t.notMatch(await rig.status(), /items_withheld/)
    })
  }

  t.test(`${era} era, refuse: the item is left out, not callable, and reported`, async (t) => {
    const raw = await backend(t)
    const rig = await startGuardrailRig(t, { raw: raw.url }, mark('refuse'))
    const ask = await rig.as(era)
    const list = async (method: string) => JSON.stringify((await ask(method)).response?.result)
    t.match(await list('tools/list'), /"tools":\[\{"name":"plain"/)
    for (const method of methods.slice(1)) t.match(await list(method), /":\[\]/)
    const calls: [string, Record<string, unknown>][] = [
      ['tools/call', { name: 'read', arguments: {} }],
      ['prompts/get', { name: 'ask' }],
      ['resources/read', { uri: 'test://one' }],
      ['resources/read', { uri: 'test://of/x' }],
    ]
    for (const [method, params] of calls) t.match((await ask(method, params)).response?.error, { code: 403 })
    t.match((await ask('tools/call', { name: 'plain', arguments: {} })).response?.result, { content: [{}] })
    t.same(
      raw.requests.filter(({ method }) => /call|get|read/.test(method)).map(({ params }) => params['name']),
      ['plain'],
      'the backend received nothing else',
    )
    const refusals = () => rig.auditText().split('"guardrail_refused"').length - 1
    await until(() => refusals() >= calls.length)
    t.equal(refusals(), calls.length)
    const status = await rig.status()
    t.match(
      status,
      /tool \\"read\\" from backend raw is left out: guardrail hidden rejects hidden characters/,
    )
    t.match(status, /the instructions from backend raw are left out/)
    t.match(rig.log(), /"event":"items_withheld".*"left_out":5/)
    t.same(
      rig.vmcp.view.problems().map(({ type }) => type),
      ['items_withheld'],
    )
  })
}

for (const [action, expected] of [
  ['strip', `Call read ${stripped}`],
  ['mark', `Call read ${marked}`],
  ['observe', `Call read ${hostile}`],
  ['refuse', undefined],
] as const) {
  t.test(`${action}: applies to the instructions of a single backend`, async (t) => {
    const raw = await backend(t)
    const rig = await startGuardrailRig(t, { raw: raw.url }, mark(action), {}, { advertise: 'backends' })
    const opened = (await openSession(rig.vmcp.url)).initialized as { result?: Record<string, unknown> }
    t.equal(opened.result?.['instructions'], expected)
    const found = await stateless(rig.vmcp.url, 'server/discover')
    t.equal(found.response?.result?.['instructions'], expected)
  })
}

t.test(
  'names and values that programs compare are never changed, and the item is left out instead',
  async (t) => {
    const schema = (own: object) => ({ inputSchema: { type: 'object', properties: { a: own } } })
    const names = {
      name: { name: 'na\u200bme', inputSchema: { type: 'object' } },
      member: { name: 'member', inputSchema: { type: 'object', properties: { 'a\u200b': {} } } },
      enum: { name: 'enum', ...schema({ enum: ['x', 'y\u200b'] }) },
      const: { name: 'const', ...schema({ const: 'y\u200b' }) },
      pattern: { name: 'pattern', ...schema({ pattern: '^\u200b$' }) },
      fine: { name: 'fine', ...schema({ enum: ['x'], description: 'y\u200b' }) },
      // Properties with these names are ordinary schema members.
      named: {
        name: 'named',
        inputSchema: { type: 'object', properties: { enum: { description: 'y\u200b' } } },
      },
    }
    const raw = await backend(t, () => Object.values(names))
    for (const action of ['mark', 'strip']) {
      const rig = await startGuardrailRig(t, { raw: raw.url }, mark(action))
      const { response } = await (await rig.as('stateless'))('tools/list')
      const listed = response?.result?.['tools'] as { name: string }[]
      t.same(listed.map(({ name }) => name).sort(), ['fine', 'named'])
    }
    const rig = await startGuardrailRig(t, { raw: raw.url }, mark('observe'))
    const { response } = await (await rig.as('stateless'))('tools/list')
    t.equal((response?.result?.['tools'] as unknown[] | undefined)?.length, 7, 'observe changes nothing')
  },
)

t.test('match and except select items as they select calls', async (t) => {
  const other = { ...tool, name: 'other' }
  const raw = await backend(t, () => [tool, other])
  const describedBy = async (settings: object) => {
    const rig = await startGuardrailRig(t, { raw: raw.url }, mark('strip', settings))
    const { response } = await (await rig.as('stateless'))('tools/list')
    const listed = response?.result?.['tools'] as { name: string; title: string; description: string }[]
    return Object.fromEntries(listed.map(({ name, title, description }) => [name, [title, description]]))
  }
  const [raws, own] = [
    [hostile, hostile],
    [stripped, stripped],
  ]
  t.same(await describedBy({ match: { tools: ['read'] } }), { read: own, other: raws })
  t.same(await describedBy({ except: [{ tools: ['read'] }] }), { read: raws, other: own })
  t.same(await describedBy({ match: { backends: ['raw'] }, except: [{ pointers: ['/title'] }] }), {
    read: [hostile, stripped],
    other: [hostile, stripped],
  })
})

t.test('tool search, scripts and workflows see the guarded texts', async (t) => {
  const raw = await backend(t)
  const steps = [{ id: 'one', type: 'tool', tool: 'read', arguments: {} }]
  const flow = { name: 'flow', description: 'f', parameters: { type: 'object' }, steps }
  const search = await startGuardrailRig(t, { raw: raw.url }, mark('strip'), { optimizer: {} })
  const found = await (await search.as('stateless'))('tools/call', {
    name: 'find_tool',
    arguments: { tool_description: 'read zerowidth', tool_keywords: ['zerowidth'] },
  })
  t.match(JSON.stringify(found.response?.result), stripped)
  t.notMatch(JSON.stringify(found.response?.result), tags)
  const code = await startGuardrailRig(t, { raw: raw.url }, mark('refuse'), {
    codeMode: { enabled: true },
    compositeTools: [flow],
  })
  const listed = await (await code.as('stateless'))('tools/list')
  t.notMatch(
    JSON.stringify(listed.response?.result),
    /"flow"|"read"/,
    'a workflow with this tool is left out, too',
  )
  const script = await (await code.as('stateless'))('tools/call', {
    name: 'execute_tool_script',
    arguments: { script: 'return read()' },
  })
  t.match(JSON.stringify(script.response), /read/)
  t.notOk(raw.requests.some(({ method }) => method === 'tools/call'))
})

t.test('the name of a rejected tool leads to no other backend', async (t) => {
  const [first, second] = [await backend(t), await backend(t, () => [{ ...plain, name: 'read' }])]
  const rig = await startGuardrailRig(t, { first: first.url, second: second.url }, mark('refuse'))
  const ask = await rig.as('stateless')
  t.match((await ask('tools/call', { name: 'read', arguments: {} })).response?.error, { code: 403 })
  t.notOk(second.requests.some(({ method }) => method === 'tools/call'))
})

t.test("pinning compares the backend's original texts, and clients see the guarded texts", async (t) => {
  let tools = [tool]
  const raw = await startRawBackend({ ...lists(() => tools), capabilities: '{"tools":{}}' })
  t.teardown(() => raw.close())
  const json = JSON.stringify(tool)
  const settings = {
    aggregation: bareNames('raw'),
    pinning: pinning('freeze'),
    toolLocks: [lockOf('raw', [json], { instructions: `Call read ${hostile}` })],
    guardrails: mark('strip'),
  }
  let now = Date.now()
  const vmcp = await startTestVmcp({ raw: raw.url }, settings, {
    clock: { now: () => now, after: () => () => {} },
  })
  t.teardown(() => vmcp.close())
  const shown = async () =>
    (await stateless(vmcp.url, 'tools/list')).response?.result?.['tools'] as { description: string }[]
  t.match(await shown(), [{ description: stripped }], 'pinned, with guardrails applied')
  t.match(
    vmcp.view.pins(),
    [{ counts: { pinned: 2, changed: 0 } }],
    'the approved item is the unmodified one',
  )
  tools = [{ ...tool, description: stripped }]
  now += 60_000
  await until(async () => {
    await shown()
    return vmcp.view.pins()?.[0]?.counts.changed === 1
  })
  t.match(
    await shown(),
    [{ description: stripped }],
    'the approved definition is shown, with guardrails applied',
  )
  const other = [lockOf('raw', [JSON.stringify(tools[0])], { instructions: `Call read ${hostile}` })]
  vmcp.reload(vmcpConfig({ raw: raw.url }, { ...settings, toolLocks: other }))
  await until(() => vmcp.view.pins()?.[0]?.counts.pinned === 2)
})

t.test('a changed setting applies to known lists, and bytes stay the same between requests', async (t) => {
  const raw = await backend(t, () => [tool])
  const settings = (guardrails?: unknown) => ({
    aggregation: bareNames('raw'),
    ...(guardrails ? { guardrails } : {}),
  })
  const vmcp = await startTestVmcp({ raw: raw.url }, settings())
  t.teardown(() => vmcp.close())
  const list = async () => JSON.stringify((await stateless(vmcp.url, 'tools/list')).response?.result)
  t.ok((await list()).includes(tags))
  vmcp.reload(vmcpConfig({ raw: raw.url }, settings(mark('strip'))))
  await until(async () => !(await list()).includes(tags))
  t.equal(await list(), await list())
  vmcp.reload(vmcpConfig({ raw: raw.url }, settings(mark('refuse'))))
  await until(async () => (await list()).includes('"tools":[]'))
  t.match(vmcp.view.problems(), [{ type: 'items_withheld', backend: 'raw' }])
  vmcp.reload(vmcpConfig({ raw: raw.url }, settings()))
  await until(async () => (await list()).includes(tags))
  t.same(vmcp.view.problems(), [], 'and the problem is closed')
})
