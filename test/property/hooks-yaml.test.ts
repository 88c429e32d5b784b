/** Any YAML parser reads the YAML of the hooks back unchanged, and equal values always produce equal bytes. */
import fc from 'fast-check'
import t from 'tap'
import { parse } from 'yaml'
import { toYaml } from '../../hooks/children/yaml.ts'

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    'yes',
    'No',
    'null',
    '~',
    '1',
    '1.0',
    '0x1f',
    '1e3',
    '.nan',
    '- a',
    'a: b',
    '# c',
    '',
    ' ',
    'a\n b',
    '\u2028',
    '2026-01-01',
    '{{.x}}',
    '!tag',
    '*a',
    '&a',
    '%x',
    '@x',
    '`x',
    "it's",
  ),
)
const value = fc.letrec((tie) => ({
  any: fc.oneof(
    { depthSize: 'small' },
    text,
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
    tie('list'),
    tie('map'),
  ),
  list: fc.array(tie('any'), { maxLength: 4 }),
  map: fc.dictionary(text, tie('any'), { maxKeys: 4, noNullPrototype: true }),
})).map

t.test('toYaml: parsing the output returns the input', async () => {
  fc.assert(
    fc.property(value, (map) => {
      const given = map
      const read: unknown = parse(toYaml({ root: given }), { uniqueKeys: true })
      return JSON.stringify(sorted(read)) === JSON.stringify(sorted({ root: given }))
    }),
    { numRuns: 1500 },
  )
})

t.test('toYaml: sorts keys and omits members without a value', async (t) => {
  t.equal(
    toYaml({ b: 1, a: { d: undefined, c: [[], {}, [1, { x: 'y' }]] }, e: undefined }),
    'a:\n  c:\n    - []\n    - {}\n    -\n      - 1\n      - x: "y"\nb: 1\n',
  )
})

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? 0 : value
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => [key, sorted(item)])
}
