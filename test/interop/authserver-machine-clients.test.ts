/** Both generations of the MCP SDK get tokens for themselves from an embedded authorization server. */
import * as client from '@modelcontextprotocol/client'
import { auth } from '@modelcontextprotocol/sdk/client/auth.js'
import * as extensions from '@modelcontextprotocol/sdk/client/auth-extensions.js'
import { decodeJwt, exportPKCS8 } from 'jose'
import t, { type Test } from 'tap'
import { sendJson } from '../../runtime/net/index.ts'
import { startAuthServer } from '../helpers/authserver/authserver.ts'
import { declared, makeKey, newSecret } from '../helpers/authserver/declared-client.ts'

const secret = newSecret()
const key = await makeKey()
const privateKey = await exportPKCS8(key.privateKey)

for (const upstreams of [undefined, []]) {
  const title = upstreams ? 'a server without upstream providers' : 'the server'
  t.test(`the SDKs discover ${title} and authenticate with a secret or a key`, (t) => run(t, upstreams))
}

async function run(t: Test, upstreams: readonly never[] | undefined): Promise<void> {
  const rig = await startAuthServer(t, {
    config: (issuer) => ({
      ...(upstreams && { upstreams }),
      clients: [
        declared('job', [`${issuer}/mcp`], { secrets: [() => secret] }),
        declared('signer', [`${issuer}/mcp`], { jwks: { keys: [key.jwk] } }),
      ],
    }),
    host: (exchange, { issuer, resource }) => {
      sendJson(exchange.res, 200, { resource, authorization_servers: [issuer] })
    },
  })
  const job = { clientId: 'job', clientSecret: secret, expectedIssuer: rig.issuer, scope: 'tools:read' }
  const signer = { clientId: 'signer', privateKey, algorithm: 'ES256', expectedIssuer: rig.issuer }
  const sessions = [
    ['client:job', auth, new extensions.ClientCredentialsProvider(job)],
    ['client:signer', auth, new extensions.PrivateKeyJwtProvider(signer)],
    ['client:job', client.auth, new client.ClientCredentialsProvider(job)],
    ['client:signer', client.auth, new client.PrivateKeyJwtProvider(signer)],
  ] as const
  for (const [subject, authorize, provider] of sessions) {
    const signIn = authorize as (given: unknown, options: { serverUrl: string }) => Promise<string>
    t.equal(await signIn(provider, { serverUrl: rig.resource }), 'AUTHORIZED')
    const tokens = provider.tokens()
    const claims = decodeJwt(tokens?.access_token ?? '')
    t.match(claims, { sub: subject, aud: [rig.resource] })
    t.equal(tokens?.refresh_token, undefined)
  }
}
