/** Workflows: the data of tools: parameters, arguments, results, output. */
import t from 'tap'
import { proves } from '../../../helpers/proves.ts'
import { outcome, rig, toolEntry, workflow } from '../../../helpers/vmcp/workflow-rig.ts'

const typed = {
  type: 'object',
  properties: {
    n: { type: 'integer' },
    f: { type: 'number' },
    b: { type: 'boolean' },
    s: { type: 'string' },
    o: { type: 'object' },
    l: { type: 'array' },
    m: { type: ['integer', 'null'] },
    u: { type: ['string', 'integer'] },
    any: {},
  },
}
const one = (args: object, more: object = {}) =>
  workflow({ steps: [{ id: 'a', tool: 'x.a', arguments: args }], ...more })

t.test('arguments: top-level strings are templates, and all other values pass unchanged', async (t) => {
  proves('3.config.compositeTools.steps.arguments')
  const r = await rig(
    one({
      text: 'Hi {{.params.name}}!',
      plain: 'no template',
      number: 5,
      flag: false,
      none: null,
      list: ['{{.params.name}}', 1],
      object: { deep: '{{.params.name}}', more: { '{{x': '{{' } },
    }),
  )
  await r.run({ name: 'Ann' })
  t.strictSame(r.calls[0]?.args, {
    text: 'Hi Ann!',
    plain: 'no template',
    number: 5,
    flag: false,
    none: null,
    list: ['{{.params.name}}', 1],
    object: { deep: '{{.params.name}}', more: { '{{x': '{{' } },
  })
})

t.test('arguments: with nestedTemplates, strings at any depth are templates', async (t) => {
  const given = {
    list: ['{{.params.name}}', 1, '{{.params.none}}'],
    object: {
      deep: 'Hi {{.params.name}}!',
      more: { '{{x': 'plain', n: '{{.params.n}}' },
      none: '{{.params.none}}',
    },
    top: '{{.params.name}}',
  }
  const r = await rig(one(given, { nestedTemplates: true }))
  await r.run({ name: 'Ann', n: 5 })
  t.strictSame(r.calls[0]?.args, {
    list: ['Ann', 1, null],
    object: { deep: 'Hi Ann!', more: { '{{x': 'plain', n: 5 } },
    top: 'Ann',
  })
  const failing = await rig(one({ list: [{ deep: '{{index .params.list 3}}' }] }, { nestedTemplates: true }))
  t.match(await failing.run({ list: [1] }), { text: /argument "list": template expansion failed/ })
})

t.test("arguments: converted to the types of the tool's schema, even for hidden tools", async (t) => {
  const tools = [toolEntry('x_a', { inputSchema: typed, advertised: false })]
  const cases: [object, object, object][] = [
    [{ n: '{{.params.n}}' }, { n: 5 }, { n: 5 }],
    [{ n: '0{{.params.n}}' }, { n: 5 }, { n: 5 }],
    [{ n: '{{.params.n}}' }, { n: '7' }, { n: 7 }],
    [{ n: '{{.params.n}}' }, { n: 'seven' }, { n: 'seven' }],
    [{ n: '12' }, {}, { n: 12 }],
    [
      { f: '{{.params.f}}', b: '{{.params.b}}' },
      { f: 2.5, b: true },
      { f: 2.5, b: true },
    ],
    [{ f: '1e3', b: 'T' }, {}, { f: 1000, b: true }],
    [{ f: 'x', b: 'yes' }, {}, { f: 'x', b: 'yes' }],
    [{ s: '{{.params.n}}' }, { n: 1234567 }, { s: '1234567' }],
    [
      { o: '{{.params.o}}', l: '{{.params.l}}' },
      { o: { a: 1 }, l: [1, 'b'] },
      { o: { a: 1 }, l: [1, 'b'] },
    ],
    [
      { o: '{"a": {{json .params.l}}}', l: '[{{.params.n}}]' },
      { l: [1], n: 2 },
      { o: { a: [1] }, l: [2] },
    ],
    [{ o: '[1]', l: '{}' }, {}, { o: '[1]', l: '{}' }],
    [
      { m: '{{.params.m}}', u: '{{.params.n}}' },
      { m: null, n: 4 },
      { m: null, u: 4 },
    ],
    [{ m: '3', any: '{{.params.n}}', gone: '{{.params.n}}' }, { n: 4 }, { m: 3, any: 4, gone: 4 }],
    [{ n: '{{.params.none}}', s: '{{.params.none}}' }, {}, {}],
    [{ s: 'a{{.params.none}}' }, {}, { s: 'a<no value>' }],
    [{ s: '{{.params.x}}', n: '{{.params.x}}', m: '{{.params.x}}' }, { x: null }, { m: null }],
    [{ any: '{{.params.x}}', gone: '{{.params.x}}' }, { x: null }, { any: null, gone: null }],
  ]
  for (const [args, params, expected] of cases) {
    const r = await rig(one(args), { tools })
    await r.run(params)
    t.strictSame(r.calls[0]?.args, expected, JSON.stringify(args))
  }
  const exact = await rig(one({ n: '{{.params.id}}', s: '{{.params.id}}' }), { tools })
  const response = await exact.run('{"id":9007199254740993}')
  t.equal(exact.calls[0]?.raw, '{"n":9007199254740993,"s":"9007199254740993"}')
  t.equal(response.isError, false)
})

