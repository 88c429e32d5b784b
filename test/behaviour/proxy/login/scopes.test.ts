/** The proxy's own login at targets that name their scopes late, request a login repeatedly, or have a path. */
import t, { type Test } from 'tap'
import { resolveProxyConfig } from '../../../../runtime/config/index.ts'
import { parseTarget } from '../../../../runtime/config/proxy/target.ts'
import { silentLog } from '../../../../runtime/net/index.ts'
import { runProxy } from '../../../../runtime/proxy/index.ts'
import { startOidcProvider, walk } from '../../../helpers/authserver/oidc-provider.ts'
import { json, rpc, type Seen, startUpstream } from '../../../helpers/proxy/rig.ts'
import { proves } from '../../../helpers/proves.ts'

proves('1.does.detect-auth', '1.does.outgoing-auth')

type Verdict = { readonly status: 401 | 403; readonly challenge: string } | undefined

/** A provider, a target at `path` with its document, and a proxy whose login a browser completes at once. */
async function startLogin(t: Test, path: string, check: (seen: Seen) => Verdict) {
  const target = await startUpstream((seen, res) => {
    if (seen.url === `/.well-known/oauth-protected-resource${path}`) {
      res.setHeader('Content-Type', 'application/json')
      const resource = target.url + path
      res.end(
        JSON.stringify({ resource, authorization_servers: [idp.issuer], scopes_supported: ['profile'] }),
      )
      return
    }
    if (seen.url !== path || seen.method === 'GET') {
      res.writeHead(404).end()
      return
    }
    const verdict = check(seen)
    if (verdict) res.writeHead(verdict.status, { 'WWW-Authenticate': verdict.challenge }).end()
    else res.writeHead(200, { 'Content-Type': 'application/json', 'Mcp-Session-Id': 'probe' }).end('{}')
  })
  const idp = await startOidcProvider({ resources: { [target.url + path]: {} } })
  const logins: URL[] = []
  const config = resolveProxyConfig(
    'demo',
    {
      targetUri: target.url,
      remoteAuth: true,
      remoteAuthSkipBrowser: true,
      remoteAuthCallbackPort: '0',
      remoteAuthEphemeral: true,
    },
    {},
  )
  const withPath =
    path === '/mcp' ? config : { ...config, target: parseTarget(target.url + path, { withPath: true }) }
  const proxy = await runProxy(withPath, {
    log: silentLog,
    notify(line) {
      const url = /https?:\/\/\S+/.exec(line)?.[0]
      if (url === undefined) return
      logins.push(new URL(url))
      walk(url, 'http://localhost:').then(fetch).catch(t.threw)
    },
  })
  t.teardown(async () => {
    await proxy.close({ graceMs: 0 })
    await Promise.all([idp.close(), target.close()])
  })
  await proxy.ready
  return {
    target,
    logins,
    call: () => fetch(`${proxy.url}/mcp`, { method: 'POST', headers: json, body: rpc(1) }),
  }
}

await t.test('login: scopes that a target names only after an open handshake are requested', async (t) => {
  const { target, logins, call } = await startLogin(t, '/mcp', ({ headers, body, method }) =>
    headers.authorization === undefined && method === 'POST' && !body.includes('"initialize"')
      ? { status: 401, challenge: 'Bearer scope="read"' }
      : undefined,
  )
  t.equal(logins[0]?.searchParams.get('scope'), 'read offline_access')
  const asked = target.seen.filter(({ url, method }) => url === '/mcp' && method !== 'GET')
  t.match(asked, [{ body: /"initialize"/ }, { body: /"tools\/list"/ }, { method: 'DELETE' }])
  t.equal(asked[1]?.headers['mcp-session-id'], 'probe', 'requested in the opened session')
  t.equal(asked[2]?.headers['mcp-session-id'], 'probe', 'and the session is closed')
  t.equal((await call()).status, 200)
})

await t.test('login: a target that requests the same scopes again causes one more login', async (t) => {
  let scope = 'read'
  const { logins, call } = await startLogin(t, '/mcp', ({ headers }) =>
    headers.authorization === undefined
      ? { status: 401, challenge: 'Bearer scope="read"' }
      : { status: 403, challenge: `Bearer error="insufficient_scope", scope="${scope}"` },
  )
  t.equal((await call()).status, 403)
  t.equal(logins.length, 2)
  t.equal((await call()).status, 403)
  t.equal(logins.length, 2, 'not with every request')
  scope = 'write'
  t.equal((await call()).status, 403)
  t.equal(logins.length, 4, 'a new scope causes one more login')
  t.equal(logins[3]?.searchParams.get('scope'), 'read offline_access write')
})

await t.test('login: a target with a path is discovered and named with its path', async (t) => {
  const { target, logins, call } = await startLogin(t, '/servers/notes', ({ headers }) =>
    headers.authorization === undefined ? { status: 401, challenge: 'Bearer' } : undefined,
  )
  t.equal(logins[0]?.searchParams.get('resource'), `${target.url}/servers/notes`)
  t.same(
    target.seen.filter(({ url }) => url === '/mcp' || url === '/'),
    [],
  )
  t.equal((await call()).status, 200)
})
