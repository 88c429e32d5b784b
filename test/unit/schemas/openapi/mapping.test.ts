/** OpenAPI to tools: one case for each rule of the mapping. */
import t from 'tap'
import { buildRequest, convertOpenApi, type OpenApiSettings } from '../../../../schemas/openapi/index.ts'
import {
  documentWith,
  everyMethod,
  json,
  outcomeOf,
  query,
  toolFor,
} from '../../../helpers/openapi/documents.ts'

const enforced = { ...everyMethod, response: { output: 'enforce' } } as const
const inputOf = (...args: Parameters<typeof toolFor>) => toolFor(...args).inputSchema
const propertiesOf = (...args: Parameters<typeof toolFor>) => inputOf(...args)['properties']
const id = { name: 'id', in: 'path', required: true, schema: { type: 'string' } }
const bodyOf = (schema: unknown) => ({ requestBody: { required: true, ...json(schema) } })

await t.test('mapping: the operationId becomes the name, with other characters replaced', async (t) => {
  t.equal(toolFor({ operationId: 'repos/get.all' }).name, 'repos_get_all')
})

await t.test('mapping: without an operationId, the name comes from method and path', async (t) => {
  t.equal(toolFor({ parameters: [id] }, { at: 'get /users/{id}' }).name, 'get_users_by_id')
  t.equal(toolFor({}, { at: 'get /' }).name, 'get_root')
})

await t.test('mapping: a name has at most 128 characters', async (t) => {
  const operationId = 'a'.repeat(128)
  t.equal(toolFor({ operationId }).name, operationId)
  t.equal(outcomeOf({ operationId: `${operationId}a` }).reason, 'invalid_name')
})

await t.test('mapping: operations with equal names are both skipped', async (t) => {
  const { skipped, tools } = convertOpenApi({
    openapi: '3.1.0',
    paths: {
      '/a': { get: { operationId: 'a/b' } },
      '/b': { get: { operationId: 'a_b' } },
      '/c': { get: { operationId: 'c' } },
    },
  })
  t.same(
    skipped.map(({ operation, reason }) => [operation, reason]),
    [
      ['GET /a', 'equal_names'],
      ['GET /b', 'equal_names'],
    ],
  )
  t.same(
    tools.map(({ name }) => name),
    ['c'],
  )
})

await t.test('mapping: summary and description become title and description, shortened', async (t) => {
  const tool = toolFor({ summary: 's'.repeat(300), description: 'd'.repeat(3_000) })
  t.equal(tool.title, `${'s'.repeat(199)}…`)
  t.equal(tool.description, `${'d'.repeat(1_999)}…`)
  t.equal(toolFor({ summary: 'List things' }).description, 'List things', 'models read only the description')
})

await t.test(
  'mapping: parameters of path item and operation are merged, and the operation wins',
  async (t) => {
    const item = { parameters: [id, query('limit', { schema: { type: 'integer' } })] }
    const parameters = [query('limit', { schema: { type: 'number' } })]
    t.same(inputOf({ parameters }, { at: 'get /things/{id}', item }), {
      type: 'object',
      properties: { id: { type: 'string' }, limit: { type: 'number' } },
      required: ['id'],
      additionalProperties: false,
    })
  },
)

await t.test('mapping: on a collision, the path parameter keeps its name', async (t) => {
  const parameters = [query('id'), { name: 'id', in: 'header', schema: {} }, id]
  const { inputSchema, request } = toolFor({ parameters }, { at: 'get /things/{id}' })
  t.same(Object.keys(inputSchema['properties'] ?? {}), ['id', 'id__query', 'id__header'])
  const built = buildRequest(request, { id: 'a', id__query: 'b', id__header: 'c' })
  t.same([built.path, built.query, built.headers], ['/things/a', 'id=b', [['id', 'c']]])
})

await t.test('mapping: argument names have only characters that clients accept', async (t) => {
  const { inputSchema, request } = toolFor({ parameters: [query('filter[a]'), query('$top')] })
  t.same(Object.keys(inputSchema['properties'] ?? {}), ['filter_a', 'top'])
  t.equal(buildRequest(request, { filter_a: '1', top: '2' }).query, 'filter%5Ba%5D=1&%24top=2')
})

