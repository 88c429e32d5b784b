/** `gatehouse dev` serves the tools of an MCPOpenAPIServer, whose document is in a ConfigMap among the manifests. */
import t from 'tap'
import { group, manifest, startDev, virtualServer } from '../../helpers/dev-rig.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { startPetService } from '../../helpers/openapi/pet-service.ts'
import { until } from '../../helpers/redis.ts'

t.setTimeout(120_000)

const operation = (operationId: string, parameters: readonly object[] = []) => ({
  get: { operationId, parameters, responses: { 200: { description: 'ok' } } },
})
const petId = { name: 'petId', in: 'path', required: true, schema: { type: 'integer' } }

function document(paths: object): string {
  const text = JSON.stringify({ openapi: '3.1.0', info: { title: 'Pets', version: '1' }, paths })
  return configMap(text)
}

function configMap(text: string): string {
  const data = { 'openapi.json': text }
  return JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'pets' }, data })
}

t.test('dev: an MCPOpenAPIServer serves its document and each valid change of it', async (t) => {
  const service = await startPetService()
  t.teardown(() => service.close())
  const pets = manifest('MCPOpenAPIServer', 'pets', {
    groupRef: { name: 'g' },
    baseUrl: service.url,
    allowPrivateEndpoint: true,
    document: { configMapRef: { name: 'pets', key: 'openapi.json' } },
  })
  const first = { '/pets': operation('listPets') }
  const { dev, port, write } = await startDev(t, [group(), pets, document(first), virtualServer()])
  t.ok(await dev.waitFor(/^MCPGroup g: ready: 1 member$/m))
  t.ok(await dev.waitFor(/^MCPOpenAPIServer pets: ready: http:\S+\/api$/m))
  const url = `http://127.0.0.1:${port}/mcp`
  const listed = async () => (await stateless(url, 'tools/list')).text
  await until(async () => (await listed()).includes('pets_listPets'))
  const called = await stateless(url, 'tools/call', { name: 'pets_listPets', arguments: {} })
  t.match(called.text, /Rex/)

  write(group(), pets, document({ ...first, '/pets/{petId}': operation('getPet', [petId]) }), virtualServer())
  await until(async () => (await listed()).includes('pets_getPet'))
  const one = await stateless(url, 'tools/call', { name: 'pets_getPet', arguments: { petId: 1 } })
  t.match(one.text, /Rex/)

  write(group(), pets, configMap('{"openapi": "3.1.0", "openapi": "3.0.0"}'), virtualServer())
  t.ok(await dev.waitFor(/^MCPOpenAPIServer pets: failed: OpenAPI document rejected \(duplicate-key\)/m))
  t.match(await listed(), /pets_getPet/, 'the last valid tools stay')
})
