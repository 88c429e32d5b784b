/** A backend of `gatehouse dev` that requires a login: the address, the page, and the tools without a restart. */
import t from 'tap'
import { Browser } from '../../helpers/authserver/cookie-browser.ts'
import { group, manifest, startDev, virtualServer } from '../../helpers/dev-rig.ts'
import { startProtectedServer } from '../../helpers/sign-in/rig.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'

t.setTimeout(240_000)

t.test('dev: prints where to sign in, and lists the tools after the login', async (t) => {
  const server = await startProtectedServer(t)
  const entry = manifest('MCPServerEntry', 'mail', {
    remoteUrl: server.url,
    transport: 'streamable-http',
    groupRef: { name: 'g' },
  })
  const state = t.testdir({})
  const { dev } = await startDev(t, [group(), entry, virtualServer()], {
    env: { GATEHOUSE_STATE_DIR: state },
  })
  const line = /^MCPServerEntry mail: sign in: open (http:\/\/127\.0\.0\.1:\d+\/sign-in\/mail\?key=\S+)$/m
  const [, address = ''] = await dev.waitFor(line)
  const page = await new Browser().open(address)
  t.match(page.text, /You are signed in/)
  await dev.waitFor(/^v: backends: mail$/m)
  const { stdout } = await runGatehouse(['tools', 'list', 'v'])
  t.match(stdout, /mail_whoami/)
  const withoutKey = address.replace(/\?key=.*/, '')
  t.equal((await fetch(withoutKey, { redirect: 'manual' })).status, 403)
})
