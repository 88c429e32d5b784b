/** The protected-resource document over a real socket: paths, members, CORS, methods. */
import { createServer } from 'node:http'
import t from 'tap'
import { protectedResourceDocument, protectedResourceRoute } from '../../../runtime/incoming/document.ts'
import { Exchange } from '../../../runtime/net/index.ts'
import { proves } from '../../helpers/proves.ts'

proves('1.endpoint.protected-resource', '1.flag.oidc-scopes.default', '3.config.incomingAuth.oidc.resource')

const wellKnown = '/.well-known/oauth-protected-resource'
const config = { issuer: 'https://idp.example', resource: 'https://mcp.example/mcp', audience: 'a' }

const route = protectedResourceRoute(config)
const server = createServer((req, res) => {
  const exchange = new Exchange(req, res)
  const stage = route(exchange)
  if (stage) void stage(exchange)
  else res.writeHead(418).end()
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
t.teardown(() => server.close())
const address = server.address()
const base = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`

await t.test('document: the same at the root form and the path form, and at no other path', async (t) => {
  for (const path of [wellKnown, `${wellKnown}/mcp`, `${wellKnown}/mcp?x=1`]) {
    const response = await fetch(base + path)
    t.equal(response.status, 200, path)
    t.equal(response.headers.get('cache-control'), 'public, max-age=3600')
    t.same(await response.json(), {
      resource: 'https://mcp.example/mcp',
      authorization_servers: ['https://idp.example'],
      bearer_methods_supported: ['header'],
      scopes_supported: ['openid'],
    })
  }
  for (const path of [`${wellKnown}/`, `${wellKnown}/other`, `${wellKnown}x`, '/mcp'])
    t.equal((await fetch(base + path)).status, 418, path)
})

await t.test('document: readable by every origin', async (t) => {
  const response = await fetch(base + wellKnown, { headers: { origin: 'https://app.example' } })
  t.equal(response.headers.get('access-control-allow-origin'), 'https://app.example')
  t.equal(response.headers.get('vary'), 'Origin')
  t.equal((await fetch(base + wellKnown)).headers.get('access-control-allow-origin'), '*')
  const preflight = await fetch(base + wellKnown, {
    method: 'OPTIONS',
    headers: { origin: 'https://app.example' },
  })
  t.equal(preflight.status, 204)
  t.equal(preflight.headers.get('access-control-allow-methods'), 'GET, OPTIONS')
  t.match(preflight.headers.get('access-control-allow-headers'), /mcp-protocol-version/)
})

await t.test('document: other methods are rejected, and HEAD is GET without a body', async (t) => {
  const post = await fetch(base + wellKnown, { method: 'POST', body: 'x' })
  t.equal(post.status, 405)
  t.equal(post.headers.get('allow'), 'GET, HEAD, OPTIONS')
  const head = await fetch(base + wellKnown, { method: 'HEAD' })
  t.equal(head.status, 200)
  t.equal(await head.text(), '')
})

await t.test(
  'document: unknown parts are omitted, and an audience that is a URL replaces an absent resource',
  async (t) => {
    t.equal(protectedResourceDocument({ audience: 'api' }), undefined)
    t.same(protectedResourceDocument({ audience: 'https://a.example/x', scopes: ['s'] }), {
      resource: 'https://a.example/x',
      bearer_methods_supported: ['header'],
      scopes_supported: ['s'],
    })
  },
)
