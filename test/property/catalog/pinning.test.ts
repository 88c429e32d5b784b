/**
 * Tests digests of tools: they are equal exactly when nothing that a client relies on differs, in any layout of the
 * JSON.
 *
 * `FC_RUNS` sets the number of cases, for longer runs by hand.
 */
import fc from 'fast-check'
import t from 'tap'
import { atOnce, canonicalText } from '../../../runtime/mcp/index.ts'
import { visibleText } from '../../../runtime/observe/index.ts'
import { differingParts, digestWork } from '../../../runtime/vmcp/catalog/pinning/digest.ts'
import { isNarrower } from '../../../runtime/vmcp/catalog/pinning/narrower.ts'

t.setTimeout(600_000)

const CASES = Number(process.env['FC_RUNS'] ?? 300)

function canonical(json: string): string {
  return atOnce(canonicalText(Buffer.from(json)))
}

function digests(tool: string) {
  return atOnce(digestWork('tool', Buffer.from(tool)))
}

/** Writes the value in another layout: another order of members, blanks, escapes, and other notations of numbers. */
function relaid(value: unknown, turn: number): string {
  const blank = ['', ' ', '\n\t'][turn % 3] ?? ''
  if (Array.isArray(value)) return `[${blank}${value.map((one) => relaid(one, turn + 1)).join(`,${blank}`)}]`
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value)
    const order = turn % 2 === 0 ? members.toReversed() : members
    return `{${order.map(([name, one]) => `${blank}${relaid(name, turn)}${blank}:${relaid(one, turn + 1)}`).join(',')}}`
  }
  if (typeof value === 'string' && turn % 2 === 1)
    return `"${[...Array(value.length).keys()].map((i) => `\\u${value.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`
  if (typeof value === 'number' && turn % 2 === 1 && !Object.is(value, -0)) {
    const text = JSON.stringify(value)
    return text.includes('e') ? text.toUpperCase() : `${text}${text.includes('.') ? '00' : '.0'}e+0`
  }
  return JSON.stringify(value)
}

t.test('the layout of the JSON does not change the digest', (t) => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), fc.nat(11), (value, turn) => {
      const plain = JSON.stringify(value)
      t.equal(canonical(relaid(JSON.parse(plain), turn)), canonical(plain))
    }),
    { numRuns: CASES },
  )
  t.end()
})

t.test('the canonical text is JSON of the same value, and stays the same when canonicalized again', (t) => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      const plain = JSON.stringify(value)
      const text = canonical(plain)
      t.strictSame(JSON.parse(text), JSON.parse(plain.replaceAll('-0,', '0,')))
      t.equal(canonical(text), text)
    }),
    { numRuns: CASES },
  )
  t.end()
})

/** Equal decimal values have one canonical text; different values have different ones. */
t.test('numbers are exact decimals, beyond the range of a double', (t) => {
  const digits = fc.stringMatching(/^[0-9]{1,40}$/)
  fc.assert(
    fc.property(
      fc.boolean(),
      digits,
      digits,
      fc.integer({ min: -50, max: 50 }),
      (minus, whole, rest, exponent) => {
        const sign = minus ? '-' : ''
        const plain = `${sign}${BigInt(whole)}.${rest}e${exponent}`
        const moved = `${sign}${BigInt(`${whole}${rest}`)}e${exponent - rest.length}`
        t.equal(canonical(plain), canonical(moved))
        const more = `${sign}${BigInt(`${whole}${rest}`) + 1n}e${exponent - rest.length}`
        t.not(canonical(plain), canonical(more))
      },
    ),
    { numRuns: CASES },
  )
  t.not(canonical('9007199254740992'), canonical('9007199254740993'))
  t.equal(canonical('1E400'), canonical('10e399'))
  t.equal(canonical('-0.0'), '0')
  t.equal(canonical('100'), '100', 'the text of RFC 8785 when a double can hold the value')
  t.equal(canonical('1e21'), '1e+21')
  t.end()
})

t.test('the test vectors of RFC 8785 produce the documented text', (t) => {
  const vector = `{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
    "string":"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}`
  const expected =
    '{"literals":[null,true,false],"numbers":[33333333333333329E-8,1e+30,4.5,0.002,1e-27],' +
    '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
  t.equal(canonical(vector), expected, 'except for the number that no double can hold')
  const names = '{"\\u20ac":1,"\\r":2,"\\ufb33":3,"1":4,"\\ud83d\\ude00":5,"\\u0080":6,"\\u00f6":7}'
  t.equal(
    canonical(names),
    '{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}',
    'names in the order of UTF-16 code units',
  )
  t.end()
})

