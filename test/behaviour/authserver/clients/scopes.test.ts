/** Unsupported scopes are ignored (RFC 6749 section 3.3), and clients that refresh may request offline_access. */
import t from 'tap'
import { makeMemoryStore } from '../../../../runtime/store/index.ts'
import {
  authorizeUrl,
  jsonOf,
  login,
  pkce,
  postRegistration,
  redeem,
  redirectUri,
  refresh,
  refusal,
  registerClient,
  type Rig,
  startAuthServer,
  textOf,
  tokensOf,
} from '../../../helpers/authserver/authserver.ts'
import { Browser } from '../../../helpers/authserver/cookie-browser.ts'
import { clientDocument, startDocumentHost } from '../../../helpers/authserver/document-host.ts'

const defaults = 'openid profile email offline_access'

async function registeredScope(rig: Rig, metadata: object): Promise<unknown> {
  return (await jsonOf(await postRegistration(rig, { redirect_uris: [redirectUri], ...metadata })))['scope']
}

t.test('register: a client whose scopes are all unknown gets the default scopes', async (t) => {
  const rig = await startAuthServer(t)
  t.equal(await registeredScope(rig, { scope: 'claudeai' }), defaults)
  t.equal(await registeredScope(rig, { scope: ['claudeai', 'mcp:tools'] }), defaults)
  const grants = ['authorization_code', 'refresh_token']
  t.equal(await registeredScope(rig, { scope: 'claudeai', grant_types: grants }), defaults)
  const narrow = await startAuthServer(t, {
    config: { scopesSupported: ['openid', 'tools', 'email'], baselineClientScopes: ['openid'] },
  })
  t.equal(await registeredScope(narrow, { scope: 'claudeai' }), 'openid tools email')
})

t.test('authorize: unknown scopes are ignored, and the token response lists the others', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig, { scope: 'claudeai' })
  for (const [asked, granted] of [
    ['claudeai', defaults],
    ['claudeai openid', 'openid'],
    ['openid claudeai offline_access mcp:tools', 'openid offline_access'],
  ] as const) {
    const page = await new Browser().open(
      authorizeUrl(rig, { client_id: clientId, scope: asked, code_challenge: pkce().challenge }),
    )
    t.notMatch(page.text, 'claudeai', 'the page lists only scopes that the server grants')
    const done = await login(rig, { client_id: clientId, scope: asked })
    t.equal((await tokensOf(await redeem(rig, done))).scope, granted, asked)
  }
})

t.test('authorize: a supported scope that the client did not register is still rejected', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig, { scope: 'openid' })
  const url = authorizeUrl(rig, {
    client_id: clientId,
    scope: 'openid email claudeai',
    code_challenge: pkce().challenge,
  })
  const response = await fetch(url, { redirect: 'manual' })
  t.match(response.headers.get('location'), /error=invalid_scope/)
})

t.test('refresh: unknown scopes are ignored, and scopes beyond the grant are rejected', async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const asked = 'openid offline_access claudeai'
  const first = await tokensOf(await redeem(rig, await login(rig, { client_id: clientId, scope: asked })))
  const second = await tokensOf(await refresh(rig, clientId, first.refresh_token, { scope: asked }))
  t.equal(second.scope, 'openid offline_access')
  const third = await tokensOf(await refresh(rig, clientId, second.refresh_token, { scope: 'claudeai' }))
  t.equal(third.scope, 'openid offline_access')
  const wider = await refresh(rig, clientId, third.refresh_token, { scope: 'openid email claudeai' })
  t.equal(await refusal(wider), '400 invalid_scope')
})

t.test('cimd: a document whose scopes are all unknown gets the default scopes', async (t) => {
  const self = await startDocumentHost(t)
  const { rig, clientId } = self
  self.response = () => ({ body: clientDocument(clientId, { scope: 'claudeai' }) })
  const done = await login(rig, { client_id: clientId, scope: 'claudeai' })
  t.equal((await tokensOf(await redeem(rig, done))).scope, defaults)
})

t.test('authorize: a stored registration follows a change of the supported scopes', async (t) => {
  const store = makeMemoryStore()
  const before = await startAuthServer(t, {
    store,
    config: { scopesSupported: ['openid', 'offline_access', 'old'] },
  })
  const clientId = await registerClient(before, { scope: 'old' })
  const mixedId = await registerClient(before, { scope: 'openid old' })
  const after = await startAuthServer(t, {
    store,
    config: {
      scopesSupported: ['openid', 'offline_access', 'new'],
      baselineClientScopes: ['offline_access'],
    },
  })
  const granted = async (id: string, scope: string): Promise<string> => {
    const done = await login(after, { client_id: id, scope })
    return (await tokensOf(await redeem(after, done))).scope
  }
  t.equal(await granted(clientId, 'old'), 'openid offline_access new')
  t.equal(await granted(mixedId, 'openid old'), 'openid')
  t.equal(
    await granted(mixedId, 'openid offline_access'),
    'openid offline_access',
    'the default scopes are added',
  )
})

t.test('register: a client that registers to refresh may ask for offline_access', async (t) => {
  const rig = await startAuthServer(t)
  const refreshing = { redirect_uris: [redirectUri], grant_types: ['authorization_code', 'refresh_token'] }
  // Clients register the scopes of the protected resource, and add offline_access when they ask for the login.
  const body = await jsonOf(await postRegistration(rig, { ...refreshing, scope: 'openid' }))
  t.equal(body['scope'], 'openid offline_access')
  const done = await login(rig, { client_id: textOf(body['client_id']), scope: 'openid offline_access' })
  t.match(await tokensOf(await redeem(rig, done)), {
    scope: 'openid offline_access',
    refresh_token: /^gh_rt_/,
  })
  t.equal(await registeredScope(rig, { scope: 'openid' }), 'openid', 'only when the client names the grant')
  t.equal(await registeredScope(rig, { scope: 'openid', grant_types: ['authorization_code'] }), 'openid')
  t.equal(
    await registeredScope(rig, { ...refreshing, scope: 'offline_access openid' }),
    'offline_access openid',
  )
  const narrow = await startAuthServer(t, { config: { scopesSupported: ['openid', 'email'] } })
  t.match(await jsonOf(await postRegistration(narrow, { ...refreshing, scope: 'openid' })), {
    scope: 'openid',
  })
})