await t.test('mapping: a path parameter is always required', async (t) => {
  const parameters = [{ ...id, required: false }]
  t.same(inputOf({ parameters }, { at: 'get /things/{id}' })['required'], ['id'])
})

await t.test('mapping: style and explode are serialized', async (t) => {
  const list = ['a', 'b,c']
  const object = { k: 'v', n: 1 }
  const cases: readonly [object, unknown, string][] = [
    [{}, list, 'q=a&q=b%2Cc'],
    [{ explode: false }, list, 'q=a,b%2Cc'],
    [{ style: 'spaceDelimited', explode: false }, list, 'q=a%20b%2Cc'],
    [{ style: 'pipeDelimited', explode: false }, list, 'q=a%7Cb%2Cc'],
    [{ style: 'deepObject' }, object, 'q%5Bk%5D=v&q%5Bn%5D=1'],
    [{}, object, 'k=v&n=1'],
    [{ explode: false }, object, 'q=k,v,n,1'],
    [{ allowReserved: true }, 'a/b&c=d', 'q=a/b%26c%3Dd'],
    [{}, [], ''],
    [{}, null, ''],
  ]
  for (const [style, value, expected] of cases) {
    const { request } = toolFor({ parameters: [query('q', style)] })
    t.equal(buildRequest(request, { q: value }).query, expected, JSON.stringify(style))
  }
  const paths: readonly [object, unknown, string][] = [
    [{}, list, 'a,b%2Cc'],
    [{ style: 'label' }, list, '.a,b%2Cc'],
    [{ style: 'label', explode: true }, list, '.a.b%2Cc'],
    [{ style: 'matrix' }, list, ';id=a,b%2Cc'],
    [{ style: 'matrix', explode: true }, list, ';id=a;id=b%2Cc'],
    [{ style: 'matrix' }, 5, ';id=5'],
    [{}, object, 'k,v,n,1'],
    [{ explode: true }, object, 'k=v,n=1'],
    [{ style: 'matrix', explode: true }, object, ';k=v;n=1'],
  ]
  for (const [style, value, expected] of paths) {
    const { request } = toolFor({ parameters: [{ ...id, ...style }] }, { at: 'get /t/{id}' })
    t.equal(buildRequest(request, { id: value }).path, `/t/${expected}`, JSON.stringify(style))
  }
  const { request } = toolFor({ parameters: [{ name: 'X-A', in: 'header', explode: true, schema: {} }] })
  t.same(buildRequest(request, { 'X-A': object }).headers, [['X-A', 'k=v,n=1']])
})

await t.test('mapping: deepObject has one level', async (t) => {
  const { request } = toolFor({ parameters: [query('q', { style: 'deepObject' })] })
  t.throws(() => buildRequest(request, { q: { a: { b: 1 } } }), { code: 'INVALID_PARAMS' })
})

await t.test('mapping: allowReserved in a path and undefined styles are refused', async (t) => {
  const at = 'get /things/{id}'
  t.equal(outcomeOf({ parameters: [{ ...id, allowReserved: true }] }, { at }).reason, 'path_reserved')
  t.equal(outcomeOf({ parameters: [{ ...id, style: 'form' }] }, { at }).reason, 'parameter_style')
})

await t.test(
  'mapping: a parameter with JSON content is JSON text, and other media are refused',
  async (t) => {
    const { request } = toolFor({ parameters: [{ name: 'q', in: 'query', ...json({ type: 'object' }) }] })
    t.equal(buildRequest(request, { q: { a: [1] } }).query, 'q=%7B%22a%22%3A%5B1%5D%7D')
    const xml = { name: 'q', in: 'query', content: { 'application/xml': {} } }
    t.equal(outcomeOf({ parameters: [xml] }).reason, 'parameter_media_type')
  },
)

