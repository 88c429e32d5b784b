/** The client authentication method that the server selects for a registration or a metadata document. */
import t from 'tap'
import {
  authorizeUrl,
  jsonOf,
  login,
  pkce,
  redeem,
  redirectUri,
  refresh,
  refusal,
  startAuthServer,
  tokenRequest,
  tokensOf,
  postRegistration,
} from '../../../helpers/authserver/authserver.ts'
import { makeKey } from '../../../helpers/authserver/declared-client.ts'
import { clientDocument, startDocumentHost, startLogin } from '../../../helpers/authserver/document-host.ts'

/** Metadata of a hosted client that prefers its keys, and lists `none` for servers that do not support keys. */
const prefersKeys = {
  token_endpoint_auth_method: 'private_key_jwt',
  token_endpoint_auth_methods_supported: ['private_key_jwt', 'none'],
  token_endpoint_auth_signing_alg: 'RS256',
  jwks_uri: 'https://client.example.com/jwks.json',
}

t.test('cimd: a document whose first supported method is none logs in as a public client', async (t) => {
  const self = await startDocumentHost(t)
  const { rig, clientId } = self
  for (const methods of [
    { ...prefersKeys, jwks_uri: undefined },
    { ...prefersKeys, token_endpoint_auth_signing_alg: 'ES512' },
    { token_endpoint_auth_methods_supported: ['none'] },
    { token_endpoint_auth_method: 'none', token_endpoint_auth_methods_supported: ['private_key_jwt'] },
    { token_endpoint_auth_method: 'none', jwks_uri: 'https://client.example.com/jwks.json' },
    { token_endpoint_auth_method: '', token_endpoint_auth_methods_supported: [] },
    { token_endpoint_auth_method: null, token_endpoint_auth_methods_supported: null },
  ]) {
    self.response = () => ({ body: clientDocument(clientId, methods) })
    rig.pass(300_000)
    const done = await login(rig, { client_id: clientId })
    const tokens = await tokensOf(await redeem(rig, done))
    t.equal((await refresh(rig, clientId, tokens.refresh_token)).status, 200, JSON.stringify(methods))
  }
})

t.test('cimd: a document that requires a secret or unusable keys is rejected with the reason', async (t) => {
  const keyMethod = { token_endpoint_auth_method: 'private_key_jwt' }
  const key = await makeKey()
  const privateKey = { ...key.jwk, d: 'AAAA' }
  const noMethod = /must allow the client authentication method none, or private_key_jwt with keys/
  const rows = [
    [keyMethod, noMethod],
    [{ token_endpoint_auth_method: 'tls_client_auth' }, noMethod],
    [{ token_endpoint_auth_method: 'client_secret_basic' }, noMethod],
    [{ token_endpoint_auth_methods_supported: ['private_key_jwt', 'tls_client_auth'] }, noMethod],
    [
      { ...prefersKeys, token_endpoint_auth_methods_supported: [], token_endpoint_auth_signing_alg: 'HS256' },
      noMethod,
    ],
    [{ ...prefersKeys, jwks: { keys: [key.jwk] } }, /must not contain both jwks and jwks_uri/],
    [{ ...prefersKeys, jwks_uri: 'http://client.example.com/jwks' }, /jwks_uri must be an https URL/],
    [{ ...prefersKeys, jwks_uri: 'https://user:x@client.example.com/jwks' }, /jwks_uri must be an https URL/],
    [{ ...prefersKeys, jwks_uri: 'https://client.example.com/jwks#x' }, /jwks_uri must be an https URL/],
    [{ ...prefersKeys, jwks_uri: 7 }, /jwks_uri must be an https URL/],
    [{ ...keyMethod, jwks: { keys: [] } }, /jwks must contain 1 to 10 keys/],
    [{ ...keyMethod, jwks: { keys: Array(11).fill(key.jwk) } }, /jwks must contain 1 to 10 keys/],
    [{ ...keyMethod, jwks: 'x' }, /jwks must contain 1 to 10 keys/],
    [{ ...keyMethod, jwks: { keys: [privateKey] } }, /jwks must contain public keys only/],
    [{ ...keyMethod, jwks: { keys: [{ kty: 'oct', k: 'AAAA' }] } }, /jwks must contain public keys only/],
    [{ ...keyMethod, jwks: { keys: [{ ...key.jwk, use: 'enc' }] } }, /jwks must contain a key for ES256/],
  ] as const
  let self = await startDocumentHost(t)
  for (const [index, [methods, reason]] of rows.entries()) {
    // Ten fetches a minute are allowed for one host.
    if (index % 8 === 0) self = await startDocumentHost(t)
    const { rig, clientId, host } = self
    const url = authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge })
    self.response = () => ({ body: clientDocument(clientId, methods) })
    rig.pass(300_000)
    const fetched = host.seen.length
    const response = await fetch(url, { headers: { accept: 'text/html' }, redirect: 'manual' })
    t.equal(response.status, 401)
    t.match(response.headers.get('content-type'), 'text/html')
    t.match(await response.text(), reason)
    // The failure is cached, and so is its reason.
    t.match(await jsonOf(await startLogin(rig, clientId)), {
      error: 'invalid_client',
      error_description: reason,
    })
    t.equal(host.seen.length, fetched + 1)
  }
})

