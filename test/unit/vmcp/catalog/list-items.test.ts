/** Single items of lists: repaired, excluded, or returned with their original bytes. */
import { deepStrictEqual } from 'node:assert'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv'
import t from 'tap'
import { checkItem } from '../../../../runtime/vmcp/catalog/items/check.ts'
import { ErrorCollector, noErrors } from '../../../../runtime/vmcp/catalog/items/errors.ts'
import { plainValue } from '../../../../runtime/vmcp/catalog/items/plain.ts'
import type { ItemKind } from '../../../../runtime/vmcp/model/catalog/entries.ts'

interface Checked {
  readonly item?: unknown
  readonly session?: unknown
  readonly repaired?: readonly string[]
  readonly failure?: string
}

/** Checks an item and asserts that the result does not depend on the formatting of its JSON. */
function check(kind: ItemKind, item: unknown): Checked {
  if (typeof item === 'string') return checkText(kind, item)
  const checked = checkText(kind, JSON.stringify(item))
  deepStrictEqual(checkText(kind, JSON.stringify(item, undefined, 1)), checked)
  return checked
}

function checkText(kind: ItemKind, text: string): Checked {
  const checked = checkItem(kind, Buffer.from(text))
  if ('failure' in checked) return { failure: checked.failure }
  return {
    item: JSON.parse(checked.json.toString()),
    ...(checked.sessionJson ? { session: JSON.parse(checked.sessionJson.toString()) } : {}),
    repaired: checked.repaired,
  }
}

const TOOL = { name: 't', inputSchema: { type: 'object' } }

t.test('well-formed items keep their bytes, including unknown members', async (t) => {
  const items: [ItemKind, string][] = [
    [
      'tools',
      '{ "name": "t", "title":"T","x-own": [1e2, 12345678901234567890], "inputSchema":{"type":"object","properties":{"a":{"default":1.50}},"required":["a"],"$defs":{}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"x":1},"icons":[{"src":"data:,","sizes":["any"],"theme":"dark"}],"execution":{"taskSupport":"optional"},"_meta":{"a":null} }',
    ],
    [
      'resources',
      '{"uri":"test://a","name":"a","size":12,"mimeType":"text/plain","annotations":{"audience":["user"],"priority":0.5,"lastModified":"2025-02-28T10:00:00.5+01:00"}}',
    ],
    ['templates', '{"uriTemplate":"test://{a}","name":"a"}'],
    ['prompts', '{"name":"p","arguments":[{"name":"a","description":"d","required":true},{"name":"b"}]}'],
  ]
  for (const [kind, json] of items) {
    const bytes = Buffer.from(json)
    t.match(checkItem(kind, bytes), { json: bytes, repaired: [], sessionJson: undefined }, kind)
  }
})

t.test("checking an item's value and checking its bytes have the same result", async (t) => {
  const values = [
    null,
    true,
    7,
    -1,
    0.5,
    'x',
    '',
    'light',
    'any',
    'required',
    'object',
    '2025-02-28T10:00:00Z',
    '2025-02-30T10:00:00Z',
  ]
  const nested = values.flatMap((value) => [value, [value], { type: value }, { name: value }, { src: value }])
  const deeper = nested.flatMap((value) => [
    value,
    [value],
    { type: 'object', properties: value },
    { type: 'object', properties: { a: value } },
    { type: 'object', required: value },
    { type: 'object', $schema: value },
    { title: value, readOnlyHint: value },
    { audience: value, priority: value, lastModified: value },
    [{ src: 's', theme: value, sizes: value }],
    { taskSupport: value },
  ])
  const whole = {
    tools: { ...TOOL, description: 'd' },
    resources: { uri: 'u', name: 'n' },
    templates: { uriTemplate: 'u', name: 'n' },
    prompts: { name: 'n' },
  }
  const members =
    'name uri uriTemplate title description icons _meta annotations execution inputSchema outputSchema size mimeType arguments'
  for (const [kind, item] of Object.entries(whole) as [ItemKind, object][]) {
    for (const member of members.split(' '))
      for (const value of deeper) check(kind, { ...item, [member]: value })
  }
  t.ok(deeper.length > 500)
})

t.test('JSON that is not in canonical form is read byte by byte', async (t) => {
  const one = { name: 't', list: [1, -0.5, 1e21, 'é', '\ud800', '\n'], own: { __proto__: null, a: {} } }
  t.same(plainValue(Buffer.from(JSON.stringify(one))), one)
  for (const text of [
    '{"a":1,"a":1}',
    '{"a":{"b":1,"b":1}}',
    '{"a": 1}',
    '{"a":1.0}',
    '{"a":-0}',
    '{"a":1e400}',
    '{"a":12345678901234567891}',
    '{"a":"\\u0041"}',
    '{"b":1,"1":1}',
    '{"a":1',
  ])
    t.equal(plainValue(Buffer.from(text)), undefined, text)
  t.equal(plainValue(Buffer.from(JSON.stringify('x'.repeat(65_536)))), undefined, 'too long')
})

