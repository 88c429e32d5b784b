/** Attacks with platform tokens that authenticate declared clients. Each gets the same response. */
import { createHmac, createPublicKey } from 'node:crypto'
import t, { type Test } from 'tap'
import type { Fetch } from '../../../../runtime/net/index.ts'
import { makeMemoryStore, type Store } from '../../../../runtime/store/index.ts'
import {
  jsonOf,
  listenFor,
  refusal,
  type Rig,
  startAuthServer,
} from '../../../helpers/authserver/authserver.ts'
import {
  assertionType,
  declared,
  makeKey,
  newSecret,
  requestWithAssertion,
  signAssertion,
} from '../../../helpers/authserver/declared-client.ts'
import {
  identityAssertion,
  type Platform,
  policyFor,
  requestWithGrant,
  serviceAccountClaims,
  startPlatform,
  trusted,
} from '../../../helpers/authserver/platform.ts'

const pod = serviceAccountClaims('jobs', 'nightly')
const scopes = ['tools:read']
const secret = newSecret()
const key = await makeKey()
const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const noFetch: Fetch = async () => {
  throw new Error('nothing may be fetched')
}

interface Started {
  readonly rig: Rig
  readonly cluster: Platform
  readonly other: Platform
}

/** `other` is trusted only for another client. */
async function start(t: Test, store?: Store): Promise<Started> {
  const [cluster, other] = await Promise.all([startPlatform(t), startPlatform(t)])
  const rig = await startAuthServer(t, {
    documentFetch: noFetch,
    ...(store && { store }),
    config(issuer) {
      const resources = [`${issuer}/mcp`]
      const once = { maxAgeMs: 300_000, replay: 'once' } as const
      const ours = trusted(cluster, 'cluster', { preset: 'kubernetes' })
      return {
        upstreams: [],
        clients: [
          declared('nightly', resources, { federated: { issuer: ours, subject: pod.sub, ...once } }),
          declared('plain', resources, {
            federated: { issuer: trusted(other, 'other'), subject: 'job', ...once },
          }),
          declared('signer', resources, { jwks: { keys: [key.jwk] } }),
          declared('secretive', resources, { secrets: [() => secret] }),
        ],
        assertionPolicies: [policyFor(ours, [{ subject: pod.sub, scopes, resources }])],
      }
    },
  })
  return { rig, cluster, other }
}

