/** Identity providers are recognized by their issuer, and look-alikes are not. */
import t from 'tap'
import { profileOf, profiles } from '../../../runtime/tools/doctor/profiles/index.ts'
import { codes } from '../../../runtime/tools/doctor/report/codes.ts'

const issuers: Readonly<Record<string, string>> = {
  'https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0': 'entra',
  'https://sts.windows.net/11111111-2222-3333-4444-555555555555/': 'entra',
  'https://dev-1.okta.com/oauth2/default': 'okta',
  'https://team.eu.auth0.com/': 'auth0',
  'https://accounts.google.com': 'google',
  'https://sso.example.com/realms/team': 'keycloak',
  'https://sso.example.com/auth/realms/team/': 'keycloak',
  'https://github.com/login/oauth': 'github',
  'https://gitlab.com': 'gitlab',
  'https://gitlab.example.com': 'gitlab',
  'https://auth.atlassian.com': 'atlassian',
  'https://slack.com': 'slack',
  'https://login.salesforce.com': 'salesforce',
  'https://team.my.salesforce.com': 'salesforce',
  'https://ab1.eu-west-1.snowflakecomputing.com': 'snowflake',
  'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_Ab1': 'cognito',
  'https://auth.pingone.eu/env/as': 'ping',
  'https://team-1.zitadel.cloud': 'zitadel',
  'https://sso.example.com/application/o/mcp/': 'authentik',
}

t.test('profiles: each is recognized by its issuer', async (t) => {
  for (const [issuer, id] of Object.entries(issuers)) t.equal(profileOf(issuer)?.id, id, issuer)
  t.same(new Set(Object.values(issuers)), new Set(profiles.map(({ id }) => id)), 'no profile is left out')
})

t.test('profiles: look-alike issuers match no profile', async (t) => {
  for (const issuer of [
    'https://okta.com.example.net',
    'https://login.microsoftonline.com.example.net/tenant/v2.0',
    'https://notslack.com',
    'https://example.com/slack.com',
    'https://accounts.google.com.example.net',
    'https://idp.example.com/',
    'not a url',
    `https://sso.example.com/${'a'.repeat(5000)}/realms/x`,
  ])
    t.equal(profileOf(issuer), undefined, issuer.slice(0, 60))
})

t.test('profiles: ids are unique, fixes and errors have existing codes, and links use https', async (t) => {
  t.equal(new Set(profiles.map(({ id }) => id)).size, profiles.length)
  for (const { id, fixes, errors = [], docs, quirks } of profiles) {
    for (const code of [...Object.keys(fixes), ...errors.map((error) => error.code)])
      t.ok(code in codes, `${id}: ${code}`)
    t.match(docs, /^https:\/\//)
    t.ok(quirks.length > 0, id)
  }
})
