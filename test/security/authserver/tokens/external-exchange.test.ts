/** Attacks with access tokens of other issuers at token exchange. Each is rejected with the same response. */
import { createPublicKey } from 'node:crypto'
import { decodeJwt, SignJWT, UnsecuredJWT } from 'jose'
import t from 'tap'
import { exchange, idTokenType } from '../../../helpers/authserver/delegation.ts'
import { audience, exchangePolicy, startExternalExchange } from '../../../helpers/oauth/external-exchange.ts'
import { startPlatform, trusted } from '../../../helpers/authserver/platform.ts'
import { callerOf } from '../../../helpers/authserver/test-client.ts'

t.test('each forged or misdirected token is rejected, with the reason in the audit log', async (t) => {
  const started = await startExternalExchange(t)
  const { rig, idp, policies, token } = started
  const second = await startPlatform(t)
  policies.push(
    exchangePolicy(second, { issuer: trusted(second, 'second'), allowedDelegateClients: ['other'] }),
  )
  await rig.server.reload()
  const resource = `${rig.issuer}/mcp`
  const now = Math.floor(rig.now() / 1000)
  const foreign = await startPlatform(t)
  const forged = async (): Promise<string> => {
    const own = idp.key
    idp.key = { ...foreign.key, jwk: { ...foreign.key.jwk, kid: own.jwk.kid } }
    const made = await token()
    idp.key = own
    return made
  }
  const forgery = await forged()
  const good = await token()
  const pem = createPublicKey({ key: idp.key.jwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
  const hs256 = new SignJWT(decodeJwt(good)).setProtectedHeader({ alg: 'HS256', kid: idp.key.jwk.kid })
  const act = { sub: 'client:agent' }
  const rows: readonly (readonly [title: string, token: string | Promise<string>, reason: RegExp])[] = [
    ['another key with the same kid', forgery, /signature/],
    ['no signature', new UnsecuredJWT(decodeJwt(good)).encode(), /algorithm|malformed/],
    ['HS256 with the public key', hs256.sign(Buffer.from(pem)), /algorithm|key/],
    ["another issuer's name", token({ iss: second.issuer }), /may not exchange tokens of this issuer/],
    [
      'an unknown issuer',
      token({ iss: 'https://other.example' }),
      /not a valid access token from this server/,
    ],
    ['an issuer with a slash', token({ iss: `${idp.issuer}/` }), /not a valid access token from this server/],
    ['the issuer of this server', token({ iss: rig.issuer }), /not a valid access token from this server/],
    ['another audience', token({ aud: 'api://other' }), /audience/],
    ['this server as audience', token({ aud: rig.issuer }), /audience/],
    ['no audience', token({ aud: undefined }), /claims|audience/],
    ['expired', token({ iat: now - 200, exp: now - 61 }), /expired/],
    ['expired within the clock skew', token({ exp: now - 1 }), /expired/],
    ['no exp', token({ exp: undefined }), /claims/],
    ['not valid yet', token({ nbf: now + 120 }), /not_yet_valid/],
    ['no subject', token({ sub: undefined }), /no usable sub/],
    ['an empty subject', token({ sub: '' }), /no usable sub/],
    ['a long subject', token({ sub: 'x'.repeat(1_025) }), /no usable sub/],
    ['an ID token with at_hash', token({ at_hash: 'x' }), /ID token/],
    ['an ID token with c_hash', token({ c_hash: 'x' }), /ID token/],
    ['an ID token with nonce', token({ nonce: 'x' }), /ID token/],
    ['an ID-JAG', token({}, { typ: 'oauth-id-jag+jwt' }), /type/],
    ['a proof', token({}, { typ: 'dpop+jwt' }), /type/],
    ['a logout token', token({}, { typ: 'logout+jwt' }), /type/],
    ['a machine', token({ sub: 'chat' }), /does not belong to a user/],
    [
      'a ServiceAccount',
      token({ sub: 'system:serviceaccount:a:b', 'kubernetes.io': {} }),
      /not belong to a user/,
    ],
    ['a forged act', token({ act }), /already delegated/],
    ['a malformed act', token({ act: 'client:agent' }), /already delegated/],
    [
      'may_act that is not enabled',
      token({ may_act: { iss: rig.issuer, sub: 'agent' } }),
      /may_act is not accepted/,
    ],
    ['another actor', token({ azp: 'unknown' }), /not accepted/],
    ['the id of a declared client as actor', token({ azp: 'agent' }), /not accepted/],
    ['no actor', token({ azp: undefined }), /not accepted/],
    ['an actor that is a list', token({ azp: ['chat'] }), /not accepted/],
    ['a bound token without a proof', token({ cnf: { jkt: 'x' } }), /does not prove/],
    ['a token bound to a certificate', token({ cnf: { 'x5t#S256': 'x' } }), /does not prove/],
    ['an unknown confirmation', token({ cnf: { kid: 'x' } }), /does not prove/],
    ['an empty confirmation', token({ cnf: {} }), /does not prove/],
    ['a large token', token({ padding: 'x'.repeat(16_384) }), /16 KiB/],
    ['nonsense', 'x', /not a valid access token/],
  ]
  const bodies = new Set<string>()
  for (const [title, made, reason] of rows) {
    const answer = await exchange(started, 'agent', await made, { resource })
    t.equal(answer.outcome, '400 invalid_request', title)
    bodies.add(JSON.stringify(answer.body))
    t.match(
      rig.events.at(-1),
      { type: 'client_rejected', clientId: 'agent', outcome: 'denied', reason },
      title,
    )
  }
  t.equal(bodies.size, 1, 'one response for every reason')
  t.equal((await exchange(started, 'agent', good, { resource })).outcome, '200')
  const typed = { resource, subject_token_type: idTokenType }
  t.equal((await exchange(started, 'agent', good, typed)).outcome, '400 invalid_request', 'an ID token type')
  t.equal((await exchange(started, 'other', good, { resource })).outcome, '400 invalid_request')
  t.equal(
    (await exchange(started, 'agent', good, { resource, actor_token: good })).outcome,
    '400 invalid_request',
  )
  t.notMatch(rig.logged(), /eyJ/)
  t.notMatch(JSON.stringify(rig.events), /eyJ/)
})

t.test('a forged may_act grants nothing', async (t) => {
  const started = await startExternalExchange(t, { policy: { allowMayAct: true } })
  const { rig, token } = started
  const resource = `${rig.issuer}/mcp`
  const rows: readonly (readonly [title: string, value: unknown])[] = [
    ['no iss', { sub: 'agent' }],
    ['another iss', { iss: 'https://other.example', sub: 'agent' }],
    ['the issuer of the token', { iss: started.idp.issuer, sub: 'agent' }],
    ['another client', { iss: rig.issuer, sub: 'other' }],
    ['a longer id', { iss: rig.issuer, sub: 'agent2' }],
    ['no sub', { iss: rig.issuer }],
    ['a list', [{ iss: rig.issuer, sub: 'agent' }]],
    ['text', 'agent'],
    ['null', null],
  ]
  for (const [title, value] of rows) {
    // The actor `chat` would be accepted without the claim.
    const answer = await exchange(started, 'agent', await token({ may_act: value }), { resource })
    t.equal(answer.outcome, '400 invalid_request', title)
    t.match(rig.events.at(-1), { reason: 'may_act does not name the client' }, title)
  }
  const named = { may_act: { iss: rig.issuer, sub: 'other' } }
  t.equal(
    (await exchange(started, 'other', await token(named), { resource })).outcome,
    '400 unauthorized_client',
  )
})

t.test('scope and resource never exceed the token and the client', async (t) => {
  const started = await startExternalExchange(t)
  const { rig, clients, token } = started
  const resource = `${rig.issuer}/mcp`
  const rows: readonly (readonly [Record<string, unknown>, Record<string, string | undefined>, string])[] = [
    [{ scope: 'tools:read' }, { scope: 'tools:read tools:write' }, '400 invalid_scope'],
    [{}, { scope: 'profile' }, '400 invalid_scope'],
    [{ scope: undefined }, {}, '400 invalid_scope'],
    [{ scope: 7 }, {}, '400 invalid_scope'],
    [{ scope: 'tools:admin' }, {}, '400 invalid_scope'],
    [{}, { resource: 'https://elsewhere.example/mcp' }, '400 invalid_target'],
    [{}, { resource: undefined }, '400 invalid_target'],
    [{}, { audience: `${rig.issuer}/other` }, '400 invalid_target'],
  ]
  for (const [claims, parameters, expected] of rows) {
    const answer = await exchange(started, 'agent', await token(claims), { resource, ...parameters })
    t.equal(answer.outcome, expected, JSON.stringify([claims, parameters]))
  }
  const [agent] = clients
  if (!agent) return t.fail()
  clients.splice(0, 1, { ...agent, resources: [`${rig.issuer}/other`] })
  await rig.server.reload()
  t.equal((await exchange(started, 'agent', await token(), { resource })).outcome, '400 invalid_target')
})

t.test(
  'equal subjects at two issuers are distinct principals, and no subject is a declared client',
  async (t) => {
    const started = await startExternalExchange(t)
    const { rig, idp, policies, token } = started
    const second = await startPlatform(t)
    policies.push(exchangePolicy(second, { issuer: trusted(second, 'second') }))
    await rig.server.reload()
    const resource = `${rig.issuer}/mcp`
    const claims = { aud: audience, azp: 'chat', scope: 'tools:read' }
    const subjects = new Set<unknown>()
    for (const sub of ['alice', 'client:agent', 'a#b', `${second.issuer}#alice`]) {
      const { claims: own } = await exchange(started, 'agent', await token({ sub }), { resource })
      t.equal(own.sub, `${idp.issuer}#${sub}`)
      const other = await exchange(started, 'agent', await second.token(rig, { sub, ...claims }), {
        resource,
      })
      t.equal(other.claims.sub, `${second.issuer}#${sub}`)
      subjects.add(own.sub).add(other.claims.sub)
    }
    t.equal(subjects.size, 8)
  },
)

t.test('a delegated token with a forged origin is not live', async (t) => {
  const started = await startExternalExchange(t)
  const { rig, idp, token } = started
  const resource = `${rig.issuer}/mcp`
  const { access, claims } = await exchange(started, 'agent', await token(), { resource })
  const external = { iss: idp.issuer, sub: 'chat' }
  const live = (changes: Record<string, unknown>): Promise<boolean> => {
    const caller = callerOf(access)
    const all = { ...claims, ...changes }
    return rig.server.isLive({ ...caller, subject: String(all.sub), claims: all })
  }
  t.equal(await live({}), true)
  const rows: readonly (readonly [title: string, changes: Record<string, unknown>])[] = [
    ['no policy', { exchange_policy: undefined }],
    ['another policy', { exchange_policy: 'token-exchange:x' }],
    ['a client as the policy', { exchange_policy: 'agent' }],
    ['a subject of another issuer', { sub: 'https://other.example#alice' }],
    ['a subject of this server', { sub: 'alice' }],
    [
      'an actor of another issuer',
      { act: { sub: 'client:agent', act: { ...external, iss: 'https://other.example' } } },
    ],
    ['an external actor in front', { act: { ...external, act: { sub: 'client:agent' } } }],
    ['only an external actor', { act: external }],
    [
      'an external actor in the middle',
      { act: { sub: 'client:agent', act: { ...external, act: { sub: 'client:x' } } } },
    ],
    [
      'a client that the policy does not list',
      { act: { sub: 'client:other', act: external }, client_id: 'other' },
    ],
    [
      'a client that may not exchange',
      { act: { sub: 'client:other', act: { sub: 'client:agent' } }, client_id: 'other' },
    ],
    ['a session', { tsid: 'x', gid: 'y' }],
    ['a session client', { session_client_id: 'agent' }],
  ]
  for (const [title, changes] of rows) t.equal(await live({ jti: title, ...changes }), false, title)
})
