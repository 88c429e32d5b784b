/** Identity assertions (ID-JAG): a client that authenticates gets a token for a user of a trusted identity provider. */
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import type { AssertionPolicySettings, AuthServerConfig } from '../../../../runtime/config/index.ts'
import { callerFacts } from '../../../../runtime/net/index.ts'
import {
  jsonOf,
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
  signAssertion,
} from '../../../helpers/authserver/declared-client.ts'
import { clientDocument, startDocumentHost } from '../../../helpers/authserver/document-host.ts'
import {
  identityAssertion,
  jwtBearerGrant,
  type Platform,
  requestWithGrant,
  startPlatform,
  trusted,
  userPolicyFor,
} from '../../../helpers/authserver/platform.ts'
import { callerOf } from '../../../helpers/authserver/test-client.ts'
import { makeDpopClient } from '../../../helpers/oauth/dpop-client.ts'

const secret = newSecret()
const scope = 'tools:read tools:write'

interface Started {
  readonly rig: Rig
  readonly idp: Platform
  readonly policies: AssertionPolicySettings[]
  readonly clients: NonNullable<AuthServerConfig['clients']>[number][]
}

async function start(
  t: Test,
  bindings?: (issuer: string) => AssertionPolicySettings['bindings'],
  more: Partial<AuthServerConfig> = {},
): Promise<Started> {
  const idp = await startPlatform(t)
  const policies: AssertionPolicySettings[] = []
  const clients: Started['clients'] = []
  const rig = await startAuthServer(t, {
    config(issuer) {
      policies.push(userPolicyFor(trusted(idp, 'corp'), bindings?.(issuer)))
      clients.push(declared('agent', [`${issuer}/mcp`], { secrets: [() => secret], tokenMs: 300_000 }))
      return { upstreams: [], assertionPolicies: policies, clients, ...more }
    },
  })
  return { rig, idp, policies, clients }
}

/** Redeems an assertion as the declared client. */
function redeemAs(
  rig: Pick<Rig, 'issuer'>,
  assertion: string,
  form: Record<string, string> = {},
  headers: Record<string, string> = {},
): Promise<Response> {
  return tokenRequest(
    rig,
    { grant_type: jwtBearerGrant, assertion, client_id: 'agent', client_secret: secret, ...form },
    headers,
  )
}

t.test('the client gets a token for the user', async (t) => {
  const { rig, idp } = await start(t)
  const assertion = await identityAssertion(idp, rig, 'agent', { scope, auth_time: 1_700_000_000 })
  const response = await redeemAs(rig, assertion)
  const body = await jsonOf(response)
  t.match(body, { token_type: 'Bearer', expires_in: 300, scope })
  t.notOk('refresh_token' in body || 'id_token' in body)
  const token = String(body['access_token'])
  const claims = decodeJwt(token)
  t.match(claims, {
    sub: `${idp.issuer}#alice`,
    client_id: 'agent',
    aud: [`${rig.issuer}/mcp`],
    auth_method: 'client_secret_post',
    auth_time: 1_700_000_000,
    scope,
  })
  t.match(callerFacts(claims, 'embedded'), { kind: 'user', clientId: 'agent', hasUpstreams: false })
  t.match(rig.events.at(-1), { type: 'token_issued', clientId: 'agent', userId: `${idp.issuer}#alice` })
  t.equal(await rig.server.isLive(callerOf(token)), true)
  t.equal(await refusal(await redeemAs(rig, assertion)), '400 invalid_grant', 'accepted once')
  t.match(rig.events.at(-1), { reason: 'the assertion has already been used' })
  const info = await fetch(`${rig.issuer}/oauth/userinfo`, { headers: { authorization: `Bearer ${token}` } })
  t.equal(await refusal(info), '403 insufficient_scope')
})