await t.test('mapping: the members of a JSON object body are arguments', async (t) => {
  const operation = bodyOf({
    type: 'object',
    properties: { a: { type: 'string' }, '@b': {} },
    required: ['a'],
  })
  const tool = toolFor(operation, { at: 'post /things' })
  t.same(tool.inputSchema['properties'], { a: { type: 'string' }, b: {} })
  t.same(tool.inputSchema['required'], ['a'])
  t.same(buildRequest(tool.request, { a: 'x', b: null }), {
    method: 'POST',
    path: '/things',
    query: '',
    headers: [['content-type', 'application/json']],
    body: '{"a":"x","@b":null}',
  })
})

await t.test('mapping: any other JSON body is the argument body', async (t) => {
  const at = 'post /things/{a}'
  const parameters = [{ ...id, name: 'a' }, query('body')]
  const object = { type: 'object', properties: { a: {} } }
  for (const schema of [
    { type: 'array', items: {} },
    { type: 'string' },
    object,
    { oneOf: [object, { type: 'string' }] },
    { ...object, additionalProperties: true },
  ]) {
    const { inputSchema, request } = toolFor({ parameters, ...bodyOf(schema) }, { at })
    t.same(Object.keys(inputSchema['properties'] ?? {}), ['a', 'body__query', 'body'], JSON.stringify(schema))
    t.equal(buildRequest(request, { a: 'x', body: [1] }).body, '[1]')
  }
})

await t.test('mapping: an optional body is sent only with an argument', async (t) => {
  const schema = { type: 'object', properties: { a: {} }, required: ['a'] }
  const { request, inputSchema } = toolFor({ requestBody: json(schema) }, { at: 'post /things' })
  t.equal(inputSchema['required'], undefined)
  t.equal(buildRequest(request, {}).body, undefined)
  t.equal(buildRequest(request, { a: 1 }).body, '{"a":1}')
})

await t.test('mapping: a form is flat, and other media are refused', async (t) => {
  const media = (name: string, more: object = {}) => ({
    requestBody: {
      required: true,
      content: { [name]: { schema: { properties: { a: {}, o: { type: 'object' } } }, ...more } },
    },
  })
  const at = 'post /things'
  const { request } = toolFor(media('application/x-www-form-urlencoded'), { at })
  t.equal(buildRequest(request, { a: ['x&y', 'z'], o: { k: 1 } }).body, 'a=x%26y&a=z&o=%7B%22k%22%3A1%7D')
  const deep = media('application/x-www-form-urlencoded', { encoding: { o: { style: 'deepObject' } } })
  t.equal(buildRequest(toolFor(deep, { at }).request, { o: { k: 1 } }).body, 'o%5Bk%5D=1')
  for (const refused of ['multipart/form-data', 'application/octet-stream', 'application/xml'])
    t.equal(outcomeOf(media(refused), { at }).reason, 'body_media_type', refused)
})

await t.test('mapping: local references are inlined, and a cycle is cut', async (t) => {
  const schemas = { Node: { type: 'object', properties: { next: { $ref: '#/components/schemas/Node' } } } }
  const operation = { parameters: [query('q', json({ $ref: '#/components/schemas/Node' }))] }
  const { tool, notices } = outcomeOf(operation, { schemas })
  const text = JSON.stringify(tool?.inputSchema)
  t.notMatch(text, '$ref')
  t.equal(text.split('"next"').length - 1, 8)
  t.ok(text.includes('"next":{}'))
  t.match(notices, [{ code: 'reference_cut', operation: 'GET /things' }])
})

await t.test('mapping: allOf is merged, unless its parts conflict', async (t) => {
  const a = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] }
  const b = { type: 'object', properties: { b: {} }, required: ['b'] }
  const q = (schema: object) => propertiesOf({ parameters: [query('q', json(schema))] })
  t.same(q({ allOf: [a, b], description: 'Both' }), {
    q: {
      description: 'Both',
      type: 'object',
      properties: { a: { type: 'string' }, b: {} },
      required: ['a', 'b'],
    },
  })
  const conflict = { type: 'object', properties: { a: { type: 'integer' } } }
  t.same(q({ allOf: [a, conflict] }), { q: { allOf: [a, conflict] } })
  const closed = { ...b, additionalProperties: false }
  t.same(q({ allOf: [a, closed] }), { q: { allOf: [a, closed] } })
})

