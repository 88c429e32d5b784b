/** OpenAPI to tools: selection of operations. */
import t from 'tap'
import { convertOpenApi, type OpenApiSettings } from '../../../../schemas/openapi/index.ts'

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

await t.test('selection: filters that match no operation are reported', async (t) => {
  const { notices } = convertOpenApi(document, {
    operations: { include: [{ methods: ['GET'] }, { operationIds: ['nope'] }], exclude: [{ tags: ['z'] }] },
  })
  t.same(
    notices.map(({ message }) => message),
    ['include filter 2 matches no operation', 'exclude filter 1 matches no operation'],
  )
})
