/** docs/reference/specification/virtual-server.md: VirtualMCPServer without spec.config. */
import { companions } from './external-auth.ts'
import { dpopRows } from './dpop.ts'
import { issuerRows } from './other-kinds.ts'
import {
  absent,
  booleanRow,
  type Doc,
  document,
  durations,
  type Json,
  notDuration,
  notInteger,
  notName,
  notProvider,
  notString,
  secretRef,
  type Table,
} from './table.ts'

export function virtualServer(extra: Doc = {}): Doc {
  return document('VirtualMCPServer', {
    groupRef: { name: 'tools' },
    incomingAuth: { type: 'anonymous' },
    ...extra,
  })
}

const oidcRef = { name: 'corp', audience: 'https://mcp.example.com' }
const withOidc = virtualServer({ incomingAuth: { type: 'oidc', oidcConfigRef: oidcRef, dpop: {} } })

const spec: Table = {
  name: 'VirtualMCPServer spec',
  base: virtualServer(),
  rows: [
    { id: '3.spec.groupRef', at: 'spec.groupRef', required: true, bad: [{}, 'tools'], failure: '*' },
    { id: '3.spec.groupRef', at: 'spec.groupRef.name', required: true, bad: notName },
    { id: '', at: 'spec.incomingAuth', required: true },
    ...issuerRows('spec.incomingAuth.oidcConfigRefs'),
    { id: '', at: 'spec.incomingAuth.dpop', good: [absent], bad: [{}], failure: '*' },
    {
      id: '',
      at: 'spec.embeddingServerRef',
      good: [absent, { name: 'e' }],
      bad: [{}, { name: '' }],
      failure: '*',
    },
    {
      id: '',
      at: 'spec.imagePullSecrets',
      good: [absent, [], [{ name: 'a' }, {}]],
      bad: [{ name: 'a' }, ['a']],
      failure: '*',
    },
    {
      id: '3.spec.passthroughHeaders.restricted',
      at: 'spec.passthroughHeaders',
      good: [absent, [], ['X-Tenant', 'Accept-Language']],
      bad: restricted(),
      failure: '*',
    },
    {
      id: '',
      at: 'spec.passthroughHeaders',
      bad: [[''], ['a b'], ['a:']],
      failure: 'spec.passthroughHeaders[0]',
    },
    {
      id: '',
      at: 'spec.podTemplateSpec',
      good: [absent, { spec: { containers: [{ name: 'vmcp' }] }, any: 1 }],
      bad: [[], 'x'],
    },
    { id: '3.limit.replicas', at: 'spec.replicas', good: [absent, 0, 5], bad: [-1, ...notInteger] },
    { id: '', at: 'spec.serviceAccount', good: [absent, 'sa'], bad: notName },
    {
      id: '3.spec.serviceType',
      at: 'spec.serviceType',
      default: 'ClusterIP',
      good: ['NodePort', 'LoadBalancer'],
      bad: ['ExternalName', ''],
    },
    {
      id: '3.spec.sessionAffinity',
      at: 'spec.sessionAffinity',
      default: 'ClientIP',
      good: ['None'],
      bad: ['none', ''],
    },
    { id: '', at: 'spec.telemetryConfigRef', good: [absent, { name: 't', serviceName: 's' }], bad: ['t'] },
    {
      id: '3.spec.telemetryConfigRef.name',
      at: 'spec.telemetryConfigRef',
      bad: [{}, { name: '' }, { serviceName: 's' }],
      failure: '*',
    },
    { id: '', at: 'spec.replica', bad: [1] },
    { id: '', at: 'spec.publish', good: [absent], bad: [{}, 'tools'], failure: '*' },
  ],
}

const publication: Table = {
  name: 'VirtualMCPServer publish',
  base: virtualServer({ publish: { name: 'com.example/tools', description: 'Tools' } }),
  rows: [
    {
      id: '',
      at: 'spec.publish.name',
      required: true,
      good: ['a/b', 'io.github.some-one/my_server.2'],
      bad: ['', 'tools', 'a/b/c', '/tools', 'a b/c', `${'a'.repeat(199)}/b`],
    },
    { id: '', at: 'spec.publish.description', required: true, bad: ['', 'x'.repeat(101)] },
    { id: '', at: 'spec.publish.title', good: [absent, 'Tools'], bad: ['', 'x'.repeat(101)] },
    booleanRow('', 'spec.publish.public', false),
    { id: '', at: 'spec.publish.url', bad: ['https://tools.example.com/mcp'] },
  ],
}