t.test(
  'scopes are those that the request, the assertion, the client and the binding have in common',
  async (t) => {
    const { rig, idp } = await start(t)
    const bound = await start(t, (issuer) => [
      { subject: 'alice', scopes: ['tools:write', 'admin'], resources: [`${issuer}/mcp`] },
    ])
    const ask = async ({ rig, idp }: Started, asserted: string | undefined, requested?: string) => {
      const assertion = await identityAssertion(idp, rig, 'agent', { scope: asserted })
      const response = await redeemAs(rig, assertion, requested === undefined ? {} : { scope: requested })
      return response.status === 200 ? ((await jsonOf(response))['scope'] ?? '') : refusal(response)
    }
    const plain = { rig, idp, policies: [], clients: [] }
    t.equal(await ask(plain, 'tools:read other'), 'tools:read')
    t.equal(await ask(plain, scope, 'tools:write'), 'tools:write')
    t.equal(await ask(plain, 'tools:read', scope), 'tools:read', 'the request exceeds the assertion')
    t.equal(await ask(plain, 'tools:read', 'tools:write'), '400 invalid_scope')
    t.equal(await ask(plain, 'openid'), '400 invalid_scope')
    t.equal(await ask(plain, undefined, 'tools:read'), '400 invalid_scope')
    t.equal(await ask(plain, undefined), '', 'an assertion without scopes grants none')
    t.equal(await ask(bound, 'tools:read tools:write admin'), 'tools:write')
    t.equal(await ask(bound, 'tools:read'), '400 invalid_scope')
  },
)

t.test('a binding limits the users and the resources', async (t) => {
  const { rig, idp } = await start(
    t,
    (issuer) => [
      {
        matcher: "claims.department == 'sales'",
        scopes: ['tools:read'],
        resources: [`${issuer}/a`],
      },
    ],
    {},
  )
  const assertion = await identityAssertion(idp, rig, 'agent', { scope })
  t.equal(await refusal(await redeemAs(rig, assertion)), '400 invalid_grant')
  t.match(rig.events.at(-1), { reason: 'no binding matches the assertion', userId: `${idp.issuer}#alice` })
  const sales = await identityAssertion(idp, rig, 'agent', { scope, department: 'sales' })
  t.equal(await refusal(await redeemAs(rig, sales)), '400 invalid_target', 'no resource in common')
})

t.test('a binding for a subject applies in no tenant, where the same subject is another user', async (t) => {
  const bindingFor = async (selector: { subject: string } | { matcher: string }) => {
    const { rig, idp } = await start(t, (issuer) => [
      { ...selector, scopes: ['tools:read'], resources: [`${issuer}/mcp`] },
    ])
    return async (claims: Record<string, unknown>): Promise<string> => {
      const assertion = await identityAssertion(idp, rig, 'agent', { scope, ...claims })
      const response = await redeemAs(rig, assertion)
      return response.status === 200 ? '200' : refusal(response)
    }
  }
  const bySubject = await bindingFor({ subject: 'alice' })
  t.equal(await bySubject({}), '200')
  t.equal(await bySubject({ tenant: 'a' }), '400 invalid_grant')
  const byTenant = await bindingFor({ matcher: "claims.tenant == 'a' && claims.sub == 'alice'" })
  t.equal(await byTenant({ tenant: 'a' }), '200')
  t.equal(await byTenant({ tenant: 'b' }), '400 invalid_grant')
  t.equal(await byTenant({}), '400 invalid_grant')
})

t.test('the resource is the one in the assertion, or the only one of the server', async (t) => {
  const idp = await startPlatform(t)
  const rig = await startAuthServer(t, {
    config: (issuer) => ({
      upstreams: [],
      allowedAudiences: [`${issuer}/a`, `${issuer}/b`],
      assertionPolicies: [userPolicyFor(trusted(idp, 'corp'))],
      clients: [declared('agent', [`${issuer}/a`, `${issuer}/b`], { secrets: [() => secret] })],
    }),
  })
  const { issuer } = rig
  const ask = async (resource: unknown, requested?: string): Promise<unknown> => {
    const assertion = await identityAssertion(idp, rig, 'agent', { scope, resource })
    const response = await redeemAs(rig, assertion, requested === undefined ? {} : { resource: requested })
    if (response.status !== 200) return refusal(response)
    return decodeJwt(String((await jsonOf(response))['access_token'])).aud
  }
  t.same(await ask(`${issuer}/b`), [`${issuer}/b`])
  t.same(await ask([`${issuer}/a`, `${issuer}/b`], `${issuer}/a`), [`${issuer}/a`])
  t.equal(await ask(undefined), '400 invalid_target', 'the server has several resources')
  t.same(await ask(undefined, `${issuer}/a`), [`${issuer}/a`])
  t.equal(await ask(`${issuer}/a`, `${issuer}/b`), '400 invalid_target')
  t.equal(await ask('https://other.example/mcp'), '400 invalid_grant')
  t.match(rig.events.at(-1), { reason: 'the assertion names a resource of another server' })
  t.equal(await ask([`${issuer}/a`, 'https://other.example/mcp'], `${issuer}/a`), '400 invalid_grant')
})

