/** Requests of OpenAPI tools: no argument value leaves its path segment, its query parameter, its header or its body. */
import * as fc from 'fast-check'
import t from 'tap'
import { GatehouseError } from '../../../schemas/index.ts'
import { buildRequest, type BuiltRequest } from '../../../schemas/openapi/index.ts'
import { json, query, toolFor } from '../../helpers/openapi/documents.ts'

const numRuns = Number(process.env['FC_RUNS'] ?? 300)

/** Text that often contains characters with a meaning in URLs and headers. */
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom(...'./\\%2eE5fFcC?#&=;,:@+ \r\n\0é\ud800'.split('')) }),
)
const scalar = fc.oneof(text, fc.double(), fc.bigInt(), fc.boolean())
const value = fc.oneof(
  scalar,
  fc.array(scalar, { maxLength: 4 }),
  fc.dictionary(text, scalar, { maxKeys: 4 }),
  fc.anything({ maxDepth: 2 }),
)

/** Returns the request, or undefined when the arguments are rejected. Other errors fail the test. */
function attempt(build: () => BuiltRequest): BuiltRequest | undefined {
  try {
    return build()
  } catch (error) {
    if (error instanceof GatehouseError && error.code === 'INVALID_PARAMS') return undefined
    throw error
  }
}

await t.test('openapi: a path keeps its segments', async (t) => {
  for (const style of ['simple', 'label', 'matrix'])
    for (const explode of [false, true]) {
      const id = { name: 'id', in: 'path', required: true, schema: {}, style, explode }
      const { request } = toolFor({ parameters: [id] }, { at: 'get /a/{id}/b' })
      let built = 0
      fc.assert(
        fc.property(value, (given) => {
          const found = attempt(() => buildRequest(request, { id: given }))
          if (!found) return true
          built += 1
          const url = new URL(`http://host${found.path}`)
          const [start, a, segment = '', b, ...rest] = url.pathname.split('/')
          return (
            url.href === `http://host${found.path}` &&
            start === '' &&
            a === 'a' &&
            b === 'b' &&
            rest.length === 0 &&
            /^(?:[\w~.,;=-]|%[\dA-F]{2})+$/.test(segment) &&
            !/[/\\]|^\.\.?$/.test(decodeURIComponent(segment))
          )
        }),
        { numRuns },
      )
      t.ok(built > 0, `${style}: requests were built`)
    }
})

await t.test('openapi: a scalar or a list in a query reaches its own parameter unchanged', async (t) => {
  const { request } = toolFor({
    parameters: [query('first'), query('q', { allowReserved: true }), query('last')],
  })
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' })), fc.string({ unit: 'grapheme' }), (list, one) => {
      const found = buildRequest(request, { first: list, q: one, last: 'end' })
      const url = new URL(`http://host/?${found.query}`)
      t.equal(url.hash, '')
      return (
        JSON.stringify(url.searchParams.getAll('first')) === JSON.stringify(list) &&
        url.searchParams.get('q') === one &&
        JSON.stringify(url.searchParams.getAll('last')) === '["end"]'
      )
    }),
    { numRuns },
  )
  t.pass()
})

await t.test('openapi: no value in a query replaces another parameter', async (t) => {
  for (const style of ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'])
    for (const explode of [false, true]) {
      const { request } = toolFor({ parameters: [query('q', { style, explode }), query('last')] })
      fc.assert(
        fc.property(fc.oneof(value, fc.record({ last: text })), (given) => {
          const found = attempt(() => buildRequest(request, { q: given, last: 'end' }))
          if (!found) return true
          const url = new URL(`http://host/?${found.query}`)
          return url.hash === '' && JSON.stringify(url.searchParams.getAll('last')) === '["end"]'
        }),
        { numRuns },
      )
    }
  t.pass()
})

await t.test('openapi: a header value is one valid header', async (t) => {
  const { request } = toolFor({ parameters: [{ name: 'X-A', in: 'header', schema: {} }] })
  fc.assert(
    fc.property(value, (given) => {
      const found = attempt(() => buildRequest(request, { 'X-A': given }))
      if (!found) return true
      return (
        found.headers.length <= 1 && new Headers(found.headers.map(([...pair]) => pair)) instanceof Headers
      )
    }),
    { numRuns },
  )
  t.pass()
})

await t.test('openapi: a JSON body has only its own members', async (t) => {
  const body = { requestBody: { required: true, ...json({ properties: { a: {}, b: {} } }) } }
  const { request } = toolFor(body, { at: 'post /things' })
  fc.assert(
    fc.property(fc.jsonValue(), (given) => {
      const { body: sent = '' } = buildRequest(request, { a: given })
      return sent === JSON.stringify({ a: given })
    }),
    { numRuns },
  )
  t.pass()
})
