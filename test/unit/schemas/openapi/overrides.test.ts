/** The operator's changes to tools, and output schemas that accept every value. */
import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { buildRequest } from '../../../../schemas/openapi/index.ts'
import { everyMethod, json, outcomeOf, query, toolFor } from '../../../helpers/openapi/documents.ts'

const id = { name: 'id', in: 'path', required: true, schema: { type: 'string' } }
const bodyOf = (schema: unknown) => ({ requestBody: { required: true, ...json(schema) } })

await t.test(
  'mapping: by default, the output schema describes the members and accepts every value',
  async (t) => {
    const schema = {
      type: 'object',
      required: ['id', 'tags'],
      properties: {
        id: { type: 'integer', description: 'Number of the pet' },
        tags: { type: 'array', minItems: 1, items: { type: 'string', enum: ['a'] } },
        note: { type: 'string', format: 'date' },
      },
      additionalProperties: false,
    }
    const { outputSchema = {}, request } = toolFor({ responses: { 200: json(schema) } })
    t.same(outputSchema, {
      type: 'object',
      properties: {
        id: { description: 'Number of the pet' },
        tags: { items: { description: 'string' } },
        note: { description: 'string' },
      },
    })
    t.same(request.response.schema, schema, 'the gateway compares responses with the schema of the document')
    const accepts = new Ajv2020({ strict: false }).compile(outputSchema)
    for (const value of [{}, { id: 'x', tags: 7, note: null, more: 1 }, { tags: [1] }]) t.ok(accepts(value))
  },
)

await t.test('mapping: overrides change texts, annotations and fixed values', async (t) => {
  const operation = {
    operationId: 'list',
    parameters: [
      query('q', { required: true, schema: {} }),
      query('version', { required: true, schema: {} }),
    ],
  }
  const withSet = (set: Record<string, string>, given: object = operation, at?: string) =>
    outcomeOf(given, at === undefined ? {} : { at }, { ...everyMethod, overrides: { list: { set } } })
  const { tool, notices } = outcomeOf(
    operation,
    {},
    {
      overrides: {
        list: {
          name: 'find',
          title: 'Find',
          description: 'Finds',
          annotations: { readOnlyHint: false, title: null, openWorldHint: true },
          set: { 'query.version': '7' },
        },
        missing: { name: 'x' },
      },
    },
  )
  t.match(tool, { name: 'find', title: 'Find', description: 'Finds' })
  t.same(tool?.annotations, { readOnlyHint: false, openWorldHint: true })
  t.same(tool?.inputSchema, {
    type: 'object',
    properties: { q: {} },
    required: ['q'],
    additionalProperties: false,
  })
  t.match(notices, [{ code: 'unused_override', message: /"missing"/ }])
  if (!tool) return
  t.equal(buildRequest(tool.request, { q: 'a' }).query, 'q=a&version=7')
  t.throws(() => buildRequest(tool.request, { q: 'a', version: '8' }), /unknown arguments: "version"/)
  t.match(withSet({ 'query.other': '1' }), { reason: 'override', tool: undefined })
  t.match(withSet({ version: '1' }), { reason: 'override' })
  const body = {
    operationId: 'list',
    ...bodyOf({ type: 'object', properties: { dry: { type: 'boolean' }, n: {} } }),
  }
  const typed = withSet({ 'body.dry': 'true', 'body.n': '1' }, body, 'post /things').tool
  t.same(typed && buildRequest(typed.request, {}).body, '{"dry":true,"n":"1"}')
  t.match(withSet({ 'body.dry': 'yes' }, body, 'post /things'), { reason: 'override' })
  const byId = { operationId: 'list', parameters: [id] }
  t.match(withSet({ 'path.id': '../x' }, byId, 'get /things/{id}'), { reason: 'override' })
  const header = { operationId: 'list', parameters: [{ name: 'X-Tenant', in: 'header', schema: {} }] }
  t.match(withSet({ 'header.x-tenant': 'a\nb' }, header), { reason: 'override' })
  const tenant = withSet({ 'header.x-tenant': 'a' }, header).tool
  t.same(tenant && buildRequest(tenant.request, {}).headers, [['X-Tenant', 'a']])
})
