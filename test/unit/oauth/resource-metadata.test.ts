/** RFC 9728 discovery: the locations of documents, and which ones are valid. */
import t, { type Test } from 'tap'
import { makeFetch } from '../../../runtime/net/index.ts'
import { canonicalResource, discoverResource, resourceMetadataUrl } from '../../../runtime/oauth/index.ts'
import { resourceCovers } from '../../../runtime/oauth/urls.ts'
import { type PeerResponse, startLoopback } from '../../helpers/loopback.ts'

const fetch = makeFetch()
t.teardown(() => fetch.close())

async function serve(t: Test, documents: Record<string, object>) {
  const server = await startLoopback(({ path }): PeerResponse => {
    const found = documents[path]
    if (found === undefined) return { status: 404, body: 'no' }
    const response: PeerResponse = JSON.parse(JSON.stringify(found).replaceAll('$', server.url))
    return response
  })
  t.teardown(() => server.close())
  return server
}

const wellKnown = '/.well-known/oauth-protected-resource'

await t.test('discoverResource: path form before root form', async (t) => {
  const server = await serve(t, {
    [`${wellKnown}/mcp`]: { body: { resource: '$/mcp', authorization_servers: ['https://a.example'] } },
    [wellKnown]: { body: { resource: '$', authorization_servers: ['https://b.example'] } },
  })
  const found = await discoverResource(`${server.url}/mcp`, { fetch })
  t.same(found?.authorizationServers, ['https://a.example'])
  t.equal(server.seen.length, 1, 'the root form was not requested')
})

await t.test('discoverResource: the URL of the challenge is read first, at any location', async (t) => {
  const server = await serve(t, {
    '/custom': { body: { resource: '$/mcp', scopes_supported: ['a'] } },
    [wellKnown]: { body: { resource: '$' } },
  })
  const found = await discoverResource(`${server.url}/mcp`, { fetch, metadataUrl: `${server.url}/custom` })
  t.same(found?.scopesSupported, ['a'])
  t.same(found?.authorizationServers, [])
})

await t.test('discoverResource: root form, if the path form is absent or a web page', async (t) => {
  const server = await serve(t, {
    [`${wellKnown}/mcp`]: { headers: { 'content-type': 'text/html' }, body: '<p>' },
    [wellKnown]: { body: { resource: '$' } },
  })
  t.equal((await discoverResource(`${server.url}/mcp`, { fetch }))?.resource, server.url)
})

await t.test('discoverResource: JSON is accepted with any content type', async (t) => {
  for (const type of ['text/plain', 'application/octet-stream', 'text/html', '']) {
    const server = await serve(t, {
      [`${wellKnown}/mcp`]: { headers: { 'content-type': type }, body: { resource: '$/mcp' } },
    })
    t.equal((await discoverResource(`${server.url}/mcp`, { fetch }))?.resource, `${server.url}/mcp`, type)
  }
})

await t.test(
  'discoverResource: skipped documents are reported with a reason, except absent ones',
  async (t) => {
    const server = await serve(t, {
      [`${wellKnown}/mcp`]: { headers: { 'content-type': 'text/html' }, body: '<p>' },
      [wellKnown]: { status: 403, body: 'no' },
    })
    const skipped: string[] = []
    const onSkipped = (url: string, reason: string): void => void skipped.push(`${url} ${reason}`)
    t.equal(await discoverResource(`${server.url}/mcp`, { fetch, onSkipped }), undefined)
    t.match(skipped, [
      /mcp .*is not a JSON object \(content type: text\/html\)/,
      /protected-resource .*status 403/,
    ])
    const none = await serve(t, {})
    await discoverResource(`${none.url}/mcp`, { fetch, onSkipped: () => t.fail('nothing is there') })
  },
)

await t.test(
  'discoverResource: returns undefined without documents, and throws for an unreachable host',
  async (t) => {
    const server = await serve(t, {})
    t.equal(await discoverResource(`${server.url}/mcp`, { fetch }), undefined)
    await server.close()
    await t.rejects(discoverResource(`${server.url}/mcp`, { fetch }), {
      name: 'OAuthClientError',
      kind: 'unreachable',
    })
  },
)

await t.test('discoverResource: a document for another resource is rejected, not skipped', async (t) => {
  for (const resource of ['https://other.example/mcp', '$/mcp2', '$/other', 'nonsense']) {
    const server = await serve(t, {
      [`${wellKnown}/mcp`]: { body: { resource } },
      [wellKnown]: { body: { resource: '$' } },
    })
    await t.rejects(discoverResource(`${server.url}/mcp`, { fetch }), {
      name: 'OAuthClientError',
      kind: 'protocol',
    })
  }
})

await t.test('resourceCovers: same origin and complete path segments', async (t) => {
  const target = 'https://h.example/a/b'
  for (const good of [
    'https://h.example',
    'https://H.example/',
    'https://h.example/a',
    'https://h.example/a/b',
    'https://h.example/a/b/',
  ])
    t.ok(resourceCovers(good, target), good)
  for (const bad of [
    'http://h.example/a',
    'https://h.example:444/a',
    'https://h.example/a/bc',
    'https://h.example/a/b/c',
    'https://x.example',
    'data:x',
  ])
    t.notOk(resourceCovers(bad, target), bad)
})

await t.test('URL forms: well-known part between host and path, canonical resource', async (t) => {
  t.equal(resourceMetadataUrl('https://h.example/mcp/?q=1'), `https://h.example${wellKnown}/mcp/?q=1`)
  t.equal(resourceMetadataUrl('https://h.example/'), `https://h.example${wellKnown}`)
  t.equal(canonicalResource('HTTPS://H.Example:443/MCP#x'), 'https://h.example/MCP')
  t.equal(canonicalResource('https://h.example/'), 'https://h.example')
})