await t.test('mapping: unions below the top are kept, without the discriminator', async (t) => {
  const union = { oneOf: [{ type: 'string' }, { type: 'integer' }] }
  const body = { type: 'object', properties: { a: { ...union, discriminator: { propertyName: 'k' } } } }
  t.same(propertiesOf(bodyOf(body), { at: 'post /things' }), { a: union })
})

await t.test('mapping: keywords of 3.0 become plain JSON Schema 2020-12', async (t) => {
  const cases: readonly [object, object][] = [
    [
      { type: 'string', nullable: true, enum: ['a'], example: 'a', 'x-a': 1, xml: {} },
      { type: ['string', 'null'], enum: ['a', null] },
    ],
    [{ anyOf: [{ type: 'string' }], nullable: true }, { anyOf: [{ type: 'string' }, { type: 'null' }] }],
    [{ allOf: [{ type: 'object' }], nullable: true }, { type: ['object', 'null'] }],
    [{ minimum: 1, exclusiveMinimum: true }, { exclusiveMinimum: 1 }],
    [{ maximum: 1, exclusiveMaximum: false }, { maximum: 1 }],
    [{ items: [{ type: 'string' }] }, { prefixItems: [{ type: 'string' }] }],
    [{ type: 'file', pattern: '(?i)a', required: true, minLength: 'x' }, {}],
  ]
  for (const [schema, expected] of cases)
    t.same(propertiesOf({ parameters: [query('q', { schema })] }), { q: expected })
  const { notices } = outcomeOf({ parameters: [query('q', { schema: { type: 'file', pattern: '(?i)a' } })] })
  t.match(notices, [{ code: 'schema_keyword', message: /type, pattern/ }])
})

await t.test('mapping: keywords next to a $ref have an effect only in 3.1', async (t) => {
  const schemas = { A: { type: 'string', description: 'A' } }
  const operation = {
    parameters: [query('q', { schema: { $ref: '#/components/schemas/A', description: 'B' } })],
  }
  t.match(propertiesOf(operation, { schemas, version: '3.0.3' }), { q: { description: 'A' } })
  t.match(propertiesOf(operation, { schemas, version: '3.1.0' }), { q: { type: 'string', description: 'B' } })
})

await t.test('mapping: dynamic references are left out and reported', async (t) => {
  const schema = { type: 'array', items: { $dynamicRef: '#item' } }
  const { tool, notices } = outcomeOf({ parameters: [query('q', { schema })] }, { version: '3.1.0' })
  t.same(tool?.inputSchema['properties'], { q: { type: 'array', items: {} } })
  t.match(notices, [{ code: 'schema_keyword', message: /\$dynamicRef/ }])
})

await t.test('mapping: integers that a double would round are not offered', async (t) => {
  const text = JSON.stringify(
    documentWith({ parameters: [query('q', { schema: { enum: [1], maximum: 7 } })] }),
  )
  const { tools } = convertOpenApi(
    text.replace('"enum":[1]', '"enum":[9007199254740993]').replace(':7', ':9223372036854775807'),
  )
  t.same(tools[0]?.inputSchema['properties'], { q: { maximum: 2 ** 63 } })
})

await t.test(
  'mapping: readOnly members are not arguments, and writeOnly members are not output',
  async (t) => {
    const schemas = { Id: { type: 'integer', readOnly: true } }
    const schema = {
      allOf: [
        { type: 'object', properties: { id: { $ref: '#/components/schemas/Id' }, key: { writeOnly: true } } },
        { required: ['id', 'key'] },
      ],
    }
    const tool = toolFor(
      { ...bodyOf(schema), responses: { 200: json(schema) } },
      { at: 'post /things', schemas },
      enforced,
    )
    t.same(tool.inputSchema['properties'], { key: {} })
    t.same(tool.inputSchema['required'], ['key'])
    t.same(tool.outputSchema, { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] })
  },
)

