/** A declared client exchanges a user's token for a delegated token. */
import { createRemoteJWKSet, jwtVerify } from 'jose'
import * as openid from 'openid-client'
import t from 'tap'
import { jsonOf, startAuthServer } from '../../../helpers/authserver/authserver.ts'
import {
  accessTokenType,
  delegate,
  delegateSecret,
  exchange,
  exchangeGrant,
  jwtType,
  ownToken,
  postAs,
  startDelegation,
} from '../../../helpers/authserver/delegation.ts'
import { callerOf } from '../../../helpers/authserver/test-client.ts'

t.test('the delegated token names the user, the client and the chain', async (t) => {
  const delegation = await startDelegation(t)
  const { rig, user, app } = delegation
  const answer = await exchange(delegation, 'agent', user.access)
  t.equal(answer.headers.get('cache-control'), 'no-store')
  t.strictSame(Object.keys(answer.body).toSorted(), [
    'access_token',
    'expires_in',
    'issued_token_type',
    'scope',
    'token_type',
  ])
  t.match(answer.body, {
    issued_token_type: accessTokenType,
    token_type: 'Bearer',
    expires_in: 900,
    scope: 'tools:read tools:write',
  })
  const keys = createRemoteJWKSet(new URL(`${rig.issuer}/.well-known/jwks.json`))
  const { payload, protectedHeader } = await jwtVerify(answer.access, keys, { issuer: rig.issuer })
  t.equal(protectedHeader.typ, 'at+jwt')
  t.strictSame(payload['act'], { sub: 'client:agent' })
  t.match(payload, {
    sub: user.claims.sub,
    client_id: 'agent',
    session_client_id: app.id,
    auth_method: 'client_secret_post',
    auth_time: user.claims['auth_time'],
    aud: [`${rig.issuer}/mcp`],
    scp: ['tools:read', 'tools:write'],
    tsid: user.claims['tsid'],
    gid: user.claims['gid'],
  })
  t.equal((payload.exp ?? 0) - (payload.iat ?? 0), 900)
  t.not(payload.jti, user.claims.jti)
  t.equal(await rig.server.isLive(callerOf(answer.access)), true)

  const next = await exchange(delegation, 'helper', answer.access, { subject_token_type: jwtType })
  t.strictSame(next.claims['act'], { sub: 'client:helper', act: { sub: 'client:agent' } })
  t.match(next.claims, { sub: user.claims.sub, client_id: 'helper', session_client_id: app.id })
  t.equal(await rig.server.isLive(callerOf(next.access)), true)
})

t.test('the event names the client, the user and the session', async (t) => {
  const delegation = await startDelegation(t)
  await exchange(delegation, 'agent', delegation.user.access)
  const login = delegation.rig.events.find(({ type }) => type === 'token_issued')
  t.match(
    delegation.rig.events.filter(({ type }) => type === 'token_exchanged'),
    [
      {
        outcome: 'success',
        clientId: 'agent',
        userId: delegation.user.claims.sub,
        sessionHash: login?.sessionHash,
        source: '127.0.0.1',
      },
    ],
  )
  t.notMatch(delegation.rig.logged(), delegation.user.access)
})

t.test('openid-client exchanges a token', async (t) => {
  const { rig, user } = await startDelegation(t)
  const options = { algorithm: 'oauth2' as const, execute: [openid.allowInsecureRequests] }
  const method = openid.ClientSecretBasic(delegateSecret)
  const client = await openid.discovery(new URL(rig.issuer), 'agent', undefined, method, options)
  const subject = { subject_token: user.access, subject_token_type: accessTokenType }
  const tokens = await openid.genericGrantRequest(client, exchangeGrant, { ...subject, scope: 'tools:read' })
  t.match(tokens, { token_type: 'bearer', issued_token_type: accessTokenType, scope: 'tools:read' })
})

