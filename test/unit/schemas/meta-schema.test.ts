/** The precompiled check for JSON Schemas reports the same errors as ajv at run time. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { isJsonSchema } from '../../../schemas/generated/meta-schema.js'

const deep = (inner: unknown) => ({ properties: { a: { items: { anyOf: [{ $defs: { b: inner } }] } } } })
const given: readonly unknown[] = [
  {},
  true,
  'text',
  { type: 'object', properties: { a: { type: ['string', 'null'] } }, required: ['a'] },
  { type: 'objekt' },
  { required: 'a' },
  { required: ['a', 'a'] },
  { properties: { a: { minLength: -1 } } },
  { enum: 'x' },
  { anyOf: [] },
  { $ref: 3 },
  { $anchor: '#no' },
  { multipleOf: 0 },
  { dependencies: { a: ['b'], c: { type: 'string' } } },
  { dependencies: { a: 3 } },
]

t.test('both checks return the same result and the same first error', (t) => {
  const ajv = new Ajv2020({ strict: false, logger: false })
  for (const schema of [...given, ...given.map(deep)]) {
    const valid = ajv.validateSchema(schema as object)
    t.equal(isJsonSchema(schema), valid, JSON.stringify(schema))
    if (valid) continue
    const [own, theirs] = [isJsonSchema.errors?.[0], ajv.errors?.[0]]
    t.same([own?.instancePath, own?.message], [theirs?.instancePath, theirs?.message])
  }
  t.end()
})