await t.test('mapping: the first successful JSON response is the output', async (t) => {
  const object = { type: 'object', properties: { a: {} } }
  const output = (responses: object, settings: OpenApiSettings = enforced) =>
    toolFor({ responses }, {}, settings)
  const found = output({
    404: json({}),
    202: json({ type: 'string' }),
    201: json(object),
    200: { description: '' },
  })
  t.same(found.outputSchema, object)
  t.same(found.request.response, {
    ...{ kind: 'json', accept: 'application/json', isWrapped: false, schema: object },
  })
  const list = output({ 200: json({ type: 'array' }) })
  t.same(list.outputSchema, {
    type: 'object',
    properties: { result: { type: 'array' } },
    required: ['result'],
  })
  t.equal(list.request.response.isWrapped, true)
  t.equal(output({ 200: json(object) }, { response: { output: 'off' } }).outputSchema, undefined)
  t.match(output({ '2XX': json(object) }).outputSchema, object)
  t.match(output({ default: json(object) }).outputSchema, object)
  t.same(output({ 204: {} }).request.response, { kind: 'empty', isWrapped: false })
  t.match(output({ 200: { content: { 'text/csv': {} } } }).request.response, {
    kind: 'text',
    accept: 'text/csv',
  })
  t.match(output({ 200: { content: { 'image/png': {} } } }).request.response, { kind: 'binary' })
})

await t.test('mapping: response fields select members of the output', async (t) => {
  const item = { type: 'object', properties: { id: {}, secret: {} }, required: ['id', 'secret'] }
  const schema = {
    type: 'object',
    properties: { data: { type: 'array', items: item }, next: {} },
    required: ['data', 'next'],
  }
  const { outputSchema, request } = toolFor(
    { responses: { 200: json(schema) } },
    {},
    { response: { fields: ['data.id'], output: 'enforce' } },
  )
  t.same(outputSchema, {
    type: 'object',
    properties: {
      data: { type: 'array', items: { type: 'object', properties: { id: {} }, required: ['id'] } },
    },
    required: ['data'],
  })
  t.same(request.response.fields, ['data.id'])
})

await t.test('mapping: a response that cannot be described costs only the output schema', async (t) => {
  const { tool, notices } = outcomeOf({ responses: { 200: json({ $ref: '#/components/schemas/Missing' }) } })
  t.equal(tool?.outputSchema, undefined)
  t.match(notices, [{ code: 'output_schema', message: /points to nothing/ }])
})

await t.test('mapping: the method determines the annotations', async (t) => {
  const hints = (method: string) => toolFor({}, { at: `${method} /things` }).annotations
  t.same(hints('get'), { readOnlyHint: true })
  t.same(hints('head'), { readOnlyHint: true })
  t.same(hints('put'), { idempotentHint: true })
  t.same(hints('delete'), { destructiveHint: true, idempotentHint: true })
  t.same(hints('post'), {})
})

await t.test('mapping: deprecated operations are left out by default', async (t) => {
  t.match(outcomeOf({ deprecated: true }).unselected, [{ reason: 'deprecated' }])
  t.ok(outcomeOf({ deprecated: true }, {}, { operations: { includeDeprecated: true } }).tool)
})

await t.test('mapping: cookies, callbacks and TRACE are refused, and webhooks ignored', async (t) => {
  const cookie = { name: 'c', in: 'cookie', schema: {} }
  t.equal(outcomeOf({ parameters: [{ ...cookie, required: true }] }).reason, 'cookie_parameter')
  const { tool, notices } = outcomeOf({ parameters: [cookie] })
  t.same(tool?.inputSchema['properties'], {})
  t.match(notices, [{ code: 'cookie_parameter' }])
  t.equal(outcomeOf({ callbacks: { done: {} } }).reason, 'callbacks')
  t.equal(outcomeOf({}, { at: 'trace /things' }).reason, 'trace')
  t.equal(outcomeOf({}, { version: '3.1.0', webhooks: { w: { post: {} } } }).operations, 2)
})
