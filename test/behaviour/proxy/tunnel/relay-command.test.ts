/** `gatehouse relay` as a command: the address that it binds, and the URLs that it assigns. */
import { networkInterfaces } from 'node:os'
import t from 'tap'
import { startGatehouse } from '../../../helpers/gatehouse.ts'
import { startFixture } from '../../../helpers/mcp/fixture-server/index.ts'

t.setTimeout(120_000)
const token = 'a-token-that-is-long-enough'
const env = { ...process.env, GATEHOUSE_TUNNEL_AUTH_TOKEN: token }

function startRelay(...args: string[]) {
  const relay = startGatehouse(['relay', '--port', '0', '--domain', 'tunnels.test', ...args], env)
  t.teardown(() => relay.interrupt())
  return relay.waitFor(/Relay started on port (\d+) for \*\.tunnels\.test/).then(([, port = '']) => port)
}

async function isOpen(host: string, port: string): Promise<boolean> {
  return fetch(`http://${host}:${port}/`).then(
    () => true,
    () => false,
  )
}

await t.test("relay: --public-url is the base of the tunnels' URLs", async (t) => {
  const port = await startRelay('--public-url', 'https://*.pub.example')
  const fixture = await startFixture()
  t.teardown(() => fixture.close())
  const details = JSON.stringify({ url: `http://127.0.0.1:${port}`, hostname: 'mine' })
  const tunnel = startGatehouse(
    [
      ...['proxy', 'tunnel', new URL(fixture.url).origin, 'x', '--tunnel-provider', 'relay'],
      ...['--provider-args', details, '--insecure-unauthenticated'],
    ],
    env,
  )
  t.teardown(() => tunnel.interrupt())
  t.ok(await tunnel.waitFor(/https:\/\/mine\.pub\.example/))
})

await t.test('relay: it binds only the address of --host', async (t) => {
  const address = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal)?.address
  const local = await startRelay()
  const other = await startRelay('--host', '127.0.0.2')
  t.ok(await isOpen('127.0.0.1', local))
  if (address !== undefined) t.notOk(await isOpen(address, local), 'loopback only, by default')
  t.ok(await isOpen('127.0.0.2', other))
  t.notOk(await isOpen('127.0.0.1', other))
})
