/** The 401 response to every kind of request: status, challenge and body, without internals of the verifier. */
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { type Authenticator, makeAuthenticator } from '../../../runtime/incoming/index.ts'
import { challengeFor } from '../../../runtime/incoming/challenge.ts'
import { Exchange, pipeline, sendProblem } from '../../../runtime/net/index.ts'
import { GatehouseError } from '../../../schemas/index.ts'

const oidc = {
  issuer: 'https://idp.example',
  audience: 'https://mcp.example/mcp',
  scopes: ['read', 'write'],
}
const parts = {
  fetches: {
    keys: () => Promise.reject(new Error('secret-host:1234')),
    introspection: () => Promise.reject(new Error('x')),
    close: async () => {},
  },
}
const where =
  'Bearer realm="https://idp.example", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/mcp", scope="read write"'

/** Starts a listener that only authenticates. */
async function listener(t: Test, authenticator: Authenticator, dispatch?: () => void): Promise<string> {
  const handle = pipeline<Exchange>(
    {
      route: authenticator.route,
      authenticate: authenticator.stage,
      dispatch: (exchange) => {
        dispatch?.()
        exchange.res.end(exchange.caller?.subject)
      },
      recover: (exchange, error) => {
        if (!authenticator.sendChallenge(exchange, error)) sendProblem(exchange.res, error)
      },
    },
    Exchange,
  )
  const server = createServer(handle)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const address = server.address()
  return `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
}

const cases: readonly (readonly [string, string | undefined, string, object])[] = [
  [
    'no credentials',
    undefined,
    where,
    { error: 'invalid_request', error_description: 'authorization header required' },
  ],
  [
    'another scheme',
    'Basic abc',
    `${where}, error="invalid_request", error_description="invalid authorization header format, expected 'Bearer <token>'"`,
    {
      error: 'invalid_request',
      error_description: "invalid authorization header format, expected 'Bearer <token>'",
    },
  ],
  [
    'an empty token',
    'Bearer ',
    `${where}, error="invalid_request", error_description="empty token in authorization header"`,
    { error: 'invalid_request', error_description: 'empty token in authorization header' },
  ],
  [
    'a malformed token',
    'bearer abc',
    `${where}, error="invalid_token", error_description="the access token is not valid"`,
    { error: 'invalid_token', error_description: 'the access token is not valid' },
  ],
]

for (const [title, authorization, challenge, body] of cases) {
  await t.test(`401: ${title}`, async (t) => {
    const url = await listener(t, makeAuthenticator({ type: 'oidc', oidc }, parts), () =>
      t.fail('must not be reached'),
    )
    const response = await fetch(`${url}/mcp`, {
      headers: authorization === undefined ? {} : { authorization },
    })
    t.equal(response.status, 401)
    t.equal(response.headers.get('www-authenticate'), challenge)
    t.match(response.headers.get('content-type'), 'application/json')
    t.same(await response.json(), body)
  })
}

await t.test(
  '503: an unreachable issuer is not an error of the token, and the response contains no details',
  async (t) => {
    const url = await listener(t, makeAuthenticator({ type: 'oidc', oidc }, parts))
    const jwt = `${Buffer.from('{"alg":"RS256"}').toString('base64url')}.e30.c2ln`
    const response = await fetch(url, { headers: { authorization: `Bearer ${jwt}` } })
    t.equal(response.status, 503)
    t.equal(response.headers.get('retry-after'), '5')
    t.equal(response.headers.get('www-authenticate'), null)
    t.notMatch(await response.text(), /secret-host|idp\.example/)
  },
)

await t.test(
  'response: a 401 from a later stage gets the challenge, and other errors are not changed',
  async (t) => {
    const authenticator = makeAuthenticator({ type: 'oidc', oidc }, parts)
    const handle = pipeline<Exchange>(
      {
        dispatch: () => {
          throw new GatehouseError('SUBJECT_REFUSED')
        },
        recover: (exchange, error) => {
          t.notOk(authenticator.sendChallenge(exchange, new GatehouseError('FORBIDDEN')))
          t.notOk(authenticator.sendChallenge(exchange, new Error('x')))
          t.ok(authenticator.sendChallenge(exchange, error))
        },
      },
      Exchange,
    )
    const server = createServer(handle)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.teardown(() => server.close())
    const address = server.address()
    const response = await fetch(
      `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`,
    )
    t.equal(response.status, 401)
    t.match(response.headers.get('www-authenticate'), 'error="invalid_token"')
    t.match(await response.json(), { error: 'invalid_token' })
  },
)

await t.test('challengeFor: unknown parts are omitted', async (t) => {
  t.equal(challengeFor({ audience: 'api' }), 'Bearer')
  t.equal(challengeFor({ audience: 'api', issuer: 'https://i.example' }), 'Bearer realm="https://i.example"')
  t.equal(
    challengeFor({ audience: 'api', resource: 'https://r.example/' }),
    'Bearer resource_metadata="https://r.example/.well-known/oauth-protected-resource"',
  )
  t.equal(
    challengeFor({ audience: 'api', scopes: ['a'] }, { error: 'insufficient_scope', scopes: ['a', 'b'] }),
    'Bearer scope="a b", error="insufficient_scope"',
  )
})
