/** The front channel: parameters of the authorization request, and validation of the redirect back. */
import t from 'tap'
import {
  authorizationUrl,
  isOurState,
  makeLoginSecrets,
  readAuthorizationCode,
} from '../../../runtime/oauth/index.ts'
import { s256 } from '../../../runtime/oauth/authorization.ts'

const request = {
  endpoint: 'https://idp.example/authorize?tenant=t&scope=old',
  clientId: 'c',
  redirectUri: 'http://localhost:8666/callback',
  scopes: ['a', 'b'],
  state: 's',
  codeChallenge: 'x',
}

await t.test("authorizationUrl: keeps the endpoint's query, but Gatehouse's parameters win", async (t) => {
  const url = authorizationUrl({ ...request, resource: 'https://r.example/mcp', extra: { prompt: 'login' } })
  t.same(Object.fromEntries(url.searchParams), {
    tenant: 't',
    scope: 'a b',
    prompt: 'login',
    response_type: 'code',
    client_id: 'c',
    redirect_uri: 'http://localhost:8666/callback',
    state: 's',
    code_challenge: 'x',
    code_challenge_method: 'S256',
    resource: 'https://r.example/mcp',
  })
})

await t.test('authorizationUrl: a custom parameter name replaces scope', async (t) => {
  const url = authorizationUrl({
    ...request,
    endpoint: 'https://idp.example/a',
    scopeParamName: 'user_scope',
  })
  t.equal(url.searchParams.get('user_scope'), 'a b')
  t.equal(url.searchParams.has('scope'), false)
  t.notOk(
    authorizationUrl({ ...request, endpoint: 'https://idp.example/a', scopes: [] }).searchParams.has('scope'),
  )
})

await t.test('authorizationUrl: managed parameters cannot be added', async (t) => {
  for (const name of [
    'response_type',
    'client_id',
    'redirect_uri',
    'scope',
    'state',
    'code_challenge',
    'code_challenge_method',
    'nonce',
  ])
    t.throws(() => authorizationUrl({ ...request, extra: { [name]: 'x' } }), TypeError)
})

await t.test('makeLoginSecrets: the published S256 example, and fresh values each time', async (t) => {
  t.equal(s256('dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'), 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM')
  const [a, b] = [makeLoginSecrets(), makeLoginSecrets()]
  t.match(a.codeVerifier, /^[\w-]{43}$/)
  t.equal(a.codeChallenge, s256(a.codeVerifier))
  t.not(a.state, b.state)
  t.not(a.nonce, b.nonce)
})

const issuer = 'https://idp.example'
const silent = { issuer }
const promised = { issuer, authorization_response_iss_parameter_supported: true }

await t.test('readAuthorizationCode: iss rules of RFC 9207', async (t) => {
  const read = (query: string, server: { issuer?: string }) =>
    readAuthorizationCode(new URLSearchParams(query), server)
  t.equal(read('code=1', silent), '1')
  t.equal(read(`code=1&iss=${issuer}`, silent), '1')
  t.equal(read(`code=1&iss=${issuer}`, promised), '1')
  t.equal(
    read('code=1&iss=https://any.example', {}),
    '1',
    'without a known issuer there is nothing to compare',
  )
  const refused = { name: 'OAuthClientError', kind: 'protocol' }
  t.throws(() => read('code=1', promised), refused, 'promised but missing')
  t.throws(() => read('code=1&iss=https://evil.example', silent), refused, 'wrong, though never promised')
  t.throws(() => read(`code=1&iss=${issuer}/`, promised), refused, 'no normalisation')
  t.throws(() => read('error=access_denied&iss=https://evil.example', silent), refused, 'errors too')
})

await t.test('readAuthorizationCode: errors, repeated parameters and empty values', async (t) => {
  const read = (query: string) => readAuthorizationCode(new URLSearchParams(query), silent)
  t.throws(() => read('error=access_denied&error_description=no%0Away'), {
    name: 'OAuthClientError',
    kind: 'refused',
    error: 'access_denied',
    description: 'no way',
  })
  t.throws(() => read('error=%3Cscript%3E'), { name: 'OAuthClientError', kind: 'refused', error: undefined })
  for (const query of ['code=1&code=2', 'code=', '', 'iss=a&iss=b&code=1'])
    t.throws(() => read(query), { name: 'OAuthClientError', kind: 'protocol' }, query)
})

await t.test('isOurState: requires exactly one equal value', async (t) => {
  t.ok(isOurState(new URLSearchParams('state=abc'), 'abc'))
  for (const query of ['', 'state=', 'state=abcd', 'state=abc&state=abc'])
    t.notOk(isOurState(new URLSearchParams(query), 'abc'), query)
})
