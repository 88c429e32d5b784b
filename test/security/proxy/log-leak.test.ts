/** No output of the proxy contains a secret, at debug level and with every possible failure. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { startGatehouse } from '../../helpers/gatehouse.ts'
import { startLoopback } from '../../helpers/loopback.ts'
import { json, rpc, startUpstream } from '../../helpers/proxy/rig.ts'

const mark = 's3cr3t'
const started = /^Transparent proxy started .* on port (\d+) /m

await t.test('log: contains no credential, code, session id, query or body, whatever happens', async (t) => {
  const target = await startUpstream((seen, res) => {
    if (seen.url.startsWith('/cut')) res.destroy()
    else if (seen.url.startsWith('/refuse'))
      res.writeHead(401, { 'WWW-Authenticate': `Bearer realm="${mark}"` }).end(mark)
    else {
      res.writeHead(200, {
        'Mcp-Session-Id': `${mark}-session`,
        'Set-Cookie': `c=${mark}`,
        'Content-Type': 'application/json',
      })
      res.end(`{"jsonrpc":"2.0","id":1,"result":{"token":"${mark}"}}`)
    }
  })
  const sts = await startLoopback(({ form }) =>
    form.get('subject_token') === `${mark}-refused`
      ? { status: 400, body: { error: 'invalid_grant', error_description: mark } }
      : { body: { access_token: `${mark}-exchanged`, token_type: 'Bearer', expires_in: 60 } },
  )
  const idp = await startLoopback(({ form }) => ({
    body: {
      active: !String(form.get('token')).includes('unknown'),
      sub: `${mark}-user`,
      aud: 'me',
      exp: 4_102_444_800,
      secret: mark,
    },
  }))
  t.teardown(() => Promise.all([target.close(), sts.close(), idp.close()]))
  const file = join(mkdtempSync(join(tmpdir(), 'leak-')), 'secret')
  writeFileSync(file, `${mark}-file`)
  const run = startGatehouse(
    [
      'proxy',
      '--debug',
      `--target-uri=${target.url}/?key=${mark}`,
      `--remote-forward-headers=X-Key=${mark}`,
      '--remote-forward-headers-secret=X-Named=named',
      `--oidc-introspection-url=${idp.url}/i`,
      '--oidc-audience=me',
      '--oidc-client-id=c',
      `--oidc-client-secret=${mark}`,
      `--token-exchange-url=${sts.url}/t`,
      '--token-exchange-client-id=c',
      `--token-exchange-client-secret-file=${file}`,
      'demo',
    ],
    { ...process.env, GATEHOUSE_SECRET_NAMED: mark },
  )
  const [, port] = await run.waitFor(started)
  const call = async (path: string, token: string): Promise<void> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}?code=${mark}`, {
      method: 'POST',
      headers: {
        ...json,
        authorization: `Bearer ${token}`,
        cookie: `c=${mark}`,
        'mcp-session-id': `${mark}-session`,
        'x-api-key': mark,
      },
      body: rpc(1, 'initialize', { secret: mark }),
    })
    await response.text()
  }
  for (const path of ['/mcp', '/cut', '/refuse']) {
    for (const token of [`${mark}-good`, `${mark}-refused`, `${mark}-unknown`]) await call(path, token)
  }
  t.equal(await run.interrupt(), 0)
  t.match(run.output(), /"level":"debug"/)
  t.match(run.output(), /"level":"warn"/)
  const leaks = run
    .output()
    .split('\n')
    .filter((line) => line.includes(mark))
  t.same(leaks, [])
})

await t.test('log: configuration errors do not repeat the values', async (t) => {
  const args = [
    'proxy',
    '--target-uri',
    `http://u:${mark}@127.0.0.1/p?k=${mark}`,
    '--remote-forward-headers',
    mark,
    '--remote-auth-bearer-token',
    `${mark} ${mark}`,
    'demo',
  ]
  const run = startGatehouse(args)
  await t.rejects(run.waitFor(started))
  t.match(run.output(), /Error: /)
  t.notMatch(run.output(), mark)
})
