/** Attacks with identity assertions (ID-JAG). Each is rejected, and the audit log contains the reason. */
import { createHmac, createPublicKey } from 'node:crypto'
import t, { type Test } from 'tap'
import type { Fetch } from '../../../../runtime/net/index.ts'
import { makeMemoryStore } from '../../../../runtime/store/index.ts'
import {
  jsonOf,
  listenFor,
  refusal,
  type Rig,
  startAuthServer,
} from '../../../helpers/authserver/authserver.ts'
import { declared, newSecret } from '../../../helpers/authserver/declared-client.ts'
import {
  identityAssertion,
  idJagHeader,
  type Platform,
  policyFor,
  requestWithGrant,
  startPlatform,
  trusted,
  userPolicyFor,
} from '../../../helpers/authserver/platform.ts'

const secret = newSecret()
const scope = 'tools:read'
const asAgent = { client_id: 'agent', client_secret: secret }
const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const noFetch: Fetch = async () => {
  throw new Error('nothing may be fetched')
}

async function start(t: Test): Promise<{ rig: Rig; idp: Platform; ci: Platform }> {
  const [idp, ci] = await Promise.all([startPlatform(t), startPlatform(t)])
  const rig = await startAuthServer(t, {
    documentFetch: noFetch,
    config(issuer) {
      const resources = [`${issuer}/mcp`]
      return {
        upstreams: [],
        clients: ['agent', 'other'].map((id) => declared(id, resources, { secrets: [() => secret] })),
        assertionPolicies: [
          userPolicyFor(trusted(idp, 'idp')),
          policyFor(trusted(ci, 'ci'), [{ matcher: 'true', scopes: [scope], resources }]),
        ],
      }
    },
  })
  return { rig, idp, ci }
}

