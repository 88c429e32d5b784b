/** Invalid definitions: the mistake, the changed part of the spec, and the expected message. */
import { ask, each, tool } from './parts.ts'

type Wrong = readonly [what: string, spec: object, where: RegExp]

export const wrong: readonly Wrong[] = [
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
  ['an unknown dependency', { steps: [tool('a', { dependsOn: ['b'] })] }, /unknown step "b"/],
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
    'parameters with an invalid schema',
    { parameters: { type: 'object', properties: [] } },
    /parameters: is not a JSON Schema/,
  ],
  [
    'a template with a syntax error',
    { steps: [tool('a', { arguments: { q: '{{.params.x' } })] },
    /arguments\.q: is not a template: an action is not closed/,
  ],
  [
    'a template of the output with a syntax error',
    {
      output: {
        properties: { x: { type: 'object', properties: { y: { type: 'string', value: '{{nope 1}}' } } } },
      },
    },
    /output\.properties\.x\.properties\.y\.value: is not a template: unknown function nope/,
  ],
  [
    'a read of an unknown value',
    { steps: [tool('a', { arguments: { q: '{{.param.x}}' } })] },
    /arguments\.q: reads \.param, which does not exist; the roots are \.params, \.steps/,
  ],
  [
    'a read of the iteration outside a loop',
    { steps: [each({ collection: '{{.forEach.item}}' })] },
    /collection: reads \.forEach, which exists only in the arguments/,
  ],
  [
    'a read of an unknown step',
    { steps: [tool('a', { arguments: { q: '{{.steps.gone.output.x}}' } })] },
    /reads the step gone, which does not exist/,
  ],
  [
    'a read of a step that may not have run',
    { steps: [tool('a'), tool('b', { arguments: { q: '{{.steps.a.output.x}}' } })] },
    /add it to dependsOn/,
  ],
  [
    'a read of a step that may be skipped',
    {
      steps: [tool('a', { condition: '{{.params.go}}' })],
      output: { properties: { x: { type: 'string', value: '{{.steps.a.output.x}}' } } },
    },
    /defaultResults: needs x/,
  ],
  [
    'a read of a step that may be skipped, through index, with and a variable',
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
    'a read of a step that may be skipped, in the arguments of an inner step',
    {
      steps: [
        tool('a', { onError: { action: 'continue' } }),
        each({ dependsOn: ['a'], step: { tool: 'x.y', arguments: { q: '{{.steps.a.output.z}}' } } }),
      ],
    },
    /steps\[0\]\.defaultResults: needs z/,
  ],
  [
    'parameters with a dangling reference',
    { parameters: { type: 'object', properties: { a: { $ref: '#/$defs/gone' } } } },
    /parameters: is not a JSON Schema: the reference "#\/\$defs\/gone" must point/,
  ],
  [
    'a reference to itself',
    { parameters: { type: 'object', properties: { a: { $ref: '#/properties/a', default: 1 } } } },
    /parameters: is not a JSON Schema: the reference "#\/properties\/a" leads back to itself endlessly/,
  ],
  [
    'references in a circle',
    {
      parameters: {
        type: 'object',
        properties: { a: { $ref: '#/properties/b' }, b: { allOf: [{ $ref: '#/properties/a' }] } },
      },
    },
    /parameters: is not a JSON Schema: the reference "#\/properties\/a" leads back to itself endlessly/,
  ],
  [
    'a circle through a condition',
    { parameters: { type: 'object', properties: { a: { if: { not: { $ref: '#/properties/a' } } } } } },
    /parameters: is not a JSON Schema: the reference "#\/properties\/a" leads back to itself endlessly/,
  ],
  [
    'a dynamic reference to itself',
    { parameters: { type: 'object', properties: { a: { $dynamicAnchor: 'n', $dynamicRef: '#n' } } } },
    /parameters: is not a JSON Schema: the reference "#n" leads back to itself endlessly/,
  ],
  [
    'a dynamic reference to nothing',
    { parameters: { type: 'object', properties: { a: { $dynamicRef: '#gone' } } } },
    /the reference "#gone" must point to a part of the same schema/,
  ],
  [
    'parameters with a reference to elsewhere',
    { parameters: { type: 'object', properties: { a: { $ref: 'https://example.com/schema' } } } },
    /must point to a part of the same schema/,
  ],
  [
    'parameters with a broken pattern',
    { parameters: { type: 'object', properties: { a: { type: 'string', pattern: '(' } } } },
    /parameters: is not a JSON Schema: the pattern "\(" cannot be used: missing closing \)/,
  ],
  [
    'elicitation with an unreadable schema',
    { steps: [ask({ schema: { type: 'object', title: 'x'.repeat(110_000) } })] },
    /schema: is too large/,
  ],
  [
    'a read of a member that an elicitation does not have',
    { steps: [ask(), tool('b', { dependsOn: ['ask'], arguments: { q: '{{.steps.ask.output.ok}}' } })] },
    /reads output\.ok of the step ask, whose output has action, content, skipped; the input of the user is in content/,
  ],
  [
    'a read of a member that a forEach does not have',
    {
      steps: [each()],
      output: { properties: { x: { type: 'string', value: '{{.steps.each.output.items}}' } } },
    },
    /whose output has iterations, count, completed, failed/,
  ],
  [
    'an output that is required but not defined',
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
  [
    'a nested value that is not a string',
    { output: { properties: { x: { type: 'object', properties: { y: { type: 'integer', value: 5 } } } } } },
    /properties\.y\.value: must be a string/,
  ],
  ...(
    [
      ['integer', true, /must be a number or its text, found the boolean true/],
      ['integer', '4.5', /must be a number or its text/],
      ['number', 'many', /must be a number or its text/],
      ['boolean', 'yes', /must be a boolean or its text/],
      ['boolean', 1, /must be a boolean or its text/],
      ['array', {}, /must be an array or its text/],
      ['object', '[1]', /must be an object or its text/],
    ] as const
  ).map(
    ([type, value, where]) =>
      [
        `a default ${JSON.stringify(value)} of type ${type}`,
        { output: { properties: { x: { type, value: 'v', default: value } } } },
        new RegExp(`properties\\.x\\.default: ${where.source}`),
      ] satisfies Wrong,
  ),
  [
    'a default next to nested properties',
    {
      output: {
        properties: { x: { type: 'object', properties: { y: { type: 'string', value: 'v' } }, default: {} } },
      },
    },
    /properties\.x\.default: applies only to a property that has a value/,
  ],
  [
    'an output with a line break in its name',
    { output: { properties: { 'a\nb': { type: 'string', value: 'v' } } } },
    /properties\["a\\nb"\]: a name must not contain control characters/,
  ],
  [
    'a step that reads its own output',
    { steps: [tool('a', { arguments: { q: '{{.steps.a.output.x}}' } })] },
    /steps\[0\]\.arguments\.q: reads its own step/,
  ],
  [
    'retries of an elicitation',
    { steps: [ask({ onError: { action: 'retry', retryCount: 2 } })] },
    /onError\.action: retry is not for type elicitation/,
  ],
  [
    'retries of a loop',
    { steps: [each({ onError: { action: 'retry', retryCount: 2 } })] },
    /onError\.action: retry is not for type forEach; set it in the inner step/,
  ],
  [
    'settings of retries without retries',
    { steps: [tool('a', { onError: { action: 'continue', retryCount: 2, retryDelay: '1s' } })] },
    /onError: retryCount or retryDelay needs action retry, found continue/,
  ],
  [
    'settings of retries without retries in a loop',
    { steps: [each({ step: { tool: 'x.y', onError: { retryDelay: '1s' } } })] },
    /steps\[0\]\.step\.onError: retryDelay needs action retry/,
  ],
  ...Object.entries({
    schema: { type: 'object' },
    onDecline: { action: 'continue' },
    onCancel: { action: 'continue' },
    collection: '[1]',
    itemVar: 'one',
    maxIterations: 5,
    maxParallel: 5,
    step: { tool: 'x.y' },
  }).map(
    ([field, value]) =>
      [
        `${field} on a tool step`,
        { steps: [tool('a', { [field]: value })] },
        new RegExp(`steps\\[0\\]\\.${field}: is not for type tool, only for type (elicitation|forEach)`),
      ] satisfies Wrong,
  ),
  [
    'arguments of an elicitation',
    { steps: [ask({ arguments: { a: 1 } })] },
    /arguments: is not for type elicitation, only for type tool/,
  ],
  [
    'arguments of a loop',
    { steps: [each({ arguments: { a: 1 } })] },
    /arguments: is not for type forEach; the inner step has the arguments/,
  ],
  [
    'a default that violates its own schema',
    { parameters: { type: 'object', properties: { n: { type: 'integer', minimum: 1, default: 0 } } } },
    /parameters\.properties\.n\.default: does not match its own schema: \/ must be >= 1/,
  ],
  [
    'a default that violates a referenced schema',
    {
      parameters: {
        type: 'object',
        properties: { 'a/b': { $ref: '#/$defs/s', default: [1] } },
        $defs: { s: { type: 'array', items: { type: 'string' } } },
      },
    },
    /parameters\.properties\["a\/b"\]\.default: does not match its own schema: \/0 must be string/,
  ],
  [
    'a default of an elicitation that violates its own schema',
    { steps: [ask({ schema: { type: 'object', properties: { ok: { type: 'boolean', default: 'yes' } } } })] },
    /schema\.properties\.ok\.default: does not match its own schema/,
  ],
  [
    'a pattern without a linear-time match',
    { parameters: { type: 'object', properties: { a: { type: 'string', pattern: '^(?=a)' } } } },
    /the pattern "\^\(\?=a\)" cannot be used: .*lookaround, backreferences and repeats above 1000 are not supported/,
  ],
  [
    'a pattern of excessive size',
    { parameters: { type: 'object', properties: { a: { type: 'string', pattern: '(abcdefghij){1000}' } } } },
    /cannot be used: too large because of its repetitions/,
  ],
  [
    'a pattern with a Unicode script',
    { parameters: { type: 'object', properties: { a: { type: 'string', pattern: '\\p{Greek}' } } } },
    /\\p\{Greek\} is not a general category of Unicode/,
  ],
  [
    'parameters with too many schemas',
    {
      parameters: {
        type: 'object',
        properties: Object.fromEntries(Array.from({ length: 501 }, (_, i) => [`p${i}`, {}])),
      },
    },
    /parameters: is not a JSON Schema: contains more than 500 schemas/,
  ],
  ['a name with blanks', { name: 'my tool' }, /spec\.name: .*a tool name/],
  ['a name with a line break', { name: 'tool\nx' }, /spec\.name: .*a tool name/],
  [
    'an id with a line break',
    { steps: [tool('a'), { id: 'b\nc', tool: 'x.y' }] },
    /steps\[1\]\.id: .*control/,
  ],
  [
    'an inner id with a line break',
    { steps: [each({ step: { id: 'b\nc', tool: 'x.y' } })] },
    /step\.id: .*control/,
  ],
  ...['execute_tool_script', 'find_tool', 'call_tool'].map(
    (name) =>
      [
        `the name ${name}`,
        { name },
        /spec\.name: \w+ is reserved for one of the server's own tools/,
      ] as const,
  ),
]
