/** The user's login at a backend of a local virtual server, from the first start to a revoked refresh token. */
import { statSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Browser } from '../../../helpers/authserver/cookie-browser.ts'
import { connect } from '../../../helpers/mcp/clients.ts'
import { backendState, startProtectedServer, startSignInServer } from '../../../helpers/vmcp/sign-in-rig.ts'

t.setTimeout(120_000)

await t.test(
  'a backend that requires a login: state, login, tools, restart, refresh, revocation',
  async (t) => {
    const server = await startProtectedServer(t)
    const state = t.testdir({})
    const local = await startSignInServer(t, { mail: server.url }, state)
    const client = await connect('sdk1', local.url)
    t.teardown(() => client.close())
    const required = await backendState(local, 'mail', ({ health }) => health === 'unauthenticated')
    t.match(required, {
      sign_in_url: `${local.vmcp.origin}/sign-in/mail`,
      last_error: { category: 'sign_in_required' },
    })
    console.error(await client.listTools().catch((e: unknown) => e))
    const page = await new Browser().open(local.address())
    t.match(page.text, /You are signed in/)
    const healthy = await backendState(local, 'mail', ({ health }) => health === 'healthy')
    t.notOk(healthy.sign_in_url)
    t.equal(await client.callText('mail_whoami'), 'alice')
  },
)
