/** A server is reachable under its host name through an Ingress or a Gateway, or its status reports why not. */
import t from 'tap'
import { parse } from 'yaml'
import { hookSettings, validateResource } from '../../../../hooks/index.ts'
import { group, oidc, oidcConfig, remote, secret, server, virtual, world } from '../../../hooks/resources.ts'
import { type Condition, type Stored, World } from '../../../hooks/world.ts'

const hostname = 'tools.example.com'
const ingress = { exposure: { hostname, ingress: { className: 'nginx' } } }
const gateway = {
  exposure: { hostname, gateway: { name: 'public', namespace: 'edge', sectionName: 'https' } },
}
const withGateway = (...objects: Stored[]) =>
  new World(hookSettings({ runtimeImage: 'g:1', version: '1', gatewayApi: true })).apply(group, ...objects)

const statusOf = (w: World, kind: string, name: string) =>
  w.get(kind, name)['status'] as { url: string; externalUrl?: string; conditions: Condition[] }
const ready = (w: World, kind = 'VirtualMCPServer', name = 'door') =>
  statusOf(w, kind, name).conditions.find(({ type }) => type === 'ExposureReady')
const problemsOf = (object: Stored) =>
  validateResource(object).violations.map(({ path, message }) => `${path}: ${message}`)

t.test('an Ingress with TLS points to the Service, and is removed with the field', async (t) => {
  const w = world(virtual(ingress)).settle()
  const { metadata, spec } = w.get('Ingress', 'vmcp-door')
  t.match(metadata['annotations'], { 'nginx.ingress.kubernetes.io/proxy-read-timeout': '3600' })
  t.match(spec, {
    ingressClassName: 'nginx',
    tls: [{ hosts: [hostname] }],
    rules: [
      { host: hostname, http: { paths: [{ path: '/', backend: { service: { name: 'vmcp-door' } } }] } },
    ],
  })
  t.match(statusOf(w, 'VirtualMCPServer', 'door'), {
    url: 'http://vmcp-door.team.svc.cluster.local:4483/mcp',
    externalUrl: `https://${hostname}/mcp`,
  })
  t.match(ready(w), { status: 'False', reason: 'ExposurePending' })
  w.setStatus('Ingress', 'vmcp-door', { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } }).settle()
  t.match(ready(w), { status: 'True', reason: 'Exposed' })
  w.apply(virtual()).settle()
  t.same(w.list('Ingress'), [])
  t.equal(statusOf(w, 'VirtualMCPServer', 'door').externalUrl, undefined)
  t.equal(ready(w), undefined)
})

t.test('custom annotations win', async (t) => {
  const annotations = { 'nginx.ingress.kubernetes.io/proxy-read-timeout': '60' }
  const w = world(virtual({ exposure: { hostname, ingress: { annotations } } })).settle()
  t.match(w.get('Ingress', 'vmcp-door').metadata['annotations'], annotations)
})

t.test('an HTTPRoute is created where the installation enables it', async (t) => {
  const w = withGateway(virtual(gateway)).settle()
  t.match(w.get('HTTPRoute', 'vmcp-door')['spec'], {
    parentRefs: [{ name: 'public', namespace: 'edge', sectionName: 'https' }],
    hostnames: [hostname],
    rules: [{ backendRefs: [{ name: 'vmcp-door', port: 4483 }], timeouts: { request: '0s' } }],
  })
  t.match(ready(w), { reason: 'ExposurePending' })
  const verdict = (status: string) => ({
    parents: [
      {
        conditions: [
          { type: 'Accepted', status: 'True' },
          { type: 'ResolvedRefs', status, reason: 'RefNotPermitted', message: 'not from here' },
        ],
      },
    ],
  })
  w.setStatus('HTTPRoute', 'vmcp-door', verdict('False')).settle()
  t.match(ready(w), { status: 'False', reason: 'RefNotPermitted', message: 'not from here' })
  w.setStatus('HTTPRoute', 'vmcp-door', verdict('True')).settle()
  t.match(ready(w), { status: 'True' })
  const without = world(virtual(gateway)).settle()
  t.same(without.list('HTTPRoute'), [])
  t.match(ready(without), {
    status: 'False',
    reason: 'GatewayAPINotEnabled',
    message: /integrations\.gatewayAPI/,
  })
})

