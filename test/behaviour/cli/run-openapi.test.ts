/** `gatehouse run --openapi` serves a REST service on this machine. */
import t from 'tap'
import { startRun } from '../../helpers/clients/run-rig.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { documentFile, startPetService } from '../../helpers/openapi/pet-service.ts'

t.setTimeout(120_000)

t.test('run --openapi: a REST service with a header and selected operations', async (t) => {
  const service = await startPetService()
  const file = documentFile()
  t.teardown(async () => {
    await service.close()
    file.remove()
  })
  const { url } = await startRun(
    t,
    [
      ...['--openapi', file.path, '--base-url', `pets=${service.url}`],
      ...['--operation', 'createPet', '--header', 'X-API-Key=PET_KEY'],
    ],
    { PET_KEY: 'k-4711' },
  )
  const { text } = await stateless(url, 'tools/list')
  for (const tool of ['listPets', 'getPet', 'createPet']) t.match(text, `"name":"${tool}"`)
  t.notMatch(text, 'deletePet')
  const call = await stateless(url, 'tools/call', { name: 'createPet', arguments: { name: 'Tom' } })
  t.match(call.response, { result: { structuredContent: { id: 2, name: 'Tom' } } })
  t.equal(service.seen.find(({ method }) => method === 'POST')?.headers['x-api-key'], 'k-4711')
})
