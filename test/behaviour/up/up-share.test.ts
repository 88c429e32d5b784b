/** `gatehouse up --share`, and a tunnel to its address: login, resource and redirects follow the public URL. */
import { existsSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { createServer } from 'node:https'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { missingBrowser, openBrowser, startLanding } from '../../helpers/authserver/signed-in-client.ts'
import { makeAuthority } from '../../helpers/certificates.ts'
import { runGatehouse, startGatehouse } from '../../helpers/gatehouse.ts'
import { startLoopback } from '../../helpers/loopback.ts'
import { makeUpHome } from '../../helpers/up/up-home.ts'
import { addAuthenticator, connectClient, invite } from '../../helpers/up/up-login.ts'

t.setTimeout(300_000)

/** An https listener that forwards to a port, like the public end of a tunnel. */
async function startPublicEnd(t: Test) {
  const { cert, key } = await (await makeAuthority()).leaf()
  let target = 0
  const server = createServer({ cert, key }, (req, res) => {
    const sent = request(
      { host: '127.0.0.1', port: target, method: req.method, path: req.url, headers: req.headers },
      (answer) => {
        res.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(res)
      },
    )
    sent.once('error', () => res.destroy())
    req.pipe(sent)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const address = server.address()
  return {
    url: `https://localhost:${typeof address === 'object' && address ? address.port : 0}`,
    forwardTo(port: number): void {
      target = port
    },
  }
}

t.test('up --share: prints how a colleague connects', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  t.match(await up.up('--share'), { code: 2, stderr: /--share: requires --login/ })
  const { stdout, code } = await up.up('--background', '--login', '--share')
  t.equal(code, 0)
  t.match(stdout, /^Share with a colleague$/m)
  t.match(stdout, /1 tool of files/)
  t.match(stdout, /^ {7}ssh -N -L (\d+):127\.0\.0\.1:\1 \S+@\S+$/m)
  t.match(stdout, `claude mcp add --transport http gatehouse ${up.url}`)
  t.match(stdout, 'gatehouse up user add NAME')
  t.match((await up.gatehouse('status')).stdout, /^Share with a colleague$/m)
})

t.test('up --share: a colleague signs in through a tunnel', { skip: missingBrowser }, async (t) => {
  const outside = await startPublicEnd(t)
  const up = await makeUpHome(t, ['cursor'])
  const started = await up.up('--background', '--login', '--share', '--public-url', outside.url)
  t.equal(started.code, 0, started.stderr)
  const local = `http://127.0.0.1:${up.port}`
  const command = new RegExp(`gatehouse proxy tunnel ${local} gatehouse --target-requires-login`)
  t.match(started.stdout, command)
  t.match(started.stdout, `One address: ${outside.url}/mcp`)

  const portFile = join(up.home, 'port')
  const script = `require('fs').writeFileSync(${JSON.stringify(portFile)}, process.argv[1]); console.log(${JSON.stringify(outside.url)}); setInterval(() => {}, 1000)`
  const provider = { command: [process.execPath, '-e', script, '{port}'] }
  const tunnel = startGatehouse(
    ['proxy', 'tunnel', local, 'gatehouse', '--target-requires-login', '--tunnel-provider', 'exec'].concat(
      '--provider-args',
      JSON.stringify(provider),
    ),
    up.env,
  )
  t.teardown(() => tunnel.interrupt())
  await tunnel.waitFor(/^https:\/\/localhost:\d+$/m)
  t.ok(existsSync(portFile))
  outside.forwardTo(Number(readFileSync(portFile, 'utf8')))

  const before = process.env['NODE_TLS_REJECT_UNAUTHORIZED']
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  t.teardown(() => {
    if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
    else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before
  })
  const url = `${outside.url}/mcp`
  const refused = await fetch(url, {
    method: 'POST',
    body: '{}',
    headers: { 'content-type': 'application/json' },
  })
  t.equal(refused.status, 401)
  t.match(refused.headers.get('www-authenticate'), `resource_metadata="${outside.url}/.well-known/`)
  t.equal((await fetch(`${outside.url}/status`)).status, 401)
  const document = (await (
    await fetch(`${outside.url}/.well-known/oauth-protected-resource/mcp`)
  ).json()) as object
  t.match(document, { resource: url, authorization_servers: [outside.url] })
  const forged = await fetch(`${outside.url}/login/enrol`, {
    method: 'POST',
    headers: { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
  })
  t.equal(forged.status, 403, 'a page of another site')

  const browser = await openBrowser(t)
  const landing = await startLanding(t)
  const page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage()
  await addAuthenticator(page)
  const link = await invite(up, 'bob')
  t.ok(link.startsWith(`${outside.url}/login/enrol?key=`))
  await page.goto(link)
  await page.getByRole('button', { name: 'Create a passkey' }).click()
  await page.getByRole('heading', { name: 'You can sign in now' }).waitFor()
  const cookies = async () => (await page.context().cookies()).filter(({ name }) => name.includes('gh-'))
  const bob = await connectClient(
    { up, landing },
    page,
    (page) => page.getByRole('button', { name: 'Sign in with a passkey' }).click(),
    { url },
  )
  t.strictSame(await bob.listTools(), ['files_start'])
  t.match(await bob.call('files_start'), /files/)
  t.ok((await cookies()).every(({ secure, httpOnly }) => secure && httpOnly))
  await bob.close()
  t.match(await up.gatehouse('tools', 'list', 'gatehouse'), { code: 0, stdout: /files_start/ }, 'the owner')
})

t.test('proxy tunnel --target-requires-login: only a target that requires a login is accepted', async (t) => {
  const open = await startLoopback(() => ({ body: {} }))
  const bare = await startLoopback(() => ({ status: 401, body: {} }))
  t.teardown(() => Promise.all([open.close(), bare.close()]))
  const run = (target: string, ...more: string[]) =>
    runGatehouse(
      ['proxy', 'tunnel', target, 'x', '--target-requires-login', '--tunnel-provider', 'exec'].concat(
        ['--provider-args', '{"command":["node","{port}"]}'],
        more,
      ),
    )
  t.match(await run(open.url), {
    code: 2,
    stderr: /must respond with 401 and a login challenge .*found: status 200/,
  })
  t.match(await run(bare.url), { code: 2, stderr: /found: status 401/ })
  t.match(await run('http://127.0.0.1:1'), { code: 2, stderr: /connection refused/i })
  t.match(await run(open.url, '--insecure-unauthenticated'), { code: 2, stderr: /cannot be combined/ })
})