t.test('a host name belongs to the oldest server until that server is removed', async (t) => {
  const aged = (object: Stored, creationTimestamp: string): Stored => ({
    ...object,
    metadata: { ...object.metadata, creationTimestamp },
  })
  const w = world(
    aged(virtual(ingress), '2026-01-02T00:00:00Z'),
    aged(remote('crm', ingress), '2026-01-01T00:00:00Z'),
  ).settle()
  t.strictSame(
    w.list('Ingress').map(({ metadata }) => metadata.name),
    ['mcp-crm-remote-proxy'],
  )
  t.match(ready(w), { status: 'False', reason: 'HostnameClaimed', message: /MCPRemoteProxy crm/ })
  w.remove('MCPRemoteProxy', 'crm').settle()
  t.ok(w.find('Ingress', 'vmcp-door'))
})

t.test(
  'a missing Secret or key is reported, and the Ingress exists so that cert-manager can create the Secret',
  async (t) => {
    const exposure = { hostname, ingress: { tlsSecretName: 'tools-tls' } }
    const w = world(virtual({ exposure })).settle()
    t.ok(w.find('Ingress', 'vmcp-door'), 'cert-manager creates the Secret for it')
    t.match(ready(w), { reason: 'TLSSecretNotFound', message: /tools-tls, key tls\.crt/ })
    w.apply(secret('tools-tls', { 'tls.crt': 'c' })).settle()
    t.match(ready(w), { reason: 'TLSSecretNotFound', message: /tools-tls, key tls\.key/ })
    w.apply(secret('tools-tls', { 'tls.crt': 'c', 'tls.key': 'k' })).settle()
    t.match(ready(w), { reason: 'ExposurePending' })
  },
)

t.test('tokens are for the public address, and a different resource URL is reported', async (t) => {
  const incomingAuth = { ...oidc, oidcConfigRef: { ...oidc.oidcConfigRef, resourceUrl: undefined } }
  const w = world(oidcConfig(), virtual({ incomingAuth, ...ingress })).settle()
  const file = parse(
    (w.get('ConfigMap', 'door-vmcp-config')['data'] as Record<string, string>)['config.yaml'] ?? '',
  )
  t.equal(file.incomingAuth.oidc.resource, `https://${hostname}/mcp`)
  const other = {
    ...oidc,
    oidcConfigRef: { ...oidc.oidcConfigRef, resourceUrl: 'https://else.example.com/mcp' },
  }
  w.apply(virtual({ incomingAuth: other, ...ingress })).settle()
  t.match(ready(w), {
    reason: 'PublicURLMismatch',
    message: /resourceUrl of oidcConfigRef .*tools\.example\.com/,
  })
})

t.test('behind an Ingress or a Gateway, forwarded headers are trusted', async (t) => {
  const proxy = (spec: object) => {
    const w = world(remote('crm', spec)).settle()
    const text = (
      w.find('ConfigMap', 'mcp-crm-remote-proxy-config')?.['data'] as Record<string, string> | undefined
    )?.['proxy.yaml']
    return text === undefined ? {} : parse(text)
  }
  t.equal(proxy(ingress).trustProxyHeaders, true)
  t.notOk(proxy({}).trustProxyHeaders)
})

t.test('servers that cannot be exposed are rejected, each with its reason', async (t) => {
  const cases: readonly [object, RegExp][] = [
    [{ ingress: {} }, /spec\.exposure\.hostname: is required/],
    [{ hostname }, /exactly one of gateway and ingress/],
    [{ hostname, ingress: {}, gateway: { name: 'g' } }, /exactly one of gateway and ingress/],
    [{ hostname: '*.example.com', ingress: {} }, /hostname: expected a DNS name/],
    [{ hostname: 'localhost', ingress: {} }, /hostname: expected a DNS name/],
    [{ hostname: 'https://tools.example.com', ingress: {} }, /hostname: expected a DNS name/],
    [{ hostname: 'Tools.example.com', ingress: {} }, /hostname: expected a DNS name/],
    [{ hostname, ingress: { annotations: { 'not a key': 'x' } } }, /spec\.exposure\.ingress\.annotations/],
    [{ hostname, gateway: {} }, /gateway\.name: is required/],
  ]
  for (const make of [
    virtual,
    (spec: object) => server('files', spec),
    (spec: object) => remote('crm', spec),
  ]) {
    for (const [exposure, message] of cases) t.match(problemsOf(make({ exposure })).join('\n'), message)
  }
})
