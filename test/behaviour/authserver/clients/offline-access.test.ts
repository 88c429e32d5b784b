/** Clients that register to refresh may ask for offline_access, although they register other scopes only. */
import t from 'tap'
import {
  jsonOf,
  login,
  redeem,
  redirectUri,
  type Rig,
  startAuthServer,
  textOf,
  tokensOf,
} from '../../../helpers/authserver/authserver.ts'

function post(rig: Rig, metadata: object): Promise<Response> {
  return fetch(`${rig.issuer}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(metadata),
  })
}

t.test('register: a client that registers to refresh may ask for offline_access', async (t) => {
  const rig = await startAuthServer(t)
  const refreshing = { redirect_uris: [redirectUri], grant_types: ['authorization_code', 'refresh_token'] }
  // Clients register the scopes of the protected resource, and add offline_access when they ask for the login.
  const body = await jsonOf(await post(rig, { ...refreshing, scope: 'openid' }))
  t.equal(body['scope'], 'openid offline_access')
  const done = await login(rig, { client_id: textOf(body['client_id']), scope: 'openid offline_access' })
  t.match(await tokensOf(await redeem(rig, done)), {
    scope: 'openid offline_access',
    refresh_token: /^gh_rt_/,
  })
  const scope = async (metadata: object): Promise<unknown> =>
    (await jsonOf(await post(rig, { redirect_uris: [redirectUri], scope: 'openid', ...metadata })))['scope']
  t.equal(await scope({}), 'openid', 'not when the grant is not named')
  t.equal(await scope({ grant_types: ['authorization_code'] }), 'openid')
  t.equal(await scope({ ...refreshing, scope: 'offline_access openid' }), 'offline_access openid')
  const narrow = await startAuthServer(t, { config: { scopesSupported: ['openid', 'email'] } })
  t.match(await jsonOf(await post(narrow, { ...refreshing, scope: 'openid' })), { scope: 'openid' })
})
