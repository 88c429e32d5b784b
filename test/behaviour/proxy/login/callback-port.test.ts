/** A login whose callback port is in use by another program on only one of the addresses of localhost. */
import t from 'tap'
import { startLogin, startWorld } from '../../../helpers/proxy/login-rig.ts'
import { lacksIpv6, takePort } from '../../../helpers/proxy/taken-port.ts'

const skip = lacksIpv6

t.test('login: a proxy with a configured client does not start when [::1] is taken', { skip }, async (t) => {
  const port = await takePort(t, '::1')
  const world = await startWorld({
    clients: [
      {
        client_id: 'given',
        token_endpoint_auth_method: 'none',
        redirect_uris: [`http://localhost:${port}/callback`],
        application_type: 'native',
      },
    ],
  })
  const run = await startLogin(world, {
    remoteAuth: true,
    remoteAuthClientId: 'given',
    remoteAuthCallbackPort: String(port),
  })
  t.teardown(async () => {
    await run.proxy.close({ graceMs: 0 })
    await world.close()
  })
  await t.rejects(run.proxy.ready, {
    message: `--remote-auth-callback-port: port ${port} is in use by another program on [::1]`,
  })
  t.same(run.lines, [], 'no login URL was printed')
})

t.test('login: a proxy with a registered client uses another port and reports it', { skip }, async (t) => {
  const port = await takePort(t, '::1')
  const world = await startWorld()
  const run = await startLogin(world, { remoteAuth: true, remoteAuthCallbackPort: String(port) })
  t.teardown(async () => {
    await run.proxy.close({ graceMs: 0 })
    await world.close()
  })
  const redirect = new URL(new URL(await run.loginUrl()).searchParams.get('redirect_uri') ?? '')
  t.not(redirect.port, String(port))
  t.match(run.lines[0], `port ${port} is in use by another program on [::1]`)
  await run.browse()
  await run.proxy.ready
  t.equal((await run.call()).status, 200)
})