t.test('scope and resource are limited by the token and by the client', async (t) => {
  const delegation = await startDelegation(t, {
    clients: (issuer) => [
      delegate('agent', issuer, { scopes: ['tools:read', 'tools:admin'] }),
      delegate('elsewhere', issuer, { resources: [`${issuer}/other`] }),
      delegate('unrelated', issuer, { scopes: ['billing'] }),
    ],
  })
  const { rig, user } = delegation
  const outcome = async (clientId: string, parameters: Record<string, string> = {}) =>
    (await exchange(delegation, clientId, user.access, parameters)).outcome
  t.equal((await exchange(delegation, 'agent', user.access)).scope, 'tools:read', 'the common scopes')
  t.equal(await outcome('agent', { scope: 'tools:read' }), '200')
  t.equal(await outcome('agent', { scope: 'tools:write' }), '400 invalid_scope', 'not declared')
  t.equal(await outcome('agent', { scope: 'tools:admin' }), '400 invalid_scope', 'not granted by the user')
  t.equal(await outcome('agent', { scope: 'tools:read openid' }), '400 invalid_scope')
  t.equal(await outcome('unrelated'), '400 invalid_scope', 'no common scope')

  const [mcp, other] = [`${rig.issuer}/mcp`, `${rig.issuer}/other`]
  for (const name of ['resource', 'audience']) {
    t.equal(await outcome('agent', { [name]: mcp }), '200', name)
    t.equal(await outcome('agent', { [name]: other }), '400 invalid_target', `${name}: not in the token`)
    t.equal(await outcome('agent', { [name]: 'https://elsewhere.example/mcp' }), '400 invalid_target', name)
  }
  t.equal(await outcome('agent', { resource: mcp, audience: other }), '400 invalid_target')
  t.equal(await outcome('elsewhere'), '400 invalid_target', 'no common resource')
})

t.test('a delegated token never outlives the exchanged token', async (t) => {
  const delegation = await startDelegation(t, { exchange: { lifeMs: 3_600_000 } })
  const { rig, user } = delegation
  rig.pass(3_000_000)
  const answer = await exchange(delegation, 'agent', user.access)
  t.equal(answer.claims.exp, user.claims.exp)
  rig.pass(300_000)
  const next = await exchange(delegation, 'helper', answer.access)
  t.equal(next.claims.exp, user.claims.exp)
  rig.pass(400_000)
  t.equal((await exchange(delegation, 'agent', user.access)).outcome, '400 invalid_request', 'expired')
})

t.test('lifeMs and maxDelegationDepth limit the token', async (t) => {
  const delegation = await startDelegation(t, { exchange: { lifeMs: 60_000, maxDelegationDepth: 2 } })
  const first = await exchange(delegation, 'agent', delegation.user.access)
  t.equal(first.body['expires_in'], 60)
  const second = await exchange(delegation, 'helper', first.access)
  t.equal(second.outcome, '200')
  t.equal((await exchange(delegation, 'agent', second.access)).outcome, '400 invalid_request')
  t.match(delegation.rig.events.at(-1), {
    type: 'client_rejected',
    clientId: 'agent',
    reason: 'the act chain would be too long',
  })
})

t.test('ten clients form the longest chain', async (t) => {
  const delegation = await startDelegation(t, { exchange: { maxDelegationDepth: 10 } })
  let { access } = delegation.user
  for (let hop = 0; hop < 10; hop++)
    ({ access } = await exchange(delegation, hop % 2 === 0 ? 'agent' : 'helper', access))
  t.equal(await delegation.rig.server.isLive(callerOf(access)), true)
  t.equal((await exchange(delegation, 'agent', access)).outcome, '400 invalid_request')
})

t.test('subjectClients names the clients whose tokens may be exchanged', async (t) => {
  const delegation = await startDelegation(t, {
    clients: (issuer) => [
      delegate('agent', issuer),
      delegate('second', issuer, { subjectClients: ['agent'] }),
      delegate('third', issuer, { subjectClients: ['second'] }),
      declaredOnly(issuer),
    ],
  })
  const { user } = delegation
  t.equal((await exchange(delegation, 'second', user.access)).outcome, '400 invalid_request')
  t.match(delegation.rig.events.at(-1), {
    type: 'client_rejected',
    clientId: 'second',
    reason: 'the client may not exchange tokens that were issued to this client',
  })
  const first = await exchange(delegation, 'agent', user.access)
  const second = await exchange(delegation, 'second', first.access)
  t.equal(second.outcome, '200')
  t.equal((await exchange(delegation, 'third', first.access)).outcome, '400 invalid_request')
  t.equal((await exchange(delegation, 'third', second.access)).outcome, '200')
  const own = await exchange(delegation, 'second', second.access, { scope: 'tools:read' })
  t.equal(own.scope, 'tools:read', 'a client may narrow its own token')
  t.equal((await exchange(delegation, 'plain', user.access)).outcome, '400 unauthorized_client')
})

