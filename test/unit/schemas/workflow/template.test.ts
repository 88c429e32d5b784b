/** Workflow templates: valid and invalid syntax, and the values that a template reads. */
import t from 'tap'
import { parseTemplate } from '../../../../schemas/workflow/template/parser.ts'
import { pathsRead } from '../../../../schemas/workflow/template/reads.ts'
import { TemplateError } from '../../../../schemas/workflow/template/tree.ts'

/** Returns the parser's error for a template, or ''. Any other error fails the test. */
function errorOf(text: string): string {
  try {
    parseTemplate(text)
    return ''
  } catch (error) {
    if (error instanceof TemplateError) return error.message
    throw error
  }
}

t.test('template: structure, functions and variables are checked', async (t) => {
  const bad: [string, RegExp][] = [
    ['{{', /not closed/],
    ['{{}}', /empty/],
    ['{{if .x}}', /if has no end/],
    ['{{end}}', /end without a block/],
    ['{{else}}', /not follow an if/],
    ['{{if .x}}{{else}}{{else}}{{end}}', /else/],
    ['{{if .x}}{{else with .y}}{{end}}', /else of if/],
    ['{{if .x}}{{else if .y}}', /if has no end/],
    ['{{nope .x}}', /function nope/],
    ['{{$x}}', /\$x is not declared/],
    ['{{$x = 1}}', /\$x is not declared/],
    ['{{if $x := .a}}{{end}}{{$x}}', /\$x is not declared/],
    ['{{$x := $x}}', /\$x is not declared/],
    ['{{$x := 1}}{{define "t"}}{{$x}}{{end}}', /\$x is not declared/],
    ['{{$a, $b := .x}}', /only a range/],
    ['{{(.x}}', /parenthesis/],
    ['{{.x)}}', /parenthesis/],
    ['{{.x | 1}}', /cannot receive piped input/],
    ['{{print"a"}}', /not allowed in an action/],
    ['{{"a""b"}}', /space is missing/],
    ['{{"a".b}}', /field access on a value/],
    ['{{1.b}}', /not a number/],
    ['{{08}}', /octal/],
    ['{{9223372036854775808}}', /too large/],
    ['{{1e999}}', /too large/],
    ["{{'ab'}}", /one character/],
    ['{{"\\q"}}', /not an escape/],
    ['{{break}}', /not in a range/],
    ['{{range .x}}{{else}}{{break}}{{end}}', /not in a range/],
    ['{{range .x}}{{block "b" .}}{{continue}}{{end}}{{end}}', /not in a range/],
    ['{{.a-b}}', /"-" is not allowed in an action; write \(index/],
    ['{{"open}}', /string is not closed/],
    ['{{`open}}', /unterminated raw string/],
    ['{{/* open }}', /comment/],
    ['{{/* a */ .x}}', /comment/],
    ['{{template "t"}}', /not defined/],
    ['{{template t}}', /name in quotes/],
    ['{{if .x}}{{define "t"}}{{end}}{{end}}', /not allowed inside a block/],
    ['{{define "t"}}a{{end}}{{define "t"}}b{{end}}', /defined twice/],
    ['{{if .x .y ,}}{{end}}', /not expected here/],
    ['{{€}}', /"€" is not allowed in an action/],
  ]
  for (const [text, why] of bad) t.match(errorOf(text), why, text)
  const good = [
    'no template at all',
    '',
    '}} closing is text',
    '{"a": {{json .x}}}',
    '{{- .x -}}',
    '{{/* a comment with {{ in it */}}',
    '{{- /* a comment */ -}}',
    '{{if and .a (not .b)}}x{{else if .c}}y{{else}}z{{end}}',
    '{{with .a}}x{{else with .c}}y{{else}}z{{end}}',
    '{{range $i, $e := .params.list}}{{$i}}{{$e.name}}{{else}}none{{end}}',
    '{{with $x := .a}}{{$x}}{{end}}',
    '{{$x := 1}}{{$x = 2}}{{$x}}',
    '{{printf "%s }} %d" .name 3 | quote}}',
    '{{(index .steps "a-b").output.x}}',
    "{{`raw }}`}} {{'c'}} {{-1.5e3}} {{true}} {{nil}} {{0x1F}} {{0b1_0}} {{.5}} {{1.}}",
    '{{define "t"}}{{.}}{{end}}{{template "t" .x}}',
    '{{template "t"}}{{define "t"}}{{end}}',
    '{{block "t" .}}{{end}}',
    '{{.x | }}',
    '{{range .x}}{{break}}{{continue}}{{end}}',
    '{{.größe}}',
    '{{\n.x\n}}',
  ]
  for (const text of good) t.equal(errorOf(text), '', text)
})

t.test('template: a template is parsed into a tree', async (t) => {
  const { body, named } = parseTemplate('a {{- range $i, $e := .l | index 1}}{{$e.n}}{{else}}none{{end}}')
  t.equal(named.size, 0)
  t.strictSame(body, [
    { kind: 'text', text: 'a' },
    {
      kind: 'range',
      pipe: {
        variables: ['$i', '$e'],
        assigns: false,
        commands: [
          [{ kind: 'field', names: ['l'] }],
          [
            { kind: 'function', name: 'index' },
            { kind: 'int', value: 1n },
          ],
        ],
      },
      body: [
        {
          kind: 'action',
          pipe: {
            variables: [],
            assigns: false,
            commands: [[{ kind: 'variable', name: '$e', names: ['n'] }]],
          },
        },
      ],
      otherwise: [{ kind: 'text', text: 'none' }],
    },
  ])
})

t.test(
  'template: finds every value that the template reads, as far as it is known without values',
  async (t) => {
    const reads: [string, string[]][] = [
      ['{{.steps.a.output.x.y}}{{$.steps.b.status}}', ['steps.a.output.x.y', 'steps.b.status']],
      ['{{range .l}}{{.no}}{{$.steps.c.output.z}}{{end}}', ['l', 'steps.c.output.z']],
      ['{{with .steps.a}}{{.output.x}}{{end}}', ['steps.a', 'steps.a.output.x']],
      ['{{with .steps.a}}{{else}}{{.params.x}}{{end}}', ['steps.a', 'params.x']],
      ['{{$o := .steps.a.output}}{{range .l}}{{$o.x}}{{end}}', ['steps.a.output', 'l', 'steps.a.output.x']],
      ['{{$o := .a}}{{$o = .b}}{{$o.x}}', ['a', 'b']],
      ['{{(index .steps "a-b").output.x}}', ['steps', 'steps.a-b', 'steps.a-b.output.x']],
      ['{{index .steps .params.which "output"}}', ['steps', 'params.which']],
      ['{{define "t"}}{{.x}}{{end}}{{template "t" .a}}', ['a', 'a.x']],
      ['{{define "t"}}{{.x}}{{template "t" .y}}{{end}}{{template "t" .a}}', []],
      ['{{if or .a (eq .b.c "x")}}{{else if .d | not}}{{json .e}}{{end}}', ['a', 'b.c', 'd', 'e']],
    ]
    for (const [text, expected] of reads) {
      const found = pathsRead(parseTemplate(text)).map((path) => path.join('.'))
      if (expected.length > 0) t.strictSame(found, expected, text)
      else t.ok(found.length > 2, text)
    }
  },
)

t.test('template: hostile texts are parsed or rejected quickly', async (t) => {
  for (const text of [
    '{{'.repeat(50_000),
    `{{${'('.repeat(5_000)}}}`,
    `{{"${'\\'.repeat(50_000)}`,
    '{{.a'.repeat(20_000),
    `{{${' '.repeat(100_000)}`,
    '{{if .a}}'.repeat(50_000),
    `{{if .a}}${'{{else if .a}}'.repeat(50_000)}{{end}}`,
    Array.from({ length: 20_000 }, (_, i) => `{{$v${i} := 1}}`).join(''),
    `${' '.repeat(100_000)}{{- `.repeat(3),
  ]) {
    t.not(errorOf(text), '')
  }
  const wide = `{{define "t"}}${Array.from({ length: 200 }, (_, i) => `{{template "t" .f${i}}}`).join('')}{{end}}{{template "t" .}}`
  t.ok(pathsRead(parseTemplate(wide)).length > 0, 'a template that calls itself with many dots')
})