t.test('each forged or misdirected assertion is invalid_grant', async (t) => {
  const { rig, idp, ci } = await start(t)
  const nowSec = Math.floor(rig.now() / 1000)
  const foreign = (await startPlatform(t)).key
  const made = (claims: Record<string, unknown>, header: Record<string, unknown> = {}, by = idp) =>
    identityAssertion(by, rig, 'agent', { scope, ...claims }, header)
  const valid = await made({})
  const good = {
    iss: idp.issuer,
    sub: 'alice',
    aud: rig.issuer,
    client_id: 'agent',
    jti: 'a',
    iat: nowSec,
    exp: nowSec + 60,
  }
  const pem = createPublicKey({ key: idp.key.jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
  const input = `${encode({ alg: 'HS256', kid: idp.key.jwk.kid, ...idJagHeader })}.${encode(good)}`
  const hs256 = `${input}.${createHmac('sha256', String(pem)).update(input).digest('base64url')}`
  const audience = /only audience must be this server/
  const ownKey = /contains a key or a key URL/
  const rows: readonly (readonly [string, string | Promise<string>, RegExp])[] = [
    ['for another client', identityAssertion(idp, rig, 'other', { scope }), /issued to another client/],
    ['without a client', made({ client_id: undefined }), /issued to another client/],
    ['for a list of clients', made({ client_id: ['agent'] }), /issued to another client/],
    ['the token endpoint as audience', made({ aud: `${rig.issuer}/oauth/token` }), audience],
    ['the resource as audience', made({ aud: rig.resource }), audience],
    ['an additional audience', made({ aud: [rig.issuer, 'https://other.example'] }), audience],
    ['another server as audience', made({ aud: 'https://other.example' }), audience],
    ['no audience', made({ aud: undefined }), audience],
    ['our own issuer', made({ iss: rig.issuer }), /no trusted issuer/],
    ['an unknown issuer', made({ iss: 'https://other.example' }), /no trusted issuer/],
    ["a platform's issuer", made({}, {}, ci), /identity assertions of this issuer are not accepted/],
    ['more than five minutes', made({ iat: nowSec, exp: nowSec + 301 }), /more than 5 minutes/],
    ['expired', made({ iat: nowSec - 400, exp: nowSec - 120 }), /expired/],
    ['issued in the future', made({ iat: nowSec + 120, exp: nowSec + 180 }), /issued in the future/],
    ['not valid yet', made({ nbf: nowSec + 120 }), /not valid yet/],
    ['no exp', made({ exp: undefined }), /claim set is missing/],
    ['no iat', made({ iat: undefined }), /no exp or no iat/],
    ['no jti', made({ jti: undefined }), /no usable jti/],
    ['no subject', made({ sub: undefined }), /no usable sub/],
    ['a long subject', made({ sub: 'x'.repeat(1025) }), /no usable sub/],
    ['a tenant that is no text', made({ tenant: { id: 1 } }), /tenant is invalid/],
    ['a scope that is no text', made({ scope: ['tools:read'] }), /scope is invalid/],
    ['a resource that is no URL', made({ resource: {} }), /resource is invalid/],
    ['an empty list of resources', made({ resource: [] }), /resource is invalid/],
    ['a bound assertion without a proof', made({ cnf: { jkt: 'a' } }), /bound to a key/],
    ['no signature', `${encode({ alg: 'none', ...idJagHeader })}.${encode(good)}.`, /algorithm/],
    ['HS256 with the public key', hs256, /algorithm|keys/],
    ['a key in the header', made({}, { jwk: foreign.jwk }), ownKey],
    ['a key URL in the header', made({}, { jku: `${idp.issuer}/keys` }), ownKey],
    ['a certificate URL in the header', made({}, { x5u: `${idp.issuer}/keys` }), ownKey],
    ['an altered payload', valid.replace(/\.[^.]+\./, `.${encode({ ...good, sub: 'root' })}.`), /signature/],
    ['16 KiB', made({ padding: 'x'.repeat(16_384) }), /larger than 16 KiB/],
  ]
  for (const [title, assertion, reason] of rows) {
    const response = await requestWithGrant(rig, await assertion, asAgent)
    const body = await jsonOf(response)
    t.equal(`${response.status} ${String(body['error'])}`, '400 invalid_grant', title)
    t.equal(body['error_description'], 'the assertion is not accepted', title)
    t.match(rig.events.at(-1), { type: 'client_rejected', outcome: 'denied', reason }, title)
  }
  t.equal((await requestWithGrant(rig, valid, asAgent)).status, 200, 'a rejected assertion uses up nothing')
  t.notMatch(rig.logged() + JSON.stringify(rig.events), /eyJ/)
})

t.test('without a client, or with another type, the grant is rejected', async (t) => {
  const { rig, idp, ci } = await start(t)
  const assertion = await identityAssertion(idp, rig, 'agent', { scope })
  t.equal(await refusal(await requestWithGrant(rig, assertion)), '401 invalid_client')
  const wrong = { client_id: 'agent', client_secret: newSecret() }
  t.equal(await refusal(await requestWithGrant(rig, assertion, wrong)), '401 invalid_client')
  for (const typ of ['JWT', undefined, 'at+jwt', 'oauth-id-jag']) {
    const plain = await idp.token(rig, { sub: 'alice', client_id: 'agent', scope }, { typ })
    const refused = await requestWithGrant(rig, plain)
    t.equal(await refusal(refused), '400 invalid_grant', `typ ${String(typ)}`)
  }
  const spelled = await identityAssertion(
    idp,
    rig,
    'agent',
    { scope },
    { typ: 'application/OAUTH-ID-JAG+jwt' },
  )
  t.equal((await requestWithGrant(rig, spelled, asAgent)).status, 200, 'a media type, in any case')
  const asPlatform = await identityAssertion(ci, rig, 'agent', { scope })
  t.equal(await refusal(await requestWithGrant(rig, asPlatform)), '401 invalid_client')
})

t.test('an assertion is used once, on every replica, also by simultaneous requests', async (t) => {
  const store = makeMemoryStore()
  const idp = await startPlatform(t)
  const rig = await startAuthServer(t, {
    store,
    config: (issuer) => ({
      upstreams: [],
      clients: [declared('agent', [`${issuer}/mcp`], { secrets: [() => secret] })],
      assertionPolicies: [userPolicyFor(trusted(idp, 'idp'))],
    }),
  })
  const assertion = await identityAssertion(idp, rig, 'agent', { scope })
  const servers = [rig, await listenFor(t, await rig.replica())]
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, i) => requestWithGrant(servers[i % 2] ?? rig, assertion, asAgent)),
  )
  t.equal(answers.filter(({ status }) => status === 200).length, 1)
})

t.test('one client’s invalid assertions use no permits of another', async (t) => {
  const { rig, idp } = await start(t)
  for (let i = 0; i < 650; i++) {
    const forged = `${encode({ alg: 'ES256', ...idJagHeader })}.${encode({ iss: idp.issuer, i })}.AAAA`
    const response = await requestWithGrant(rig, forged, asAgent)
    if (response.status !== 400) t.fail(`status ${response.status} at request ${i}`)
    await response.arrayBuffer()
  }
  const assertion = await identityAssertion(idp, rig, 'other', { scope })
  const form = { client_id: 'other', client_secret: secret }
  t.equal((await requestWithGrant(rig, assertion, form)).status, 200)
})
