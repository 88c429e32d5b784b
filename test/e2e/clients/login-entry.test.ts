/** `gatehouse client add` writes a login into a program's entry only if the address requires one. */
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { makeClientHome } from '../../helpers/clients/client-home.ts'

t.setTimeout(120_000)

const { entryOf, gatehouse } = makeClientHome(t)

const server = createServer((request, response) => {
  const isOpen = request.url?.startsWith('/open') === true
  response.writeHead(isOpen ? 200 : 401, { 'content-type': 'application/json' })
  const serverInfo = { name: 'open', version: '1' }
  const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo }
  response.end(isOpen ? JSON.stringify({ jsonrpc: '2.0', id: 1, result }) : '{}')
}).listen(0, '127.0.0.1')
await once(server, 'listening')
t.teardown(() => server.close())
const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

for (const [path, requiresLogin] of [
  ['/open/mcp', false],
  ['/closed/mcp', true],
] as const)
  await t.test(`client add: ${path}`, async (t) => {
    const { code, stderr } = await gatehouse('client', 'add', 'claude-desktop', '--url', `${base}${path}`)
    t.strictSame([code, stderr], [0, ''])
    const { args } = entryOf('claude-desktop') as { args: string[] }
    t.strictSame(args.slice(1), [
      'proxy',
      'stdio',
      `${base}${path}`,
      ...(requiresLogin ? ['--remote-auth'] : []),
    ])
  })

await t.test('client add: an address without a server is written with a warning', async (t) => {
  const { code, stderr } = await gatehouse(
    'client',
    'add',
    'claude-desktop',
    '--url',
    'http://127.0.0.1:1/mcp',
  )
  t.equal(code, 0)
  t.match(stderr, /^Warning: http:\/\/127\.0\.0\.1:1\/mcp does not respond; run gatehouse doctor http/)
})
