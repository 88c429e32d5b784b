/** Workflow checks reject a definition that would fail only when a tool is called. */
import t from 'tap'
import { schemaCheck } from '../../../../schemas/workflow/schema-check.ts'
import { proves } from '../../../helpers/proves.ts'
import { validateResource } from '../../../../hooks/index.ts'
import { resource } from '../../../hooks/resources.ts'
import { ask, each, violationsOf, tool } from './parts.ts'
import { wrong } from './wrong.ts'

t.test('workflow: every mistake is reported with its location', async (t) => {
  proves(
    '3.config.compositeTools.steps.defaultResults.required',
    '3.config.compositeTools.templates',
    '3.config.compositeTools.output.required',
    '3.config.compositeTools.output.properties',
    '3.config.compositeTools.steps.step',
    '3.config.compositeTools.steps.tool',
    '3.config.compositeTools.steps.schema',
  )
  for (const [what, spec, where] of wrong) t.match(violationsOf(spec).join('\n'), where, what)
})

t.test('workflow: valid definitions are accepted', async (t) => {
  proves('3.config.compositeTools.description')
  const right = [
    { description: undefined },
    {
      parameters: {
        type: 'object',
        properties: { a: { $ref: '#/$defs/a~1b' }, c: { $ref: '#named' }, d: { $ref: '#' } },
        $defs: { 'a/b': { type: 'string', pattern: '^a+$' }, n: { $anchor: 'named' } },
      },
    },
    {
      steps: [
        tool('a'),
        tool('b', { dependsOn: ['a'] }),
        tool('c', { dependsOn: ['b'], arguments: { q: '{{.steps.a.output.x}}' } }),
      ],
    },
    {
      steps: [tool('a', { condition: '{{.params.go}}', defaultResults: { x: null } })],
      output: { properties: { x: { type: 'string', value: '{{.steps.a.output.x}}' } } },
    },
    {
      steps: [
        tool('a', { onError: { action: 'continue' } }),
        tool('b', { dependsOn: ['a'], condition: '{{eq .steps.a.status "completed"}}' }),
      ],
    },
    {
      steps: [
        ask(),
        tool('b', {
          dependsOn: ['ask'],
          arguments: { q: '{{.steps.ask.output.content.ok}} {{.steps.ask.output.action}}' },
        }),
      ],
    },
    { steps: [tool('a', { arguments: { q: { deep: ['{{ no template here'] } } })] },
    { parameters: { type: 'object', properties: { n: { type: 'integer', default: 3, enum: [1, 3] } } } },
    { parameters: { type: 'object', properties: { a: { default: { pattern: '(' } } } } },
    {
      parameters: {
        type: 'object',
        properties: Object.fromEntries(
          ['^[\\u00e0-\\u00ff]+$', '\\p{Lu}[\\p{L}\\pN]*', '^(?<year>\\d{4})-\\/$', '\\uD83D\\uDE00'].map(
            (pattern, i) => [`p${i}`, { type: 'string', pattern }],
          ),
        ),
      },
    },
    {
      output: {
        properties: Object.fromEntries(
          [
            ['string', 5],
            ['string', { a: 1 }],
            ['integer', 4.7],
            ['integer', '12'],
            ['number', '-1e3'],
            ['boolean', 'False'],
            ['object', '{"a":1}'],
            ['object', {}],
            ['array', []],
            ['array', null],
          ].map(([type, value], i) => [`x${i}`, { type, value: 'v', default: value }]),
        ),
      },
    },
    { steps: [each({ step: { tool: 'x.y', arguments: { i: '{{.forEach.item}} {{.forEach.index}}' } } })] },
    {
      output: {
        properties: {
          x: { type: 'object', properties: { y: { type: 'string', value: '{{json .steps.a.content}}' } } },
        },
      },
    },
  ]
  for (const spec of right) t.strictSame(violationsOf(spec), [], JSON.stringify(spec))
})

t.test('workflow: a template below the first level causes a warning', async (t) => {
  const nested = { q: { deep: ['{{.params.x}}'] }, plain: '{{.params.x}}', list: [1] }
  const { warnings } = validateResource(
    resource('VirtualMCPCompositeToolDefinition', 'w', {
      name: 'w',
      steps: [tool('a', { arguments: nested }), each({ step: { tool: 'x.y', arguments: nested } })],
    }),
  )
  t.strictSame(
    warnings,
    ['a', 'each'].map(
      (id) =>
        `w: {{ in ${id}.q is not evaluated: only strings at the first level are templates (nestedTemplates)`,
    ),
  )
})

t.test(
  'workflow: with nestedTemplates, a template below the first level is checked like any other',
  async (t) => {
    const nested = (text: string) => ({
      nestedTemplates: true,
      steps: [tool('a', { arguments: { q: { deep: [text] } } })],
    })
    t.strictSame(violationsOf(nested('{{.params.x}}')), [])
    t.match(violationsOf(nested('{{.params.x')), [
      /^spec\.steps\[0\]\.arguments\.q\.deep\[0\]: is not a template/,
    ])
    t.match(violationsOf(nested('{{.timestamp}}')), [/q\.deep\[0\]: reads \.timestamp, which does not exist/])
    t.match(violationsOf(nested('{{.steps.b.output.x}}')), [/q\.deep\[0\]/])
    const { warnings } = validateResource(
      resource('VirtualMCPCompositeToolDefinition', 'w', {
        name: 'w',
        description: 'd',
        ...nested('{{.params.x}}'),
      }),
    )
    t.strictSame(warnings, [])
  },
)

t.test('workflow checks: recursive schemas that go deeper with each step are accepted', async (t) => {
  const list = { type: 'object', properties: { next: { $ref: '#/$defs/list' } } }
  for (const properties of [
    { a: { $ref: '#/$defs/list', default: { next: { next: {} } } } },
    { a: { type: 'array', items: { $ref: '#/properties/a' } } },
    { a: { anyOf: [{ $ref: '#/$defs/list' }, { $ref: '#/$defs/list' }] } },
    { a: { $ref: '#list' } },
  ])
    t.strictSame(
      violationsOf({
        parameters: { type: 'object', properties, $defs: { list: { ...list, $anchor: 'list' } } },
      }),
      [],
    )
})

t.test('workflow checks: a chain with too many references is rejected', async (t) => {
  const $defs = Object.fromEntries(
    Array.from({ length: 300 }, (_, i) => [`d${i}`, { $ref: `#/$defs/d${i + 1}` }]),
  )
  const parameters = {
    type: 'object',
    properties: { a: { $ref: '#/$defs/d0' } },
    $defs: { ...$defs, d300: {} },
  }
  t.match(violationsOf({ parameters }), [
    /leads back to itself endlessly, or leads through more than 100 schemas/,
  ])
})

t.test('workflow checks: a value too deep for its schema is rejected', async (t) => {
  const chain = Object.fromEntries(
    Array.from({ length: 90 }, (_, i) => [`d${i}`, { $ref: `#/$defs/d${i + 1}` }]),
  )
  const $defs = { ...chain, d90: { properties: { a: { $ref: '#/$defs/d0' } } } }
  let value: object = {}
  for (let depth = 0; depth < 500; depth++) value = { a: value }
  const check = schemaCheck({ type: 'object', properties: { a: { $ref: '#/$defs/d0' } }, $defs })
  t.strictSame(
    check.violations(value, () => {}),
    ['/ is too deep to be checked against the schema'],
  )
})