function restricted(): readonly Json[] {
  const names =
    'Host Connection Keep-Alive TE Trailer Upgrade HTTP2-Settings Proxy-Authorization Proxy-Authenticate Proxy-Connection Transfer-Encoding Content-Length Forwarded X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto X-Forwarded-Anything X-Real-IP Authorization Cookie Mcp-Session-Id'
  return names.split(' ').flatMap((name) => [[name], ['X-Ok', name.toLowerCase()]])
}

const incoming: Table = {
  name: 'VirtualMCPServer incomingAuth',
  base: withOidc,
  rows: [
    { id: '3.spec.incomingAuth', at: 'spec.incomingAuth', bad: [absent, {}], failure: '*' },
    {
      id: '3.spec.incomingAuth.type',
      at: 'spec.incomingAuth.type',
      required: true,
      bad: ['', 'none', 'OIDC', 'local'],
    },
    { id: '', at: 'spec.incomingAuth.oidcConfigRef', required: true },
    ...dpopRows('spec.incomingAuth.dpop'),
    {
      id: '3.spec.incomingAuth.oidcConfigRef.name',
      at: 'spec.incomingAuth.oidcConfigRef.name',
      required: true,
      bad: notName,
    },
    { id: '', at: 'spec.incomingAuth.oidcConfigRef.audience', required: true, bad: ['', 1] },
    {
      id: '',
      at: 'spec.incomingAuth.oidcConfigRef.resourceUrl',
      good: [absent, 'https://mcp.example.com/mcp'],
      bad: ['mcp'],
    },
    {
      id: '',
      at: 'spec.incomingAuth.oidcConfigRef.scopes',
      good: [absent, ['openid', 'x']],
      bad: ['openid'],
    },
    {
      id: '',
      at: 'spec.incomingAuth.authzConfigRef',
      good: [absent, { name: 'a' }],
      bad: [{ name: '' }, {}],
      failure: '*',
    },
  ],
}

const inline = { type: 'inline', inline: { policies: ['permit(principal, action, resource);'] } }
const configMap = { type: 'configMap', configMap: { name: 'policies' } }

const authz: Table = {
  name: 'VirtualMCPServer incomingAuth.authzConfig',
  base: virtualServer({ incomingAuth: { type: 'anonymous', authzConfig: inline } }),
  rows: [
    { id: '3.error.authz.both', at: 'spec.incomingAuth.authzConfigRef', bad: [{ name: 'a' }] },
    {
      id: '3.spec.incomingAuth.authzConfig.type',
      at: 'spec.incomingAuth.authzConfig',
      good: [inline, configMap, { configMap: { name: 'policies' } }],
      bad: [
        { type: 'inline' },
        { type: 'configMap' },
        {},
        { ...inline, type: 'configMap' },
        { ...inline, ...configMap },
        { ...inline, type: 'file' },
      ],
      failure: '*',
    },
    {
      id: '3.spec.incomingAuth.authzConfig.configMap.name',
      at: 'spec.incomingAuth.authzConfig',
      bad: [
        { type: 'configMap', configMap: {} },
        { type: 'configMap', configMap: { name: '' } },
      ],
      failure: '*',
    },
    {
      id: '3.spec.incomingAuth.authzConfig.inline.policies',
      at: 'spec.incomingAuth.authzConfig.inline.policies',
      required: true,
      bad: [[], 'permit', {}],
    },
    {
      id: '',
      at: 'spec.incomingAuth.authzConfig.inline.entitiesJson',
      default: '[]',
      good: ['[{}]'],
      bad: [[]],
    },
    {
      id: '',
      at: 'spec.incomingAuth.authzConfig.inline.primaryUpstreamProvider',
      good: [absent, 'corp'],
      bad: notProvider,
    },
    {
      id: '',
      at: 'spec.incomingAuth.authzConfig.groupClaimName',
      good: [absent, '', 'x'.repeat(253)],
      bad: ['x'.repeat(254)],
    },
    {
      id: '',
      at: 'spec.incomingAuth.authzConfig.roleClaimName',
      good: [absent, '', 'x'.repeat(253)],
      bad: ['x'.repeat(254)],
    },
    {
      id: '3.spec.incomingAuth.authzConfig.groupEntityType',
      at: 'spec.incomingAuth.authzConfig.groupEntityType',
      default: 'ServiceGroup',
      good: ['_a1', 'Team', 'x'.repeat(63)],
      bad: ['1a', 'A::B', '', 'a-b', 'x'.repeat(64)],
    },
  ],
}

