/** MCPCatalogue: the servers in its file, rejected specs, conditions, and changes without a restart. */
import t from 'tap'
import { parse } from 'yaml'
import { validateResource } from '../../../../../hooks/index.ts'
import { type CatalogueFile, formatViolations } from '../../../../../schemas/index.ts'
import {
  catalogue,
  catalogueAuth,
  publication,
  publishedServer,
} from '../../../../helpers/hooks/catalogue-cases.ts'
import { authzConfig, entry, oidc, oidcConfig, virtual, world } from '../../../../hooks/resources.ts'
import type { Condition, Stored, World } from '../../../../hooks/world.ts'

interface Status {
  readonly publishedCount?: number
  readonly conditions: readonly Condition[]
}

const statusOf = (w: World) => w.get('MCPCatalogue', 'tools')['status'] as Status
const condition = (w: World, type: string) => statusOf(w).conditions.find((found) => found.type === type)

function fileText(w: World): string {
  const data = w.get('ConfigMap', 'mcp-tools-catalogue-config')['data'] as Record<string, string>
  return data['catalogue.yaml'] ?? ''
}
const serversIn = (w: World) => (parse(fileText(w)) as CatalogueFile).servers
const namesIn = (w: World) => serversIn(w).map(({ name }) => name)
const open = (name: string, more: object = {}, metadata: Record<string, unknown> = {}): Stored =>
  publishedServer(
    name,
    { publish: { ...publication, name: `com.example/${name}`, public: true, ...more } },
    metadata,
  )

t.test('an entry contains the address that clients use, and nothing about backends', (t) => {
  const { oidcConfigRef } = oidc
  const resourceUrl = 'https://door.example.com/mcp'
  const rows: readonly (readonly [object, string])[] = [
    [{}, 'http://vmcp-a.team.svc.cluster.local:4483/mcp'],
    [{ incomingAuth: { ...oidc, oidcConfigRef: { ...oidcConfigRef, resourceUrl } } }, resourceUrl],
    [{ incomingAuth: { type: 'oidc', oidcConfigRefs: [{ ...oidcConfigRef, resourceUrl }] } }, resourceUrl],
    [{ exposure: { hostname: 'a.example.com', ingress: {} } }, 'https://a.example.com/mcp'],
  ]
  for (const [spec, url] of rows) {
    const server = publishedServer('a', { publish: { ...publication, public: true }, ...spec })
    const w = world(oidcConfig(), entry('secret-backend'), server, catalogue()).settle()
    t.match(serversIn(w), [{ ...publication, url, version: '1.0.1' }])
    t.notMatch(fileText(w), /secret-backend|MCPServerEntry|image/)
    const { data } = w.get('ConfigMap', 'a-vmcp-config') as unknown as { data: Record<string, string> }
    t.equal(parse(data['config.yaml'] ?? '').publish.url, url, 'the server card contains the same address')
  }
  t.end()
})

t.test('a version of an entry has one address, even before the server’s next sync', (t) => {
  const exposed = (hostname: string) => {
    const { spec } = open('a')
    return { ...open('a'), spec: { ...(spec as object), exposure: { hostname, ingress: {} } } }
  }
  const w = world(exposed('one.example.com'), catalogue()).settle()
  w.apply(exposed('two.example.com')).sync('MCPCatalogue', 'tools')
  const before = serversIn(w)
  t.match(before, [{ url: 'https://two.example.com/mcp', version: '1.0.2' }])
  t.strictSame(serversIn(w.settle()), before)
  t.end()
})

t.test('a server with an invalid address is skipped, and the other servers stay listed', (t) => {
  const oidcConfigRef = { ...oidc.oidcConfigRef, resourceUrl: 'http://a:99999/' }
  const { spec } = open('b')
  const broken = { ...open('b'), spec: { ...(spec as object), incomingAuth: { ...oidc, oidcConfigRef } } }
  const w = world(oidcConfig(), open('a'), broken, catalogue()).settle()
  t.strictSame(namesIn(w), ['com.example/a'])
  t.match(condition(w, 'ServersListed'), {
    status: 'False',
    reason: 'ConfigInvalid',
    message: /addresses are invalid: com\.example\/b$/,
  })
  t.end()
})

t.test('an anonymous catalogue lists public servers only', (t) => {
  const objects = [open('a'), open('b', { public: false }), virtual()]
  const w = world(...objects, catalogue()).settle()
  t.strictSame(namesIn(w), ['com.example/a'])
  t.notMatch(fileText(w), 'com.example/b')
  w.apply(oidcConfig())
    .apply(authzConfig())
    .apply(catalogue({ incomingAuth: catalogueAuth }))
    .settle()
  t.strictSame(namesIn(w), ['com.example/a', 'com.example/b'])
  t.equal(statusOf(w).publishedCount, 2)
  t.end()
})

t.test('the selector compares every label', (t) => {
  const w = world(
    open('a', {}, { labels: { team: 'a', tier: 'gold' } }),
    open('b', {}, { labels: { team: 'a' } }),
    open('c'),
    catalogue({ selector: { matchLabels: { team: 'a', tier: 'gold' } } }),
  ).settle()
  t.strictSame(namesIn(w), ['com.example/a'])
  t.strictSame(namesIn(w.apply(catalogue({ selector: {} })).settle()), [
    'com.example/a',
    'com.example/b',
    'com.example/c',
  ])
  t.end()
})