function declaredOnly(issuer: string) {
  const { subjectClients: _, ...plain } = delegate('plain', issuer)
  return plain
}

t.test('an actor token must be a token of the client itself', async (t) => {
  const delegation = await startDelegation(t)
  const { user } = delegation
  const [own, foreign] = [await ownToken(delegation, 'agent'), await ownToken(delegation, 'helper')]
  const outcome = async (actor_token: string, actor_token_type: string | undefined = accessTokenType) =>
    (await exchange(delegation, 'agent', user.access, { actor_token, actor_token_type })).outcome
  const answer = await exchange(delegation, 'agent', user.access, {
    actor_token: own.access,
    actor_token_type: accessTokenType,
  })
  t.strictSame(answer.claims['act'], { sub: 'client:agent' })
  t.equal(await outcome(foreign.access), '400 invalid_request')
  t.equal(await outcome(user.access), '400 invalid_request')
  t.equal(await outcome(answer.access), '400 invalid_request', 'a delegated token')
  t.equal(await outcome('nonsense'), '400 invalid_request')
  t.equal(await outcome(own.access, ''), '400 invalid_request', 'no type')
  const typeOnly = { actor_token_type: accessTokenType }
  t.equal((await exchange(delegation, 'agent', user.access, typeOnly)).outcome, '400 invalid_request')
})

t.test('a client can inspect and revoke only its delegated tokens', async (t) => {
  const delegation = await startDelegation(t)
  const { rig, user, app } = delegation
  const [agent, helper] = [
    await exchange(delegation, 'agent', user.access),
    await exchange(delegation, 'helper', user.access),
  ]
  t.match(await jsonOf(await postAs(delegation, 'agent', 'introspect', agent.access)), {
    active: true,
    sub: user.claims.sub,
    client_id: 'agent',
    act: { sub: 'client:agent' },
  })
  for (const foreign of [helper.access, user.access])
    t.strictSame(await jsonOf(await postAs(delegation, 'agent', 'introspect', foreign)), { active: false })
  await postAs(delegation, 'agent', 'revoke', helper.access)
  t.equal(await rig.server.isLive(callerOf(helper.access)), true)
  await postAs(delegation, 'agent', 'revoke', agent.access)
  t.equal(await rig.server.isLive(callerOf(agent.access)), false)
  t.equal((await exchange(delegation, 'helper', agent.access)).outcome, '400 invalid_request', 'revoked')
  t.equal(await rig.server.isLive(callerOf(user.access)), true, 'the grant of the user stays')
  t.equal((await app.refresh(user)).outcome, '200')
})

t.test('the grant is advertised only when a client can use it', async (t) => {
  const grants = async (issuer: string) => {
    const response = await fetch(`${issuer}/.well-known/oauth-authorization-server`)
    return (await jsonOf(response))['grant_types_supported']
  }
  const { rig } = await startDelegation(t)
  t.match(await grants(rig.issuer), [
    'authorization_code',
    'refresh_token',
    'client_credentials',
    exchangeGrant,
  ])
  const tokenExchange = { lifeMs: 900_000, maxDelegationDepth: 5 }
  const agentOf = (issuer: string) => delegate('agent', issuer, { resources: [`${issuer}/mcp`] })
  const others = [
    (issuer: string) => ({ clients: [agentOf(issuer)] }),
    (issuer: string) => ({ tokenExchange, upstreams: [], clients: [agentOf(issuer)] }),
    (issuer: string) => ({ tokenExchange, clients: [{ ...agentOf(issuer), subjectClients: [] }] }),
  ]
  for (const config of others) {
    const other = await startAuthServer(t, { config })
    t.notMatch(JSON.stringify(await grants(other.issuer)), exchangeGrant)
    t.equal((await exchange({ rig: other }, 'agent', 'x')).outcome, '400 unsupported_grant_type')
  }
})
