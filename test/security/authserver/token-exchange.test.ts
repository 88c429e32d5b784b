/** Attacks on token exchange and on delegated tokens. */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { decodeJwt, importPKCS8, SignJWT, UnsecuredJWT } from 'jose'
import t, { type Test } from 'tap'
import type { AssertionPolicySettings } from '../../../runtime/config/index.ts'
import { refusal, tokensOf } from '../../helpers/authserver/authserver.ts'
import {
  accessTokenType,
  delegate,
  type Delegation,
  exchange,
  idTokenType,
  jwtType,
  ownToken,
  startDelegation,
} from '../../helpers/authserver/delegation.ts'
import { policyFor, requestWithGrant, startPlatform, trusted } from '../../helpers/authserver/platform.ts'
import { callerOf, TestClient } from '../../helpers/authserver/test-client.ts'

const pem = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString()
const serverKey = pem()
const hmacSecret = randomBytes(48)

const startWithKey = (t: Test): Promise<Delegation> =>
  startDelegation(t, { config: { secrets: () => ({ signingKeys: [serverKey], hmacSecrets: [hmacSecret] }) } })

/** Signs the claims of a token again, with changes. */
async function resign(
  token: string,
  changes: Record<string, unknown>,
  { key = serverKey, typ = 'at+jwt' } = {},
): Promise<string> {
  return new SignJWT({ ...decodeJwt(token), ...changes })
    .setProtectedHeader({ alg: 'ES256', typ })
    .sign(await importPKCS8(key, 'ES256'))
}

const sessionOf = ({ tsid, gid }: Readonly<Record<string, unknown>>) => ({ tsid, gid })

const isLive = ({ rig }: Delegation, token: string): Promise<boolean> => rig.server.isLive(callerOf(token))

t.test('only a valid access token of a user is exchanged', async (t) => {
  const delegation = await startWithKey(t)
  const { user, rig } = delegation
  t.equal(
    (await exchange(delegation, 'agent', await resign(user.access, {}))).outcome,
    '200',
    'a signed copy',
  )
  const machine = await ownToken(delegation, 'helper')
  const rows: readonly (readonly [title: string, token: string])[] = [
    ['another key', await resign(user.access, {}, { key: pem() })],
    ['alg none', new UnsecuredJWT(decodeJwt(user.access)).encode()],
    ['the type of an ID token', await resign(user.access, {}, { typ: 'JWT' })],
    ['an ID token', String(user.body['id_token'])],
    ['an identity assertion', await resign(user.access, {}, { typ: 'oauth-id-jag+jwt' })],
    ['a proof', await resign(user.access, {}, { typ: 'dpop+jwt' })],
    ['a refresh token', user.refresh],
    ['a machine token', machine.access],
    ['a machine token with a session', await resign(machine.access, sessionOf(user.claims))],
    ['another issuer', await resign(user.access, { iss: 'https://elsewhere.example' })],
    ['another audience', await resign(user.access, { aud: ['https://elsewhere.example/mcp'] })],
    ['an expired token', await resign(user.access, { exp: Math.floor(Date.now() / 1000) - 1 })],
    ['another session', await resign(user.access, { tsid: 'other' })],
    ['another grant', await resign(user.access, { gid: 'other' })],
    ['another user', await resign(user.access, { sub: 'mallory' })],
    ['no session', await resign(user.access, { tsid: undefined })],
    ['a bound token', await resign(user.access, { cnf: { jkt: 'x' } })],
    ['nonsense', 'x'],
  ]
  for (const [title, token] of rows) {
    t.equal((await exchange(delegation, 'agent', token)).outcome, '400 invalid_request', title)
    t.match(rig.events.at(-1), { type: 'client_rejected', clientId: 'agent', outcome: 'denied' }, title)
  }
  t.notMatch(rig.logged(), user.access)
})

t.test('the token of a platform is not exchanged, and is not an actor token', async (t) => {
  const platform = await startPlatform(t)
  const assertionPolicies: AssertionPolicySettings[] = []
  const delegation = await startDelegation(t, {
    config: {
      assertionPolicies,
      secrets: () => ({ signingKeys: [serverKey], hmacSecrets: [hmacSecret] }),
    },
  })
  const { rig, user } = delegation
  assertionPolicies.push(
    policyFor(trusted(platform, 'ci'), [
      { subject: 'job', scopes: ['tools:read'], resources: [`${rig.issuer}/mcp`] },
    ]),
  )
  await rig.server.reload()
  const response = await requestWithGrant(rig, await platform.token(rig, { sub: 'job' }))
  const { access_token: own } = await tokensOf(response)
  const withSession = await resign(own, sessionOf(user.claims))
  for (const token of [own, withSession, await resign(withSession, { sub: user.claims.sub })])
    t.equal((await exchange(delegation, 'agent', token)).outcome, '400 invalid_request')
  const parameters = { actor_token: own, actor_token_type: accessTokenType }
  t.equal((await exchange(delegation, 'agent', user.access, parameters)).outcome, '400 invalid_request')
})