t.test('the oldest server owns a name, and a condition reports the others', (t) => {
  const same = { name: publication.name }
  const w = world(open('one', same), open('other', same), catalogue()).settle()
  // The world derives the creation times from the names.
  const created = (name: string) => String(w.get('VirtualMCPServer', name).metadata['creationTimestamp'])
  const [oldest = '', newest = ''] = ['one', 'other'].toSorted((a, b) => (created(a) < created(b) ? -1 : 1))
  t.match(serversIn(w), [{ url: new RegExp(`vmcp-${oldest}\\.`), publishedAt: created(oldest) }])
  t.equal(serversIn(w).length, 1)
  t.match(condition(w, 'ServersListed'), {
    status: 'False',
    reason: 'PublishedNameClaimed',
    message: publication.name,
  })
  t.match(condition(w.remove('VirtualMCPServer', newest).settle(), 'ServersListed'), { status: 'True' })
  t.end()
})

t.test('a catalogue lists at most 500 servers', (t) => {
  const status = { url: 'http://vmcp.example/mcp' }
  const w = world(catalogue())
  for (let index = 0; index <= 500; index++) {
    const name = `s${String(index).padStart(3, '0')}`
    w.apply(open(name)).setStatus('VirtualMCPServer', name, status)
  }
  w.sync('MCPCatalogue', 'tools')
  t.equal(statusOf(w).publishedCount, 500)
  t.match(condition(w, 'ServersListed'), {
    status: 'False',
    reason: 'TooManyServers',
    message: /^501 servers/,
  })
  t.end()
})

t.test('a changed server changes the version and the file, but does not restart the pods', (t) => {
  const template = (w: World) =>
    (w.get('Deployment', 'mcp-tools-catalogue')['spec'] as { template: unknown }).template
  const w = world(open('a'), catalogue()).ready().settle()
  const before = template(w)
  t.equal(serversIn(w)[0]?.version, '1.0.1')
  w.apply(open('a', { description: 'Changed' }))
    .apply(open('b'))
    .settle()
  t.match(serversIn(w), [{ description: 'Changed', version: '1.0.2' }, {}])
  t.strictSame(template(w), before)
  t.end()
})

t.test('a broken reference keeps the running children', (t) => {
  const w = world(oidcConfig(), authzConfig(), open('a'), catalogue({ incomingAuth: catalogueAuth }))
    .ready()
    .settle()
  const before = fileText(w)
  w.remove('MCPAuthzConfig', 'policies').settle()
  t.match(condition(w, 'AuthzConfigRefValidated'), { status: 'False', reason: 'AuthzConfigRefNotFound' })
  t.match(condition(w, 'Ready'), { status: 'False', reason: 'AuthzConfigRefNotFound' })
  t.equal(fileText(w), before)
  t.end()
})

t.test('a host name belongs to one server or catalogue', (t) => {
  const exposure = { hostname: 'tools.example.com', ingress: {} }
  const w = world(virtual({ exposure }), catalogue({ exposure })).settle()
  const reasonOf = (kind: string, name: string) => {
    const { conditions } = w.get(kind, name)['status'] as Status
    return conditions.find(({ type }) => type === 'ExposureReady')?.reason
  }
  const reasons = [reasonOf('VirtualMCPServer', 'door'), reasonOf('MCPCatalogue', 'tools')]
  t.strictSame(new Set(reasons), new Set(['ExposurePending', 'HostnameClaimed']))
  t.end()
})

t.test('admission: an invalid spec is rejected with the name of its field', (t) => {
  const anonymous = { type: 'anonymous' }
  const { authzConfigRef, oidcConfigRef } = catalogueAuth
  const rows: readonly (readonly [object, RegExp])[] = [
    [{ incomingAuth: undefined }, /spec\.incomingAuth: is required/],
    [{ incomingAuth: { type: 'oidc' } }, /oidcConfigRef is required when type is oidc/],
    [{ incomingAuth: { ...anonymous, oidcConfigRef } }, /oidcConfigRef requires type oidc/],
    [{ incomingAuth: { ...anonymous, authzConfigRef } }, /authzConfigRef requires type oidc/],
    [{ incomingAuth: { type: 'local' } }, /spec\.incomingAuth\.type/],
    [{ selector: { matchLabels: { a: 1 } } }, /spec\.selector\.matchLabels/],
    [{ podTemplateSpec: { spec: { containers: [{ name: 'catalogue', ports: 'x' }] } } }, /podTemplateSpec/],
    [{ exposure: { hostname: 'a.example', ingress: { annotations: { 'not a key': 'x' } } } }, /annotations/],
    [{ servers: [] }, /servers/],
  ]
  for (const [spec, message] of rows)
    t.match(formatViolations(validateResource(catalogue(spec)).violations), message, String(message))
  t.strictSame(validateResource(catalogue()).violations, [])
  t.strictSame(validateResource(catalogue({ incomingAuth: catalogueAuth })).violations, [])
  t.end()
})