t.test('users of two tenants have different subjects', async (t) => {
  const { rig, idp } = await start(t)
  const subjects = []
  for (const claims of [{ tenant: 'a#b' }, { tenant: 'a', sub: 'b#alice' }, { sub: 'a#alice' }, {}]) {
    const assertion = await identityAssertion(idp, rig, 'agent', { scope, ...claims })
    subjects.push(decodeJwt(String((await jsonOf(await redeemAs(rig, assertion)))['access_token'])).sub)
  }
  t.same(subjects, [
    `${idp.issuer}?tenant=a%23b#alice`,
    `${idp.issuer}?tenant=a#b#alice`,
    `${idp.issuer}#a#alice`,
    `${idp.issuer}#alice`,
  ])
  t.equal(new Set(subjects).size, 4)
})

t.test('a client with a metadata document authenticates with its key', async (t) => {
  const [idp, key] = await Promise.all([startPlatform(t), makeKey()])
  const self = await startDocumentHost(t, {
    upstreams: [],
    scopesSupported: ['openid', 'tools:read'],
    assertionPolicies: [userPolicyFor(trusted(idp, 'corp'))],
  })
  const { rig, clientId } = self
  let members: object = { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [key.jwk] } }
  self.response = () => ({ body: clientDocument(clientId, members) })
  const proof = async () => ({
    client_assertion_type: assertionType,
    client_assertion: await signAssertion(key, { clientId, issuer: rig.issuer, nowMs: rig.now() }),
  })
  const assertion = () => identityAssertion(idp, rig, clientId, { scope: 'openid tools:read' })
  const body = await jsonOf(await requestWithGrant(rig, await assertion(), await proof()))
  const token = String(body['access_token'])
  t.match(body, { scope: 'tools:read', expires_in: 900 })
  t.match(decodeJwt(token), { client_id: clientId, auth_method: 'private_key_jwt' })
  t.equal(await rig.server.isLive(callerOf(token)), true)
  const metadata = await jsonOf(await fetch(`${rig.issuer}/.well-known/oauth-authorization-server`))
  t.match(metadata, {
    authorization_grant_profiles_supported: ['urn:ietf:params:oauth:grant-profile:id-jag'],
    client_id_metadata_document_supported: true,
    token_endpoint_auth_methods_supported: ['private_key_jwt'],
    token_endpoint_auth_signing_alg_values_supported: ['ES256', 'ES384', 'RS256', 'PS256', 'EdDSA'],
  })
  const downgraded = await requestWithGrant(rig, await assertion(), { client_id: clientId })
  t.equal(await refusal(downgraded), '401 invalid_client', 'without its key')
  t.match(rig.events.at(-1), { reason: 'an identity assertion requires authentication' })

  const revoke = (form: Record<string, string>) =>
    fetch(`${rig.issuer}/oauth/revoke`, { method: 'POST', body: new URLSearchParams({ token, ...form }) })
  await revoke({ client_id: clientId })
  t.equal(await rig.server.isLive(callerOf(token)), true, 'revocation requires the key too')
  t.equal((await revoke(await proof())).status, 200)
  t.equal(await rig.server.isLive(callerOf(token)), false)

  members = {}
  rig.pass(600_000)
  const lost = await requestWithGrant(rig, await assertion(), await proof())
  t.equal(await refusal(lost), '401 invalid_client', 'the document no longer declares the key')
})

