/** WWW-Authenticate: the parser accepts the complete grammar, and written values are quoted. */
import * as fc from 'fast-check'
import t from 'tap'
import {
  findChallenge,
  formatChallenge,
  parseChallenges,
  tokenChallenge,
} from '../../../runtime/oauth/index.ts'

/** Returns challenges as plain data. */
function read(values: string | readonly string[]) {
  return parseChallenges(values).map(({ scheme, params }) => ({
    scheme,
    ...Object.fromEntries(params),
  }))
}

const cases: readonly (readonly [
  title: string,
  input: string | readonly string[],
  expected: readonly object[],
])[] = [
  ['one parameter', 'Bearer realm="x"', [{ scheme: 'bearer', realm: 'x' }]],
  ['no parameter', 'Negotiate', [{ scheme: 'negotiate' }]],
  [
    'token values and odd spacing',
    'BEARER  Realm = x ,error=y',
    [{ scheme: 'bearer', realm: 'x', error: 'y' }],
  ],
  [
    'commas and quotes inside a quoted string',
    'Bearer a="1, Basic b=\\"2\\"", c="3"',
    [{ scheme: 'bearer', a: '1, Basic b="2"', c: '3' }],
  ],
  [
    'several challenges in one line',
    'Negotiate abc==, Basic realm="b", Bearer scope="s t", error="e"',
    [
      { scheme: 'negotiate' },
      { scheme: 'basic', realm: 'b' },
      { scheme: 'bearer', scope: 's t', error: 'e' },
    ],
  ],
  [
    'several header lines',
    ['Basic realm="b"', 'Bearer realm="c"'],
    [
      { scheme: 'basic', realm: 'b' },
      { scheme: 'bearer', realm: 'c' },
    ],
  ],
  [
    'empty list elements',
    ', ,Basic,,Bearer a=b,,c=d,',
    [{ scheme: 'basic' }, { scheme: 'bearer', a: 'b', c: 'd' }],
  ],
  ['a missing comma', 'Bearer realm="x" error="y"', [{ scheme: 'bearer', realm: 'x', error: 'y' }]],
  ['the first of two equal names', 'Bearer realm=a, REALM=b', [{ scheme: 'bearer', realm: 'a' }]],
  [
    'a malformed rest',
    'Basic realm="b", Bearer realm="unclosed',
    [{ scheme: 'basic', realm: 'b' }, { scheme: 'bearer' }],
  ],
  ['garbage', '"";=', []],
  ['nothing', '', []],
]

for (const [title, input, expected] of cases) {
  await t.test(`parseChallenges: ${title}`, async (t) => {
    t.same(read(input), expected)
  })
}

await t.test('parseChallenges: names like __proto__ are ordinary parameters', async (t) => {
  t.equal(parseChallenges('Bearer __proto__=x')[0]?.params.get('__proto__'), 'x')
})

await t.test('findChallenge: a challenge with the given parameter wins over the first one', async (t) => {
  const challenges = parseChallenges(['Bearer realm="a"', 'Basic realm="b"', 'Bearer resource_metadata="u"'])
  t.equal(findChallenge(challenges, 'bearer', 'resource_metadata')?.params.get('resource_metadata'), 'u')
  t.equal(findChallenge(challenges, 'bearer', 'nothing')?.params.get('realm'), 'a')
  t.equal(findChallenge(challenges, 'digest'), undefined)
})

await t.test(
  'formatChallenge: omits undefined values, escapes others, and never breaks the header',
  async (t) => {
    t.equal(
      formatChallenge('Bearer', [
        ['realm', 'a"b\\c'],
        ['scope', undefined],
        ['error_description', 'line\r\nx: yé'],
      ]),
      'Bearer realm="a\\"b\\\\c", error_description="line??x: y?"',
    )
    t.equal(formatChallenge('Bearer', []), 'Bearer')
  },
)

await t.test('challenges: written challenges are parsed back unchanged', async (t) => {
  const name = fc.stringMatching(/^[a-z][a-z0-9_-]{0,10}$/)
  const value = fc.stringMatching(/^[\t\x20-\x7e]{0,40}$/)
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value), { minLength: 1, maxLength: 5 }), (pairs) => {
      const unique = [...new Map(pairs)]
      const [found] = parseChallenges(formatChallenge('Bearer', unique))
      t.same([...(found?.params ?? [])], unique)
    }),
  )
})

await t.test('challenges: no input makes the parser throw or hang', async (t) => {
  fc.assert(
    fc.property(
      fc.string({ maxLength: 200, unit: fc.constantFrom('"', '\\', ',', '=', ' ', 'a', 'B', '\t', '/') }),
      (text) => {
        t.ok(Array.isArray(parseChallenges(text)))
      },
    ),
  )
  t.ok(parseChallenges(`Bearer a="${'\\"'.repeat(100_000)}`).length <= 1)
})

await t.test("tokenChallenge: returns the server's requirements for access tokens", async (t) => {
  const rows: readonly (readonly [string | string[] | undefined, object | undefined])[] = [
    [undefined, undefined],
    ['Basic realm="x"', undefined],
    ['Bearer realm="x"', { scheme: 'bearer', proof: undefined, params: { realm: 'x' } }],
    ['DPoP realm="x"', { scheme: 'dpop', proof: 'required', params: { realm: 'x' } }],
    ['DPoP algs="EdDSA ES256"', { proof: 'required' }],
    ['DPoP algs="EdDSA"', { proof: 'unsupported' }],
    ['Bearer realm="x", DPoP algs="EdDSA"', { scheme: 'bearer', proof: undefined }],
    [
      ['Bearer realm="x", scope="a"', 'DPoP error="use_dpop_nonce", algs="ES256"'],
      { proof: 'accepted', params: { realm: 'x', scope: 'a', error: 'use_dpop_nonce', algs: 'ES256' } },
    ],
    [
      'Bearer error="invalid_token", DPoP algs="ES256"',
      { proof: 'accepted', params: { error: 'invalid_token' } },
    ],
  ]
  for (const [header, expected] of rows) {
    const found = tokenChallenge(header)
    const shown = found && { ...found, params: Object.fromEntries(found.params) }
    if (expected === undefined) t.equal(shown, undefined)
    else t.match(shown, expected, String(header))
  }
})
