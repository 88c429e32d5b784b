/** Metadata that the server replaces: the application_type of public clients, and empty lists of grant types. */
import t from 'tap'
import {
  authorizeUrl,
  jsonOf,
  login,
  pkce,
  redeem,
  redirectUri,
  type Rig,
  startAuthServer,
  textOf,
  postRegistration,
} from '../../../helpers/authserver/authserver.ts'
import { Browser } from '../../../helpers/authserver/cookie-browser.ts'
import { clientDocument, startDocumentHost, startLogin } from '../../../helpers/authserver/document-host.ts'

const cursor = 'cursor://anysphere.cursor-retrieval/oauth/callback'
const web = 'https://app.example.com/cb'

function register(rig: Rig, metadata: object): Promise<Response> {
  return postRegistration(rig, { client_name: 'Desktop', ...metadata })
}

t.test(
  'register: a public client of type web with redirect URIs of a desktop client is native',
  async (t) => {
    const rig = await startAuthServer(t)
    for (const redirects of [
      [cursor],
      ['com.example.app:/cb'],
      [redirectUri],
      ['http://localhost/callback', 'http://[::1]/callback'],
      [web, redirectUri],
    ]) {
      const metadata = { redirect_uris: redirects, application_type: 'web' }
      const response = await register(rig, metadata)
      t.equal(response.status, 201, redirects.join(' '))
      t.match(await jsonOf(response), { application_type: 'native', redirect_uris: redirects })
      // The client asks for a secret and gets none, so it is a public client.
      const asking = await register(rig, { ...metadata, token_endpoint_auth_method: 'client_secret_post' })
      t.match(await jsonOf(asking), { application_type: 'native', token_endpoint_auth_method: 'none' })
    }
    const owned = await register(rig, { redirect_uris: [web], application_type: 'web' })
    t.match(await jsonOf(owned), { application_type: 'web' })
  },
)

t.test('register: an unknown or empty application_type is replaced', async (t) => {
  const rig = await startAuthServer(t)
  for (const value of ['spa', 'desktop', '', null]) {
    const response = await register(rig, { redirect_uris: [redirectUri], application_type: value })
    t.match(await jsonOf(response), { application_type: 'native' }, String(value))
  }
  t.equal((await register(rig, { redirect_uris: [redirectUri], application_type: 7 })).status, 400)
})

t.test('register: the replaced type follows the rules of native clients', async (t) => {
  const rig = await startAuthServer(t)
  const body = await jsonOf(
    await register(rig, { redirect_uris: [redirectUri, cursor], application_type: 'web' }),
  )
  const clientId = textOf(body['client_id'])
  const moved = 'http://127.0.0.1:50123/callback'
  const browser = new Browser()
  const done = await login(rig, { client_id: clientId, redirect_uri: moved }, browser)
  t.equal((await redeem(rig, done, { redirect_uri: moved })).status, 200, 'the loopback port may differ')
  for (const redirect of [moved, cursor]) {
    const url = authorizeUrl(rig, {
      client_id: clientId,
      redirect_uri: redirect,
      code_challenge: pkce().challenge,
    })
    const page = await browser.open(url, redirect)
    t.match(page.text, 'any client here can claim to be this one', 'the page asks and warns every time')
  }
  const update = await fetch(textOf(body['registration_client_uri']), {
    method: 'PUT',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${textOf(body['registration_access_token'])}`,
    },
    body: JSON.stringify({ client_id: clientId, redirect_uris: [cursor], application_type: 'web' }),
  })
  t.match(await jsonOf(update), { application_type: 'native', redirect_uris: [cursor] })
})

t.test('register: schemes that a browser executes stay forbidden for every type', async (t) => {
  const rig = await startAuthServer(t)
  for (const uri of ['javascript:alert(1)', 'data:text/html,x', 'http://app.example.com/cb', 'unknown:/cb']) {
    t.equal((await register(rig, { redirect_uris: [uri], application_type: 'web' })).status, 400, uri)
  }
})

t.test('register: a confidential web client keeps the rules of web clients', async (t) => {
  const rig = await startAuthServer(t, {
    config: { registration: { enabled: true, confidentialClients: true } },
  })
  const confidential = { application_type: 'web', token_endpoint_auth_method: 'client_secret_basic' }
  for (const uri of [redirectUri, cursor]) {
    const refused = await register(rig, { ...confidential, redirect_uris: [uri] })
    t.match(await jsonOf(refused), { error: 'invalid_redirect_uri' }, uri)
  }
  const body = await jsonOf(await register(rig, { ...confidential, redirect_uris: [web] }))
  t.match(body, { application_type: 'web', client_secret: /./ })
  const update = await fetch(textOf(body['registration_client_uri']), {
    method: 'PUT',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${textOf(body['registration_access_token'])}`,
    },
    // The update cannot make the client public, so the rules of web clients still apply.
    body: JSON.stringify({
      client_id: body['client_id'],
      redirect_uris: [redirectUri],
      application_type: 'web',
      token_endpoint_auth_method: 'none',
    }),
  })
  t.match(await jsonOf(update), { error: 'invalid_redirect_uri' })
})

t.test('cimd: a document of type web with loopback redirect URIs describes a native client', async (t) => {
  const self = await startDocumentHost(t)
  const { rig, clientId } = self
  self.response = () => ({ body: clientDocument(clientId, { application_type: 'web' }) })
  const moved = 'http://127.0.0.1:50123/callback'
  const done = await login(rig, { client_id: clientId, redirect_uri: moved })
  t.equal((await redeem(rig, done, { redirect_uri: moved })).status, 200)
})

t.test('cimd: private-use redirect URIs are skipped, and the others stay usable', async (t) => {
  const self = await startDocumentHost(t)
  const { rig, clientId } = self
  const both = { application_type: 'web', redirect_uris: [cursor, redirectUri] }
  self.response = () => ({ body: clientDocument(clientId, both) })
  t.equal((await startLogin(rig, clientId)).status, 303)
  const refused = await startLogin(rig, clientId, { redirect_uri: cursor })
  t.equal(refused.status, 400)
  t.match(await jsonOf(refused), { error_description: /does not accept this redirect_uri/ })
  t.match(rig.logged(), /ignored private-use redirect URIs/)
})

t.test('register: null and empty lists of grant and response types are treated as absent', async (t) => {
  const rig = await startAuthServer(t)
  for (const value of [undefined, null, []]) {
    const metadata = { redirect_uris: [redirectUri], grant_types: value, response_types: value }
    t.match(await jsonOf(await register(rig, metadata)), {
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    })
  }
})
