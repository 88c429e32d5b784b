/**
 * The `provider` setting of an upstream: the request parameters that it adds, and the precedence of explicit settings.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import {
  hintedClient,
  hintedParams,
  hintedScopes,
  hintFor,
  type ProviderId,
  providerIds,
} from '../../../../runtime/oauth/index.ts'
import { corp, login, redeem, startAuthServer } from '../../../helpers/authserver/authserver.ts'
import { outcome, startPeer } from '../../../helpers/authserver/oauth2-peer.ts'

t.test('the schema and the table list the same providers, and each provider has an effect', async (t) => {
  const schema: unknown = JSON.parse(readFileSync('schemas/common/embedded-auth-server.json', 'utf8'))
  t.match(schema, { $defs: { IdentityProvider: { enum: [...providerIds] } } })
  const client = { clientId: 'x', clientSecret: 'y' }
  for (const id of providerIds) {
    const hint = hintFor(id)
    const before = [['openid', 'offline_access', 'x'], {}, 'scope', client]
    const scopes = hintedScopes(hint, ['openid', 'offline_access', 'x'])
    const after = [
      scopes,
      hintedParams(hint, {}),
      hint?.scopeParamName ?? 'scope',
      hintedClient(hint, client),
    ]
    const added = hintedScopes(hint, ['x']).length > 1
    t.ok(added || JSON.stringify(after) !== JSON.stringify(before), id)
  }
})

t.test('oidc: a real provider gets the parameters of each hint, and the login succeeds', async (t) => {
  for (const [provider, prompt, scope] of [
    ['google', 'consent', 'openid email'],
    ['entra', null, 'openid email offline_access'],
    ['cognito', null, 'openid email'],
  ] as const) {
    const seen: URLSearchParams[] = []
    const rig = await startAuthServer(t, {
      provider: {
        intercept(req) {
          const url = new URL(req.url ?? '', 'http://x')
          if (url.pathname === '/auth') seen.push(url.searchParams)
          return false
        },
      },
      upstreams: ({ issuer, provider: idp }) => {
        const scopes = ['openid', 'offline_access', 'email']
        return [{ ...corp(issuer, idp), provider, scopes }]
      },
    })
    t.equal((await redeem(rig, await login(rig))).status, 200, provider)
    const [request] = seen
    t.same([request?.get('prompt'), request?.get('scope')], [prompt, scope])
    t.equal(request?.get('access_type'), provider === 'google' ? 'offline' : null)
  }
})

interface Row {
  readonly provider?: ProviderId
  readonly scopes?: readonly string[]
  readonly params?: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string | null>>
  readonly secretInBody?: boolean
}

const rows: readonly Row[] = [
  { scopes: ['repo'], query: { scope: 'repo', access_type: null, prompt: null, audience: null } },
  {
    provider: 'google',
    scopes: ['openid', 'offline_access'],
    query: { scope: 'openid', access_type: 'offline', prompt: 'consent' },
  },
  {
    provider: 'google',
    scopes: ['openid'],
    params: { prompt: 'select_account' },
    query: { access_type: 'offline', prompt: 'select_account' },
  },
  { provider: 'entra', scopes: ['api://x/y'], query: { scope: 'api://x/y offline_access', resource: null } },
  { provider: 'okta', scopes: [], query: { scope: null } },
  { provider: 'snowflake', scopes: ['session:role:R'], query: { scope: 'session:role:R refresh_token' } },
  { provider: 'slack', scopes: ['chat:write'], query: { scope: null, user_scope: 'chat:write' } },
  { provider: 'cognito', scopes: ['openid', 'offline_access'], query: { scope: 'openid' } },
  {
    provider: 'atlassian',
    scopes: ['read:jira-work'],
    query: {
      scope: 'read:jira-work offline_access',
      audience: 'api.atlassian.com',
      prompt: 'consent',
    },
    secretInBody: true,
  },
  { provider: 'github', scopes: ['repo'], query: { scope: 'repo' }, secretInBody: true },
]

for (const { provider, scopes = [], params = {}, query, secretInBody = false } of rows) {
  t.test(`oauth2: ${provider ?? 'no provider'}, ${scopes.join(' ')}`, async (t) => {
    const self = await startPeer(t, {}, () => ({
      scopes,
      additionalAuthorizationParams: params,
      ...(provider && { provider }),
      clientSecret: () => 'our-secret',
    }))
    await outcome(self)
    const [request] = self.seen('/authorize')
    for (const [name, value] of Object.entries(query)) t.equal(request?.query.get(name), value, name)
    const [exchange] = self.seen('/token')
    t.equal(exchange?.form.get('client_secret'), secretInBody ? 'our-secret' : null)
    t.equal(exchange?.headers.authorization === undefined, secretInBody)
  })
}

t.test("a prompt from the client is sent together with the provider's prompt", async (t) => {
  t.match(hintedParams(hintFor('google'), { prompt: 'login' }), { prompt: 'login consent' })
  t.match(hintedParams(hintFor('google'), { prompt: 'consent' }), { prompt: 'consent' })
  t.same(hintedParams(undefined, { prompt: 'login' }), { prompt: 'login' })
})
