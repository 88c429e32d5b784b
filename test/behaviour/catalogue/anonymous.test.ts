/** A catalogue without authentication: the registry API, public servers only, pages, caching and CORS. */
import t from 'tap'
import { publishedErrors } from '../../helpers/registry/published-schemas.ts'
import {
  catalogueConfig,
  namesIn,
  privateServer,
  publicServer,
  startTestCatalogue,
} from '../../helpers/registry/catalogue.ts'

const pathOf = (name: string): string => `/v0.1/servers/${encodeURIComponent(name)}/versions`

await t.test('the list, the versions and a version have the published format', async (t) => {
  const { url } = await startTestCatalogue(t)
  const read = async (path: string): Promise<unknown> => (await fetch(url + path)).json()
  const entry = {
    server: {
      $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
      name: publicServer.name,
      title: publicServer.title,
      description: publicServer.description,
      version: publicServer.version,
      remotes: [{ type: 'streamable-http', url: publicServer.url }],
    },
    _meta: {
      'io.modelcontextprotocol.registry/official': {
        status: 'active',
        publishedAt: publicServer.publishedAt,
        isLatest: true,
      },
    },
  }
  for (const path of ['/v0.1/servers', pathOf(publicServer.name)]) {
    const list = await read(path)
    t.strictSame(list, { servers: [entry], metadata: { count: 1 } }, path)
    t.equal(publishedErrors('ServerList', list), '')
  }
  for (const version of ['latest', publicServer.version]) {
    const one = await read(`${pathOf(publicServer.name)}/${version}`)
    t.strictSame(one, entry, version)
    t.equal(publishedErrors('ServerResponse', one), '')
  }
})

await t.test('a private server, an unknown name and any other request get the same response', async (t) => {
  const { url } = await startTestCatalogue(t)
  const answer = async (path: string, method = 'GET') => {
    const response = await fetch(url + path, { method })
    const { date: _, ...headers } = Object.fromEntries(response.headers)
    return { status: response.status, headers, body: method === 'HEAD' ? '' : await response.text() }
  }
  const unknown = await answer(`${pathOf('com.example/unknown')}/latest`)
  t.match(unknown, { status: 404, body: '{"error":"Server not found"}' })
  const paths = [
    `${pathOf(privateServer.name)}/latest`,
    pathOf(privateServer.name),
    `${pathOf(privateServer.name)}/${privateServer.version}`,
    `${pathOf(publicServer.name)}/9.9.9`,
    '/v0.1/servers/com.example/open/versions/latest',
    '/v0.1/servers/%zz/versions/latest',
    '/v0.1/servers/__proto__/versions/latest',
    '/v0.1/servers/',
    '/v0/servers',
    '/v0.1/publish',
    '/',
  ]
  for (const path of paths) t.strictSame(await answer(path), unknown, path)
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
    for (const path of [`${pathOf(publicServer.name)}/latest`, '/v0.1/servers?limit=0'])
      t.strictSame(await answer(path, method), unknown, `${method} ${path}`)
  t.strictSame(await namesIn(url, '?search=team'), [])
})

