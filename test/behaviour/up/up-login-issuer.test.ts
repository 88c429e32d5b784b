/** `gatehouse up --login` at another issuer, and the errors of its options. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ownerCaller } from '../../../runtime/incoming/identity.ts'
import { type Caller, makeCaller } from '../../../runtime/net/index.ts'
import { makeAuthorizer } from '../../../runtime/policy/index.ts'
import { thisHost } from '../../../runtime/toolkit/client-files/host.ts'
import { policiesFor } from '../../../runtime/tools/up/identity/allowed-accounts.ts'
import { loginSettings } from '../../../runtime/tools/up/identity/options.ts'
import { startOidcProvider } from '../../helpers/authserver/oidc-provider.ts'
import {
  connectSignedIn,
  missingBrowser,
  openBrowser,
  startLanding,
  storingProvider,
} from '../../helpers/authserver/signed-in-client.ts'
import { makeAuthority } from '../../helpers/certificates.ts'
import { makeUpHome } from '../../helpers/up/up-home.ts'

t.setTimeout(300_000)

t.test(
  'up --login ISSUER: only the allowed accounts use the servers',
  { skip: missingBrowser },
  async (t) => {
    const authority = await makeAuthority()
    const leaf = await authority.leaf()
    const up = await makeUpHome(t, ['cursor'])
    const idp = await startOidcProvider({
      clients: [
        {
          client_id: 'gatehouse',
          client_secret: 'planted-issuer-secret-planted-issuer-secret',
          redirect_uris: [`${up.url}/oauth/callback`],
        },
      ],
      claims: { email: 'alice@example.com', email_verified: true, name: 'Alice' },
      tls: leaf,
    })
    t.teardown(() => idp.close())
    const ca = join(up.home, 'ca.pem')
    writeFileSync(ca, authority.ca)
    up.env['NODE_EXTRA_CA_CERTS'] = ca
    up.env['GATEHOUSE_LOGIN_CLIENT_SECRET'] = 'planted-issuer-secret-planted-issuer-secret'
    const browser = await openBrowser(t)
    const landing = await startLanding(t)
    const start = (...allow: string[]) =>
      up.up(
        '--background',
        '--login',
        idp.issuer,
        '--login-client-id',
        'gatehouse',
        ...allow.flatMap((one) => ['--login-allow', one]),
      )
    const connect = () =>
      connectSignedIn({
        generation: 'sdk1',
        url: up.url,
        provider: storingProvider(landing),
        async login(start) {
          const context = await browser.newContext({ ignoreHTTPSErrors: true })
          const page = await context.newPage()
          const arrival = landing.next()
          await page.goto(start.href)
          t.match(await page.locator('main').textContent(), `You will sign in at ${new URL(idp.issuer).host}`)
          await page.getByRole('button', { name: 'Allow and continue' }).click()
          await page.waitForURL((url) => url.href.startsWith(landing.redirectUri))
          await context.close()
          return { titles: [], query: await arrival }
        },
      })

    const started = await start('bob@example.com', 'alice@example.com')
    t.match(started, { code: 0, stdout: `Other clients must sign in at ${idp.issuer} in a browser.` })
    t.match(await up.gatehouse('tools', 'list', 'gatehouse'), { code: 0, stdout: /files_start/ }, 'the owner')
    const alice = await connect()
    t.strictSame(await alice.listTools(), ['files_start'])
    t.match(await alice.call('files_start'), /files/)
    await alice.close()
    t.match(await up.gatehouse('up', 'user', 'add', 'x'), { code: 2, stderr: /start it with --login/ })
    t.equal((await up.gatehouse('down')).code, 0)

    t.equal((await start('@other.example')).code, 0)
    const denied = await connect()
    t.strictSame(await denied.listTools(), [])
    await t.rejects(denied.call('files_start'), 'an account that is not allowed')
    await denied.close()
  },
)

t.test('up --login ISSUER: the accounts that its policies permit', async (t) => {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const decide = async (allow: readonly string[], caller: Caller, upstream: object = {}) => {
    const accessToken = `${part({ alg: 'RS256' })}.${part(upstream)}.c2ln`
    const authorizer = makeAuthorizer(
      {
        policies: [...policiesFor(allow)],
        entitiesJson: '[]',
        groupEntityType: 'ServiceGroup',
        primaryUpstreamProvider: 'login',
      },
      { serverName: 'gatehouse', upstreamTokens: { get: async () => ({ accessToken }) } },
    )
    return authorizer.decide(await authorizer.subject(caller), { action: 'call_tool', id: 'files_read' })
  }
  const user = makeCaller({ issuer: 'http://127.0.0.1:4483', subject: 'u-1', claims: { sub: 'u-1' } })
  const alice = ['alice@example.com']
  t.equal(await decide(alice, ownerCaller()), 'permitted')
  t.equal(await decide(alice, user, { sub: 'x', email: 'alice@example.com' }), 'permitted')
  t.equal(await decide(['@example.com'], user, { sub: 'x', email: 'bob@example.com' }), 'permitted')
  t.equal(await decide(['*'], user, { sub: 'x' }), 'permitted')
  for (const claims of [
    { sub: 'owner' },
    { sub: 'owner', iss: 'gatehouse-local', issuer: 'gatehouse-local' },
    { sub: 'x', email: 'alice@example.com.evil.example' },
    { sub: 'x', email: ['alice@example.com'] },
    { sub: 'x' },
  ])
    t.not(await decide([...alice, '@b.example'], user, claims), 'permitted', JSON.stringify(claims))
})

t.test('up --login: errors in the options', async (t) => {
  const host = thisHost()
  const issuer = {
    login: 'https://id.example.com',
    loginClientId: 'x',
    loginAllow: ['a@b.example'],
    share: false,
  }
  const settings = (more: object) => loginSettings({ loginAllow: [], share: false, ...more }, host)
  t.equal(settings({}), undefined)
  t.match(settings({ login: true, publicUrl: 'https://tools.example.com/' }), {
    publicUrl: 'https://tools.example.com',
    issuer: undefined,
  })
  t.match(settings(issuer), { issuer: 'https://id.example.com', clientId: 'x', allow: ['a@b.example'] })
  const secret = join(t.testdir({ secret: 'planted\n' }), 'secret')
  t.match(settings({ ...issuer, loginClientSecretFile: secret }), {
    clientSecretFile: secret,
    clientSecret: undefined,
  })
  const errors: readonly (readonly [object, RegExp])[] = [
    [{ share: true }, /--share: requires --login, because/],
    [{ publicUrl: 'https://x.example' }, /--public-url: requires --login/],
    [{ login: true, publicUrl: 'http://x.example' }, /--public-url: must be an https URL/],
    [{ login: true, publicUrl: 'https://x.example/a' }, /--public-url: must be an https URL/],
    [{ login: true, publicUrl: 'https://u@x.example' }, /--public-url: must be an https URL/],
    [{ login: true, loginClientId: 'x' }, /--login-client-id: requires --login with an issuer URL/],
    [
      { login: true, loginClientSecretFile: 'x' },
      /--login-client-secret-file: requires --login with an issuer/,
    ],
    [{ loginAllow: ['*'] }, /--login-allow: requires --login with an issuer URL/],
    [{ ...issuer, login: 'http://id.example.com' }, /--login: the issuer must be an https URL/],
    [{ ...issuer, login: 'id' }, /--login: the issuer must be an https URL/],
    [{ ...issuer, loginClientId: undefined }, /--login-client-id: is required with an issuer URL/],
    [{ ...issuer, loginAllow: [] }, /--login-allow: is required with an issuer URL/],
    [{ ...issuer, loginAllow: ['x" || true'] }, /must be an email address, @ and a domain, or \*/],
    [{ ...issuer, loginAllow: ['*@example.com'] }, /must be an email address, @ and a domain, or \*/],
    [{ ...issuer, loginClientSecretFile: '/absent' }, /the secret file \/absent cannot be read/],
  ]
  for (const [options, message] of errors) t.throws(() => settings(options), { message }, String(message))
})
