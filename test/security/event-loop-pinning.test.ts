/**
 * Calls of tools that differ from their approved definition: no turn of the server's event loop may be long while their
 * arguments are checked against the approved schema; see watched.ts.
 */
import t from 'tap'
import { startRawBackend } from '../helpers/mcp/raw-backend.ts'
import { openSession } from '../helpers/mcp/wire.ts'
import { changed, lockOf, pinning } from '../helpers/vmcp/pinning.ts'
import { bareNames } from '../helpers/vmcp/vmcp.ts'
import { startWatched } from '../helpers/vmcp/watched.ts'

t.setTimeout(Number(process.env['FC_RUNS'] ?? 300) > 300 ? 900_000 : 240_000)

/** Each measured call uses a different tool, because a tool's schema is cached after its first call. */
const toolCount = 30

/** 80 properties with two objects in each. */
function wide(name: string): string {
  const point = { type: 'object', properties: { x: { type: 'number' }, y: { type: 'number' } } }
  const item = { type: 'object', properties: { name: { type: 'string', minLength: 1 }, point } }
  const properties = Object.fromEntries(Array.from({ length: 80 }, (_, i) => [`${name}_${i}`, item]))
  return JSON.stringify({ name, inputSchema: { type: 'object', properties } })
}

const long = JSON.stringify({
  name: 'long',
  inputSchema: { type: 'object', properties: { l: { type: 'array', items: { type: 'string' } } } },
})

t.test('event loop: no call of a changed tool blocks other clients', async (t) => {
  const wideNames = Array.from({ length: toolCount }, (_, i) => `wide${i}`)
  const approved = [...wideNames.map(wide), long]
  const backend = await startRawBackend({
    tools: () => approved.map((one) => changed(one, { description: 'Another' })),
    responses: { 'tools/call': () => '{"content":[]}' },
  })
  t.teardown(() => backend.close())
  const { url, row } = await startWatched(t, {
    backends: [{ name: 'raw', url: backend.url, transport: 'streamable-http' }],
    aggregation: bareNames('raw'),
    pinning: pinning('freeze'),
    toolLocks: [lockOf('raw', approved)],
  })
  const session = await openSession(url)
  /** Returns 200 when the backend was called, 422 when the arguments do not match the approved definition. */
  const call = async (name: string, args: object) => {
    const { response, status } = await session.request('tools/call', { name, arguments: args })
    const { content, isError } = response?.result ?? {}
    if (isError !== true) return status
    return JSON.stringify(content).includes('the arguments do not match the approved definition') ? 422 : 0
  }
  t.equal(await call('long', {}), 200)

  const names = wideNames.values()
  const next = () => names.next().value ?? ''
  await row(
    'a first call',
    () => {
      const name = next()
      return call(name, { [`${name}_7`]: { name: 'a', point: { x: 1, y: 2 } } })
    },
    200,
  )
  const texts = (n: number) => Array.from({ length: Math.floor(15_000 * n) }, (_, i) => `a${i}`)
  await row('a long list', (n) => call('long', { l: texts(n) }), 200)
  await row(
    'a long list that does not fit',
    (n) => call('long', { l: [...texts(n), 1], other: texts(n) }),
    422,
  )
})