await t.test('lists are paged, and invalid parameters are rejected', async (t) => {
  const names = Array.from({ length: 45 }, (_, index) => `com.example/s${String(index).padStart(2, '0')}`)
  const servers = names.toReversed().map((name) => ({ ...publicServer, name }))
  const { url } = await startTestCatalogue(t, { servers })
  t.strictSame(await namesIn(url), names.slice(0, 30), 'sorted, 30 by default')
  t.equal((await namesIn(url, '?limit=100')).length, 45)
  const seen: string[] = []
  let cursor: string | undefined = ''
  while (cursor !== undefined) {
    const response = await fetch(`${url}/v0.1/servers?limit=20&cursor=${cursor}`)
    const page = (await response.json()) as {
      servers: { server: { name: string } }[]
      metadata: { nextCursor?: string }
    }
    t.equal(publishedErrors('ServerList', page), '')
    seen.push(...page.servers.map(({ server }) => server.name))
    cursor = page.metadata.nextCursor
  }
  t.strictSame(seen, names)
  t.strictSame(await namesIn(url, '?search=S07'), ['com.example/s07'])
  t.equal((await namesIn(url, `?version=${publicServer.version}&limit=100`)).length, 45)
  t.equal((await namesIn(url, '?version=latest&limit=100')).length, 45)
  t.strictSame(await namesIn(url, '?version=2.0.0'), [])
  t.equal((await namesIn(url, '?updated_since=2030-01-01T00:00:00Z&include_deleted=true')).length, 30)
  const rows: readonly (readonly [string, RegExp])[] = [
    ['limit=0', /Invalid limit: must be a whole number from 1 to 100/],
    ['limit=101', /Invalid limit/],
    ['limit=x', /Invalid limit/],
    ['limit=1e1', /Invalid limit/],
    ['limit=0x10', /Invalid limit/],
    ['cursor=%25', /Invalid cursor/],
    [`search=${'x'.repeat(513)}`, /Invalid search: must have at most 512 characters/],
  ]
  for (const [query, message] of rows) {
    const response = await fetch(`${url}/v0.1/servers?${query}`)
    t.equal(response.status, 400, query)
    t.match(await response.text(), message)
  }
})

await t.test('every web page may read the catalogue, and clients can revalidate', async (t) => {
  const { url } = await startTestCatalogue(t)
  const first = await fetch(`${url}/v0.1/servers`, { headers: { origin: 'https://page.example' } })
  await first.arrayBuffer()
  t.match(Object.fromEntries(first.headers), {
    'access-control-allow-origin': '*',
    'cache-control': 'public, max-age=300',
  })
  const etag = first.headers.get('etag') ?? ''
  const again = await fetch(`${url}/v0.1/servers`, { headers: { 'if-none-match': etag } })
  t.equal(again.status, 304)
  const preflight = await fetch(`${url}/v0.1/servers`, { method: 'OPTIONS' })
  t.equal(preflight.status, 204)
  t.equal(preflight.headers.get('access-control-allow-origin'), '*')
  for (const probe of ['/health', '/readyz']) t.equal((await fetch(url + probe)).status, 200)
})

await t.test('a reload replaces the servers; an invalid file changes nothing', async (t) => {
  const catalogue = await startTestCatalogue(t)
  catalogue.reload(catalogueConfig({ servers: [{ ...publicServer, name: 'com.example/new' }] }))
  t.strictSame(await namesIn(catalogue.url), ['com.example/new'])
  const authz = { type: 'cedar', policies: ['permit(nonsense'] }
  const broken = catalogueConfig({ incomingAuth: { type: 'local', authz } })
  t.throws(() => catalogue.reload(broken), { code: 'INVALID_CONFIG' })
  t.strictSame(await namesIn(catalogue.url), ['com.example/new'])
})

await t.test('an invalid file is rejected', (t) => {
  const rows: readonly (readonly [object, RegExp])[] = [
    [{ servers: [publicServer, publicServer] }, /servers/],
    [{ servers: [{ ...publicServer, version: '^1' }] }, /servers\[0\]\.version.*1\.0\.3/],
    [{ servers: [{ ...publicServer, publishedAt: 'today' }] }, /servers\[0\]\.publishedAt/],
    [{ servers: [{ ...publicServer, url: 'ftp://x' }] }, /servers\[0\]\.url/],
    [{ servers: [{ ...publicServer, backend: 'x' }] }, /servers\[0\]/],
    [
      { servers: Array.from({ length: 501 }, (_, index) => ({ ...publicServer, name: `a/${index}` })) },
      /servers/,
    ],
    [{ name: '' }, /name/],
    [
      {
        incomingAuth: {
          type: 'local',
          authz: { type: 'httpv1', httpv1: { http: { url: 'https://p.example' }, claimMapping: 'standard' } },
        },
      },
      /authz\.type.*a catalogue supports only authz of type cedar or none/,
    ],
  ]
  for (const [more, message] of rows) t.throws(() => catalogueConfig(more), { message }, String(message))
  t.end()
})
