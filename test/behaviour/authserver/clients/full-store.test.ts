/** Assertions when the store is nearly full: unlimited clients with documents must not take the space of others. */
import t from 'tap'
import { makeFetch } from '../../../../runtime/net/index.ts'
import { makeMemoryStore } from '../../../../runtime/store/index.ts'
import { redirectUri, startAuthServer, tokenRequest } from '../../../helpers/authserver/authserver.ts'
import {
  assertionType,
  declared,
  makeKey,
  requestWithAssertion,
  signAssertion,
} from '../../../helpers/authserver/declared-client.ts'
import { clientDocument } from '../../../helpers/authserver/document-host.ts'
import { serviceAccountClaims, startPlatform, trusted } from '../../../helpers/authserver/platform.ts'
import { startLoopback } from '../../../helpers/loopback.ts'

t.test('used assertions of clients with documents leave space for declared clients', async (t) => {
  const key = await makeKey()
  const host = await startLoopback(() => ({
    body: clientDocument(clientId, {
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: { keys: [key.jwk] },
    }),
  }))
  const clientId = `${host.url}/client.json`
  const documentFetch = makeFetch({ maxRedirects: 0, maxBytes: 10_240, timeoutMs: 5_000 })
  t.teardown(async () => {
    await documentFetch.close()
    await host.close()
  })
  const rig = await startAuthServer(t, {
    store: makeMemoryStore({ maxEntries: 200 }),
    documentFetch,
    config: (issuer) => ({
      cimd: { cacheMaxSize: 256, cacheTtlMs: 300_000, allowLoopback: true },
      clients: [declared('ci', [`${issuer}/mcp`], { jwks: { keys: [key.jwk] } })],
    }),
  })
  const sign = (id: string): Promise<string> =>
    signAssertion(key, { clientId: id, issuer: rig.issuer, nowMs: rig.now() })
  const redeem = async (): Promise<number> => {
    const response = await tokenRequest(rig, {
      grant_type: 'authorization_code',
      code: 'unknown',
      code_verifier: 'v'.repeat(43),
      redirect_uri: redirectUri,
      client_assertion: await sign(clientId),
      client_assertion_type: assertionType,
    })
    return response.status
  }
  t.equal(await redeem(), 400, 'the client is authenticated, and the code is unknown')
  for (let n = 0; n < 160; n++) await rig.store.set(`other:${n}`, '1')
  t.equal(await redeem(), 503, 'more than three quarters of the store are full')
  t.equal((await requestWithAssertion(rig, await sign('ci'))).status, 200)
})

t.test('used tokens of platforms leave space for the records of users', async (t) => {
  const cluster = await startPlatform(t)
  const pod = serviceAccountClaims('jobs', 'nightly')
  const rig = await startAuthServer(t, {
    store: makeMemoryStore({ maxEntries: 200 }),
    config: (issuer) => ({
      clients: [
        declared('nightly', [`${issuer}/mcp`], {
          federated: {
            issuer: trusted(cluster, 'cluster', { preset: 'kubernetes' }),
            subject: pod.sub,
            maxAgeMs: 86_400_000,
            replay: 'once',
          },
        }),
      ],
    }),
  })
  const status = async (): Promise<number> =>
    (await requestWithAssertion(rig, await cluster.token(rig, pod))).status
  t.equal(await status(), 200)
  for (let n = 0; n < 160; n++) await rig.store.set(`other:${n}`, '1')
  t.equal(await status(), 503, 'more than three quarters of the store are full')
})
