/** The server card and the AI catalog of a published virtual server. */
import t from 'tap'
import { allVersions } from '../../../runtime/mcp/index.ts'
import { publishedErrors } from '../../helpers/registry/published-schemas.ts'
import { startTestVmcp, vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

const url = 'https://tools.example.com/mcp'
const publish = {
  name: 'com.example.team/tools',
  title: 'Team tools',
  description: 'Tickets and documents',
  public: true,
  url,
}
const backends = { 'secret-backend': 'http://127.0.0.1:9/internal' }
/** No issuer is contacted, because no request carries a token. */
const incomingAuth = {
  type: 'oidc',
  oidc: { issuer: 'https://login.example.com', clientId: 'gateway', audience: url, resource: url },
}
const paths = ['/mcp/server-card', '/.well-known/ai-catalog.json']

t.test('a public server describes itself without authentication, in the published format', async (t) => {
  const vmcp = await startTestVmcp(backends, { publish, incomingAuth }, { version: '1.2.3' })
  t.teardown(() => vmcp.close())
  const cardResponse = await fetch(`${vmcp.url}/server-card`)
  const text = await cardResponse.text()
  const card = JSON.parse(text) as Record<string, unknown>
  t.equal(cardResponse.status, 200)
  t.equal(cardResponse.headers.get('content-type'), 'application/mcp-server-card+json')
  t.equal(publishedErrors('ServerCard', card), '')
  t.strictSame(card, {
    $schema: 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json',
    name: publish.name,
    version: '1.2.3',
    title: publish.title,
    description: publish.description,
    remotes: [{ type: 'streamable-http', url, supportedProtocolVersions: allVersions }],
  })
  t.notMatch(text, /secret-backend|127\.0\.0\.1|internal|login\.example/)

  const catalog = await fetch(`${vmcp.origin}/.well-known/ai-catalog.json`)
  t.equal(catalog.headers.get('content-type'), 'application/ai-catalog+json')
  t.strictSame(await catalog.json(), {
    specVersion: '1.0',
    entries: [
      {
        identifier: 'urn:air:team.example.com:mcp:tools',
        type: 'application/mcp-server-card+json',
        url: `${url}/server-card`,
      },
    ],
  })
  t.equal((await fetch(vmcp.url, { method: 'POST' })).status, 415)
  const call = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }
  t.equal((await fetch(vmcp.url, call)).status, 401, 'calls still require a token')
})

t.test('without an address in the publication, the documents contain the listening address', async (t) => {
  const { url: _, title: __, ...own } = publish
  const vmcp = await startTestVmcp({}, { publish: own })
  t.teardown(() => vmcp.close())
  const card = (await (await fetch(`${vmcp.url}/server-card`)).json()) as { remotes: { url: string }[] }
  t.equal(card.remotes[0]?.url, vmcp.url)
  t.equal(publishedErrors('ServerCard', card), '')
})

t.test('any web page can read the documents, and clients can revalidate them', async (t) => {
  const vmcp = await startTestVmcp({}, { publish })
  t.teardown(() => vmcp.close())
  for (const path of paths) {
    const first = await fetch(vmcp.origin + path, { headers: { origin: 'https://page.example' } })
    await first.arrayBuffer()
    const etag = first.headers.get('etag') ?? ''
    t.match(etag, /^"[\w-]{43}"$/)
    t.match(Object.fromEntries(first.headers), {
      'access-control-allow-origin': '*',
      'access-control-expose-headers': 'ETag',
      'cache-control': 'public, max-age=3600',
      'x-content-type-options': 'nosniff',
    })
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const again = await fetch(vmcp.origin + path, { headers: { 'if-none-match': known } })
      t.equal(again.status, 304, known)
      t.equal(await again.text(), '')
      t.equal(again.headers.get('etag'), etag)
    }
    const changed = await fetch(vmcp.origin + path, { headers: { 'if-none-match': '"other"' } })
    t.equal(changed.status, 200)
    const head = await fetch(vmcp.origin + path, { method: 'HEAD' })
    t.equal(head.status, 200)
    t.equal(await head.text(), '')
    const preflight = await fetch(vmcp.origin + path, { method: 'OPTIONS' })
    t.equal(preflight.status, 204)
    t.equal(preflight.headers.get('access-control-allow-headers'), 'Content-Type, If-None-Match')
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const refused = await fetch(vmcp.origin + path, { method })
      t.equal(refused.status, 405, method)
      t.equal(refused.headers.get('allow'), 'GET, HEAD')
    }
  }
})

t.test('a server that is not public responds as if the paths did not exist', async (t) => {
  for (const own of [undefined, { ...publish, public: false }]) {
    const vmcp = await startTestVmcp({}, own ? { publish: own } : {})
    const unknown = await fetch(`${vmcp.origin}/mcp/other`)
    const body = await unknown.text()
    for (const path of paths) {
      const response = await fetch(vmcp.origin + path)
      t.equal(response.status, 404)
      t.equal(await response.text(), body)
    }
    await vmcp.close()
  }
})

t.test('a reload publishes, changes and withdraws the documents', async (t) => {
  const vmcp = await startTestVmcp({})
  t.teardown(() => vmcp.close())
  const card = async () => (await fetch(`${vmcp.url}/server-card`)).text()
  t.match(await card(), 'NOT_FOUND')
  vmcp.reload(vmcpConfig({}, { publish }))
  t.match(await card(), publish.description)
  vmcp.reload(vmcpConfig({}, { publish: { ...publish, description: 'Something else' } }))
  t.match(await card(), 'Something else')
  vmcp.reload(vmcpConfig({}))
  t.match(await card(), 'NOT_FOUND')
})

t.test('an overloaded server rejects requests for the documents', async (t) => {
  // The first request makes the turn of the event loop long; the others arrive in the same turn.
  const vmcp = await startTestVmcp({}, { publish }, { load: { alwaysAdmitted: 0, longTurnMs: -1 } })
  t.teardown(() => vmcp.close())
  const statuses = new Set<number>()
  for (let round = 0; round < 20 && !statuses.has(503); round++) {
    const responses = await Promise.all(Array.from({ length: 50 }, () => fetch(`${vmcp.url}/server-card`)))
    for (const response of responses) {
      statuses.add(response.status)
      await response.arrayBuffer()
    }
  }
  t.ok(statuses.has(503))
})

t.test('an invalid publication is rejected with the name of its field', (t) => {
  const rows: readonly (readonly [object, RegExp])[] = [
    [{ name: 'tools' }, /publish\.name.*reversed domain name/],
    [{ name: `${'a'.repeat(200)}/b` }, /publish\.name/],
    [{ description: '' }, /publish\.description/],
    [{ description: 'x'.repeat(101) }, /publish\.description/],
    [{ title: 'x'.repeat(101) }, /publish\.title/],
    [{ url: 'ftp://x' }, /publish\.url/],
    [{ public: 'yes' }, /publish\.public/],
    [{ version: '1' }, /publish/],
  ]
  for (const [change, message] of rows)
    t.throws(
      () => vmcpConfig({}, { publish: { ...publish, ...change } }),
      { message },
      JSON.stringify(change),
    )
  t.end()
})
