/** An OAuth library gets a bound token from the embedded authorization server and calls its host with it. */
import * as oauth from 'oauth4webapi'
import t from 'tap'
import { makeAuthenticator } from '../../runtime/incoming/index.ts'
import { sendProblem } from '../../runtime/net/index.ts'
import { startAuthServer } from '../helpers/authserver/authserver.ts'
import { declared, newSecret } from '../helpers/authserver/declared-client.ts'

const secret = newSecret()

await t.test(
  'oauth4webapi: nonces of both servers, one key, and the same token without the key',
  async (t) => {
    const dpop = { mode: 'required', requireNonce: true, proofMaxAge: '60s', replay: 'store' } as const
    let authenticator: ReturnType<typeof makeAuthenticator> | undefined
    const rig = await startAuthServer(t, {
      config: (issuer) => ({
        dpop,
        upstreams: [],
        allowedAudiences: [`${issuer}/mcp`],
        clients: [declared('nightly-report', [`${issuer}/mcp`], { secrets: [() => secret] })],
      }),
      async host(exchange) {
        try {
          await authenticator?.stage(exchange)
          exchange.res.end(exchange.caller?.subject)
        } catch (error) {
          if (!authenticator?.sendChallenge(exchange, error)) sendProblem(exchange.res, error)
        }
      },
    })
    const { issuer, server } = rig
    const resource = `${issuer}/mcp`
    authenticator = makeAuthenticator(
      { type: 'oidc', oidc: { issuer, audience: resource, resource, insecureAllowHttp: true, dpop } },
      { keys: server.keys, isLive: server.isLive, dpop: server.dpop },
    )
    t.teardown(() => authenticator?.close())

    const insecure = { [oauth.allowInsecureRequests]: true }
    const found = await oauth.discoveryRequest(new URL(issuer), { ...insecure, algorithm: 'oauth2' })
    const as = await oauth.processDiscoveryResponse(new URL(issuer), found)
    const client: oauth.Client = { client_id: 'nightly-report' }
    const DPoP = oauth.DPoP(client, await oauth.generateKeyPair('ES256'))
    const request = () =>
      oauth.clientCredentialsGrantRequest(
        as,
        client,
        oauth.ClientSecretBasic(secret),
        {},
        { ...insecure, DPoP },
      )
    const read = async () => oauth.processClientCredentialsResponse(as, client, await request())
    const tokens = await read().catch((error: unknown) => {
      if (oauth.isDPoPNonceError(error)) return read()
      throw error
    })
    t.equal(tokens.token_type, 'dpop')
    const call = () =>
      oauth.protectedResourceRequest(tokens.access_token, 'POST', new URL(resource), new Headers(), '{}', {
        ...insecure,
        DPoP,
      })
    const response = await call().catch((error: unknown) => {
      if (oauth.isDPoPNonceError(error)) return call()
      throw error
    })
    t.equal(await response.text(), 'client:nightly-report')
    t.equal(await (await call()).text(), 'client:nightly-report', 'a second call reuses the nonce')
    const stolen = await fetch(resource, {
      method: 'POST',
      headers: { authorization: `Bearer ${tokens.access_token}` },
    })
    t.equal(stolen.status, 401)
  },
)
