/**
 * Tests the login of the proxy command in a real Chromium. The printed address leads through the provider to the
 * callback page. From then on every request carries a token that the target verifies.
 */
import { mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import t from 'tap'
import { startGatehouse } from '../helpers/gatehouse.ts'
import { startOidcProvider } from '../helpers/authserver/oidc-provider.ts'
import { json, rpc, startUpstream } from '../helpers/proxy/rig.ts'
import { missingBrowser, openBrowser } from '../helpers/authserver/signed-in-client.ts'

t.test(
  'login in a browser: the page confirms it, and the proxy has a token',
  { skip: missingBrowser, timeout: 90_000 },
  async (t) => {
    const target = await startUpstream((seen, res) => res.end(seen.headers.authorization ?? 'nobody'))
    t.teardown(() => target.close())
    const idp = await startOidcProvider({ resources: { [target.url]: {} } })
    t.teardown(() => idp.close())
    const proxy = startGatehouse(
      [
        'proxy',
        ...['--target-uri', target.url],
        ...['--remote-auth', '--remote-auth-issuer', idp.issuer],
        ...['--remote-auth-skip-browser', '--remote-auth-callback-port', '0', '--remote-auth-timeout', '60s'],
        ...['--remote-auth-resource', target.url],
        'browser',
      ],
      { ...process.env, GATEHOUSE_STATE_DIR: mkdtempSync(join(tmpdir(), 'gatehouse-login-')) },
    )
    t.teardown(() => proxy.interrupt())
    const [url = ''] = await proxy.waitFor(/http:\/\/127\.0\.0\.1:\d+\/auth\?\S+/)
    const browser = await openBrowser(t)
    const page = await browser.newPage()
    const response = await page.goto(url)
    t.match(page.url(), /^http:\/\/localhost:\d+\/callback/)
    t.equal(response?.status(), 200)
    t.match(await page.locator('body').textContent(), /close|done|signed in|complete/i)
    t.match(response?.headers()['content-security-policy'], /default-src 'none'/)
    mkdirSync('test/artefacts', { recursive: true })
    await page.screenshot({ path: 'test/artefacts/proxy-login-done.png' })
    const [, port] = await proxy.waitFor(/on port (\d+)/)
    const called = await fetch(`http://127.0.0.1:${port}/mcp`, {
      method: 'POST',
      headers: json,
      body: rpc(1),
    })
    const [scheme, token = ''] = (await called.text()).split(' ')
    t.equal(scheme, 'Bearer')
    const keys = createRemoteJWKSet(new URL(`${idp.issuer}/jwks`))
    t.match((await jwtVerify(token, keys, { issuer: idp.issuer, audience: target.url })).payload, {
      sub: 'alice',
    })
    t.notMatch(proxy.output(), token, 'no line of output contains the token')
  },
)
