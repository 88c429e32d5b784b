/** Arguments of a tool that changed: what the approved schema names reaches the backend, and nothing else. */
import t from 'tap'
import { toolArgumentCheck } from '../../../../runtime/vmcp/catalog/pinning/arguments.ts'

const file = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] }
const fits = { path: 'x' }
const smuggled = { path: 'x', note: 'secret' }

function check(inputSchema: object) {
  return toolArgumentCheck(Buffer.from(JSON.stringify({ name: 'read', inputSchema })))
}

function fitsIn(schema: object, args: unknown): boolean {
  const found = check(schema)
  if (!found) throw new Error('the schema is refused')
  return found(Buffer.from(JSON.stringify(args))).length === 0
}

const inside = (schema: object, more: object = {}) => ({ type: 'object', properties: { a: schema }, ...more })
const definitions = { $defs: { File: file } }

/** Schemas with a model, and how an argument holds it. */
const forms: Readonly<Record<string, readonly [object, (model: object) => unknown]>> = {
  'the arguments themselves': [file, (model) => model],
  'a property': [inside(file), (a) => ({ a })],
  'a reference to $defs': [inside({ $ref: '#/$defs/File' }, definitions), (a) => ({ a })],
  'a reference to definitions': [
    inside({ $ref: '#/definitions/File', description: 'A file' }, { definitions: { File: file } }),
    (a) => ({ a }),
  ],
  'a reference at the top': [{ type: 'object', $ref: '#/$defs/File', ...definitions }, (model) => model],
  'a branch of anyOf': [
    inside({ anyOf: [{ $ref: '#/$defs/File' }, { type: 'null' }] }, definitions),
    (a) => ({ a }),
  ],
  'a written-out branch of anyOf': [inside({ anyOf: [file, { type: 'null' }] }), (a) => ({ a })],
  'a branch of oneOf': [inside({ oneOf: [file, { type: 'string' }] }), (a) => ({ a })],
  'an item': [inside({ type: 'array', items: file }), (model) => ({ a: [model] })],
  'a prefix item': [
    inside({ type: 'array', prefixItems: [file], items: false }),
    (model) => ({ a: [model] }),
  ],
  'a value of a map': [
    inside({ type: 'object', additionalProperties: { $ref: '#/$defs/File' } }, definitions),
    (model) => ({ a: { any: model } }),
  ],
  'a value by pattern': [
    inside({ type: 'object', patternProperties: { '^x': file } }),
    (model) => ({ a: { x1: model } }),
  ],
}

t.test('a member that was not approved is refused, wherever the approved members stand', (t) => {
  for (const [name, [schema, wrap]] of Object.entries(forms)) {
    t.ok(fitsIn(schema, wrap(fits)), `${name}: what was approved fits`)
    t.notOk(fitsIn(schema, wrap(smuggled)), `${name}: one member more does not`)
  }
  t.end()
})

t.test('branches beside members are closed with them', (t) => {
  const schema = { ...file, anyOf: [{ required: ['path'] }, { properties: { size: { type: 'number' } } }] }
  t.ok(fitsIn(schema, { path: 'x', size: 1 }))
  t.notOk(fitsIn(schema, { path: 'x', size: 1, note: 'secret' }))
  t.end()
})

t.test('branches that exclude one another do so with fewer members as well', (t) => {
  const wide = { ...file, properties: { ...file.properties, size: { type: 'number' } } }
  const schema = inside(
    { oneOf: [{ $ref: '#/$defs/A' }, { $ref: '#/$defs/B' }] },
    { $defs: { A: file, B: wide } },
  )
  t.notOk(
    fitsIn(schema, { a: { path: 'x', size: 1 } }),
    'the approved schema refuses it: both branches match',
  )
  t.end()
})

t.test('what was approved as open stays open', (t) => {
  t.ok(fitsIn(inside({ type: 'object' }), { a: { anything: 1 } }))
  t.ok(fitsIn({ ...file, additionalProperties: true }, smuggled))
  t.end()
})

t.test('a schema that cannot be closed rightly makes the tool uncallable', (t) => {
  let deep: object = file
  for (let i = 0; i < 40; i++) deep = inside(deep)
  const refused: readonly object[] = [
    inside({ allOf: [file] }),
    { allOf: [file] },
    inside({ $ref: '#/$defs/File', properties: { note: {} } }, definitions),
    inside({ $ref: '#/not' }, { not: file }),
    { $dynamicRef: '#/$defs/File', ...definitions },
    inside({ $id: 'https://example.com/a', ...file }),
    deep,
  ]
  for (const schema of refused) t.equal(check(schema), undefined, JSON.stringify(schema).slice(0, 80))
  t.end()
})
