import fc from 'fast-check'
import t from 'tap'
import {
  argumentHeaders,
  mismatchedHeader,
  JsonObject,
  mirroredArguments,
  writeHeaderValue,
} from '../../../runtime/mcp/index.ts'
import { readHeaderValue } from '../../../runtime/mcp/mirrored-headers.ts'

/** Returns the params of a call. */
function call(args: unknown): JsonObject {
  return new JsonObject(Buffer.from(JSON.stringify({ name: 'x', arguments: args })))
}

t.test('header values: the examples of the specification', async (t) => {
  t.equal(writeHeaderValue('us-west1'), 'us-west1')
  t.equal(writeHeaderValue('Hello, 世界'), '=?base64?SGVsbG8sIOS4lueVjA==?=')
  t.equal(writeHeaderValue(' padded '), '=?base64?IHBhZGRlZCA=?=')
  t.equal(writeHeaderValue('line1\nline2'), '=?base64?bGluZTEKbGluZTI=?=')
  t.equal(writeHeaderValue('=?base64?literal?='), '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=')
})

t.test('header values: every string survives encoding and decoding', async () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (value) => {
      const written = writeHeaderValue(value)
      return /^[\x20-\x7e\t]*$/.test(written) && readHeaderValue(written) === Buffer.from(value).toString()
    }),
  )
})

t.test('x-mcp-header: arguments at any depth of properties become headers', async (t) => {
  const mirrored = mirroredArguments({
    type: 'object',
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      where: { type: 'object', properties: { page: { type: 'integer', 'x-mcp-header': 'Page' } } },
      dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
      'x-mcp-header': { type: 'string' },
    },
  })
  t.same(argumentHeaders(mirrored, call({ region: 'ü', where: { page: 3 }, dry: null })), {
    'mcp-param-region': '=?base64?w7w=?=',
    'mcp-param-page': '3',
  })
  const sent = { 'mcp-param-region': 'eu', 'mcp-param-page': '3.0' }
  t.equal(mismatchedHeader(mirrored, call({ region: 'eu', where: { page: 3 } }), sent), undefined)
  t.equal(mismatchedHeader(mirrored, call({ region: 'us', where: { page: 3 } }), sent), 'Region')
  t.equal(mismatchedHeader(mirrored, call({ region: 'eu' }), sent), 'Page', 'a header without an argument')
  t.equal(mismatchedHeader(mirrored, call({ region: 'eu', where: { page: 3 }, dry: true }), sent), 'Dry')
})

t.test('x-mcp-header: a repeated member on the path is rejected', async (t) => {
  const mirrored = [{ path: ['where', 'page'], header: 'Page', type: 'integer' as const }]
  const params = new JsonObject(Buffer.from('{"arguments":{"where":{"page":1,"page":2}}}'))
  t.throws(() => argumentHeaders(mirrored, params), { code: 'INVALID_PARAMS', message: /occurs twice/ })
  t.throws(() => mismatchedHeader(mirrored, params, {}), { code: 'INVALID_PARAMS' })
})

t.test('x-mcp-header: invalid annotations are rejected', async (t) => {
  const broken: unknown[] = [
    { properties: { a: { type: 'string', 'x-mcp-header': '' } } },
    { properties: { a: { type: 'string', 'x-mcp-header': 'a b' } } },
    { properties: { a: { type: 'number', 'x-mcp-header': 'A' } } },
    {
      properties: { a: { type: 'string', 'x-mcp-header': 'A' }, b: { type: 'string', 'x-mcp-header': 'a' } },
    },
    { properties: { a: { type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } } } },
    { oneOf: [{ properties: { a: { type: 'string', 'x-mcp-header': 'A' } } }] },
    { type: 'string', 'x-mcp-header': 'A' },
  ]
  for (const schema of broken) t.throws(() => mirroredArguments(schema), RangeError, JSON.stringify(schema))
})
