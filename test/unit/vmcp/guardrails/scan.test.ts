/** Scanning JSON: all its texts, replacements, rejections, and exceptions by pointer. */
import t from 'tap'
import { scanned, resultRules } from '../../../helpers/vmcp/guardrails/rules.ts'

const email = 'ada@example.com'
const mask = '[redacted:rule0]'
const emails = resultRules({ patterns: ['email'] })

const masked = (json: string, rules = emails, options = {}) => scanned(json, rules, options).bytes.toString()

t.test('texts are masked wherever they are, and no other byte changes', async (t) => {
  const odd =
    '{ "a" : 1.0e+400 ,"b":[ true,null , -0.0 ],"a":"\\u0041\\/" , "ü":"\\ud83d\\ude00 é 😀 \\ud800" }'
  t.equal(masked(odd), odd)
  for (const [before, after] of [
    [`"${email}"`, `"${mask}"`],
    [`["${email}","x"]`, `["${mask}","x"]`],
    [
      `{"content":[{"type":"text","text":"to ${email}, ${email}"}]}`,
      `{"content":[{"type":"text","text":"to ${mask}, ${mask}"}]}`,
    ],
    ['"\\u0061da@example\\u002ecom \\n\\\\ 😀"', `"${mask} \\n\\\\ 😀"`],
    ['"😀é ada@example.com é"', `"😀é ${mask} é"`],
    ['"\\ud83d\\ude00ada@example.com\\ud83d\\ude00"', `"\\ud83d\\ude00${mask}\\ud83d\\ude00"`],
    [`{"a":{"b":[{"c":"<${email}>"}]}}`, `{"a":{"b":[{"c":"<${mask}>"}]}}`],
  ] as const)
    t.equal(masked(before), after)
})

t.test('card numbers are found in JSON numbers, too', async (t) => {
  const cards = resultRules({ patterns: ['paymentCard'] })
  t.equal(
    masked('{"card":4111111111111111,"n":[12345,4111111111111112]}', cards),
    `{"card":"${mask}","n":[12345,4111111111111112]}`,
  )
})

t.test('a match in a member name rejects the message with every action except observe', async (t) => {
  t.match(scanned(`{"a":{"${email}":1}}`, emails), {
    refusedBy: 'rule0',
    findings: [{ outcome: 'refused', count: 1 }],
  })
  t.match(scanned('{"\\u0061da@example.com":1}', emails), { refusedBy: 'rule0' })
  t.match(scanned(`{"${email}":1}`, resultRules({ patterns: ['email'], action: 'observe' })), {
    refusedBy: undefined,
    findings: [{ outcome: 'observed' }],
  })
})

t.test('an exception for a name does not apply to the same name elsewhere', async (t) => {
  const rules = resultRules({ patterns: ['email'], except: [{ pointers: ['/skip'] }] })
  t.match(scanned(`{"skip":{"${email}":1}}`, rules), { refusedBy: undefined })
  t.match(scanned(`{"skip":{"${email}":1},"other":{"${email}":1}}`, rules), { refusedBy: 'rule0' })
})

t.test('JSON inside a text is still valid after masking', async (t) => {
  const inner = JSON.stringify({ a: `to\n${email}`, b: [`\t${email}\r`], c: `"${email}"` })
  const after = JSON.parse(masked(JSON.stringify({ text: inner }))) as { text: string }
  t.same(JSON.parse(after.text), { a: `to\n${mask}`, b: [`\t${mask}\r`], c: `"${mask}"` })
})

t.test('several rules: reject wins over mask, and mask wins over observe', async (t) => {
  const json = `{"a":"${email} EMP-123456"}`
  const rules = (first: string, second: string) =>
    resultRules({ patterns: ['email'], action: first }, { expressions: ['EMP-[0-9]{6}'], action: second })
  t.equal(masked(json, rules('mask', 'mask')), '{"a":"[redacted:rule0] [redacted:rule1]"}')
  t.equal(masked(json, rules('mask', 'observe')), '{"a":"[redacted:rule0] EMP-123456"}')
  t.match(scanned(json, rules('observe', 'refuse')), {
    refusedBy: 'rule1',
    bytes: Buffer.from(json),
    findings: [
      { rule: 'rule0', outcome: 'observed', count: 1 },
      { rule: 'rule1', outcome: 'refused', count: 1 },
    ],
  })
  const overlapping = resultRules({ expressions: ['b.*d'] }, { expressions: ['c.*e'] })
  t.equal(masked('"abcdef"', overlapping), '"a[redacted:rule0]f"')
})

t.test('exceptions by pointer apply only to the value and its descendants', async (t) => {
  const rules = resultRules({
    patterns: ['email'],
    except: [{ pointers: ['/structuredContent/owner', '/content/*/annotations', '/a~1b/~0'] }],
  })
  const at = (path: string) => masked(path.replace('@', `"${email}"`), rules)
  for (const free of [
    '{"structuredContent":{"owner":@}}',
    '{"structuredContent":{"owner":{"mail":[@]}}}',
    '{"content":[{},{"annotations":{"x":@}}]}',
    '{"a/b":{"~":@}}',
    '{"\\u0073tructuredContent":{"owner":@}}',
  ])
    t.match(at(free), email, free)
  for (const scanned of [
    '{"structuredContent":{"owners":@}}',
    '{"structuredContent":@}',
    '{"owner":@}',
    '{"content":[{"text":@}]}',
    '{"structuredContent":{"owner":1},"b":{"owner":@}}',
    '[{"structuredContent":{"owner":@}}]',
  ])
    t.notMatch(at(scanned), email, scanned)
})

t.test('a match in a fixed value rejects the message, and opaque state is ignored', async (t) => {
  const fixed = [['uri']]
  t.match(scanned(`{"uri":"mailto:${email}"}`, emails, { fixed }), { refusedBy: 'rule0' })
  t.match(scanned(`{"x":{"uri":"mailto:${email}"}}`, emails, { fixed }), { refusedBy: undefined })
  const skips = [['requestState']]
  t.match(
    masked(`{"requestState":"${email}","b":"${email}"}`, emails, { skips }),
    `{"requestState":"${email}","b":"${mask}"}`,
  )
})

t.test('long texts: a match across pieces is found and replaced', async (t) => {
  const rules = resultRules({
    patterns: ['email', 'privateKey'],
    expressions: ['EMP-[0-9]{6}', 'begin[^;]*end'],
  })
  const long = `begin${'x'.repeat(100_000)}end`
  for (const filler of ['lorem ', 'é😀"\\\n', '\u0000']) {
    for (const offset of [32_760, 32_768, 65_530]) {
      const before = filler.repeat(Math.ceil(offset / filler.length)).slice(0, offset)
      const text = `${before} ${email} ${before} EMP-123456 ${long} ${email}`
      const wanted = `${before} ${mask} ${before} ${mask} ${mask} ${mask}`
      t.equal(JSON.parse(masked(JSON.stringify(text), rules)), wanted)
    }
  }
})

t.test('the same rule counts each match, and no finding contains the value', async (t) => {
  const { findings } = scanned(`{"a":"${email}","b":["${email} x@y.org"]}`, emails)
  t.same(findings, [{ rule: 'rule0', outcome: 'masked', count: 3 }])
})
