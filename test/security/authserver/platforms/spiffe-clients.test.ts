/** Attacks with JWT-SVIDs. Each gets the same response, and the audit log contains the reason. */
import { createHmac, createPublicKey } from 'node:crypto'
import t, { type Test } from 'tap'
import { takePermission } from '../../../../runtime/authserver/storage/limits.ts'
import { makeMemoryStore, type Store } from '../../../../runtime/store/index.ts'
import {
  jsonOf,
  listenFor,
  refusal,
  type Rig,
  startAuthServer,
  tokenRequest,
} from '../../../helpers/authserver/authserver.ts'
import {
  assertionType,
  declared,
  makeKey,
  newSecret,
  requestWithAssertion,
  signAssertion,
} from '../../../helpers/authserver/declared-client.ts'
import { idJagHeader, startPlatform } from '../../../helpers/authserver/platform.ts'
import {
  requestWithSvid,
  spiffeAssertionType,
  trustDomainIn,
  type TrustDomain,
  workloadClient,
} from '../../../helpers/authserver/platforms/spiffe.ts'

const secret = newSecret()
const key = await makeKey()
const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

interface Started {
  readonly rig: Rig
  readonly domain: TrustDomain
  readonly other: TrustDomain
}

async function start(t: Test, store?: Store): Promise<Started> {
  const directory = t.testdir({})
  const [domain, other] = await Promise.all([
    trustDomainIn(directory, 'prod.example.com'),
    trustDomainIn(directory, 'prod.example.com.evil.example'),
  ])
  const rig = await startAuthServer(t, {
    ...(store && { store }),
    config(issuer) {
      const resources = [`${issuer}/mcp`]
      return {
        clients: [
          workloadClient(domain, 'triage', '/agents/triage', resources),
          workloadClient(domain, 'jobs', '/jobs/*', resources),
          workloadClient(other, 'foreign', '/agents/*', resources),
          declared('signer', resources, { jwks: { keys: [key.jwk] } }),
          declared('secretive', resources, { secrets: [() => secret] }),
        ],
        trustedProxies: ['127.0.0.1'],
        cimd: { cacheMaxSize: 16, cacheTtlMs: 60_000, allowLoopback: true },
      }
    },
  })
  return { rig, domain, other }
}

