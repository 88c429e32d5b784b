/** Token exchange with access tokens of another issuer. */
import t from 'tap'
import { makeAuthenticator } from '../../../../runtime/incoming/index.ts'
import { callerFacts } from '../../../../runtime/net/index.ts'
import { jsonOf, refusal } from '../../../helpers/authserver/authserver.ts'
import { exchange, exchangeGrant, jwtType, postAs } from '../../../helpers/authserver/delegation.ts'
import { audience, exchangePolicy, startExternalExchange } from '../../../helpers/oauth/external-exchange.ts'
import { startPlatform } from '../../../helpers/authserver/platform.ts'
import {
  makeTrustDomain,
  requestWithSvid,
  workloadClient,
} from '../../../helpers/authserver/platforms/spiffe.ts'
import { callerOf } from '../../../helpers/authserver/test-client.ts'

t.test('an agent exchanges the token of a user of another issuer', async (t) => {
  const started = await startExternalExchange(t)
  const { rig, idp, token } = started
  const resource = `${rig.issuer}/mcp`
  const now = Math.floor(rig.now() / 1000)
  const answer = await exchange(started, 'agent', await token({ exp: now + 300 }), { resource })
  t.equal(answer.outcome, '200')
  t.equal(answer.scope, 'tools:read tools:write', 'the scopes of the token and of the client')
  t.strictSame(answer.claims['aud'], [resource])
  t.match(answer.claims, {
    sub: `${idp.issuer}#alice`,
    client_id: 'agent',
    auth_method: 'client_secret_post',
    exchange_policy: /^token-exchange:/,
  })
  t.strictSame(answer.claims['act'], { sub: 'client:agent', act: { iss: idp.issuer, sub: 'chat' } })
  t.notOk('tsid' in answer.claims || 'gid' in answer.claims || 'refresh_token' in answer.body)
  t.ok(Number(answer.body['expires_in']) <= 300, 'it does not outlive the exchanged token')
  t.equal(await rig.server.isLive(callerOf(answer.access)), true)
  t.match(rig.events.at(-1), { type: 'token_exchanged', clientId: 'agent', userId: `${idp.issuer}#alice` })
  t.match(callerFacts(answer.claims, 'embedded'), {
    kind: 'user',
    clientId: 'agent',
    actor: 'client:agent',
    hasUpstreams: false,
  })
  const narrow = await exchange(started, 'agent', await token({ scope: undefined, scp: ['tools:read'] }), {
    resource: `${rig.issuer}/other`,
    subject_token_type: jwtType,
  })
  t.equal(narrow.scope, 'tools:read', 'scp as a list, and the type JWT')
  t.notMatch(rig.logged(), /eyJ/, 'no token is logged')
})

t.test('a resource accepts the new token, also if it accepts the tokens of the issuer itself', async (t) => {
  const started = await startExternalExchange(t)
  const { rig, idp, token } = started
  const { access } = await exchange(started, 'agent', await token(), { resource: rig.resource })
  for (const issuers of [undefined, [{ issuer: idp.issuer, audience }]]) {
    const authenticator = makeAuthenticator(
      { type: 'oidc', oidc: { issuer: rig.issuer, audience: rig.resource }, issuers },
      { keys: rig.server.keys, isLive: (caller) => rig.server.isLive(caller) },
    )
    t.teardown(() => authenticator.close())
    const caller = await authenticator.authenticate(`Bearer ${access}`)
    t.match(caller, {
      issuer: rig.issuer,
      subject: `${idp.issuer}#alice`,
      facts: { kind: 'user', actor: 'client:agent', hasUpstreams: false },
    })
    if (!issuers) continue
    const direct = await authenticator.authenticate(`Bearer ${await token()}`)
    t.match(direct, { issuer: idp.issuer, subject: caller.subject }, 'the same principal')
    t.not(direct.key, caller.key, 'but the agent cannot use the sessions of the user')
  }
})

t.test('a policy for all declared clients does not include workloads', async (t) => {
  const started = await startExternalExchange(t, { policy: { allowedDelegateClients: ['*'] } })
  const { rig, clients, token } = started
  const domain = await makeTrustDomain(t)
  clients.push(workloadClient(domain, 'agents', '/agents/*', [rig.resource]))
  await rig.server.reload()
  const { resource } = rig
  t.equal((await exchange(started, 'other', await token(), { resource })).outcome, '200')
  const response = await requestWithSvid(rig, await domain.svid(rig, '/agents/triage'), {
    grant_type: exchangeGrant,
    subject_token: await token(),
    subject_token_type: jwtType,
    resource,
  })
  t.equal(await refusal(response), '400 unauthorized_client')
})

t.test('a policy that one replica removed ends the tokens at another replica', async (t) => {
  const started = await startExternalExchange(t)
  const { rig, policies, token } = started
  const replica = await rig.replica()
  const { access } = await exchange(started, 'agent', await token(), { resource: rig.resource })
  t.equal(await replica.server.isLive(callerOf(access)), true)
  policies.length = 0
  await rig.server.reload()
  // The other replica still has the policy, and caches the result for five seconds.
  replica.pass(5_001)
  t.equal(await replica.server.isLive(callerOf(access)), false)
})