const authzMap: Table = {
  name: 'VirtualMCPServer incomingAuth.authzConfig.configMap',
  base: virtualServer({ incomingAuth: { type: 'anonymous', authzConfig: configMap } }),
  rows: [
    {
      id: '3.spec.incomingAuth.authzConfig.configMap.key',
      at: 'spec.incomingAuth.authzConfig.configMap.key',
      default: 'authz.json',
      good: ['other.json'],
      bad: ['', 'a b'],
    },
  ],
}

const entry = { type: 'externalAuthConfigRef', externalAuthConfigRef: { name: 'x' } }
const outgoing: Table = {
  name: 'VirtualMCPServer outgoingAuth',
  base: virtualServer({ outgoingAuth: { default: entry, backends: { github: { type: 'discovered' } } } }),
  rows: [
    {
      id: '3.spec.outgoingAuth.source',
      at: 'spec.outgoingAuth.source',
      default: 'discovered',
      good: ['inline'],
      bad: ['', 'manual'],
    },
    {
      id: '3.spec.outgoingAuth.default.type',
      at: 'spec.outgoingAuth.default.type',
      required: true,
      bad: ['', 'inline'],
    },
    {
      id: '3.spec.outgoingAuth.default.externalAuthConfigRef',
      at: 'spec.outgoingAuth.default.externalAuthConfigRef',
      required: true,
      bad: [{}, { name: '' }],
      failure: '*',
    },
    {
      id: '3.spec.outgoingAuth.backends.type',
      at: 'spec.outgoingAuth.backends.github.type',
      required: true,
      good: ['discovered'],
      bad: ['none', ''],
    },
    {
      id: '',
      at: 'spec.outgoingAuth.backends.github',
      good: [entry],
      bad: [{ type: 'externalAuthConfigRef' }, {}, { ...entry, x: 1 }],
      failure: '*',
    },
    { id: '', at: 'spec.outgoingAuth.backends["my.backend"]', good: [entry] },
  ],
}

const session: Table = {
  name: 'VirtualMCPServer sessionStorage',
  base: virtualServer({ sessionStorage: { provider: 'redis', address: 'redis:6379' } }),
  rows: [
    {
      id: '3.spec.sessionStorage.provider',
      at: 'spec.sessionStorage.provider',
      required: true,
      good: ['memory'],
      bad: ['', 'etcd'],
    },
    { id: '3.spec.sessionStorage.address', at: 'spec.sessionStorage.address', required: true, bad: ['', 1] },
    { id: '3.spec.sessionStorage.address', at: 'spec.sessionStorage', good: [{ provider: 'memory' }] },
    { id: '3.limit.sessionStorage.db', at: 'spec.sessionStorage.db', default: 0, good: [15], bad: [-1, '0'] },
    { id: '', at: 'spec.sessionStorage.keyPrefix', good: [absent, '', 'p:'], bad: notString },
    {
      id: '',
      at: 'spec.sessionStorage.passwordRef',
      good: [absent, secretRef],
      bad: [{}, { name: 'x' }],
      failure: '*',
    },
  ],
}

const bucket = { maxTokens: 10, refillPeriod: '1m' }
const redis = { provider: 'redis', address: 'redis:6379' }
const rate: Table = {
  name: 'VirtualMCPServer config.rateLimiting',
  base: virtualServer({
    incomingAuth: { type: 'oidc', oidcConfigRef: oidcRef },
    sessionStorage: redis,
    config: { rateLimiting: { shared: bucket, tools: [{ name: 'a', shared: bucket }] } },
  }),
  rows: [
    { id: '', at: 'spec.sessionStorage', bad: [absent, { provider: 'memory' }] },
    { id: '', at: 'spec.config.rateLimiting', good: [{ perUser: bucket }], bad: [{}, { tools: [] }] },
    {
      id: '3.limit.rateLimiting.maxTokens',
      at: 'spec.config.rateLimiting.shared.maxTokens',
      required: true,
      good: [1],
      bad: [0, -1, ...notInteger],
    },
    {
      id: '',
      at: 'spec.config.rateLimiting.shared.refillPeriod',
      required: true,
      good: durations,
      bad: [...notDuration, '0s'],
    },
    {
      id: '3.config.rateLimiting.tools.name',
      at: 'spec.config.rateLimiting.tools[0].name',
      required: true,
      bad: [''],
    },
    {
      id: '',
      at: 'spec.config.rateLimiting.tools[0].shared',
      bad: [absent],
      failure: 'spec.config.rateLimiting.tools[0]',
    },
    { id: '', at: 'spec.config.rateLimiting.tools[1]', bad: [{ name: 'a', perUser: bucket }] },
  ],
}

