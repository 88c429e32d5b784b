/** Incoming configuration: an incomplete security setting is an error and never opens access. */
import t from 'tap'
import { oidcViolations } from '../../../runtime/incoming/config.ts'
import { makeAuthenticator } from '../../../runtime/incoming/index.ts'
import type { OidcConfig } from '../../../runtime/incoming/config.ts'
import { proves } from '../../helpers/proves.ts'

proves(
  '3.config.incomingAuth.oidc.issuer',
  '3.config.incomingAuth.oidc.audience',
  '3.config.incomingAuth.oidc.insecureAllowHttp',
)

const good = { issuer: 'https://idp.example', audience: 'a' }
const fine: readonly OidcConfig[] = [
  good,
  { jwksUrl: 'https://idp.example/k', resource: 'https://r.example/mcp' },
  { introspectionUrl: 'https://idp.example/i', audience: 'a', clientId: 'c', clientSecret: 's' },
  { ...good, issuer: 'http://127.0.0.1:9' },
  { ...good, issuer: 'http://idp.cluster.local', insecureAllowHttp: true },
]
const broken: readonly (readonly [OidcConfig, RegExp])[] = [
  [{ audience: 'a' }, /^issuer: set issuer, jwksUrl or introspectionUrl/],
  [{ issuer: 'https://idp.example' }, /^audience: /],
  [{ issuer: 'https://idp.example', audience: '' }, /^audience: /],
  [{ ...good, issuer: 'http://idp.example' }, /^issuer: must be https/],
  [{ ...good, issuer: 'idp.example' }, /^issuer: must be an absolute URL/],
  [{ ...good, jwksUrl: 'file:///etc/passwd' }, /^jwksUrl: must be an http or https URL/],
  [
    { ...good, introspectionUrl: 'https://u:p@idp.example/i' },
    /^introspectionUrl: must not contain a user name or password/,
  ],
  [{ ...good, resource: '/mcp' }, /^resource: /],
  [{ ...good, clientSecret: 's' }, /^clientId: /],
  [{ ...good, jwksAuthTokenPath: '/gone' }, /^jwksAuthTokenPath: the secret file \/gone cannot be read/],
]

await t.test('oidcProblems: complete settings have no problems', async (t) => {
  for (const config of fine) t.same(oidcViolations(config), [])
  t.same(oidcViolations({ audience: 'a' }, { ownKeys: true }), [], 'local keys need no issuer')
})

for (const [config, expected] of broken) {
  await t.test(`oidcProblems: ${expected.source}`, async (t) => {
    t.match(oidcViolations(config), [expected])
    t.throws(() => makeAuthenticator({ type: 'oidc', oidc: config }), { code: 'INVALID_CONFIG' })
  })
}

await t.test('makeAuthenticator: reports all errors at once, by field, without values', async (t) => {
  t.throws(
    () =>
      makeAuthenticator({ type: 'oidc', oidc: { jwksUrl: 'http://secret.example', clientSecret: 'hush' } }),
    {
      code: 'INVALID_CONFIG',
      message:
        /^incomingAuth\.oidc\.jwksUrl: .*\nincomingAuth\.oidc\.audience: .*\nincomingAuth\.oidc\.clientId: /,
    },
  )
})