t.test('every rejected token gets the same response', async (t) => {
  const delegation = await startWithKey(t)
  const { user } = delegation
  const machine = await ownToken(delegation, 'helper')
  const answers = await Promise.all(
    ['x', machine.access, await resign(user.access, { cnf: {} })].map((token) =>
      exchange(delegation, 'agent', token),
    ),
  )
  t.equal(new Set(answers.map(({ body }) => JSON.stringify(body))).size, 1)
})

t.test('a forged chain is rejected', async (t) => {
  const delegation = await startWithKey(t)
  const { user, app } = delegation
  const granted = await exchange(delegation, 'agent', user.access)
  const chain = (...ids: string[]): unknown =>
    ids.reduceRight<unknown>((act, id) => ({ sub: `client:${id}`, ...(act ? { act } : {}) }), undefined)
  const rows: readonly (readonly [title: string, changes: Record<string, unknown>])[] = [
    ['an actor that is not the client', { act: chain('helper') }],
    ['a subject of the same length', { act: { sub: 'klient:agent' } }],
    ['the user as the actor', { act: { sub: user.claims.sub } }],
    ['an undeclared client in the chain', { act: chain('agent', 'ghost') }],
    ['eleven clients', { act: chain(...Array.from({ length: 11 }, () => 'agent')) }],
    ['act without sub', { act: {} }],
    ['act as text', { act: 'client:agent' }],
    ['act as a list', { act: [{ sub: 'client:agent' }] }],
    ['no act', { act: undefined }],
    ['no session client', { session_client_id: undefined }],
    ['another session client', { session_client_id: 'other' }],
  ]
  t.equal(await isLive(delegation, await resign(granted.access, {})), true, 'a signed copy')
  for (const [title, changes] of rows) {
    const forged = await resign(granted.access, { jti: title, ...changes })
    t.equal(await isLive(delegation, forged), false, title)
    t.equal((await exchange(delegation, 'helper', forged)).outcome, '400 invalid_request', title)
  }
  const added = await resign(user.access, { act: chain('agent'), session_client_id: app.id })
  t.equal(await isLive(delegation, added), false, 'a chain in the token of the app')
})

t.test('act and may_act in a request or a token grant nothing', async (t) => {
  const delegation = await startWithKey(t)
  const { user } = delegation
  const act = JSON.stringify({ sub: 'client:root' })
  const sent = await exchange(delegation, 'agent', user.access, { act, may_act: act })
  t.strictSame(sent.claims['act'], { sub: 'client:agent' })
  const may = await resign(user.access, { may_act: { sub: 'client:narrow' } })
  const { clients, rig } = delegation
  clients.push(delegate('narrow', rig.issuer, { subjectClients: ['other'] }))
  await rig.server.reload()
  t.equal((await exchange(delegation, 'narrow', may)).outcome, '400 invalid_request')
})

t.test('chained exchange never widens scope or resource', async (t) => {
  const delegation = await startDelegation(t)
  const { user, rig } = delegation
  const narrow = await exchange(delegation, 'agent', user.access, { scope: 'tools:read' })
  for (const clientId of ['agent', 'helper']) {
    const wider = await exchange(delegation, clientId, narrow.access, { scope: 'tools:read tools:write' })
    t.equal(wider.outcome, '400 invalid_scope')
    const elsewhere = await exchange(delegation, clientId, narrow.access, { resource: `${rig.issuer}/other` })
    t.equal(elsewhere.outcome, '400 invalid_target')
    t.equal((await exchange(delegation, clientId, narrow.access)).scope, 'tools:read')
  }
})