t.test('null is treated as absent', async (t) => {
  const nulls = {
    title: null,
    description: null,
    outputSchema: null,
    annotations: null,
    icons: null,
    _meta: null,
  }
  t.same(check('tools', { ...TOOL, ...nulls, execution: null, inputSchema: null }), {
    item: TOOL,
    repaired: [
      'title',
      'description',
      'icons',
      '_meta',
      'annotations',
      'execution',
      'inputSchema',
      'outputSchema',
    ],
  })
  t.same(check('prompts', { name: 'p', arguments: null }).item, { name: 'p' })
  const inner = { type: null, properties: null, required: null, $schema: null }
  t.same(check('tools', { name: 't', inputSchema: inner }).item, TOOL)
  t.same(check('tools', { name: 't', inputSchema: { properties: { a: null } } }).item, {
    name: 't',
    inputSchema: { properties: { a: {} }, type: 'object' },
  })
})

t.test('optional members of the wrong type are removed', async (t) => {
  const wrong = { title: 5, icons: {}, annotations: [], _meta: 'x', execution: { taskSupport: 'maybe' } }
  t.same(check('tools', { ...TOOL, ...wrong, outputSchema: 'x' }).item, { ...TOOL, execution: {} })
  const icons = [{ src: 'a', sizes: '48x48', theme: 'blue' }, { href: 'b' }, null]
  t.same(check('tools', { ...TOOL, icons }).item, { ...TOOL, icons: [{ src: 'a' }] })
  const hints = { readOnlyHint: 'yes', destructiveHint: false, title: null }
  t.same(check('tools', { ...TOOL, annotations: hints }).item, {
    ...TOOL,
    annotations: { destructiveHint: false },
  })
  const resource = { uri: 'test://a', name: 'a' }
  const notes = { audience: ['robot', 'user'], priority: 7, lastModified: '2025-02-30T00:00:00Z' }
  t.same(check('resources', { ...resource, size: 1.5, mimeType: 1, annotations: notes }).item, {
    ...resource,
    annotations: { audience: ['user'] },
  })
})

t.test('items with an invalid name, address, schema or arguments are excluded', async (t) => {
  const cases: [ItemKind, unknown][] = [
    ['tools', '"text"'],
    ['tools', { ...TOOL, description: 'x'.repeat(2 ** 20) }],
    ['tools', { inputSchema: { type: 'object' } }],
    ['tools', { ...TOOL, name: 5 }],
    ['tools', { ...TOOL, name: '' }],
    ['tools', { name: 't', inputSchema: { type: 'array' } }],
    ['tools', { name: 't', inputSchema: 'none' }],
    ['tools', { name: 't', inputSchema: { properties: [1] } }],
    ['tools', { name: 't', inputSchema: { properties: { a: 5 } } }],
    ['tools', { name: 't', inputSchema: { required: 'a' } }],
    ['tools', '{"name":"t","inputSchema":{"type":"object","properties":{"a":{"maximum":1e999}}}}'],
    ['tools', '{"name":"t","inputSchema":{"type":"object"},"annotations":{"title":"a","title":"b"}}'],
    ['resources', { uri: 'test://a' }],
    ['resources', { uri: null, name: 'a' }],
    ['templates', { uriTemplate: 'test://{a}' }],
    ['prompts', { name: 'p', arguments: {} }],
    ['prompts', { name: 'p', arguments: [{ description: 'no name' }] }],
  ]
  for (const [kind, item] of cases)
    t.type(check(kind, item).failure, 'string', JSON.stringify(item).slice(0, 100))
})

t.test('items that only the stateless era supports have a separate form for sessions', async (t) => {
  const list = { ...TOOL, outputSchema: { type: 'array', items: {} } }
  t.same(check('tools', list), { item: list, session: TOOL, repaired: [] })
  const untyped = { ...TOOL, outputSchema: { properties: { a: {} } } }
  t.same(check('tools', untyped).session, {
    ...TOOL,
    outputSchema: { properties: { a: {} }, type: 'object' },
  })
  const flags = { name: 't', inputSchema: { type: 'object', properties: { any: true, none: false } } }
  t.same(check('tools', flags), {
    item: flags,
    session: { name: 't', inputSchema: { type: 'object', properties: { any: {}, none: { not: {} } } } },
    repaired: [],
  })
  t.same(
    check('tools', { ...TOOL, inputSchema: { type: ['object', 'null'] } }).item,
    TOOL,
    'arguments are an object in any case',
  )
})

