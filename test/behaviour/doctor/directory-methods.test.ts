/** `gatehouse doctor --directory claude`: parameters that select between reading and writing, in each form of a schema. */
import t, { type Test } from 'tap'
import { examineRemote } from '../../../runtime/tools/doctor/remote/examine.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'

type Json = Record<string, unknown>

/** Input schemas that select a method without a plain enum. */
const methodSchemas: Readonly<Record<string, Json>> = {
  oneOf: { properties: { method: { oneOf: [{ const: 'GET' }, { const: 'DELETE' }] } } },
  'nested anyOf': {
    properties: { method: { anyOf: [{ type: 'null' }, { oneOf: [{ enum: ['read', 'write'] }] }] } },
  },
  'a definition': {
    properties: { method: { allOf: [{ $ref: '#/$defs/Method' }] } },
    $defs: { Method: { enum: ['list', 'remove'] } },
  },
  'a union of objects': {
    oneOf: [{ properties: { action: { const: 'get' } } }, { $ref: '#/definitions/Write' }],
    definitions: { Write: { properties: { action: { const: 'update' } } } },
  },
}

/** Returns the finding for a server whose only tool has the input schema. */
async function examine(t: Test, schema: Json) {
  const tool = { name: 'search', inputSchema: { type: 'object', ...schema } }
  const server = await startRawBackend({ tools: () => [JSON.stringify(tool)] })
  t.teardown(() => server.close())
  const { findings } = await examineRemote({ target: new URL(server.url), directories: ['claude'] })
  return findings.find(({ id }) => id === 'claude-methods')
}

for (const [form, schema] of Object.entries(methodSchemas)) {
  await t.test(`directory: a parameter that selects between reading and writing: ${form}`, async (t) => {
    const expected = { result: 'warning', code: 'directory.methods', items: ['search'] }
    t.match(await examine(t, schema), expected)
  })
}

await t.test(
  'directory: a schema that refers to itself, and separate parameters, select no method',
  async (t) => {
    const properties = {
      self: { $ref: '#/$defs/Self' },
      read: { const: 'get' },
      write: { oneOf: [{ const: 'delete' }] },
    }
    const parts = [{ $ref: '#/$defs/Self' }, { $ref: '#/$defs/absent' }, { $ref: { toString: 1 } }, null]
    t.match(await examine(t, { properties, $defs: { Self: { oneOf: parts } } }), { result: 'ok' })
  },
)
