/** OpenAPI documents that are rejected whole, each with the name of the rule. */
import t from 'tap'
import { GatehouseError } from '../../../../schemas/index.ts'
import { convertOpenApi } from '../../../../schemas/openapi/index.ts'
import { documentWith, json, outcomeOf, query } from '../../../helpers/openapi/documents.ts'

/** Returns the rule and the message of the rejection. */
function rejectionOf(source: unknown): readonly [rule: unknown, message: string] {
  try {
    convertOpenApi(source)
  } catch (error) {
    if (!(error instanceof GatehouseError)) throw error
    t.equal(error.code, 'INVALID_CONFIG')
    const { rule } = error.data as { readonly rule?: unknown }
    return [rule, error.message]
  }
  return ['accepted', '']
}

const valid = documentWith({ operationId: 'list' })
const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
const withPaths = (count: number) => ({
  openapi: '3.0.0',
  paths: Object.fromEntries(
    Array.from({ length: count }, (_, i) => [`/p${i}`, { get: { operationId: `o${i}` } }]),
  ),
})

const cases: readonly (readonly [name: string, source: unknown, rule: string, message: RegExp])[] = [
  ['Swagger 2.0', { swagger: '2.0', paths: {} }, 'version', /got Swagger 2.0/],
  ['OpenAPI 3.2', { ...valid, openapi: '3.2.0' }, 'version', /got OpenAPI 3.2.0/],
  ['no version', { paths: {} }, 'version', /without a version/],
  ['a list', [], 'structure', /got an empty list/],
  ['no paths', { openapi: '3.0.0' }, 'structure', /has no paths/],
  ['only webhooks', { openapi: '3.1.0', webhooks: {} }, 'no-operations', /has no operations/],
  ['invalid JSON', `{"a": ${' '.repeat(100_000)}`, 'syntax', /not valid JSON/],
  ['invalid YAML', 'a: [', 'syntax', /line 1/],
  ['two YAML documents', 'a: 1\n---\nb: 2\n', 'structure', /one YAML document, got 2/],
  ['many YAML documents', '---\n'.repeat(11), 'structure', /one YAML document, got several/],
  ['more than 5 MiB', JSON.stringify({ ...valid, 'x-a': 'a'.repeat(5 * 1024 * 1024) }), 'size', /5 MiB/],
  ['deep JSON', nested(101), 'depth', /100 levels/],
  ['endless JSON', '['.repeat(1_000_000).replace('[', '{"a":['), 'depth', /100 levels/],
  ['deep YAML', `a: ${'['.repeat(120)}${']'.repeat(120)}`, 'depth', /100 levels/],
  ['a deep object', { ...valid, 'x-a': JSON.parse(nested(101)) }, 'depth', /100 levels/],
  [
    'a million values',
    { ...valid, 'x-a': Array.from({ length: 1_000_000 }, () => 0) },
    'values',
    /1000000 values/,
  ],
  [
    'a repeated key',
    '{"openapi":"3.0.0",\n"paths":{"a":1,"\\u0061":2}}',
    'duplicate-key',
    /line 2: the key "a"/,
  ],
  ['a repeated YAML key', 'openapi: 3.0.0\npaths: {}\npaths: {}\n', 'duplicate-key', /line 3/],
  [
    'many aliases',
    `openapi: 3.0.0\na: &a [${'1,'.repeat(1000)}1]\nb: [${'*a,'.repeat(1000)}*a]\n`,
    'aliases',
    /too many nodes through aliases/,
  ],
  ['an alias to itself', 'openapi: 3.0.0\npaths: &a\n  b: *a\n', 'aliases', /contains it/],
  ...['other.yaml#/A', 'https://internal.example/a', '/etc/passwd'].map(
    (reference) =>
      [
        `an external reference to ${reference}`,
        documentWith({ parameters: [query('q', { schema: { $ref: reference } })] }),
        'external-reference',
        /^OpenAPI document rejected \(external-reference\): paths\["\/things"\]\.get\.parameters\[0\]\.schema: /,
      ] as const,
  ),
  ['2,001 operations', withPaths(2001), 'operation-count', /more than 2000 operations/],
  ['no operation', { openapi: '3.0.0', paths: {} }, 'no-operations', /no operations/],
  ['only POST', documentWith({}, { at: 'post /things' }), 'no-operations', /not selected: 1 method/],
  ['only faults', documentWith({ callbacks: { a: {} } }), 'no-operations', /skipped: 1 callbacks/],
]

await t.test('rejections: the error names the rule', async (t) => {
  for (const [name, source, rule, message] of cases) {
    const [found, text] = rejectionOf(source)
    t.equal(found, rule, name)
    t.match(text, message, name)
  }
})

await t.test('rejections: documents at the bounds are accepted', async (t) => {
  t.equal(convertOpenApi(withPaths(2000)).tools.length, 2000)
  t.same(rejectionOf(nested(100))[0], 'version', 'the depth is accepted')
  t.equal(convertOpenApi(JSON.stringify(valid)).tools.length, 1)
  t.equal(convertOpenApi(`\uFEFF${JSON.stringify(valid)}`).tools.length, 1)
  t.equal(
    convertOpenApi('openapi: 3.1.0\npaths:\n  /a:\n    get:\n      responses:\n        200: {}\n').tools
      .length,
    1,
  )
})