t.test('parameters: defaults fill absent ones, and an invalid one is named', async (t) => {
  const parameters = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'object',
    properties: {
      who: { type: 'string', minLength: 1 },
      count: { type: 'integer', default: 3, maximum: 1e17 },
      opt: { type: ['string', 'null'], default: 'd' },
      when: { type: 'string', format: 'date' },
    },
    required: ['who'],
    additionalProperties: false,
  }
  const r = await rig(one({ a: '{{.params.who}} {{.params.count}} {{json .params.opt}}' }, { parameters }))
  t.strictSame((await r.run({ who: 'ada', opt: null })).structured, { a: 'ada 3 null' })
  t.strictSame((await r.run('{"who":"b","count":9007199254740993}')).structured, {
    a: 'b 9007199254740993 "d"',
  })
  for (const [args, text] of [
    [{}, /^Workflow execution failed: invalid arguments: \/ must have required property 'who'$/],
    [{ who: 5 }, /invalid arguments: \/who must be string/],
    [{ who: 'a', more: 1 }, /must NOT have additional properties \("more"\)/],
    [{ who: '', count: 'x' }, /\/who must NOT have fewer than 1 characters; \/count must be integer/],
    [{ who: 'a', when: 'today' }, /\/when must match format "date"/],
  ] as const) {
    t.match(await r.run(args), { isError: true, text })
  }
  t.equal(r.calls.length, 2)
})

t.test('results: structured content, otherwise a map of the content', async (t) => {
  const read = async (result: object) => {
    const r = await rig(
      workflow({
        steps: [
          { id: 'a', tool: 'x.a' },
          {
            id: 'b',
            tool: 'x.b',
            dependsOn: ['a'],
            arguments: { o: '{{json .steps.a.output}}', c: '{{json .steps.a.content}}' },
          },
        ],
      }),
      { response: ({ tool, args }) => (tool === 'x_a' ? outcome(result) : args) },
    )
    const { structured } = await r.run()
    const { o, c } = structured as { o: string; c: string }
    return [JSON.parse(o), JSON.parse(c)]
  }
  const text = (value: string) => ({ type: 'text', text: value })
  t.strictSame(await read({ content: [text('t')], structuredContent: { a: 1 } }), [{ a: 1 }, { text: 't' }])
  t.strictSame(await read({ content: [text('{"x":1}')] }), [{ text: '{"x":1}' }, { text: '{"x":1}' }])
  t.strictSame(await read({ content: [text('t')], structuredContent: [1] }), [{ text: 't' }, { text: 't' }])
  t.strictSame(
    (
      await read({
        content: [
          text('1'),
          { type: 'image', data: 'AAA', mimeType: 'image/png' },
          text('2'),
          { type: 'audio', data: 'x' },
          { type: 'resource', resource: { uri: 'r:1', text: 'rt' } },
          { type: 'resource', resource: { uri: 'r:2', blob: 'rb' } },
          { type: 'resource_link', uri: 'r:3' },
          { type: 'image', data: 'BBB' },
          text('3'),
        ],
      })
    )[0],
    { text: '1', text_1: '2', text_2: '3', image_0: 'AAA', image_1: 'BBB', resource: 'rt', resource_1: 'rb' },
  )
  t.strictSame(await read({ content: [] }), [{}, {}])
  const failures: [object, RegExp][] = [
    [{ isError: true, content: [text(''), text('second')] }, /x\.a: second/],
    [{ isError: true, content: [], structuredContent: { message: 'm' } }, /x\.a: m/],
    [{ isError: true, content: [] }, /x\.a: tool execution error/],
  ]
  for (const [result, why] of failures) {
    const r = await rig(one({}), { response: () => outcome(result) })
    t.match(await r.run(), { isError: true, text: why })
  }
})

t.test('output: without a definition, the result of the step that completed last', async (t) => {
  proves('3.config.compositeTools.output')
  const steps = [
    { id: 'a', tool: 'x.a', arguments: { a: '1' } },
    { id: 'b', tool: 'x.b', dependsOn: ['a'], arguments: { b: '2' } },
  ]
  const r = await rig(workflow({ steps }))
  t.strictSame(await r.run(), { text: '{"b":"2"}', structured: { b: '2' }, isError: false })
  const skipped = await rig(
    workflow({ steps: [steps[0], { ...steps[1], condition: 'false', defaultResults: { b: 3 } }] }),
  )
  t.strictSame((await skipped.run()).structured, { a: '1' })
  const none = await rig(workflow({ steps: [{ ...steps[0], condition: 'false' }] }))
  t.strictSame(await none.run(), { text: 'null', structured: undefined, isError: false })
})