t.test(
  'cimd: a document that starts to require keys is rejected, and existing grants keep working',
  async (t) => {
    const self = await startDocumentHost(t)
    const { rig, clientId } = self
    const done = await login(rig, { client_id: clientId })
    const tokens = await tokensOf(await redeem(rig, done))
    self.response = () => ({
      body: clientDocument(clientId, { token_endpoint_auth_method: 'private_key_jwt' }),
    })
    rig.pass(300_000)
    t.equal((await startLogin(rig, clientId)).status, 401)
    // The grant contains the permissions of the document at the time of the login.
    t.equal((await refresh(rig, clientId, tokens.refresh_token)).status, 200)
  },
)

t.test('token: a secret of a client with a metadata document is rejected without a fetch', async (t) => {
  const { rig, clientId, host } = await startDocumentHost(t)
  const form = { grant_type: 'refresh_token', refresh_token: 'x' }
  const secret = await tokenRequest(rig, { ...form, client_id: clientId, client_secret: 'guess' })
  t.equal(await refusal(secret), '401 invalid_client')
  const authorization = `Basic ${Buffer.from(`${encodeURIComponent(clientId)}:guess`).toString('base64')}`
  t.equal(await refusal(await tokenRequest(rig, form, { authorization })), '401 invalid_client')
  t.equal(host.seen.length, 0)
})

t.test('register: none is used wherever the metadata allows it', async (t) => {
  const register = async (kind: 'public' | 'confidential', methods: object): Promise<unknown> => {
    const rig = await startAuthServer(t, {
      config: { registration: { enabled: true, confidentialClients: kind === 'confidential' } },
    })
    const response = await postRegistration(rig, { redirect_uris: [redirectUri], ...methods })
    const body = await jsonOf(response)
    return body['error'] ?? body['token_endpoint_auth_method']
  }
  const keys = { token_endpoint_auth_method: 'private_key_jwt' }
  const keysOrSecret = { ...keys, token_endpoint_auth_methods_supported: ['client_secret_post'] }
  t.equal(await register('public', prefersKeys), 'none')
  t.equal(await register('public', { token_endpoint_auth_method: '' }), 'none')
  t.equal(await register('public', keysOrSecret), 'none')
  t.equal(await register('confidential', keysOrSecret), 'client_secret_post')
  t.equal(
    await register('confidential', { ...prefersKeys, token_endpoint_auth_method: 'client_secret_basic' }),
    'client_secret_basic',
  )
  t.equal(await register('public', keys), 'invalid_client_metadata')
  t.equal(
    await register('public', { token_endpoint_auth_methods_supported: 'none' }),
    'invalid_client_metadata',
  )
})

t.test('cimd: the page of a rejected document names the violated rule', async (t) => {
  const self = await startDocumentHost(t)
  const { rig, clientId } = self
  for (const [members, reason] of [
    [{ client_name: undefined }, /client_name is required/],
    [{ client_secret: 'x' }, /must not contain a client secret/],
    [{ redirect_uris: ['http://a.example/cb'] }, /redirect_uris\[0\] must be https/],
    [{ grant_types: ['client_credentials'] }, /grant_types must contain authorization_code/],
    [{ client_id: 'https://other.example/c' }, /names another client_id/],
  ] as const) {
    self.response = () => ({ body: clientDocument(clientId, members) })
    rig.pass(300_000)
    const response = await startLogin(rig, clientId)
    t.equal(response.status, 401)
    t.match(await jsonOf(response), { error: 'invalid_client', error_description: reason })
  }
  self.response = () => ({ status: 500, body: { error_description: 'internal detail' } })
  rig.pass(300_000)
  const failed = await startLogin(rig, clientId)
  t.match(await jsonOf(failed), { error_description: /not registered here/ }, 'network failures stay general')
})
