/** Workflows: types of arguments that a tool's schema defines indirectly, in nested schemas, or not at all. */
import t from 'tap'
import { rig, toolEntry, workflow } from '../../../helpers/vmcp/workflow-rig.ts'

const one = (args: object, more: object = {}) =>
  workflow({ steps: [{ id: 'a', tool: 'x.a', arguments: args }], ...more })

/** Schemas in the form that Pydantic generates for `Optional`, models and enumerations. */
const pydantic = {
  type: 'object',
  $defs: {
    Filter: {
      type: 'object',
      properties: { limit: { anyOf: [{ type: 'integer' }, { type: 'null' }] }, tag: { type: 'string' } },
    },
    Page: { $ref: '#/$defs/Size' },
    Size: { type: 'integer' },
    Loop: { $ref: '#/$defs/Loop' },
    Mode: { enum: ['fast', 'slow'] },
  },
  properties: {
    n: { anyOf: [{ type: 'integer' }, { type: 'null' }], default: null },
    l: { anyOf: [{ type: 'array', items: { type: 'integer' } }, { type: 'null' }] },
    o: { oneOf: [{ $ref: '#/$defs/Filter' }, { type: 'null' }] },
    f: { anyOf: [{ $ref: '#/$defs/Filter' }, { type: 'null' }] },
    filters: { type: 'array', items: { $ref: '#/$defs/Filter' } },
    page: { allOf: [{ $ref: '#/$defs/Page' }], title: 'Page' },
    mode: { allOf: [{ $ref: '#/$defs/Mode' }] },
    both: { anyOf: [{ type: 'integer' }, { type: 'string' }] },
    loop: { $ref: '#/$defs/Loop' },
    lost: { $ref: '#/$defs/None' },
    odd: { type: 'file' },
    yes: true,
  },
}

t.test('arguments: types come from the schema, through references and alternatives', async (t) => {
  const tools = [toolEntry('x_a', { inputSchema: pydantic })]
  const value = (name: string) => ({ [name]: '{{.params.v}}' })
  const cases: [object, unknown, object][] = [
    [value('n'), 5, { n: 5 }],
    [value('n'), '5', { n: 5 }],
    [value('n'), null, { n: null }],
    [value('l'), [1, 'b'], { l: [1, 'b'] }],
    [value('l'), '[1]', { l: [1] }],
    [value('o'), { k: 1 }, { o: { k: 1 } }],
    [value('o'), '{"limit":1}', { o: { limit: 1 } }],
    [value('page'), '20', { page: 20 }],
    [value('mode'), 5, { mode: '5' }],
    [value('both'), 5, { both: 5 }],
    [value('both'), '5', { both: '5' }],
    ...['loop', 'lost', 'odd', 'yes', 'unknown'].flatMap((name): [object, unknown, object][] => [
      [value(name), [1, 'b'], { [name]: [1, 'b'] }],
      [value(name), { k: 1 }, { [name]: { k: 1 } }],
      [value(name), '42', { [name]: '42' }],
      [value(name), null, { [name]: null }],
    ]),
    [{ n: '1{{.params.v}}', mode: '{{.params.v}}!' }, 5, { n: 15, mode: '5!' }],
  ]
  for (const [args, v, expected] of cases) {
    const r = await rig(one(args), { tools })
    await r.run({ v })
    t.strictSame(r.calls[0]?.args, expected, `${JSON.stringify(args)} with ${JSON.stringify(v)}`)
  }
})

t.test('arguments: nested templates get the type that the schema defines at their path', async (t) => {
  const tools = [toolEntry('x_a', { inputSchema: pydantic })]
  const given = {
    f: { limit: '{{.params.n}}', tag: '{{.params.n}}', more: '{{.params.list}}' },
    filters: [{ limit: '1{{.params.n}}' }, { limit: '{{.params.none}}', tag: '{{.params.list}}' }],
  }
  const r = await rig(one(given, { nestedTemplates: true }), { tools })
  await r.run({ n: '5', list: [1, 'b'] })
  t.strictSame(r.calls[0]?.args, {
    f: { limit: 5, tag: '5', more: [1, 'b'] },
    filters: [{ limit: 15 }, { tag: '[1 b]' }],
  })
})

t.test('arguments: a schema with too many references to itself restricts no type', async (t) => {
  const tree = (depth: number) => ({
    anyOf: Array.from({ length: 10 }, () => ({ $ref: `#/$defs/t${depth}` })),
  })
  const $defs = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`t${i}`, tree(i + 1)]))
  const inputSchema = { type: 'object', $defs, properties: { a: tree(0) } }
  const r = await rig(one({ a: '{{.params.v}}' }), { tools: [toolEntry('x_a', { inputSchema })] })
  await r.run({ v: { k: 1 } })
  t.strictSame(r.calls[0]?.args, { a: { k: 1 } })
})