await t.test(
  'rejections: a $ref in an example or in the name of a property is not a reference',
  async (t) => {
    const schema = { type: 'object', properties: { $ref: { type: 'string' }, example: { type: 'string' } } }
    const example = { $ref: 'https://example.com/a' }
    const { tool } = outcomeOf({ parameters: [query('q', { ...json({ ...schema, example }), example })] })
    t.match(tool?.inputSchema['properties'], { q: { properties: { $ref: { type: 'string' }, example: {} } } })
  },
)

await t.test('rejections: schemas that multiply themselves are bounded', async (t) => {
  const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })
  const doubling = Object.fromEntries(
    Array.from({ length: 60 }, (_, i) => [
      `S${i}`,
      { properties: { a: ref(`S${i + 1}`), b: ref(`S${i + 1}`) } },
    ]),
  )
  const schemas = { ...doubling, S60: { type: 'string' } }
  const { tool, notices } = outcomeOf({ parameters: [query('q', json(ref('S0')))] }, { schemas })
  t.match(notices, [{ code: 'reference_cut' }])
  t.ok(JSON.stringify(tool?.inputSchema).length < 100_000)
  const members = Object.fromEntries(Array.from({ length: 1_600 }, (_, i) => [`p${i}`, {}]))
  const wide = { S0: { properties: { a: { properties: members }, b: { properties: members } } } }
  t.equal(
    outcomeOf({ parameters: [query('q', json(ref('S0')))] }, { schemas: wide }).reason,
    'schema_too_large',
  )
  const paths = Object.fromEntries(
    Array.from({ length: 1_500 }, (_, i) => [
      `/p${i}`,
      { get: { parameters: [query('q', json(ref('S0')))] } },
    ]),
  )
  const all = { openapi: '3.1.0', paths, components: { schemas: wide } }
  t.match(rejectionOf(all), ['expansion', /too many parts/])
  const long = { S0: { title: 'x'.repeat(150_000) } }
  t.match(rejectionOf({ ...all, components: { schemas: long } }), ['expansion', /characters/])
})

await t.test('rejections: a reference to itself or to nothing skips the operation', async (t) => {
  const loop = { Loop: { $ref: '#/components/parameters/Loop' } }
  const { skipped } = convertOpenApi({
    openapi: '3.0.0',
    paths: {
      '/a': { get: { parameters: [{ $ref: '#/components/parameters/Loop' }] } },
      '/b': { get: { parameters: [{ $ref: '#/components/parameters/None' }] } },
      '/c': { get: { operationId: 'c' } },
    },
    components: { parameters: loop },
  })
  t.same(
    skipped.map(({ reason }) => reason),
    ['unresolved_reference', 'unresolved_reference'],
  )
  t.ok(skipped.every(({ fix, message }) => fix.length > 10 && message.length > 10))
})

await t.test('rejections: servers and security schemes never reach a plan', async (t) => {
  const evil = { servers: [{ url: 'http://169.254.169.254' }], security: [{ key: [] }] }
  const document = { ...documentWith({ ...evil, operationId: 'a' }, { item: evil }), ...evil }
  t.notMatch(JSON.stringify(convertOpenApi(document).tools), /169\.254|security/)
})

await t.test('rejections: names of members cannot change objects', async (t) => {
  const text = JSON.stringify(
    documentWith({ parameters: [query('NAME', json({ properties: { NAME: {} } }))] }),
  )
  const { tools } = convertOpenApi(text.replaceAll('NAME', '__proto__'))
  t.ok(Object.hasOwn(tools[0]?.inputSchema['properties'] ?? {}, '__proto__'))
})

await t.test('rejections: huge objects that many operations share are counted once', async (t) => {
  const members = (make: (i: number) => unknown) =>
    Object.fromEntries(Array.from({ length: 200_000 }, (_, i) => [`m${i}`, make(i)]))
  const list = Array.from({ length: 200_000 }, (_, i) => i)
  const Huge = members(() => ({}))
  const operations: readonly object[] = [
    { parameters: [query('q', { schema: { properties: Huge } })] },
    { parameters: [query('q', { schema: { enum: list } })] },
    { parameters: [query('q', { schema: { default: { a: [list] } } })] },
    { parameters: [query('q', { schema: { required: list.map(String) } })] },
    { parameters: [query('q', { schema: Huge })] },
    { parameters: list },
    { responses: Huge },
    { callbacks: Huge },
  ]
  for (const operation of operations) {
    const item = { get: operation }
    const paths = Object.fromEntries(Array.from({ length: 1_999 }, (_, i) => [`/p${i}`, item]))
    const shared = Object.fromEntries(Object.keys(paths).map((path) => [path, { $ref: '#/x-item' }]))
    const found = convertOpenApi({
      openapi: '3.1.0',
      'x-item': item,
      paths: { ...shared, '/other': { get: { operationId: 'other' } } },
    })
    t.equal(found.skipped.length, 1_999)
    t.match(found.skipped[0]?.reason, /too_many_members|schema_too_large/)
  }
})

await t.test('rejections: a long chain of references does not exhaust the stack', async (t) => {
  const schemas = Object.fromEntries(
    Array.from({ length: 5_000 }, (_, i) => [
      `S${i}`,
      { properties: { next: { allOf: [{ $ref: `#/components/schemas/S${i + 1}` }] } } },
    ]),
  )
  const operation = { parameters: [query('q', json({ $ref: '#/components/schemas/S0' }))] }
  const { notices } = outcomeOf(operation, { schemas: { ...schemas, S5000: {} } })
  t.match(notices, [{ code: 'reference_cut' }])
})