t.test('a registered client cannot use identity assertions', async (t) => {
  const idp = await startPlatform(t)
  const rig = await startAuthServer(t, {
    config: {
      registration: { enabled: true, confidentialClients: true },
      assertionPolicies: [userPolicyFor(trusted(idp, 'corp'))],
    },
  })
  const redirect_uris = ['http://127.0.0.1:1/cb']
  const registered = await jsonOf(
    await fetch(`${rig.issuer}/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ redirect_uris, token_endpoint_auth_method: 'client_secret_post' }),
    }),
  )
  const client_id = String(registered['client_id'])
  const assertion = await identityAssertion(idp, rig, client_id, { scope })
  const client_secret = String(registered['client_secret'])
  t.equal(
    await refusal(await requestWithGrant(rig, assertion, { client_id, client_secret })),
    '400 unauthorized_client',
  )
})

t.test('removing the client, the binding or the type ends the tokens on every replica', async (t) => {
  const { rig, idp, policies, clients } = await start(t)
  const other = await rig.replica()
  const next = async (): Promise<string> => {
    const assertion = await identityAssertion(idp, rig, 'agent', { scope })
    return String((await jsonOf(await redeemAs(rig, assertion)))['access_token'])
  }
  const ends = async (change: () => void, restore: () => void): Promise<void> => {
    const token = await next()
    t.equal(await rig.server.isLive(callerOf(token)), true)
    change()
    await rig.server.reload()
    t.equal(await rig.server.isLive(callerOf(token)), false)
    restore()
    await rig.server.reload()
    t.equal(await rig.server.isLive(callerOf(token)), false, 'also after it is back')
    t.equal(await other.server.isLive(callerOf(token)), false)
    rig.pass(2_000)
  }
  const [policy] = policies
  const [client] = clients
  if (!policy || !client) throw new Error('nothing is configured')
  const { issuer } = policy
  await ends(
    () => void policies.splice(0, 1),
    () => void policies.push(policy),
  )
  await ends(
    () => void policies.splice(0, 1, { ...policy, types: ['jwt_bearer'], bindings: [] }),
    () => void policies.splice(0, 1, policy),
  )
  await ends(
    () =>
      void policies.splice(
        0,
        1,
        userPolicyFor(issuer, [{ subject: 'alice', scopes: ['tools:read'], resources: [rig.resource] }]),
      ),
    () => void policies.splice(0, 1, policy),
  )
  await ends(
    () => void clients.splice(0, 1),
    () => void clients.push(client),
  )
})

t.test(
  'the client may introspect and revoke the token, and the backends of a login are refused',
  async (t) => {
    const { rig, idp } = await start(t)
    const assertion = await identityAssertion(idp, rig, 'agent', { scope })
    const token = String((await jsonOf(await redeemAs(rig, assertion)))['access_token'])
    const post = (path: string, client: string, form: Record<string, string> = {}) =>
      fetch(`${rig.issuer}/oauth/${path}`, {
        method: 'POST',
        body: new URLSearchParams({ token, client_id: client, client_secret: secret, ...form }),
      })
    t.match(await jsonOf(await post('introspect', 'agent')), { active: true, sub: `${idp.issuer}#alice` })
    await post('revoke', 'agent')
    t.equal(await rig.server.isLive(callerOf(token)), false)
    t.same(await jsonOf(await post('introspect', 'agent')), { active: false })
  },
)

t.test('a backend that needs a login gets an error that names the reason', async (t) => {
  const idp = await startPlatform(t)
  const rig = await startAuthServer(t, {
    config: (issuer) => ({
      assertionPolicies: [userPolicyFor(trusted(idp, 'idp'))],
      clients: [declared('agent', [`${issuer}/mcp`], { secrets: [() => secret] })],
    }),
  })
  const assertion = await identityAssertion(idp, rig, 'agent', { scope })
  const token = String((await jsonOf(await redeemAs(rig, assertion)))['access_token'])
  await t.rejects(rig.server.upstreamTokens.get(callerOf(token), 'corp'), { code: 'USER_REQUIRED' })
})

t.test('a proof binds the token, and an assertion with cnf requires the proof of its key', async (t) => {
  const dpop = { mode: 'optional', requireNonce: false, proofMaxAge: '60s', replay: 'store' } as const
  const { rig, idp } = await start(t, undefined, { dpop })
  const [key, other] = await Promise.all([makeDpopClient(), makeDpopClient()])
  const ask = async (cnf: unknown, by?: typeof key) => {
    const assertion = await identityAssertion(idp, rig, 'agent', { scope, cnf })
    const proof = by && (await by.proof('POST', `${rig.issuer}/oauth/token`, undefined, { nowMs: rig.now() }))
    return redeemAs(rig, assertion, {}, proof === undefined ? {} : { dpop: proof })
  }
  for (const cnf of [undefined, key.cnf]) {
    const body = await jsonOf(await ask(cnf, key))
    t.equal(body['token_type'], 'DPoP')
    t.same(decodeJwt(String(body['access_token']))['cnf'], key.cnf)
  }
  for (const [cnf, by] of [
    [key.cnf, undefined],
    [key.cnf, other],
    [{ ...key.cnf, 'x5t#S256': 'a' }, key],
    [{ kid: 'a' }, key],
    [null, key],
    [{}, undefined],
  ] as const) {
    t.equal(await refusal(await ask(cnf, by)), '400 invalid_grant', JSON.stringify(cnf))
    t.match(rig.events.at(-1), { reason: /bound to a key that the request does not prove/ })
  }
})
