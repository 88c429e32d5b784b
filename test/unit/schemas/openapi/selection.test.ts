/** OpenAPI to tools: selection of operations, overrides and fixed values. */
import t from 'tap'
import { buildRequest, convertOpenApi, type OpenApiSettings } from '../../../../schemas/openapi/index.ts'
import { everyMethod, json, outcomeOf, query, toolFor } from '../../../helpers/openapi/documents.ts'

const document = {
  openapi: '3.1.0',
  paths: {
    '/pets': { get: { operationId: 'list', tags: ['a'] }, post: { operationId: 'create', tags: ['a'] } },
    '/pets/all': { delete: { operationId: 'clear', tags: ['b'] } },
    '/users': { get: { operationId: 'users', tags: ['b'] }, head: { operationId: 'check' } },
  },
}

const namesFor = (settings: OpenApiSettings) =>
  convertOpenApi(document, settings)
    .tools.map(({ name }) => name)
    .toSorted()
const including = (...include: NonNullable<NonNullable<OpenApiSettings['operations']>['include']>) =>
  namesFor({ operations: { include } })

await t.test('selection: GET and HEAD by default, other methods only when named', async (t) => {
  t.same(namesFor({}), ['check', 'list', 'users'])
  t.same(including({ tags: ['a'] }), ['list'], 'a tag selects no POST')
  t.same(including({ paths: ['/pets*'] }), ['list'])
  t.same(including({ operationIds: ['create', 'clear'] }), ['clear', 'create'])
  t.same(including({ tags: ['a'], methods: ['POST'] }), ['create'], 'all fields must match')
  t.same(including({ methods: ['delete'] }, { operationIds: ['list'] }), ['clear', 'list'])
  t.same(including({ paths: ['*all'], methods: ['delete'] }), ['clear'])
})

await t.test('selection: exclude wins over include', async (t) => {
  t.same(
    namesFor({ operations: { include: [{ methods: ['GET', 'POST'] }], exclude: [{ tags: ['b'] }, {}] } }),
    ['create', 'list'],
    'an entry without fields matches nothing',
  )
})

await t.test('selection: settings that match nothing are reported', async (t) => {
  const { notices } = convertOpenApi(document, {
    operations: { include: [{ methods: ['GET'] }, { operationIds: ['nope'] }], exclude: [{ tags: ['z'] }] },
    overrides: { nope: { name: 'x' } },
  })
  t.same(
    notices.map(({ message }) => message),
    [
      'operations.include[1] matches no operation',
      'operations.exclude[0] matches no operation',
      'overrides.nope matches no operation',
    ],
  )
})

await t.test('overrides: name, title, description and annotations', async (t) => {
  const override = { name: 'all', title: 'T', description: 'D', annotations: { openWorldHint: false } }
  t.match(toolFor({ operationId: 'x', summary: 's' }, {}, { overrides: { x: override } }), {
    ...override,
    annotations: { readOnlyHint: true, openWorldHint: false },
  })
  t.equal(toolFor({ operationId: 'x' }, {}, { overrides: { 'GET /things': { name: 'y' } } }).name, 'y')
  t.equal(outcomeOf({ operationId: 'x' }, {}, { overrides: { x: { name: 'a b' } } }).reason, 'invalid_name')
})

await t.test('overrides: fixed values are sent, hidden and cannot be replaced', async (t) => {
  const operation = {
    operationId: 'x',
    parameters: [
      { name: 'tenant', in: 'path', required: true, schema: {} },
      query('api-version', { required: true }),
      query('free', { schema: { type: 'object' } }),
      { name: 'X-Kind', in: 'header', schema: {} },
    ],
    requestBody: {
      required: true,
      ...json({ type: 'object', properties: { kind: {}, name: {} }, required: ['kind'] }),
    },
  }
  const set = {
    'path.tenant': 'acme',
    'query.api-version': '7',
    'query.undeclared': 1,
    'header.x-kind': 'k',
    'body.kind': true,
  }
  const settings = { ...everyMethod, overrides: { x: { set } } }
  const { inputSchema, request } = toolFor(operation, { at: 'post /t/{tenant}' }, settings)
  t.same(Object.keys(inputSchema['properties'] ?? {}), ['free', 'name'])
  t.same(buildRequest(request, { name: 'n', free: { a: 1 } }), {
    method: 'POST',
    path: '/t/acme',
    query: 'a=1&api-version=7&undeclared=1',
    headers: [
      ['content-type', 'application/json'],
      ['x-kind', 'k'],
    ],
    body: '{"name":"n","kind":true}',
  })
  for (const free of [{ 'api-version': '1' }, { undeclared: 2 }])
    t.throws(() => buildRequest(request, { free }), { code: 'INVALID_PARAMS', message: /must not contain/ })
  t.throws(() => buildRequest(request, { 'api-version': '1' }), {
    message: /unknown arguments: "api-version"/,
  })
})

await t.test('overrides: a fixed value without a safe place skips the operation', async (t) => {
  const reasonFor = (key: string, value: string) =>
    outcomeOf({ operationId: 'x' }, {}, { overrides: { x: { set: { [key]: value } } } }).reason
  t.equal(reasonFor('path.nope', 'a'), 'fixed_value')
  t.equal(reasonFor('body.a', 'a'), 'fixed_value')
  t.equal(reasonFor('cookie.a', 'a'), 'fixed_value')
  t.equal(reasonFor('path.a', '..'), 'fixed_value')
  t.equal(reasonFor('header.X-A', 'a\r\nb'), 'fixed_value')
  t.equal(reasonFor('header.Host', 'a'), 'fixed_value')
  t.equal(reasonFor('header.Authorization', 'a'), 'restricted_header')
})
