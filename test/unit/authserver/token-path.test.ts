/** The path language of identityFromToken and tokenResponseMapping. */
import fc from 'fast-check'
import t from 'tap'
import {
  followTokenPath,
  identifierOf,
  parseKeepingDigits,
  parseTokenPath,
} from '../../../runtime/config/index.ts'
import { proves } from '../../helpers/proves.ts'

proves('2.identityFromToken.subjectPath', '2.tokenResponseMapping.accessTokenPath')

function follow(path: string, from: unknown): unknown {
  const parsed = parseTokenPath(path)
  if (typeof parsed === 'string') throw new Error(parsed)
  return followTokenPath(parsed, from)
}

const encoded = (json: string): string => `h.${Buffer.from(json).toString('base64url')}.s`

t.test('paths: keys, indexes, pipes, escapes', async (t) => {
  const body = { a: { b: [10, { c: 'x' }] }, 'd.e': 1, '@f': 2, '0': 'zero', 'g|h': 3, 'i\\': 4 }
  const cases: readonly (readonly [string, unknown])[] = [
    ['a.b.0', 10],
    ['a|b|1|c', 'x'],
    ['a.b.1.c', 'x'],
    ['d\\.e', 1],
    ['\\@f', 2],
    ['g\\|h', 3],
    ['i\\\\', 4],
    ['0', 'zero'],
    ['a.b.2', undefined],
    ['a.b.-1', undefined],
    ['a.b.01', undefined],
    ['a.b.length', undefined],
    ['a.missing.deeper', undefined],
    ['constructor', undefined],
    ['__proto__', undefined],
    ['a.toString', undefined],
  ]
  for (const [path, expected] of cases) t.equal(follow(path, body), expected, path)
})

t.test('paths: @upstreamjwt decodes only the payload of three parts, without verification', async (t) => {
  t.equal(follow('t|@upstreamjwt|sub', { t: encoded('{"sub":"alice"}') }), 'alice')
  t.equal(follow('t.@upstreamjwt.a.0', { t: encoded('{"a":["x"]}') }), 'x')
  for (const bad of ['a.b', 'a.b.c.d', 'a..c', 'a.!.c', encoded('no json'), encoded('7'), 7, {}, null]) {
    t.equal(follow('t|@upstreamjwt|sub', { t: bad }), undefined)
  }
})

t.test('paths: wildcards, queries, modifiers and empty steps are rejected', async (t) => {
  for (const path of [
    '',
    '.',
    'a.',
    '.a',
    'a..b',
    'a|',
    '*',
    'a.*',
    'a?',
    '#',
    'a.#',
    'a.#.b',
    '@this',
    'a|@base64',
    '@upstreamjwt',
    '@upstreamjwt|sub',
    '[0]',
    '{a}',
  ]) {
    const parsed = parseTokenPath(path)
    if (path === 'a?') t.not(typeof parsed, 'string', 'only the start of a step matters')
    else t.type(parsed, 'string', path)
  }
})

t.test('paths: any key can be written with escapes, and its value is found', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 4 }), (keys) => {
      const path = keys.map((key) => key.replace(/[\\.|@#*?[\]{}]/g, '\\$&')).join('.')
      const body = keys.reduceRight<unknown>((inner, key) => Object.fromEntries([[key, inner]]), 'found')
      return follow(path, body) === 'found'
    }),
  )
  t.pass()
})

t.test('digits: large whole numbers become their digits, and all other values stay as parsed', async (t) => {
  t.same(parseKeepingDigits('{"a":9007199254740993,"b":-12345678901234567890,"c":1.5,"d":1e400,"e":[7]}'), {
    a: '9007199254740993',
    b: '-12345678901234567890',
    c: 1.5,
    d: Number.POSITIVE_INFINITY,
    e: [7],
  })
  t.throws(() => parseKeepingDigits('{'), SyntaxError)
  t.same([7, '7', 0, '', 1.5, true, null, {}, Number.NaN].map(identifierOf), [
    '7',
    '7',
    '0',
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ])
})
