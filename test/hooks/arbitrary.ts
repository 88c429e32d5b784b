/**
 * Random but plausible sets of resources: some references are valid, some are dangling, some lead to invalid objects.
 */
import fc from 'fast-check'
import {
  auth,
  authzConfig,
  embedded,
  oidcConfig,
  openApi,
  petstore,
  secrets,
  telemetryConfig,
  toolConfig,
} from './resources.ts'
import { configMap, resource, type Stored } from './world.ts'

const names = fc.constantFrom('alpha', 'beta', 'gamma', 'delta.with.dots', `${'long-'.repeat(20)}name`)
const groups = fc.constantFrom('tools', 'tools', 'tools', 'other', 'missing')
const replicas = fc.option(fc.integer({ min: 0, max: 3 }), { nil: undefined })
const authNames = fc.constantFrom('missing', ...Object.values(auth).map(({ metadata }) => metadata.name))

/** Generates an object with a few of the optional members. */
function some(members: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<object> {
  const seldom = Object.entries(members).map(([key, member]) => [
    key,
    fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: member }),
  ])
  return fc
    .record(Object.fromEntries(seldom) as Record<string, fc.Arbitrary<unknown>>)
    .map((object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)))
}

const reference = (known: string) =>
  fc.constantFrom('missing', known, known, known, known).map((name) => ({ name }))
const storage = fc.constantFrom(
  { provider: 'memory' },
  { provider: 'redis', address: 'redis:6379', passwordRef: { name: 'redis', key: 'password' } },
  { provider: 'redis', address: 'redis:6379', passwordRef: { name: 'missing', key: 'password' } },
)
const oidcReference = fc
  .constantFrom('login', 'login', 'login', 'missing')
  .map((name) => ({ name, audience: 'https://x.example.com', resourceUrl: 'https://x.example.com' }))

const front = some({
  oidcConfigRef: oidcReference,
  authzConfigRef: reference('policies'),
  externalAuthConfigRef: authNames.map((name) => ({ name })),
  authServerRef: fc
    .constantFrom('server', 'header', 'missing')
    .map((name) => ({ kind: 'MCPExternalAuthConfig', name })),
  toolConfigRef: reference('readonly'),
  telemetryConfigRef: reference('otel'),
  sessionStorage: storage,
  replicas,
  audit: fc.record({ enabled: fc.boolean() }),
})

const group = fc.constantFrom('tools', 'other').map((name) => resource('MCPGroup', name, {}))

const server = fc
  .record({
    name: names,
    group: groups,
    transport: fc.constantFrom('streamable-http', 'sse', 'stdio'),
    front,
  })
  .map(({ name, group, transport, front }) =>
    resource('MCPServer', name, {
      image: 'registry.example/server:1',
      groupRef: { name: group },
      transport,
      ...front,
    }),
  )

const proxy = fc
  .record({
    name: names,
    group: groups,
    url: fc.constantFrom('https://a.example.com/mcp', 'http://10.0.0.1/mcp'),
    front,
  })
  .map(({ name, group, url, front }) =>
    resource('MCPRemoteProxy', name, { remoteUrl: url, groupRef: { name: group }, ...front }),
  )

const entry = fc
  .record({
    name: names,
    group: groups,
    url: fc.constantFrom('https://a.example.com/mcp', 'http://10.0.0.1/mcp'),
    more: some({
      externalAuthConfigRef: authNames.map((name) => ({ name })),
      headerForward: fc.constantFrom('tokens', 'missing').map((name) => ({
        addHeadersFromSecret: [{ headerName: 'X-Key', valueSecretRef: { name, key: 'api' } }],
      })),
    }),
  })
  .map(({ name, group, url, more }) =>
    resource('MCPServerEntry', name, {
      remoteUrl: url,
      transport: 'streamable-http',
      groupRef: { name: group },
      ...more,
    }),
  )

const openApiServer = fc
  .record({
    name: names,
    group: groups,
    text: fc.constantFrom('petstore', 'missing'),
    more: some({ externalAuthConfigRef: authNames.map((name) => ({ name })) }),
  })
  .map(({ name, group, text, more }) =>
    openApi(name, {
      groupRef: { name: group },
      document: { configMapRef: { name: text, key: 'openapi.json' } },
      ...more,
    }),
  )

const backendAuth = authNames.map((name) => ({
  type: 'externalAuthConfigRef',
  externalAuthConfigRef: { name },
}))

const virtual = fc
  .record({
    name: names,
    group: groups,
    incoming: fc.oneof(
      fc.constant({ type: 'anonymous' }),
      oidcReference.map((oidcConfigRef) => ({ type: 'oidc', oidcConfigRef })),
    ),
    embedded: fc.boolean(),
    outgoing: some({ default: backendAuth, backends: fc.dictionary(names, backendAuth, { maxKeys: 2 }) }),
    source: fc.constantFrom('discovered', 'inline'),
    more: some({
      replicas,
      sessionStorage: storage,
      telemetryConfigRef: reference('otel'),
      embeddingServerRef: reference('embed'),
    }),
  })
  .map(({ name, group, incoming, embedded: hasServer, outgoing, source, more }) =>
    resource('VirtualMCPServer', name, {
      groupRef: { name: group },
      incomingAuth: incoming,
      outgoingAuth: { source, ...outgoing },
      ...(hasServer && incoming.type === 'oidc' && { authServerConfig: embedded() }),
      ...more,
    }),
  )

const config = fc.constantFrom<Stored>(
  ...Object.values(auth),
  ...secrets,
  oidcConfig(),
  oidcConfig({ issuer: 'http://insecure.example.com' }),
  authzConfig(),
  authzConfig({ policies: ['permit('] }),
  telemetryConfig(),
  toolConfig(),
  configMap('petstore', { 'openapi.json': petstore }),
  resource('EmbeddingServer', 'embed', { modelCache: {} }),
)

export function arbitraryResources(minLength = 0): fc.Arbitrary<Stored[]> {
  const maxLength = Math.max(20, minLength)
  return fc.array(fc.oneof(group, server, proxy, entry, openApiServer, virtual, config, config), {
    minLength,
    maxLength,
  })
}
