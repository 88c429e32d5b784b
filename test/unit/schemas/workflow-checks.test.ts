/**
 * Workflow checks: what would only fail when somebody calls the tool is refused before.
 */
import t from 'tap'
import { validateResource } from '../../../hooks/index.ts'
import { proves } from '../../helpers/proves.ts'
import { resource } from '../../hooks/resources.ts'

const tool = (id: string, more: object = {}) => ({ id, tool: `x.${id}`, ...more })
const problemsOf = (spec: object) =>
  validateResource(
    resource('VirtualMCPCompositeToolDefinition', 'w', {
      name: 'w',
      description: 'd',
      steps: [tool('a')],
      ...spec,
    }),
  ).problems.map(({ path, message }) => `${path}: ${message}`)
const ask = (more: object = {}) => ({
  id: 'ask',
  type: 'elicitation',
  message: 'Sure?',
  schema: { type: 'object', properties: { ok: { type: 'boolean' } } },
  ...more,
})
const each = (more: object = {}) => ({
  id: 'each',
  type: 'forEach',
  collection: '{{.params.list}}',
  step: { tool: 'x.y' },
  ...more,
})

const wrong: readonly [string, object, RegExp][] = [
  ['a tool step without tool', { steps: [{ id: 'a' }] }, /steps\[0\]\.tool: is required/],
  ['a tool name with blanks', { steps: [{ id: 'a', tool: 'no tool' }] }, /is not a tool name/],
  ['tool and message', { steps: [tool('a', { message: 'm' })] }, /both tool and message/],
  ['elicitation without message', { steps: [ask({ message: undefined })] }, /message: is required/],
  ['elicitation without schema', { steps: [ask({ schema: undefined })] }, /schema: is required/],
  [
    'elicitation with a nested schema',
    { steps: [ask({ schema: { type: 'object', properties: { a: { type: 'object' } } } })] },
    /properties\.a: must be a string/,
  ],
  [
    'elicitation with no schema at all',
    { steps: [ask({ schema: { type: 'object', properties: { a: { type: 'strin' } } } })] },
    /not a JSON Schema/,
  ],
  ['forEach without collection', { steps: [each({ collection: undefined })] }, /collection: is required/],
  ['forEach without step', { steps: [each({ step: undefined })] }, /\.step: is required/],
  ['forEach with tool', { steps: [each({ tool: 'x.y' })] }, /inner step has the tool/],
  ['forEach over index', { steps: [each({ itemVar: 'index' })] }, /cannot be index/],
  ['forEach over no identifier', { steps: [each({ itemVar: '1st' })] }, /must be an identifier/],
  ['an unknown dependency', { steps: [tool('a', { dependsOn: ['b'] })] }, /there is no step "b"/],
  [
    'a long circle',
    {
      steps: [
        tool('a', { dependsOn: ['c'] }),
        tool('b', { dependsOn: ['a'] }),
        tool('c', { dependsOn: ['b'] }),
      ],
    },
    /a -> c -> b -> a/,
  ],
  ['parameters of another type', { parameters: { type: 'array' } }, /parameters\.type: must be object/],
  [
    'parameters that are no schema',
    { parameters: { type: 'object', properties: [] } },
    /parameters: is not a JSON Schema/,
  ],
  [
    'a template that does not parse',
    { steps: [tool('a', { arguments: { q: '{{.params.x' } })] },
    /arguments\.q: is not a template: an action is not closed/,
  ],
  [
    'a template of the output that does not parse',
    {
      output: {
        properties: { x: { type: 'object', properties: { y: { type: 'string', value: '{{nope 1}}' } } } },
      },
    },
    /output\.properties\.x\.properties\.y\.value: is not a template: the function nope/,
  ],
  [
    'a read of nothing there is',
    { steps: [tool('a', { arguments: { q: '{{.param.x}}' } })] },
    /arguments\.q: reads \.param, which does not exist; there are \.params, \.steps/,
  ],
  [
    'a read of the iteration outside of it',
    { steps: [each({ collection: '{{.forEach.item}}' })] },
    /collection: reads \.forEach, which only the arguments/,
  ],
  [
    'a read of no step',
    { steps: [tool('a', { arguments: { q: '{{.steps.gone.output.x}}' } })] },
    /reads the step gone, which does not exist/,
  ],
  [
    'a read of a step that need not have run',
    { steps: [tool('a'), tool('b', { arguments: { q: '{{.steps.a.output.x}}' } })] },
    /name it in dependsOn/,
  ],
  [
    'a read of what may be skipped',
    {
      steps: [tool('a', { condition: '{{.params.go}}' })],
      output: { properties: { x: { type: 'string', value: '{{.steps.a.output.x}}' } } },
    },
    /defaultResults: needs x/,
  ],
  [
    'a read of what may be skipped, through index, with and a variable',
    {
      steps: [
        tool('a-1', { condition: '{{.params.go}}' }),
        tool('b', {
          dependsOn: ['a-1'],
          arguments: {
            q: '{{with index .steps "a-1"}}{{$o := .output}}{{range $.params.l}}{{$o.y}}{{end}}{{end}}',
          },
        }),
      ],
    },
    /steps\[0\]\.defaultResults: needs y/,
  ],
  [
    'a read of what may be skipped in the arguments of an inner step',
    {
      steps: [
        tool('a', { onError: { action: 'continue' } }),
        each({ dependsOn: ['a'], step: { tool: 'x.y', arguments: { q: '{{.steps.a.output.z}}' } } }),
      ],
    },
    /steps\[0\]\.defaultResults: needs z/,
  ],
  [
    'parameters with a reference that leads nowhere',
    { parameters: { type: 'object', properties: { a: { $ref: '#/$defs/gone' } } } },
    /parameters: is not a JSON Schema: the reference "#\/\$defs\/gone" must lead/,
  ],
  [
    'parameters with a reference to elsewhere',
    { parameters: { type: 'object', properties: { a: { $ref: 'https://example.com/schema' } } } },
    /must lead to a part of the same schema/,
  ],
  [
    'parameters with a broken pattern',
    { parameters: { type: 'object', properties: { a: { type: 'string', pattern: '(' } } } },
    /parameters: is not a JSON Schema: a pattern is not a regular expression/,
  ],
  [
    'elicitation with a schema that nobody can read',
    { steps: [ask({ schema: { type: 'object', title: 'x'.repeat(110_000) } })] },
    /schema: is too large/,
  ],
  [
    'a read of what an elicitation has not',
    { steps: [ask(), tool('b', { dependsOn: ['ask'], arguments: { q: '{{.steps.ask.output.ok}}' } })] },
    /reads output\.ok of the step ask, whose output has action, content, skipped; what the user filled in is below content/,
  ],
  [
    'a read of what a forEach has not',
    {
      steps: [each()],
      output: { properties: { x: { type: 'string', value: '{{.steps.each.output.items}}' } } },
    },
    /whose output has iterations, count, completed, failed/,
  ],
  [
    'an output that is required and not there',
    { output: { properties: { x: { type: 'string', value: 'v' } }, required: ['y'] } },
    /"y" is not one of the properties/,
  ],
  [
    'an output with nothing',
    { output: { properties: { x: { type: 'string' } } } },
    /needs value or properties/,
  ],
  [
    'an output with both',
    { output: { properties: { x: { type: 'object', value: 'v', properties: {} } } } },
    /both value and properties/,
  ],
  [
    'nested properties of a string',
    { output: { properties: { x: { type: 'string', properties: { y: { type: 'string', value: 'v' } } } } } },
    /only for type object/,
  ],
]

t.test('workflow: every mistake is found, with its place', async (t) => {
  proves(
    '3.config.compositeTools.steps.defaultResults.required',
    '3.config.compositeTools.templates',
    '3.config.compositeTools.output.required',
    '3.config.compositeTools.output.properties',
    '3.config.compositeTools.steps.step',
    '3.config.compositeTools.steps.tool',
    '3.config.compositeTools.steps.schema',
  )
  for (const [what, spec, where] of wrong) t.match(problemsOf(spec).join('\n'), where, what)
})

t.test('workflow: what is right passes', async (t) => {
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
    { steps: [each({ step: { tool: 'x.y', arguments: { i: '{{.forEach.item}} {{.forEach.index}}' } } })] },
    {
      output: {
        properties: {
          x: { type: 'object', properties: { y: { type: 'string', value: '{{json .steps.a.content}}' } } },
        },
      },
    },
  ]
  for (const spec of right) t.strictSame(problemsOf(spec), [], JSON.stringify(spec))
})

t.test('workflow: a template below the first level is warned of', async (t) => {
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
      (id) => `w: {{ in ${id}.q stays as it is: only strings of the first level are templates`,
    ),
  )
})
