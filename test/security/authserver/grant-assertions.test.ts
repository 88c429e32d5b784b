/** Attacks with assertions that are grants (jwt-bearer). Each is rejected with the same response. */
import { createHmac, createPublicKey } from 'node:crypto'
import { decodeJwt } from 'jose'
import t from 'tap'
import type { Fetch } from '../../../runtime/net/index.ts'
import { makeMemoryStore, type Store } from '../../../runtime/store/index.ts'
import { takePermission } from '../../../runtime/authserver/storage/limits.ts'
import {
  jsonOf,
  refusal,
  startAuthServer,
  tokenRequest,
  tokensOf,
} from '../../helpers/authserver/authserver.ts'
import { declared, newSecret } from '../../helpers/authserver/declared-client.ts'
import {
  jwtBearerGrant,
  type Platform,
  policyFor,
  requestWithGrant,
  serviceAccountClaims,
  startPlatform,
  trusted,
  workflowClaims,
} from '../../helpers/authserver/platform.ts'

const scopes = ['tools:read']
const secret = newSecret()
const noFetch: Fetch = async () => {
  throw new Error('nothing may be fetched')
}

async function start(t: Parameters<typeof startAuthServer>[0], store?: Store) {
  const [cluster, github, gitlab, plain] = await Promise.all([
    startPlatform(t),
    startPlatform(t),
    startPlatform(t),
    startPlatform(t),
  ])
  const rig = await startAuthServer(t, {
    documentFetch: noFetch,
    ...(store && { store }),
    config(issuer) {
      const resources = [`${issuer}/mcp`]
      const rights = { scopes, resources }
      return {
        upstreams: [],
        clients: [declared('ci', resources, { secrets: [() => secret] })],
        assertionPolicies: [
          policyFor(
            trusted(cluster, 'cluster', { preset: 'kubernetes' }),
            [{ subject: 'system:serviceaccount:jobs:nightly', ...rights }],
            { replay: 'untilExpiry' },
          ),
          policyFor(trusted(github, 'github', { preset: 'github' }), [
            { matcher: "claims.environment == 'production'", ...rights },
          ]),
          policyFor(trusted(gitlab, 'gitlab', { preset: 'gitlab' }), [
            { matcher: "claims.project_id == '7'", ...rights },
          ]),
          policyFor(trusted(plain, 'plain'), [{ matcher: 'true', ...rights }], {
            acceptedAudiences: ['urn:gatehouse'],
          }),
        ],
      }
    },
  })
  return { rig, cluster, github, gitlab, plain }
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const job = serviceAccountClaims('jobs', 'nightly')

t.test(
  'each forged or misdirected assertion is invalid_grant, with the reason in the audit log',
  async (t) => {
    const { rig, cluster, github, gitlab, plain } = await start(t)
    const now = Math.floor(rig.now() / 1000)
    const token = `${rig.issuer}/oauth/token`
    const pem = createPublicKey({ key: cluster.key.jwk, format: 'jwk' })
      .export({ type: 'spki', format: 'pem' })
      .toString()
    const good = { ...job, iss: cluster.issuer, aud: rig.issuer, iat: now, exp: now + 60 }
    const hs256 = (key: string): string => {
      const input = `${encode({ alg: 'HS256', kid: cluster.key.jwk.kid })}.${encode(good)}`
      return `${input}.${createHmac('sha256', key).update(input).digest('base64url')}`
    }
    const claims = (more: Record<string, unknown>, by: Platform = cluster) =>
      by.token(rig, { ...job, ...more })
    const header = (more: Record<string, unknown>) => cluster.token(rig, job, more)
    const { key: foreign } = await startPlatform(t)
    const forged = async (): Promise<string> => {
      const own = cluster.key
      cluster.key = { ...foreign, jwk: { ...foreign.jwk, kid: own.jwk.kid } }
      const assertion = await cluster.token(rig, job)
      cluster.key = own
      return assertion
    }
    const forgery = await forged()
    const valid = await claims({})
    const audience = /assertion's only audience must be this server/
    const ownKey = /contains a key or a key URL/
    const untrusted = /no trusted issuer/
    const type = /unsupported typ/
    const noAccount = /not from a ServiceAccount/
    const rows: readonly (readonly [string, string | Promise<string>, RegExp])[] = [
      ['the resource as audience', claims({ aud: rig.resource }), audience],
      ['an additional audience', claims({ aud: [rig.issuer, 'https://other.example'] }), audience],
      ['two of our audiences', claims({ aud: [rig.issuer, token] }), audience],
      ['another server as audience', claims({ aud: 'https://other.example' }), audience],
      ['the issuer with a slash', claims({ aud: `${rig.issuer}/` }), audience],
      ['no audience', claims({ aud: undefined }), audience],
      ['our issuer instead of acceptedAudiences', plain.token(rig, { sub: 'a' }), audience],
      ['another issuer', claims({ iss: 'https://other.example' }), untrusted],
      ['an issuer with a slash', claims({ iss: `${cluster.issuer}/` }), untrusted],
      ['no issuer', claims({ iss: undefined }), /no issuer/],
      ['our own issuer', claims({ iss: rig.issuer }), untrusted],
      ["another trusted issuer's key", claims({ iss: github.issuer }), /none of the issuer's keys/],
      ['another key with the same kid', forgery, /signature/],
      ['an altered payload', valid.replace(/\.[^.]+\./, `.${encode({ ...good, sub: 'x' })}.`), /signature/],
      ['no signature', `${encode({ alg: 'none' })}.${encode(good)}.`, /algorithm/],
      ['HS256 with the public key', hs256(pem), /algorithm|keys/],
      ['a key in the header', header({ jwk: foreign.jwk }), ownKey],
      ['the URL of a key', header({ jku: 'https://evil.example/keys' }), ownKey],
      ['the URL of a certificate', header({ x5u: 'https://evil.example/cert' }), ownKey],
      ['certificates in the header', header({ x5c: ['x'] }), ownKey],
      ['an access token', header({ typ: 'at+jwt' }), type],
      ['an ID-JAG', header({ typ: 'oauth-id-jag+jwt' }), type],
      ['a proof', header({ typ: 'dpop+jwt' }), type],
      ["a client's assertion", header({ typ: 'client-authentication+jwt' }), type],
      ['expired', claims({ iat: now - 200, exp: now - 61 }), /expired/],
      ['not valid yet', claims({ nbf: now + 120 }), /not valid yet/],
      ['issued in the future', claims({ iat: now + 120 }), /issued in the future/],
      ['a life of more than five minutes', claims({ exp: now + 301 }), /more than 5 minutes/],
      ['the same with an old iat', claims({ iat: now - 250, exp: now + 60 }), /more than 5 minutes/],
      ['the same without iat', claims({ iat: undefined, exp: now + 600 }), /more than 5 minutes/],
      ['no exp', claims({ exp: undefined }), /claim/],
      ['no subject', claims({ sub: undefined }), /no usable sub/],
      ['an empty subject', plain.token(rig, { sub: '', aud: 'urn:gatehouse' }), /no usable sub/],
      ['a long subject', plain.token(rig, { sub: 'x'.repeat(1_025), aud: 'urn:gatehouse' }), /no usable sub/],
      ['a jti that is not text', claims({ jti: 7 }), /jti/],
      ['a key confirmation', claims({ cnf: { jkt: 'x' } }), /bound to a key/],
      ['a large assertion', claims({ padding: 'x'.repeat(16_384) }), /16 KiB/],
      ['something else', 'not-a-jwt', /not a signed JWT/],
      ['a subject without the claims of a pod', claims({ 'kubernetes.io': undefined }), noAccount],
      [
        'a subject in another namespace',
        claims(serviceAccountClaims('other', 'nightly')),
        /no binding matches/,
      ],
      [
        'a subject that differs from the claims of a pod',
        claims({ ...serviceAccountClaims('other', 'x'), sub: job.sub }),
        noAccount,
      ],
      [
        'a pod in another namespace',
        claims({ 'kubernetes.io': { namespace: 'other', serviceaccount: { name: 'nightly' } } }),
        noAccount,
      ],
      [
        'a pod with another ServiceAccount',
        claims({ 'kubernetes.io': { namespace: 'jobs', serviceaccount: { name: 'other' } } }),
        noAccount,
      ],
      ['a name that contains colons', claims({ sub: 'system:serviceaccount:jobs:nightly:x' }), noAccount],
      [
        'a GitHub user',
        github.token(rig, { sub: 'u', environment: 'production' }),
        /not from a GitHub workflow/,
      ],
      [
        'another environment',
        github.token(rig, workflowClaims({ environment: 'test' })),
        /no binding matches/,
      ],
      [
        'a pipeline of a fork',
        gitlab.token(rig, { sub: 'p', project_id: '7', ref_protected: 'false' }),
        /not from a protected ref/,
      ],
    ]
    for (const [name, assertion, reason] of rows) {
      const response = await requestWithGrant(rig, await assertion)
      t.equal(response.status, 400, name)
      t.same(
        await jsonOf(response),
        { error: 'invalid_grant', error_description: 'the assertion is not accepted' },
        name,
      )
      t.match(rig.events.at(-1), { type: 'client_rejected', outcome: 'denied', reason }, name)
    }
    t.equal((await requestWithGrant(rig, valid)).status, 200)
    t.equal((await requestWithGrant(rig, await claims({ aud: token }))).status, 200, 'the token endpoint')
    t.equal((await requestWithGrant(rig, await header({ typ: 'JWT' }))).status, 200)
    const protectedRef = await gitlab.token(rig, { sub: 'p', project_id: '7', ref_protected: 'true' })
    t.equal((await requestWithGrant(rig, protectedRef)).status, 200)
    t.notMatch(rig.logged(), /eyJ/, 'no assertion is logged')
    t.notMatch(JSON.stringify(rig.events), /eyJ/)
  },
)

t.test('a signature in another encoding does not make a used assertion new', async (t) => {
  const { rig, plain } = await start(t)
  const assertion = await plain.token(rig, { sub: 'a', aud: 'urn:gatehouse', jti: undefined })
  t.equal((await requestWithGrant(rig, assertion)).status, 200)
  // (r, n - s) is another valid signature for the same text.
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
  const [head = '', body = '', signature = ''] = assertion.split('.')
  const bytes = Buffer.from(signature, 'base64url')
  const s = order - BigInt(`0x${bytes.subarray(32).toString('hex')}`)
  const other = Buffer.concat([bytes.subarray(0, 32), Buffer.from(s.toString(16).padStart(64, '0'), 'hex')])
  for (const changed of [other.toString('base64url'), `${signature}=`]) {
    t.equal(
      await refusal(await requestWithGrant(rig, `${head}.${body}.${changed}`)),
      '400 invalid_grant',
      changed,
    )
  }
})

t.test('equal subjects at two issuers, and subjects with separators, are distinct principals', async (t) => {
  const { rig, plain } = await start(t)
  const subjects = new Set<string>()
  for (const sub of ['client:ci', 'a#b', 'a', 'system:serviceaccount:jobs:nightly']) {
    const assertion = await plain.token(rig, { sub, aud: 'urn:gatehouse' })
    const { access_token: token } = await tokensOf(await requestWithGrant(rig, assertion))
    const { sub: subject = '' } = decodeJwt(token)
    t.equal(subject, `${plain.issuer}#${sub}`)
    t.notOk(subject.startsWith('client:'))
    subjects.add(subject)
  }
  t.equal(subjects.size, 4)
})

t.test('the grant takes no client authentication, and an assertion is not a client', async (t) => {
  const { rig, cluster } = await start(t)
  const assertion = await cluster.token(rig, job)
  const basic = { authorization: `Basic ${Buffer.from(`ci:${secret}`).toString('base64')}` }
  const grant = { grant_type: jwtBearerGrant, assertion }
  t.equal(await refusal(await tokenRequest(rig, grant, basic)), '400 invalid_request')
  const post = { ...grant, client_id: 'ci', client_secret: secret }
  t.equal(await refusal(await tokenRequest(rig, post)), '400 invalid_request')
  t.equal(await refusal(await tokenRequest(rig, { grant_type: jwtBearerGrant })), '400 invalid_request')
  const named = await tokensOf(await tokenRequest(rig, { ...grant, client_id: 'ci' }))
  t.match(decodeJwt(named.access_token), { client_id: /^jwt-bearer:/ }, 'a client id alone has no effect')
  const asClient = {
    grant_type: 'client_credentials',
    client_id: 'ci',
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: assertion,
  }
  t.equal(await refusal(await tokenRequest(rig, asClient)), '401 invalid_client')
  const twice = new URLSearchParams([
    ['grant_type', jwtBearerGrant],
    ['assertion', assertion],
    ['assertion', 'x'],
  ])
  const repeated = await fetch(`${rig.issuer}/oauth/token`, { method: 'POST', body: twice })
  t.equal(await refusal(repeated), '400 invalid_request')
})

t.test('a private address is not dialed unless it is permitted', async (t) => {
  const platform = await startPlatform(t)
  const far = { issuer: 'https://10.255.255.1' }
  const rig = await startAuthServer(t, {
    config: (issuer) => ({
      upstreams: [],
      assertionPolicies: [
        policyFor(trusted(far, 'far'), [{ matcher: 'true', scopes, resources: [`${issuer}/mcp`] }]),
        // A public issuer must not lead to this machine.
        policyFor(
          trusted({ issuer: 'https://issuer.example' }, 'near', { jwksUrl: `${platform.issuer}/keys` }),
          [{ matcher: 'true', scopes, resources: [`${issuer}/mcp`] }],
        ),
      ],
    }),
  })
  const assertion = await platform.token(rig, { iss: far.issuer, sub: 'a' })
  t.equal(await refusal(await requestWithGrant(rig, assertion)), '400 invalid_grant')
  t.match(rig.events.at(-1), { reason: "the issuer's keys cannot be read" })
  await requestWithGrant(rig, assertion)
  const logged = rig.logged().match(/"message":"the trusted issuer's keys cannot be read[^}]*"issuer":"far"/g)
  t.equal(logged?.length, 1, 'the log names the issuer, once')
  t.same(platform.requests, [])
  const near = await platform.token(rig, { iss: 'https://issuer.example', sub: 'a' })
  t.equal((await requestWithGrant(rig, near)).status, 200, 'the operator configured the loopback URL')
})

t.test('a flood from one issuer does not block another, from the same address', async (t) => {
  const nowMs = Date.now()
  const { rig, cluster, plain } = await start(t, makeMemoryStore({ now: () => nowMs }))
  for (let taken = 0; taken < 3_000; taken++)
    await takePermission(rig.store, 'grantAssertion', { issuer: plain.issuer, host: `subject ${taken}` })
  const flooded = await plain.token(rig, { sub: 'a', aud: 'urn:gatehouse' })
  t.equal(await refusal(await requestWithGrant(rig, flooded)), '429 temporarily_unavailable')
  t.equal((await requestWithGrant(rig, await cluster.token(rig, job))).status, 200)
})