t.test('output: properties of every type, nested properties, and their schema', async (t) => {
  proves(
    '3.config.compositeTools.output',
    '3.config.compositeTools.output.properties.value',
    '3.config.compositeTools.output.properties.properties',
    '3.config.compositeTools.output.properties.description',
  )
  const output = {
    properties: {
      text: { type: 'string', description: 'A text', value: 'n={{.params.n}}' },
      int: { type: 'integer', value: '{{.params.n}}' },
      num: { type: 'number', value: '{{.params.f}}' },
      yes: { type: 'boolean', value: '{{gt .params.n 4}}' },
      object: { type: 'object', value: '{"a": {{json .params.l}}, "b": {"c": 1}}' },
      whole: { type: 'object', value: '{{.steps.a.output}}' },
      list: { type: 'array', value: '{{.params.l}}' },
      parsed: { type: 'array', value: '{{json .params.l}}' },
      nested: {
        type: 'object',
        description: 'Nested',
        properties: {
          inner: {
            type: 'object',
            properties: { n: { type: 'integer', description: 'deep', value: '{{.params.n}}' } },
          },
        },
      },
      run: {
        type: 'string',
        value: '{{.workflow.status}} {{.workflow.step_count}} {{.workflow.duration_ms}}',
      },
    },
    required: ['text'],
  }
  const r = await rig(one({ x: 'y' }, { output }))
  const { structured, text } = await r.run({ n: 5, f: 2.5, l: [1, 'b', { c: null }] })
  const expected = {
    text: 'n=5',
    int: 5,
    num: 2.5,
    yes: true,
    object: { a: [1, 'b', { c: null }], b: { c: 1 } },
    whole: { x: 'y' },
    list: [1, 'b', { c: null }],
    parsed: [1, 'b', { c: null }],
    nested: { inner: { n: 5 } },
    run: 'completed 1 0',
  }
  t.strictSame(structured, expected)
  t.strictSame(JSON.parse(text), expected)
  t.match(JSON.parse(r.listed?.json.toString() ?? '').outputSchema, {
    type: 'object',
    properties: {
      text: { type: 'string', description: 'A text' },
      nested: {
        type: 'object',
        description: 'Nested',
        properties: {
          inner: { type: 'object', properties: { n: { type: 'integer', description: 'deep' } } },
        },
      },
    },
    required: ['text'],
  })
})

t.test('output: a default replaces a failed template, and is converted to the type', async (t) => {
  proves('3.config.compositeTools.output.properties.default')
  const of = async (property: object, required: string[] = []) => {
    const r = await rig(one({}, { output: { properties: { p: property }, required } }))
    const response = await r.run({ s: 'text' })
    return response.isError ? response.text : (response.structured as { p: unknown }).p
  }
  const cases: [object, unknown][] = [
    [{ type: 'string', value: '{{.params.no}}', default: 'd' }, 'd'],
    [{ type: 'string', value: '{{fromJson "x"}}', default: 5 }, '5'],
    [{ type: 'string', value: '{{fromJson "x"}}', default: { a: 1 } }, 'map[a:1]'],
    [{ type: 'integer', value: '{{.params.s}}', default: 4.9 }, 4],
    [{ type: 'integer', value: '{{.params.s}}', default: '12' }, 12],
    [{ type: 'number', value: '{{.params.s}}', default: 1.5 }, 1.5],
    [{ type: 'boolean', value: '{{.params.s}}', default: 'true' }, true],
    [{ type: 'boolean', value: '{{.params.s}}', default: false }, false],
    [{ type: 'array', value: '{{.params.s}}', default: [] }, []],
    [{ type: 'object', value: '{{.params.s}}', default: '{"a":[1]}' }, { a: [1] }],
    [{ type: 'object', value: '{"a":', default: {} }, {}],
    [{ type: 'string', value: '{{.params.no}}' }, '<no value>'],
    [{ type: 'string', value: '' }, ''],
  ]
  for (const [property, expected] of cases)
    t.strictSame(await of(property), expected, JSON.stringify(property))
  const violations: [object, string[], RegExp][] = [
    [
      { type: 'string', value: '{{.params.no}}' },
      ['p'],
      /output construction failed: property "p": the template has no value/,
    ],
    [{ type: 'integer', value: '{{.params.no}}' }, [], /property "p": the template has no value/],
    [{ type: 'integer', value: '{{.params.s}}' }, [], /property "p": the value is not of type integer/],
    [{ type: 'array', value: '{"a":1}' }, [], /not of type array/],
    [{ type: 'integer', value: '9223372036854775808' }, [], /not of type integer/],
    [
      { type: 'boolean', value: '{{fromJson "x"}}' },
      [],
      /property "p": value: template expansion failed: fromJson/,
    ],
    [
      { type: 'object', properties: { in: { type: 'integer', value: 'x' } } },
      [],
      /property "p\.in": the value/,
    ],
  ]
  for (const [property, required, why] of violations) t.match(await of(property, required), why)
})

t.test('size: a text that grows too large fails only its step', async (t) => {
  const r = await rig(one({ s: '{{range 100}}{{$.params.big}}{{end}}' }))
  t.match(await r.run({ big: 'x'.repeat(1_000_000) }), {
    isError: true,
    text: /argument "s": template expansion failed: template output too large/,
  })
  t.equal(r.calls.length, 0)
})