t.test('another agent exchanges the new token, and an agent inspects and revokes its own', async (t) => {
  const started = await startExternalExchange(t)
  const { rig, idp, token } = started
  const resource = `${rig.issuer}/mcp`
  const first = await exchange(started, 'agent', await token(), { resource })
  const second = await exchange(started, 'helper', first.access)
  t.equal(second.outcome, '200')
  t.strictSame(second.claims['act'], {
    sub: 'client:helper',
    act: { sub: 'client:agent', act: { iss: idp.issuer, sub: 'chat' } },
  })
  t.equal(await rig.server.isLive(callerOf(second.access)), true)
  t.equal((await exchange(started, 'other', first.access)).outcome, '400 unauthorized_client')
  t.match(await jsonOf(await postAs(started, 'helper', 'introspect', second.access)), {
    active: true,
    sub: `${idp.issuer}#alice`,
  })
  t.strictSame(await jsonOf(await postAs(started, 'helper', 'introspect', first.access)), { active: false })
  await postAs(started, 'agent', 'revoke', first.access)
  t.equal(await rig.server.isLive(callerOf(first.access)), false)
})

t.test('a changed or removed policy ends its earlier tokens, also after it is restored', async (t) => {
  const started = await startExternalExchange(t)
  const { rig, idp, policies, token } = started
  const resource = `${rig.issuer}/mcp`
  const issue = async () => exchange(started, 'agent', await token(), { resource })
  const [original] = policies
  if (!original) return t.fail()
  const variants = [
    exchangePolicy(idp, { allowedActors: ['chat', 'second'] }),
    exchangePolicy(idp, { allowedActors: ['second'], actorMatcher: "claims.azp == 'chat'" }),
    exchangePolicy(idp, { allowedDelegateClients: ['*'] }),
    exchangePolicy(idp, { expectedAudience: 'api://changed' }),
  ]
  for (const [index, changed] of variants.entries()) {
    const { access } = await issue()
    policies.splice(0, 1, changed)
    await rig.server.reload()
    t.equal(await rig.server.isLive(callerOf(access)), false, `variant ${index}`)
    policies.splice(0, 1, original)
    await rig.server.reload()
    t.equal(await rig.server.isLive(callerOf(access)), false, 'restored')
    rig.pass(1_000)
  }
  const { access } = await issue()
  t.equal(await rig.server.isLive(callerOf(access)), true)
  const restarted = await rig.replica()
  t.equal(await restarted.server.isLive(callerOf(access)), true, 'a restart')
  policies.length = 0
  await rig.server.reload()
  t.equal(await rig.server.isLive(callerOf(access)), false, 'no policy')
  t.equal((await issue()).outcome, '400 unsupported_grant_type')
})

t.test('a removed client or subject client ends the tokens in the chain', async (t) => {
  const started = await startExternalExchange(t)
  const { rig, clients, token } = started
  const resource = `${rig.issuer}/mcp`
  const first = await exchange(started, 'agent', await token(), { resource })
  const second = await exchange(started, 'helper', first.access)
  const [agent, helper] = clients
  if (!agent || !helper) return t.fail()
  clients.splice(1, 1, { ...helper, subjectClients: ['other'] })
  await rig.server.reload()
  t.equal(await rig.server.isLive(callerOf(first.access)), true)
  t.equal(await rig.server.isLive(callerOf(second.access)), false)
  clients.splice(0, 1)
  await rig.server.reload()
  t.equal(await rig.server.isLive(callerOf(first.access)), false)
})

t.test('actorMatcher and actorClaim select the accepted clients', async (t) => {
  const started = await startExternalExchange(t, {
    policy: { actorClaim: 'appid', actorMatcher: "claims.appid.startsWith('team-')" },
  })
  const { rig, token } = started
  const outcome = async (claims: Record<string, unknown>): Promise<string> =>
    (
      await exchange(started, 'agent', await token({ azp: undefined, ...claims }), {
        resource: `${rig.issuer}/mcp`,
      })
    ).outcome
  t.equal(await outcome({ appid: 'chat' }), '200', 'a listed actor')
  t.equal(await outcome({ appid: 'team-a' }), '200', 'a matching actor')
  t.equal(await outcome({ appid: 'another' }), '400 invalid_request')
  t.equal(await outcome({ azp: 'chat' }), '400 invalid_request', 'another claim')
})

t.test('may_act names the client, and replaces the check of the actor', async (t) => {
  const started = await startExternalExchange(t, {
    policy: { allowMayAct: true, allowedDelegateClients: ['agent', 'other'] },
  })
  const { rig, token } = started
  const resource = `${rig.issuer}/mcp`
  for (const sub of ['agent', 'client:agent']) {
    const claims = { azp: undefined, may_act: { iss: rig.issuer, sub } }
    const answer = await exchange(started, 'agent', await token(claims), { resource })
    t.strictSame(answer.claims['act'], { sub: 'client:agent' }, sub)
    t.equal(await rig.server.isLive(callerOf(answer.access)), true)
    t.equal(
      (await exchange(started, 'other', await token(claims), { resource })).outcome,
      '400 invalid_request',
    )
  }
  t.equal((await exchange(started, 'agent', await token(), { resource })).outcome, '200', 'without may_act')
})

t.test('an issuer that is down gets 503, and another issuer keeps working', async (t) => {
  const started = await startExternalExchange(t)
  const { rig, idp, policies, token } = started
  const down = await startPlatform(t)
  down.status = 500
  policies.push(
    exchangePolicy(down, { issuer: { name: 'down', issuerUrl: down.issuer, allowPrivateIPs: false } }),
  )
  await rig.server.reload()
  const resource = `${rig.issuer}/mcp`
  const lost = await down.token(rig, { sub: 'bob', aud: 'api://agents', azp: 'chat', scope: 'tools:read' })
  t.equal((await exchange(started, 'agent', lost, { resource })).outcome, '503 temporarily_unavailable')
  t.equal((await exchange(started, 'agent', await token(), { resource })).outcome, '200')
  t.ok(idp.requests.length > 0)
})

t.test('the server does not start with an invalid matcher', async (t) => {
  await t.rejects(startExternalExchange(t, { policy: { actorMatcher: 'claims.' } }), {
    code: 'INVALID_CONFIG',
  })
})