t.test('each forged or misdirected JWT-SVID is invalid_client', async (t) => {
  const { rig, domain, other } = await start(t)
  const nowSec = Math.floor(rig.now() / 1000)
  const foreign = await makeKey()
  const made = (claims: Record<string, unknown>, header: Record<string, unknown> = {}) =>
    domain.svid(rig, '/agents/triage', claims, header)
  const valid = await made({})
  const good = { sub: 'spiffe://prod.example.com/agents/triage', aud: rig.issuer, exp: nowSec + 60 }
  const pem = createPublicKey({ key: domain.key.jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
  const input = `${encode({ alg: 'HS256', kid: domain.key.jwk.kid })}.${encode(good)}`
  const hs256 = `${input}.${createHmac('sha256', String(pem)).update(input).digest('base64url')}`
  const audience = /only audience must be this server/
  const ownKey = /contains a key or a key URL/
  const noId = /not a SPIFFE ID of the trust domain/
  const type = /unsupported typ/
  const rows: readonly (readonly [string, string | Promise<string>, RegExp])[] = [
    ['the token endpoint as audience', made({ aud: `${rig.issuer}/oauth/token` }), audience],
    ['an additional audience', made({ aud: [rig.issuer, 'https://other.example'] }), audience],
    ['another server as audience', made({ aud: 'https://other.example' }), audience],
    ['no audience', made({ aud: undefined }), audience],
    ['another workload', domain.svid(rig, '/agents/other'), /does not match the client's identity/],
    ['a longer path', domain.svid(rig, '/agents/triage/x'), /does not match the client's identity/],
    ['another trust domain', made({ sub: 'spiffe://other.example/agents/triage' }), noId],
    [
      'a trust domain with the same prefix',
      made({ sub: 'spiffe://prod.example.com.evil.example/agents/triage' }),
      noId,
    ],
    ['a relative path', made({ sub: 'spiffe://prod.example.com/jobs/../agents/triage' }), noId],
    ['a path with an empty segment', made({ sub: 'spiffe://prod.example.com//agents/triage' }), noId],
    ['a query', made({ sub: 'spiffe://prod.example.com/agents/triage?a' }), noId],
    ['an upper-case trust domain', made({ sub: 'spiffe://PROD.example.com/agents/triage' }), noId],
    ['a subject of another form', made({ sub: 'client:triage' }), noId],
    ['no subject', made({ sub: undefined }), /no usable sub/],
    ["another trust domain's key", other.svid(rig, '/agents/triage', { sub: good.sub }), /keys matches/],
    ['more than the permitted age', made({ iat: nowSec, exp: nowSec + 301 }), /more than 5 minutes/],
    ['expired', made({ iat: nowSec - 400, exp: nowSec - 120 }), /expired/],
    ['no exp', made({ exp: undefined }), /claim set is missing/],
    ['bound to a key', made({ cnf: { jwk: {} } }), /bound to a key/],
    ['an access token', made({}, { typ: 'at+jwt' }), type],
    ['an identity assertion', made({}, idJagHeader), type],
    ['no signature', `${encode({ alg: 'none' })}.${encode(good)}.`, /algorithm/],
    ['HS256 with the public key', hs256, /algorithm|keys/],
    ['a key in the header', made({}, { jwk: foreign.jwk }), ownKey],
    ['a certificate in the header', made({}, { x5c: ['a'] }), ownKey],
    ['an altered payload', valid.replace(/\.[^.]+\./, `.${encode({ ...good, iat: nowSec })}.`), /signature/],
    ['16 KiB', made({ padding: 'x'.repeat(16_384) }), /larger than 16 KiB/],
    ['text', 'spiffe://prod.example.com/agents/triage', /not a signed JWT/],
  ]
  for (const [title, svid, reason] of rows) {
    const response = await requestWithSvid(rig, await svid, { client_id: 'triage' })
    const body = await jsonOf(response)
    t.equal(`${response.status} ${String(body['error'])}`, '401 invalid_client', title)
    t.equal(body['error_description'], 'client authentication failed', title)
    t.match(rig.events.at(-1), { type: 'client_rejected', clientId: 'triage', reason }, title)
  }
  t.equal((await requestWithSvid(rig, valid)).status, 200, 'a rejected JWT-SVID uses up nothing')
  t.notMatch(rig.logged() + JSON.stringify(rig.events), /eyJ/)
})

t.test('a JWT-SVID authenticates no other client, and no other credential a workload', async (t) => {
  const { rig, domain } = await start(t)
  const svid = await domain.svid(rig, '/agents/triage')
  const described = `${(await startPlatform(t)).issuer}/client.json`
  for (const client_id of ['jobs', 'foreign', 'signer', 'secretive', 'unknown', described])
    t.equal(await refusal(await requestWithSvid(rig, svid, { client_id })), '401 invalid_client', client_id)
  t.equal(
    await refusal(await requestWithAssertion(rig, svid, { client_id: 'triage' })),
    '401 invalid_client',
    'as assertion type jwt-bearer',
  )
  const signed = await signAssertion(key, { clientId: 'signer', issuer: rig.issuer })
  t.equal(await refusal(await requestWithSvid(rig, signed, { client_id: 'signer' })), '401 invalid_client')
  for (const more of [{}, { client_secret: secret }]) {
    const form = { client_id: 'triage', grant_type: 'client_credentials', ...more }
    const response = await fetch(`${rig.issuer}/oauth/token`, {
      method: 'POST',
      body: new URLSearchParams(form),
    })
    t.equal(await refusal(response), '401 invalid_client')
  }
  const both = { client_assertion_type: assertionType, client_secret: secret }
  t.equal(await refusal(await requestWithSvid(rig, svid, both)), '400 invalid_request')
  t.equal((await requestWithSvid(rig, svid)).status, 200)
})

t.test('a JWT-SVID is used once on every replica, also with another encoding of the signature', async (t) => {
  const { rig, domain } = await start(t)
  const replica = await listenFor(t, await rig.replica())
  const svid = await domain.svid(rig, '/agents/triage')
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, i) => requestWithSvid(i % 2 === 0 ? rig : replica, svid)),
  )
  t.equal(answers.filter(({ status }) => status === 200).length, 1)
  t.equal(await refusal(await requestWithSvid(rig, `${svid}=`)), '401 invalid_client')
})

t.test('a flood from one workload uses no permits of another one with the same client id', async (t) => {
  const { rig, domain } = await start(t, makeMemoryStore({ now: () => 0 }))
  const send = async (path: string, i: number): Promise<number> => {
    const form = {
      grant_type: 'client_credentials',
      client_assertion_type: spiffeAssertionType,
      client_assertion: await domain.svid(rig, path, { jti: `${i}` }),
    }
    const response = await tokenRequest(rig, form, { 'x-forwarded-for': `192.0.2.${i % 200}` })
    await response.arrayBuffer()
    return response.status
  }
  let limited = 0
  for (let i = 0; i < 610; i++) if ((await send('/jobs/a', i)) === 429) limited += 1
  t.equal(limited, 10, 'a workload gets at most 600 tokens per minute')
  t.equal(await send('/jobs/b', 1), 200)
})

t.test('a flood from many workloads of one trust domain does not block another trust domain', async (t) => {
  const nowMs = Date.now()
  const { rig, domain, other } = await start(t, makeMemoryStore({ now: () => nowMs }))
  const issuer = `spiffe://${domain.name}`
  for (let taken = 0; taken < 3_000; taken++)
    await takePermission(rig.store, 'grantAssertion', { issuer, host: `${issuer}/jobs/${taken}` })
  const flooded = await requestWithSvid(rig, await domain.svid(rig, '/jobs/new'))
  t.equal(await refusal(flooded), '429 temporarily_unavailable')
  t.equal((await requestWithSvid(rig, await other.svid(rig, '/agents/a'))).status, 200)
})