t.test('strings are not normalized', (t) => {
  const tool = (text: string) =>
    digests(JSON.stringify({ name: 'x', description: text, inputSchema: { type: 'object' } }))
  t.not(tool('é').digest, tool('e\u0301').digest)
  t.not(tool('ok').digest, tool('ok\u200b').digest)
  t.not(tool('admin').digest, tool('аdmin').digest, 'a Cyrillic letter')
  t.not(canonical('"\\ud800"'), canonical('"\\ufffd"'), 'a lone surrogate is not the replacement character')
  t.end()
})

t.test('order is ignored only in `required`, and only where it is the schema keyword', (t) => {
  const schema = (text: string) => atOnce(canonicalText(Buffer.from(text), { schema: true }))
  const required = '{"type":"object","required":["b","a"],"properties":{"a":{"required":["d","c"]}}}'
  t.equal(
    schema(required),
    schema('{"type":"object","required":["a","b"],"properties":{"a":{"required":["c","d"]}}}'),
  )
  for (const [one, other] of [
    ['{"enum":["b","a"]}', '{"enum":["a","b"]}'],
    ['{"default":{"required":["b","a"]}}', '{"default":{"required":["a","b"]}}'],
    ['{"const":{"required":["b","a"]}}', '{"const":{"required":["a","b"]}}'],
    ['{"anyOf":[{"type":"string"},{"type":"null"}]}', '{"anyOf":[{"type":"null"},{"type":"string"}]}'],
    ['{"x-note":{"required":["b","a"]}}', '{"x-note":{"required":["a","b"]}}'],
  ] as const)
    t.not(schema(one), schema(other), one)
  const property = '{"properties":{"default":{"type":"object","required":["b","a"]}}}'
  t.equal(schema(property), schema(property.replace('["b","a"]', '["a","b"]')), 'a property named default')
  t.not(canonical('{"required":["b","a"]}'), canonical('{"required":["a","b"]}'), 'elsewhere it is data')
  t.end()
})

t.test('a duplicate member is rejected at any depth and in any notation', (t) => {
  for (const twice of [
    '{"a":1,"a":1}',
    '{"a":{"b":[{"c":1,"\\u0063":1}]}}',
    '{"name":"x","inputSchema":{"type":"object","properties":{"p":{"type":"string","type":"number"}}}}',
  ])
    t.throws(() => canonical(twice), { message: /duplicate member/ })
  t.throws(() => canonical('[1,]'))
  t.throws(() => canonical('{"a":1} x'))
  t.throws(() => canonical(`1e${'9'.repeat(30)}`), { message: /exponent/ })
  t.throws(() => atOnce(canonicalText(Buffer.from('[1,2,3]'), { maxValues: 3 })), {
    message: /more than 3 values/,
  })
  t.throws(() => canonical(`${'['.repeat(300)}${']'.repeat(300)}`), { message: /deep/ })
  t.end()
})