t.test('other token types and other clients are rejected', async (t) => {
  const delegation = await startDelegation(t)
  const { user, app } = delegation
  const outcome = async (parameters: Record<string, string>) =>
    (await exchange(delegation, 'agent', user.access, parameters)).outcome
  t.equal(await outcome({ subject_token_type: idTokenType }), '400 invalid_request')
  t.equal(await outcome({ subject_token_type: '' }), '400 invalid_request')
  t.equal(await outcome({ requested_token_type: idTokenType }), '400 invalid_request')
  t.equal(await outcome({ requested_token_type: jwtType }), '400 invalid_request')
  t.equal(await outcome({ requested_token_type: accessTokenType }), '200')
  t.equal(await outcome({ client_secret: 'wrong' }), '401 invalid_client')
  const public_ = await exchange(delegation, app.id, user.access, { client_secret: undefined })
  t.equal(public_.outcome, '400 unauthorized_client', 'the client of the user')
})

t.test('the end of the grant ends its delegated tokens', async (t) => {
  const delegation = await startDelegation(t)
  const { user, app, rig } = delegation
  const first = await exchange(delegation, 'agent', user.access)
  const second = await exchange(delegation, 'helper', first.access)
  t.equal(await isLive(delegation, second.access), true)
  await fetch(`${rig.issuer}/oauth/revoke`, {
    method: 'POST',
    body: new URLSearchParams({ client_id: app.id, token: user.refresh }),
  })
  for (const token of [first.access, second.access]) t.equal(await isLive(delegation, token), false)
  t.equal((await exchange(delegation, 'agent', user.access)).outcome, '400 invalid_request')
  t.equal((await exchange(delegation, 'helper', first.access)).outcome, '400 invalid_request')
})

t.test('removing a client or its permission ends its tokens, also after it is added again', async (t) => {
  for (const change of ['client', 'permission'] as const) {
    const delegation = await startDelegation(t)
    const { user, clients, rig } = delegation
    const first = await exchange(delegation, 'agent', user.access)
    const second = await exchange(delegation, 'helper', first.access)
    t.equal(await isLive(delegation, second.access), true)
    const [agent] = clients
    if (!agent) return t.fail()
    const reduced = { ...agent, subjectClients: ['another'] }
    clients.splice(0, 1, ...(change === 'client' ? [] : [reduced]))
    await rig.server.reload()
    t.equal(await isLive(delegation, first.access), false, change)
    t.equal(await isLive(delegation, second.access), false, 'the chain contains the client')
    rig.pass(1_000)
    clients.splice(0, change === 'client' ? 0 : 1, agent)
    await rig.server.reload()
    t.equal(await isLive(delegation, first.access), false, `${change}: the old token stays invalid`)
    rig.pass(1_000)
    const fresh = await exchange(delegation, 'agent', user.access)
    t.equal(await isLive(delegation, fresh.access), true)
  }
})

t.test('a permission that was removed before the start has no effect', async (t) => {
  const delegation = await startWithKey(t)
  const { user, clients, rig } = delegation
  const first = await exchange(delegation, 'agent', user.access)
  const [agent] = clients
  if (!agent) return t.fail()
  clients.splice(0, 1, { ...agent, subjectClients: ['another'] })
  const restarted = await rig.replica()
  t.equal(await restarted.server.isLive(callerOf(user.access)), true)
  t.equal(await restarted.server.isLive(callerOf(first.access)), false)
})

t.test('a delegated token gives no access to what belongs to the session', async (t) => {
  const delegation = await startDelegation(t)
  const { user, rig } = delegation
  const { access, body } = await exchange(delegation, 'agent', user.access)
  t.notOk('refresh_token' in body || 'id_token' in body)
  const userinfo = await fetch(`${rig.issuer}/oauth/userinfo`, {
    headers: { authorization: `Bearer ${access}` },
  })
  t.equal(await refusal(userinfo), '403 insufficient_scope')
  const tokens = rig.server.upstreamTokens
  await t.rejects(tokens.get(callerOf(access), 'corp'), { code: 'USER_REQUIRED', message: /delegated token/ })
  t.ok((await tokens.get(callerOf(user.access), 'corp'))?.accessToken)
  const forPolicies = await tokens.required(callerOf(access), 'corp')
  t.equal(forPolicies?.accessToken, (await tokens.required(callerOf(user.access), 'corp'))?.accessToken)
})

t.test('a registered client cannot take the name of a delegate', async (t) => {
  const delegation = await startDelegation(t)
  const impostor = new TestClient(delegation.rig, { client_id: 'agent' })
  const answer = await impostor.token({ grant_type: 'refresh_token', refresh_token: delegation.user.refresh })
  t.equal(answer.outcome, '401 invalid_client')
})
