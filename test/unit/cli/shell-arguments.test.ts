/** Tool arguments as a user writes them in a shell. */
import t from 'tap'
import { argumentsFrom } from '../../../runtime/tools/shell/arguments.ts'

const schema = {
  type: 'object',
  $defs: { Page: { anyOf: [{ type: 'integer' }, { type: 'null' }] }, Ids: { type: 'array' } },
  properties: {
    n: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
    page: { allOf: [{ $ref: '#/$defs/Page' }], default: 1 },
    ids: { oneOf: [{ $ref: '#/$defs/Ids' }, { type: 'null' }] },
    both: { anyOf: [{ type: 'integer' }, { type: 'string' }] },
    mode: { enum: [1, 2] },
    any: { title: 'Any' },
  },
}

const written = async (...pairs: string[]) =>
  (await argumentsFrom(pairs, {}, async () => schema)).bytes.toString()

await t.test('pairs get their type from the schema, through references and alternatives', async (t) => {
  for (const [pair, expected] of [
    ['n=42', '{"n":42}'],
    ['n=9007199254740993', '{"n":9007199254740993}'],
    ['n=null', '{"n":null}'],
    ['page=3', '{"page":3}'],
    ['ids=[1,2]', '{"ids":[1,2]}'],
    ['mode=2', '{"mode":2}'],
    ['both=42', '{"both":"42"}'],
    ['any=42', '{"any":"42"}'],
    ['any:=42', '{"any":42}'],
    ['other=42', '{"other":"42"}'],
  ] as const)
    t.equal(await written(pair), expected, pair)
})

await t.test('a pair of another type is rejected with the types that the schema accepts', async (t) => {
  await t.rejects(written('n=many'), {
    code: 'INVALID_CONFIG',
    message: 'n: must be integer or null, as the tool’s schema requires',
  })
})
