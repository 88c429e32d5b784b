/** The embedded authorization server in several processes: each step of a login reaches a different one. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import t from 'tap'
import { login, redeem, refresh, tokensOf } from '../../helpers/authserver/authserver.ts'
import { oidcOf } from '../../helpers/authserver/hosted.ts'
import { startOidcProvider } from '../../helpers/authserver/oidc-provider.ts'
import { freePort } from '../../helpers/gatehouse.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { openSession } from '../../helpers/mcp/wire.ts'
import { makeCertificates, missingRedisTls } from '../../helpers/redis.ts'
import { nextWorker, startServed } from '../../helpers/workers/served.ts'

const secretVariable = 'TEST_UPSTREAM_SECRET'

/** Each request in this file uses a new connection. */
const plainFetch = globalThis.fetch
globalThis.fetch = (input, init = {}) =>
  plainFetch(input, { ...init, headers: { ...Object.fromEntries(new Headers(init.headers)), ...nextWorker } })

t.test(
  'generated keys, codes, sessions and refresh tokens are shared by all processes',
  { skip: missingRedisTls },
  async (t) => {
    const port = await freePort()
    const origin = `http://127.0.0.1:${port}`
    const certificates = makeCertificates()
    setDefaultCACertificates([...getCACertificates(), certificates.ca])
    const provider = await startOidcProvider({
      tls: {
        cert: readFileSync(certificates.certFile, 'utf8'),
        key: readFileSync(certificates.keyFile, 'utf8'),
      },
      claims: { name: 'Alice Example', email: 'alice@example.test' },
      clients: [
        {
          client_id: 'gatehouse',
          client_secret: 'upstream-secret',
          redirect_uris: [`${origin}/mcp/oauth/callback`],
          grant_types: ['authorization_code', 'refresh_token'],
        },
      ],
    })
    const backend = await startRawBackend()
    t.teardown(async () => {
      await Promise.all([provider.close(), backend.close()])
      certificates.remove()
    })
    const oidcConfig = { issuerUrl: provider.issuer, clientId: 'gatehouse', clientSecretEnv: secretVariable }
    const served = await startServed(
      t,
      { raw: backend.url },
      {
        workers: 2,
        port,
        env: { [secretVariable]: 'upstream-secret', NODE_EXTRA_CA_CERTS: certificates.caFile },
        more: { incomingAuth: { type: 'oidc', oidc: oidcOf(origin) } },
        beside: (dir) =>
          writeFileSync(
            join(dir, 'authserver-config.yaml'),
            JSON.stringify({
              issuer: origin,
              allowedAudiences: [`${origin}/mcp`],
              upstreamProviders: [{ name: 'corp', type: 'oidc', oidcConfig }],
            }),
          ),
      },
    )
    const rig = { issuer: origin }
    const keys = async () => (await fetch(`${origin}/.well-known/jwks.json`)).text()
    t.equal(await keys(), await keys(), 'both publish the same keys')
    for (let i = 0; i < 2; i++) {
      const signedIn = await login(rig)
      const tokens = await tokensOf(await redeem(rig, signedIn))
      const again = await tokensOf(await refresh(rig, signedIn.clientId, tokens.refresh_token))
      const headers = { ...nextWorker, authorization: `Bearer ${again.access_token}` }
      const session = await openSession(served.url, { headers })
      for (let n = 0; n < 4; n++)
        t.match((await session.request('tools/call', { name: 'raw_echo', arguments: {} })).text, 'content')
      t.equal((await session.request('ping', {}, { authorization: 'Bearer nobody' })).status, 401)
      t.equal((await redeem(rig, signedIn)).status, 400, 'a code is valid once')
      // The next login starts at the other process.
      if (i === 0) await keys()
    }
    t.match(served.run.output(), 'NO SIGNING KEY IS CONFIGURED')
  },
)