t.test('each part has its digest, and a change names the changed parts', (t) => {
  const base = {
    name: 'x',
    description: 'd',
    inputSchema: { type: 'object', properties: { a: { type: 'string' } } },
    outputSchema: { type: 'object' },
    annotations: { readOnlyHint: true },
    execution: { taskSupport: 'optional' },
    icons: [{ src: 'https://x.example/i.png' }],
    _meta: { v: 1 },
    extra: 1,
  }
  const changes: Record<string, readonly [object, readonly string[]]> = {
    'the name is the key, not a part': [{ name: 'y' }, []],
    description: [{ description: 'e' }, ['text']],
    title: [{ title: 't' }, ['text']],
    input: [{ inputSchema: { type: 'object' } }, ['input']],
    output: [{ outputSchema: { type: 'object', description: 'do it' } }, ['output']],
    'no output': [{ outputSchema: undefined }, ['output']],
    'a hint flips': [{ annotations: { readOnlyHint: false } }, ['hints']],
    'a hint with its default value': [{ annotations: { readOnlyHint: true, destructiveHint: true } }, []],
    execution: [{ execution: { taskSupport: 'required' } }, ['execution']],
    icons: [{ icons: [] }, ['icons']],
    meta: [{ _meta: { v: 2 } }, ['meta']],
    'an unknown member': [{ extra: 2 }, ['other']],
    'two at once': [{ description: 'e', _meta: {} }, ['text', 'meta']],
  }
  const before = digests(JSON.stringify(base))
  for (const [what, [change, expected]] of Object.entries(changes)) {
    const after = digests(JSON.stringify({ ...base, ...change }))
    t.strictSame(differingParts(before, after), expected, what)
    t.equal(before.digest === after.digest, expected.length === 0, `${what}: the digest of the whole`)
  }
  t.match(before.digest, /^sha256:[0-9a-f]{64}$/)
  t.end()
})

t.test('only ignored members of _meta are not compared', (t) => {
  const tool = (meta: object) => Buffer.from(JSON.stringify({ name: 'x', _meta: meta }))
  const ignore = ['/_meta/example.com~1build']
  const of = (meta: object) => atOnce(digestWork('tool', tool(meta), ignore)).digest
  t.equal(of({ 'example.com/build': 1, a: 1 }), of({ 'example.com/build': 2, a: 1 }))
  t.equal(of({ 'example.com/build': 1, a: 1 }), of({ a: 1 }))
  t.not(of({ 'example.com/build': 1, a: 1 }), of({ 'example.com/build': 1, a: 2 }))
  t.end()
})

t.test('a schema counts as narrower only with fewer properties or choices, or more required members', (t) => {
  const approved =
    '{"type":"object","properties":{"a":{"type":"string","enum":["x","y"]},"b":{"type":"number"}},"required":["a"]}'
  const narrower = (offered: string) => isNarrower(Buffer.from(approved), Buffer.from(offered))
  for (const fits of [
    approved,
    '{"required":["b","a"],"type":"object","properties":{"b":{"type":"number"},"a":{"enum":["y"],"type":"string"}}}',
    '{"type":"object","properties":{"a":{"type":"string","enum":["x","y"]}},"required":["a"]}',
  ])
    t.ok(narrower(fits), fits)
  for (const wider of [
    '{"type":"object","properties":{"a":{"type":"string","enum":["x","y","z"]},"b":{"type":"number"}},"required":["a"]}',
    '{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"number"}},"required":["a"]}',
    '{"type":"object","properties":{"a":{"type":"string","enum":["x"]},"c":{}},"required":["a"]}',
    '{"type":"object","properties":{"a":{"type":"string","enum":["x"],"description":"read ~/.ssh"}},"required":["a"]}',
    '{"type":"object","properties":{"a":{"type":"string","enum":["x","y"]}}}',
    '{"type":"object","properties":{"a":{"type":"string","enum":["x"]}},"required":["a"],"additionalProperties":true}',
    'true',
  ])
    t.notOk(narrower(wider), wider)
  t.end()
})

t.test('only hidden characters are escaped', (t) => {
  const hidden = [
    '\u200b',
    '\u202e',
    '\u2066',
    '\u00ad',
    '\ufeff',
    '\u{e0041}',
    '\u0007',
    '\u2028',
    '\ufe0f',
    '\ud800',
    '\u3164',
  ]
  for (const one of hidden) t.equal(visibleText(`a${one}b`), `a\\u{${one.codePointAt(0)?.toString(16)}}b`)
  t.equal(visibleText('Grüße, 世界 😀 “x”'), 'Grüße, 世界 😀 “x”')
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      t.notMatch(visibleText(text), /[\p{Cc}\p{Cf}\p{Cs}]/u)
    }),
    { numRuns: CASES },
  )
  t.end()
})