t.test('each forged or misdirected token is invalid_client, with the reason in the audit log', async (t) => {
  const { rig, cluster, other } = await start(t)
  const nowSec = Math.floor(rig.now() / 1000)
  const foreign = (await startPlatform(t)).key
  const made = (claims: Record<string, unknown>, header: Record<string, unknown> = {}) =>
    cluster.token(rig, { ...pod, ...claims }, header)
  const valid = await made({})
  const good = { ...pod, iss: cluster.issuer, aud: rig.issuer, jti: 'a', iat: nowSec, exp: nowSec + 60 }
  const pem = createPublicKey({ key: cluster.key.jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
  const input = `${encode({ alg: 'HS256', kid: cluster.key.jwk.kid })}.${encode(good)}`
  const hs256 = `${input}.${createHmac('sha256', String(pem)).update(input).digest('base64url')}`
  const audience = /only audience must be this server/
  const ownKey = /contains a key or a key URL/
  const rows: readonly (readonly [string, string | Promise<string>, RegExp])[] = [
    ['the token endpoint as audience', made({ aud: `${rig.issuer}/oauth/token` }), audience],
    ['the resource as audience', made({ aud: rig.resource }), audience],
    ['an additional audience', made({ aud: [rig.issuer, 'https://other.example'] }), audience],
    ['another server as audience', made({ aud: 'https://other.example' }), audience],
    ['another subject', made(serviceAccountClaims('jobs', 'root')), /does not match the client's identity/],
    ['the same subject at another issuer', other.token(rig, pod), /claim set|keys/],
    [
      'a subject that names another account',
      made({ sub: 'system:serviceaccount:a:b' }),
      /not from a Service/,
    ],
    ['more than the permitted age', made({ iat: nowSec, exp: nowSec + 301 }), /more than 5 minutes/],
    ['expired', made({ iat: nowSec - 400, exp: nowSec - 120 }), /expired/],
    ['bound to a key', made({ cnf: { jkt: 'a' } }), /bound to a key/],
    ['an access token', made({}, { typ: 'at+jwt' }), /unsupported typ/],
    ['an identity assertion', identityAssertion(cluster, rig, 'nightly', pod), /unsupported typ/],
    ['no signature', `${encode({ alg: 'none' })}.${encode(good)}.`, /algorithm/],
    ['HS256 with the public key', hs256, /algorithm|keys/],
    ['a key in the header', made({}, { jwk: foreign.jwk }), ownKey],
    ['a key URL in the header', made({}, { jku: `${cluster.issuer}/keys` }), ownKey],
    [
      'an altered payload',
      valid.replace(/\.[^.]+\./, `.${encode({ ...good, aud: 'x' })}.`),
      /audience|signature/,
    ],
    [
      'an assertion that the client signed',
      signAssertion(key, { clientId: 'nightly', issuer: rig.issuer }),
      /./,
    ],
    ['16 KiB', made({ padding: 'x'.repeat(16_384) }), /larger than 16 KiB/],
  ]
  for (const [title, assertion, reason] of rows) {
    const response = await requestWithAssertion(rig, await assertion, { client_id: 'nightly' })
    const body = await jsonOf(response)
    t.equal(`${response.status} ${String(body['error'])}`, '401 invalid_client', title)
    t.equal(body['error_description'], 'client authentication failed', title)
    t.match(rig.events.at(-1), { type: 'client_rejected', clientId: 'nightly', reason }, title)
  }
  t.equal((await requestWithAssertion(rig, valid)).status, 200, 'a rejected token uses up nothing')
  t.notMatch(rig.logged() + JSON.stringify(rig.events), /eyJ/)
})

t.test('a platform token authenticates no other client, and no other method this client', async (t) => {
  const { rig, cluster } = await start(t)
  for (const client_id of ['plain', 'signer', 'secretive', 'unknown']) {
    const assertion = await cluster.token(rig, pod)
    t.equal(await refusal(await requestWithAssertion(rig, assertion, { client_id })), '401 invalid_client')
  }
  const form = { grant_type: 'client_credentials', client_id: 'nightly' }
  for (const more of [{}, { client_secret: secret }]) {
    const body = new URLSearchParams({ ...form, ...more })
    const response = await fetch(`${rig.issuer}/oauth/token`, { method: 'POST', body })
    t.equal(await refusal(response), '401 invalid_client')
  }
  const unknown = await cluster.token(rig, serviceAccountClaims('jobs', 'unknown'))
  t.equal(await refusal(await requestWithAssertion(rig, unknown)), '401 invalid_client')
})

t.test('a token is used once: on every replica, and for one purpose', async (t) => {
  const { rig, cluster } = await start(t)
  const replica = await listenFor(t, await rig.replica())
  const assertion = await cluster.token(rig, pod)
  t.equal((await requestWithAssertion(rig, assertion)).status, 200)
  t.equal(await refusal(await requestWithAssertion(replica, assertion)), '401 invalid_client')
  t.equal(await refusal(await requestWithGrant(rig, assertion)), '400 invalid_grant', 'as a grant')
  const second = await cluster.token(rig, pod)
  t.equal((await requestWithGrant(rig, second)).status, 200)
  t.equal(await refusal(await requestWithAssertion(rig, second)), '401 invalid_client', 'and the reverse')
  const third = await cluster.token(rig, pod)
  const inspect = await fetch(`${rig.issuer}/oauth/introspect`, {
    method: 'POST',
    body: new URLSearchParams({
      token: 'x',
      client_assertion: third,
      client_assertion_type: assertionType,
    }),
  })
  t.equal(inspect.status, 200)
  t.equal(await refusal(await requestWithAssertion(rig, third)), '401 invalid_client', 'at another endpoint')
})

t.test('a flood from one client uses no permits of another', async (t) => {
  const { rig, cluster, other } = await start(t, makeMemoryStore({ now: () => 0 }))
  let limited = 0
  for (let i = 0; i < 620; i++) {
    const response = await requestWithAssertion(rig, await cluster.token(rig, pod))
    await response.arrayBuffer()
    if (response.status === 429) limited += 1
  }
  t.equal(limited, 20, 'a client gets at most 600 tokens per minute')
  t.equal((await requestWithAssertion(rig, await other.token(rig, { sub: 'job' }))).status, 200)
})
