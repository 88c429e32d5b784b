/**
 * Failures of an embedded authorization server: a login that fails at the upstream, and a code that is redeemed twice.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { Test } from 'tap'
import { login, type LoggedIn, redeem } from '../authserver/authserver.ts'
import { authServerFile, makeKeys, oidcOf, upstreamSecretVariable } from '../authserver/hosted.ts'
import { startOidcProvider } from '../authserver/oidc-provider.ts'
import { makeAuthority } from '../certificates.ts'
import { freePort } from '../gatehouse.ts'
import { backend, rig, type Rig } from './rig.ts'
import { type Failure, noState } from './views.ts'

const upstreamSecret = 'secret-at-the-provider'

/**
 * A virtual server with an authorization server whose upstream is a real provider. The server authenticates there with
 * `secret`.
 */
async function withLogins(t: Test, secret: string): Promise<Rig> {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const authority = await makeAuthority()
  setDefaultCACertificates([...getCACertificates('default'), authority.ca])
  const { cert, key } = await authority.leaf()
  const provider = await startOidcProvider({
    tls: { cert, key },
    clients: [
      {
        client_id: 'gatehouse',
        client_secret: upstreamSecret,
        redirect_uris: [`${origin}/mcp/oauth/callback`],
        grant_types: ['authorization_code', 'refresh_token'],
      },
    ],
  })
  t.teardown(() => provider.close())
  const dir = t.testdir()
  const path = join(dir, 'authserver-config.yaml')
  writeFileSync(path, authServerFile({ origin, providers: { corp: provider }, keys: makeKeys(dir) }))
  return rig(
    t,
    { b: await backend(t) },
    { incomingAuth: { type: 'oidc', oidc: oidcOf(origin) } },
    { port, authServerFile: { path, env: { [upstreamSecretVariable]: secret } } },
  )
}

/** Completes the login, whatever its result. */
const signIn = ({ vmcp }: Rig): Promise<LoggedIn> =>
  login({ issuer: vmcp.origin }, { resource: vmcp.url, scope: 'openid' })

export const authServerFailures: readonly Failure[] = [
  {
    name: 'a login that the identity provider refuses',
    type: 'authorization_server',
    lasts: false,
    async drive(t) {
      const running = await withLogins(t, 'another secret')
      const { response } = await signIn(running)
      t.ok(response.searchParams.has('error'), 'the client is told')
      return running
    },
    reason: 'login_failed',
    message: /a login or a token request failed/,
    fix: /contains the upstream and the reason/,
    logged: { level: 'warn', action: 'login_failed', outcome: 'failure', upstream: 'corp', reason: String },
    metric: 'gatehouse_authserver_events_total{action="login_failed",outcome="failure",upstream="corp"} 1',
    silent: noState,
    also: (t, told) =>
      void t.notMatch(JSON.stringify(told), /another secret|secret-at-the-provider/, 'no view has a secret'),
  },
  {
    name: 'a code that is presented twice',
    type: 'authorization_server',
    lasts: false,
    async drive(t) {
      const running = await withLogins(t, upstreamSecret)
      const signedIn = await signIn(running)
      const issuer = { issuer: running.vmcp.origin }
      t.equal((await redeem(issuer, signedIn)).status, 200)
      t.equal((await redeem(issuer, signedIn)).status, 400)
      return running
    },
    reason: 'code_reused',
    message: /a login or a token request failed/,
    fix: /auth_code_reused in the audit log/,
    logged: { level: 'warn', action: 'code_reused', outcome: 'denied' },
    metric: /gatehouse_authserver_events_total\{action="code_reused",outcome="denied"[^}]*\} 1/,
    silent: noState,
  },
]
