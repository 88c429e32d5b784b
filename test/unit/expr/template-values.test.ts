/** Templates beyond Go's engine: unformatted values, exact integers, and the limits of one expansion. */
import t from 'tap'
import {
  defaultLimits,
  EvaluationError,
  expand,
  isSingleAction,
  jsonText,
  TemplateMeter,
  parseJson,
  type TemplateValue,
  valueOf,
  WorkLimitError,
} from '../../../runtime/expr/template/index.ts'
import { parseTemplate } from '../../../schemas/workflow/index.ts'

const meter = (limits = defaultLimits) => new TemplateMeter(limits)
const run = (text: string, data: TemplateValue, limits = defaultLimits) =>
  expand(parseTemplate(text), data, meter(limits))
const small = { maxBytes: 1000, maxWork: 10_000 }

t.test('single action: returns its value without formatting', async (t) => {
  const data = { n: 5, list: [1, 2], none: null }
  for (const text of ['{{.n}}', '{{- .n -}}', '{{ .n | print | len }}', '{{/* why */}}{{.n}}'])
    t.ok(isSingleAction(parseTemplate(text)), text)
  for (const text of [
    '',
    'x',
    '{{.n}} ',
    '{{.n}}{{.n}}',
    '{{$x := .n}}',
    '{{if .n}}{{end}}',
    '{{$x := 1}}{{$x}}',
  ])
    t.notOk(isSingleAction(parseTemplate(text)), text)
  t.equal(valueOf(parseTemplate('{{.n}}'), data, meter()), 5)
  t.strictSame(valueOf(parseTemplate('{{.list}}'), data, meter()), [1, 2])
  t.equal(valueOf(parseTemplate('{{.gone}}'), data, meter()), undefined)
  t.equal(valueOf(parseTemplate('{{.none}}'), data, meter()), null)
  t.throws(() => valueOf(parseTemplate('x'), data, meter()), TypeError)
})

t.test('integers: values beyond the precision of a float stay exact', async (t) => {
  const data = parseJson(
    '{"id":9007199254740993,"ids":[12345678901234567890],"f":1.5,"text":"1234567890123456789"}',
    meter(),
  )
  t.equal(
    run('{{.id}} {{.ids}} {{.f}} {{json .}}', data),
    '9007199254740993 [12345678901234567890] 1.5 {"f":1.5,"id":9007199254740993,"ids":[12345678901234567890],"text":"1234567890123456789"}',
    meter(),
  )
  t.equal(run('{{gt .id 9007199254740992}} {{eq .id 9007199254740993}}', data), 'true true')
  t.equal(run('{{fromJson "9007199254740993"}}', {}), '9007199254740993')
  t.equal(
    jsonText(parseJson('{"b":1e400,"a":[1.0,100000000000000000000.5]}', meter()), meter()),
    '{"a":[1,100000000000000000000],"b":null}',
  )
})

t.test('integers: an overlong integer is rejected before any computation', async (t) => {
  const digits = '7'.repeat(400)
  t.equal(run('{{.n}}', parseJson(`{"n":${digits}}`, meter())), digits)
  t.throws(() => parseJson(`{"n":${digits}7}`, meter()), /a number has more than 400 digits/)
  t.throws(() => run(`{{fromJson "${digits}7"}}`, null), /a number has more than 400 digits/)
  t.strictSame(parseJson(`{"n":1.${digits}7e5,"s":"${digits}7"}`, meter()), {
    n: 177777.77777777778,
    s: `${digits}7`,
  })
})

t.test('names: names of JavaScript members have no meaning', async (t) => {
  const data = parseJson('{"a":{"__proto__":1},"s":"x"}', meter())
  t.equal(
    run('{{.constructor}} {{.a.toString}} {{index .a "hasOwnProperty"}} {{.a.__proto__}}', data),
    '<no value> <no value> <no value> 1',
  )
  t.throws(() => run('{{.s.length}}', data), EvaluationError)
})

t.test('order: names and texts are sorted by their UTF-8 bytes', async (t) => {
  const data = { '\u{1F600}': 1, '\uFB00': 2, a: 3 }
  t.equal(run('{{range $k, $v := .}}{{$v}}{{end}} {{lt "\uFB00" "\u{1F600}"}}', data), '321 true')
})

t.test('limits: text, work and depth are bounded', async (t) => {
  const long = 'x'.repeat(900)
  t.equal(run('{{.}}', long, small).length, 900)
  const tooLarge: [string, TemplateValue][] = [
    ['{{.}}{{.}}', long],
    ['{{range 1000000}}xxxxxxxxxx{{end}}', null],
    ['{{$x := "a"}}{{range 100}}{{$x = print $x $x}}{{end}}', null],
    ['{{printf "%s%s" . .}}', long],
    ['{{json (printf "%999d" 1)}}', null],
    ['{{html .}}', '<'.repeat(900)],
    ['{{printf "%2000d" 1}}', null],
    ['{{.}}', 'é'.repeat(600)],
  ]
  for (const [text, data] of tooLarge) t.throws(() => run(text, data, small), /too large/, text)
  const tooMuch: [string, TemplateValue][] = [
    ['{{range 1000000000}}{{end}}', null],
    ['{{range .}}{{range $}}{{range $}}{{end}}{{end}}{{end}}', Array.from({ length: 100 }, () => 1)],
    [
      '{{range .l}}{{if eq $.a $.b}}{{end}}{{end}}',
      { l: Array.from({ length: 2000 }, () => 1), a: long, b: `${long.slice(1)}y` },
    ],
    [
      '{{range .l}}{{if lt $.a $.b}}{{end}}{{end}}',
      { l: Array.from({ length: 200 }, () => 1), a: long, b: long },
    ],
    ['{{range .l}}{{if len $.a}}{{end}}{{end}}', { l: Array.from({ length: 1000 }, () => 1), a: long }],
    ['{{range 10000}}{{$x := fromJson $}}{{end}}', '"x"'],
  ]
  for (const [text, data] of tooMuch) t.throws(() => run(text, data, small), WorkLimitError, text)
  t.throws(() => run('{{define "r"}}{{template "r" .}}{{end}}{{template "r" .}}', null), /depth limit/)
  let deep: TemplateValue = 1
  for (let i = 0; i < 150; i++) deep = [deep]
  for (const text of ['{{.}}', '{{json .}}', '{{printf "%v" .}}'])
    t.throws(() => run(text, deep), /depth limit/, text)
  t.throws(() => run('{{printf "%99999d" 1}}', null), /too large/)
  t.throws(() => run('{{printf "%.99999f" 0.1}}', null), /too large/)
  t.throws(() => run('{{printf "%*d" 99999 1}}', null), /too large/)
})

t.test('limits: a text of the maximum size can be split and joined', async (t) => {
  const text = JSON.stringify(
    Array.from({ length: 100_000 }, (_, i) => `item ${i} of very many, all alike`.padEnd(90, '.')),
  )
  t.ok(text.length > 8_000_000)
  t.equal(run('{{len (fromJson .)}}', text), '100000')
  t.equal(run('{{.}}', text).length, text.length)
})

t.test('errors: contain types, never values', async (t) => {
  const secret = 'hunter2'
  for (const text of [
    '{{.x}}',
    '{{fromJson .}}',
    '{{index . "a"}}',
    '{{eq . 1}}',
    '{{lt . true}}',
    '{{range .}}{{end}}',
    '{{call .}}',
    '{{slice . 99}}',
  ]) {
    try {
      run(text, secret)
      t.fail(`${text} works`)
    } catch (error) {
      t.ok(error instanceof EvaluationError && !error.message.includes(secret), text)
    }
  }
})
