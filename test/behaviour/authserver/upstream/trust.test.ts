/** Upstream providers with certificates of a private authority. Each provider has its own trust anchors. */
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  authorizeUrl,
  pkce,
  registerClient,
  startAuthServer,
} from '../../../helpers/authserver/authserver.ts'
import { Browser } from '../../../helpers/authserver/cookie-browser.ts'
import { type Authority, makeAuthority } from '../../../helpers/certificates.ts'

const realNow = Date.now
/** Advances the clock, because certificate files are reloaded only after some seconds. */
function moveClock(ms: number): void {
  Date.now = () => realNow() + ms
}
t.afterEach(() => {
  Date.now = realNow
})

interface Provider {
  readonly issuer: string
}

/** A provider that serves only its discovery document. */
async function startProvider(t: Test, authority: Authority): Promise<Provider> {
  const { cert, key } = await authority.leaf()
  const server = createServer({ cert, key }, (_req, res) => {
    res.writeHead(200, { 'Content-Type': 'application/json', Connection: 'close' })
    res.end(
      JSON.stringify({
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/jwks`,
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256'],
      }),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const address = server.address()
  const issuer = `https://localhost:${address !== null && typeof address === 'object' ? address.port : 0}`
  return { issuer }
}

function bundleFile(pem: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'upstream-ca-')), 'ca.crt')
  writeFileSync(path, pem)
  return path
}

/** Starts a server with one provider. Returns a function that reports whether a login redirects to the provider. */
async function setup(t: Test, provider: Provider, caBundlePath?: string) {
  const rig = await startAuthServer(t, {
    upstreams: ({ issuer }) => [
      {
        name: 'corp',
        type: 'oidc',
        issuerUrl: provider.issuer,
        clientId: 'gatehouse',
        redirectUri: `${issuer}/oauth/callback`,
        scopes: ['openid'],
        additionalAuthorizationParams: {},
        subjectClaim: 'sub',
        ...(caBundlePath === undefined ? {} : { caBundlePath }),
      },
    ],
  })
  const clientId = await registerClient(rig)
  return async (): Promise<boolean> => {
    const browser = new Browser()
    const start = authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge })
    const consent = await browser.open(start)
    const target = `${provider.issuer}/authorize`
    const shown = await browser.press(consent, 'approve', target).catch(() => undefined)
    return shown?.url.href.startsWith(target) === true
  }
}

await t.test('the bundle of an upstream is trusted for its endpoints', async (t) => {
  const [authority, other] = await Promise.all([makeAuthority(), makeAuthority()])
  const provider = await startProvider(t, authority)
  t.ok(await (await setup(t, provider, bundleFile(authority.ca)))())
  t.notOk(await (await setup(t, provider, bundleFile(other.ca)))(), 'another authority')
  t.notOk(await (await setup(t, provider))(), 'no bundle')
})

await t.test(
  'a new bundle applies without a restart, and an invalid one keeps the old one in use',
  async (t) => {
    const [before, after] = await Promise.all([makeAuthority(), makeAuthority()])
    const provider = await startProvider(t, before)
    const path = bundleFile('')
    writeFileSync(path, after.ca)
    const leaves = await setup(t, provider, path)
    t.notOk(await leaves(), 'the provider still has a certificate of the old authority')
    writeFileSync(path, 'broken')
    moveClock(60_000)
    t.notOk(await leaves())
    writeFileSync(path, before.ca + after.ca)
    moveClock(120_000)
    t.ok(await leaves())
  },
)

await t.test('an unusable bundle is a start-up error', async (t) => {
  const provider = await startProvider(t, await makeAuthority())
  for (const [path, message] of [
    ['/nowhere/ca.crt', /upstreamProviders\[0\]\.caBundlePath.*cannot be read/],
    [bundleFile('not a certificate'), /upstreamProviders\[0\]\.caBundlePath.*PEM/],
  ] as const)
    await t.rejects(setup(t, provider, path), { code: 'INVALID_CONFIG', message })
})
