/** REST services as backends: arguments, results and errors of calls, with SDK clients and clients of both eras. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import t, { type Test } from 'tap'
import { stateless } from '../../../helpers/mcp/wire.ts'
import { documentFile, type PetService, startPetService } from '../../../helpers/openapi/pet-service.ts'
import { bareNames, startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

const everyMethod = { include: [{ methods: ['GET', 'POST', 'PUT', 'DELETE'] }] }

interface Rig {
  readonly service: PetService
  readonly client: Client
  readonly url: string
}

async function start(t: Test, openapi: object = {}, more: object = {}, document?: unknown): Promise<Rig> {
  const service = await startPetService()
  const file = documentFile(document)
  const backend = {
    url: service.url,
    transport: 'openapi' as const,
    openapi: { document: { path: file.path }, operations: everyMethod, ...openapi },
  }
  const vmcp = await startTestVmcp({ pets: backend }, { aggregation: bareNames('pets'), ...more })
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(vmcp.url)))
  t.teardown(async () => {
    await client.close()
    await vmcp.close()
    await service.close()
    file.remove()
  })
  return { service, client, url: vmcp.url }
}

await t.test('a REST service is used by an SDK client', async (t) => {
  const { client, service, url } = await start(t)
  const { tools } = await client.listTools()
  t.same(tools.map(({ name }) => name).toSorted(), ['createPet', 'deletePet', 'getPet', 'listPets'])
  const call = (name: string, args: Record<string, unknown> = {}) =>
    client.callTool({ name, arguments: args })
  t.match(await call('listPets', { limit: 5 }), {
    structuredContent: { result: [{ id: 1, name: 'Rex' }] },
    content: [{ type: 'text', text: '[{"id":1,"name":"Rex"}]' }],
  })
  t.equal(service.seen.at(-1)?.query.toString(), 'limit=5')
  t.match(await call('createPet', { name: 'Tom' }), { structuredContent: { id: 2, name: 'Tom' } })
  t.match(service.seen.at(-1), {
    method: 'POST',
    body: '{"name":"Tom"}',
    headers: { 'content-type': 'application/json' },
  })
  t.match(await call('deletePet', { petId: 2 }), { content: [{ type: 'text', text: '' }] })
  t.match(await call('getPet', { petId: 2 }), {
    isError: true,
    content: [{ type: 'text', text: 'HTTP 404: {"error":"no such pet"}' }],
  })
  const answer = await stateless(url, 'tools/call', { name: 'getPet', arguments: { petId: 1 } })
  t.match(answer.response, { result: { structuredContent: { id: 1, name: 'Rex' } } })
})