const perUser: readonly Table[] = [{ perUser: bucket }, { tools: [{ name: 'a', perUser: bucket }] }].map(
  (rateLimiting) => ({
    name: 'VirtualMCPServer config.rateLimiting per user',
    base: virtualServer({
      incomingAuth: { type: 'oidc', oidcConfigRef: oidcRef },
      sessionStorage: redis,
      config: { rateLimiting },
    }),
    rows: [
      { id: '', at: 'spec.incomingAuth', bad: [{ type: 'anonymous' }], failure: 'spec.incomingAuth.type' },
    ],
  }),
)

const server = companions['embeddedAuthServer'] ?? {}
const authServer: Table = {
  name: 'VirtualMCPServer authServerConfig',
  base: virtualServer({ incomingAuth: { type: 'oidc', oidcConfigRef: oidcRef }, authServerConfig: server }),
  rows: [
    { id: '', at: 'spec.authServerConfig', good: [absent], bad: [{}], failure: '*' },
    {
      id: '3.spec.authServerConfig.primaryUpstreamProvider',
      at: 'spec.authServerConfig.primaryUpstreamProvider',
      good: [absent, 'corp'],
      bad: ['other'],
    },
    {
      id: '3.error.primaryUpstreamProvider',
      at: 'spec.authServerConfig.primaryUpstreamProvider',
      bad: ['else'],
    },
    // Reconciliation checks the scheme of the issuer.
    { id: '', at: 'spec.authServerConfig.issuer', good: ['http://auth.example.com'], bad: ['http://a/'] },
  ],
}

const at = 'spec.authServerUpstreamFilter'
const filter: Table = {
  name: 'VirtualMCPServer authServerUpstreamFilter',
  base: virtualServer({
    incomingAuth: { type: 'oidc', oidcConfigRef: oidcRef },
    authServerConfig: server,
    authServerUpstreamFilter: { rules: [{ groups: ['a'], upstreamProviders: ['corp'] }] },
  }),
  rows: [
    { id: '', at, good: [absent] },
    {
      id: '',
      at: `${at}.claim`,
      default: 'groups',
      good: ['https://example.com/groups', 'x'.repeat(253)],
      bad: ['', 'x'.repeat(254), 1],
    },
    { id: '', at: `${at}.rules`, required: true, bad: [[], {}] },
    {
      id: '',
      at: `${at}.rules`,
      bad: [Array.from({ length: 51 }, () => ({ groups: ['a'], upstreamProviders: ['corp'] }))],
    },
    { id: '', at: `${at}.rules[0].groups`, required: true, good: [['a', 'x'.repeat(256)]], bad: ['a', []] },
    {
      id: '',
      at: `${at}.rules[0].groups`,
      bad: [[''], ['x'.repeat(257)], ['a', 'a'], Array.from({ length: 51 }, (_, i) => `g${i}`)],
      failure: '*',
    },
    { id: '', at: `${at}.rules[0].upstreamProviders`, required: true, bad: ['corp', []] },
    {
      id: '',
      at: `${at}.rules[0].upstreamProviders`,
      bad: [['Corp'], ['corp', 'corp']],
      failure: '*',
    },
    {
      id: '',
      at: `${at}.defaultUpstreams`,
      good: [absent, [], ['corp']],
      bad: [['Corp'], ['corp', 'corp']],
      failure: '*',
    },
  ],
}

const compat = {
  embeddingProvider: 'compat',
  embeddingModel: 'm',
  embeddingService: 'https://e.example.com/v1',
}
const optimizer: Table = {
  name: 'VirtualMCPServer embeddingServerRef',
  base: virtualServer({ embeddingServerRef: { name: 'e' }, config: { optimizer: {} } }),
  rows: [
    {
      id: '3.error.optimizer.compat',
      at: 'spec.config.optimizer',
      bad: [compat],
      failure: 'spec.embeddingServerRef',
    },
    { id: '', at: 'spec.config.optimizer', good: [absent, { embeddingProvider: 'tei' }] },
  ],
}

export const virtualServerTables: readonly Table[] = [
  spec,
  publication,
  incoming,
  authz,
  authzMap,
  outgoing,
  session,
  rate,
  ...perUser,
  authServer,
  filter,
  optimizer,
]