t.test('an output schema that session clients cannot compile is removed for them', async (t) => {
  const kept = [
    { properties: { a: { $ref: '#/$defs/A' } }, $defs: { A: { items: { $ref: '#/$defs/A' } } } },
    {
      properties: { a: { anyOf: [{ type: 'string', pattern: '^a+$' }, { type: 'null' }] } },
      additionalProperties: false,
    },
    { $id: 'https://example.com/s', $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'T' },
    { properties: { id: { type: ['string', 'null'], format: 'uuid', enum: ['a'] } }, required: ['id'] },
  ]
  for (const schema of kept) {
    const outputSchema = { type: 'object', ...schema }
    t.same(check('tools', { ...TOOL, outputSchema }), { item: { ...TOOL, outputSchema }, repaired: [] })
  }
  const dropped = [
    { properties: { a: { type: 'text' } } },
    { properties: { a: { pattern: '(' } } },
    { properties: { a: { $ref: 'https://example.com/other' } } },
    { properties: { a: { $ref: '#/$defs/none' } } },
    { properties: { a: { $ref: '#/properties/a' } } },
    { properties: { a: { minimum: '5' } } },
    { properties: { a: { enum: [] } } },
    { id: 'https://example.com/s' },
    { properties: { a: { $anchor: 'x' } } },
  ]
  for (const schema of dropped) {
    const outputSchema = { type: 'object', ...schema }
    t.same(check('tools', { ...TOOL, outputSchema }), {
      item: { ...TOOL, outputSchema },
      session: TOOL,
      repaired: [],
    })
  }
})

t.test('schemas at the limits compile, and schemas beyond the limits are excluded', async (t) => {
  const chain = (length: number) => {
    const names = Array.from({ length }, (_, i) => [
      `d${i}`,
      { items: { $ref: `#/$defs/d${(i + 1) % length}` } },
    ])
    return { type: 'object', properties: { a: { $ref: '#/$defs/d0' } }, $defs: Object.fromEntries(names) }
  }
  const nest = (depth: number): object =>
    depth === 0 ? {} : { type: 'object', properties: { x: nest(depth - 1) } }
  const compiler = new AjvJsonSchemaValidator()
  for (const [most, more] of [
    [chain(99), chain(200)],
    [nest(32), nest(40)],
  ] as const) {
    t.notOk(check('tools', { ...TOOL, outputSchema: most }).session)
    t.doesNotThrow(() => compiler.getValidator(most))
    t.ok(check('tools', { ...TOOL, outputSchema: more }).session)
  }
})

t.test('errors are counted, a few are named, and they are logged once until they change', async (t) => {
  const collector = new ErrorCollector('b')
  t.equal(collector.all, noErrors)
  collector.leftOut('tools', undefined, 'name must be a non-empty string')
  for (let i = 0; i < 15; i++) collector.repaired('prompts', `p${i}${'x'.repeat(200)}`, ['title'])
  const { repaired, leftOut, problems } = collector.all
  t.same([repaired, leftOut, problems.length], [15, 1, 12])
  t.match(
    problems[0]?.message,
    'tool without a name from backend b is left out: name must be a non-empty string',
  )
  t.match(problems[1]?.message, /^prompt "p0x{98}" from backend b was repaired; affected members: title$/)
  t.equal(problems.at(-1)?.message, '5 more items from backend b were repaired')
})

t.test(
  'items that take long to check are excluded, and schemas that take long to compile are removed for clients',
  async (t) => {
    const output = (members: string) =>
      `{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"object",${members}}}`
    const classes = (count: number) => output(`"pattern":"[${'\\\\p{L}'.repeat(count)}]"`)
    t.equal(check('tools', classes(32)).session, undefined, 'both eras get it')
    t.notMatch(check('tools', classes(33)).session, { outputSchema: {} })
    const many = Array.from({ length: 20 }, (_, i) => `"p${i}":{"pattern":"${'[a-z]'.repeat(200)}"}`)
    t.notMatch(check('tools', output(`"properties":{${many.join()}}`)).session, { outputSchema: {} })
    t.match(check('tools', output(`"enum":[${'0,'.repeat(50_000)}0]`)), {
      failure: /has more than \d+ values/,
    })
  },
)

t.test('an empty list instead of an empty object is repaired, and vice versa', async (t) => {
  const type = 'object'
  for (const [given, wanted] of [
    [[], { type }],
    [
      { type, properties: [] },
      { type, properties: {} },
    ],
    [
      { type, properties: { a: [] }, required: {} },
      { type, properties: { a: {} }, required: [] },
    ],
  ] as const)
    t.match(check('tools', { name: 't', inputSchema: given }), {
      item: { name: 't', inputSchema: wanted },
      repaired: ['inputSchema'],
    })
  for (const unusable of [[1], { type, properties: [{}] }, { type, required: { a: true } }])
    t.match(check('tools', { name: 't', inputSchema: unusable }), { failure: /inputSchema/ })
})
