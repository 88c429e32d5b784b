/** Servers that `gatehouse add` wrote run in `gatehouse dev`: an npm package, and a remote behind a forward proxy. */
import { writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { freePort, runGatehouse, startGatehouse } from '../../helpers/gatehouse.ts'
import { connect } from '../../helpers/mcp/clients.ts'
import { startEverything } from '../../helpers/mcp/everything.ts'
import { type Host, startIsolatedNetwork } from '../../helpers/network/isolated-network.ts'
import { npmServer, remoteServer, startRegistry } from '../../helpers/registry/registry.ts'

t.setTimeout(240_000)

/** Forwards requests to a real server. */
function forwardTo(url: string): Host {
  return ({ method, path, headers, body }, res) => {
    const { host: _, ...rest } = headers
    request(new URL(path, url), { method, headers: rest }, (response) => {
      res.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(res)
    }).end(body)
  }
}

t.test('add: a package and a remote run behind one address', async (t) => {
  const everything = await startEverything(t, 'streamableHttp')
  const network = await startIsolatedNetwork({ 'mcp.example': forwardTo(everything.origin) })
  t.teardown(() => network.close())
  const registry = await startRegistry(t)
  registry.publish(npmServer('io.github.test/memory', '1.0.0'))
  registry.publish(remoteServer('io.github.test/everything', 'https://mcp.example/mcp'))
  const base = t.testdir({})
  const folder = join(base, 'mcp')
  for (const name of ['memory', 'everything']) {
    const args = ['add', `io.github.test/${name}`, '--registry', registry.url, '-o', folder]
    const { code, stderr } = await runGatehouse(args)
    t.equal(code, 0, stderr)
  }
  t.match(await runGatehouse(['validate', '-f', folder]), { code: 0 })
  const ca = join(base, 'ca.pem')
  writeFileSync(ca, network.ca)
  const port = await freePort()
  const dev = startGatehouse(['dev', '-f', folder, '--port', String(port)], {
    ...process.env,
    HTTPS_PROXY: network.proxy.url,
    NO_PROXY: '127.0.0.1,localhost',
    NODE_EXTRA_CA_CERTS: ca,
    GATEHOUSE_STATE_DIR: join(base, 'state'),
  })
  t.teardown(() => dev.interrupt())
  const [, url = ''] = await dev.waitFor(/(http:\/\/127\.0\.0\.1:\d+\/\S*mcp)\b/)
  await dev.waitFor(/servers: backends: everything, memory$/m)
  const client = await connect('sdk1', url)
  t.teardown(() => client.close())
  const tools = new Set((await client.listTools()).map(({ name }) => name))
  t.ok(tools.has('memory_read_graph'), 'the package')
  t.ok(tools.has('everything_echo'), 'the remote')
  t.match(
    await client.callText('everything_echo', { message: 'through the registry' }),
    /through the registry/,
  )
  t.match(await client.callText('memory_read_graph', {}), /entities/)
  t.equal(network.direct, 0)
})
