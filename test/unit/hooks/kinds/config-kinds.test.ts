/** Configuration kinds: validity, a hash that includes the Secrets, and the workloads that refer to them. */
import t from 'tap'
import { proves } from '../../../helpers/proves.ts'
import {
  auth,
  authzConfig,
  entry,
  oidc,
  oidcConfig,
  remote,
  resource,
  secret,
  server,
  telemetryConfig,
  toolConfig,
  virtual,
  world,
} from '../../../hooks/resources.ts'
import type { World } from '../../../hooks/world.ts'

interface Status {
  configHash?: string
  referenceCount: number
  referencingWorkloads: { kind: string; name: string }[]
  conditions: { type: string; status: string; reason: string; message: string }[]
}
const statusOf = (w: World, kind: string, name: string) => w.get(kind, name)['status'] as Status
const valid = (w: World, kind: string, name: string) =>
  statusOf(w, kind, name).conditions.find(({ type }) => type === 'Valid')
const podOf = (w: World, name: string) =>
  JSON.stringify((w.get('Deployment', name)['spec'] as { template: unknown }).template)
const own = (name: string) => ({ externalAuthConfigRef: { name } })

t.test('referencingWorkloads: lists each referring workload of every kind once, sorted', async (t) => {
  proves(
    '2.reference.MCPServer',
    '2.reference.MCPRemoteProxy',
    '2.reference.VirtualMCPServer',
    '2.kind.referenced-by',
    '3.reference.MCPExternalAuthConfig',
  )
  const w = world(
    auth.header,
    server('b', own('header')),
    server('a', { ...own('header'), groupRef: { name: 'other' } }),
    remote('r', own('header')),
    entry('e', own('header')),
    virtual({
      outgoingAuth: { default: { type: 'externalAuthConfigRef', externalAuthConfigRef: { name: 'header' } } },
    }),
  ).ready()
  const status = statusOf(w, 'MCPExternalAuthConfig', 'header')
  t.strictSame(status.referencingWorkloads, [
    { kind: 'MCPRemoteProxy', name: 'r' },
    { kind: 'MCPServer', name: 'a' },
    { kind: 'MCPServer', name: 'b' },
    { kind: 'VirtualMCPServer', name: 'door' },
  ])
  t.equal(status.referenceCount, 5, 'the entry counts, although it cannot be listed')
})

t.test(
  'referencingWorkloads: includes a virtual server whose discovered backends refer to the configuration',
  async (t) => {
    const w = world(auth.header, entry('e', own('header')), virtual()).ready()
    t.strictSame(statusOf(w, 'MCPExternalAuthConfig', 'header').referencingWorkloads, [
      { kind: 'VirtualMCPServer', name: 'door' },
    ])
    w.remove('MCPServerEntry', 'e').ready()
    t.equal(statusOf(w, 'MCPExternalAuthConfig', 'header').referenceCount, 0)
  },
)

t.test(
  'referencingWorkloads: includes authServerRef, but not a referrer that is being deleted',
  async (t) => {
    const w = world(
      auth.server,
      server('a', { authServerRef: { name: 'server', kind: 'MCPExternalAuthConfig' } }),
      server('b', own('server')),
    )
    const gone = w.get('MCPServer', 'b')
    w.apply({ ...gone, metadata: { ...gone.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }).settle()
    t.strictSame(statusOf(w, 'MCPExternalAuthConfig', 'server').referencingWorkloads, [
      { kind: 'MCPServer', name: 'a' },
    ])
  },
)

t.test('referencingWorkloads: is set for the other configuration kinds, too', async (t) => {
  const references = {
    oidcConfigRef: { name: 'login', audience: 'a' },
    authzConfigRef: { name: 'policies' },
    telemetryConfigRef: { name: 'otel' },
    toolConfigRef: { name: 'readonly' },
  }
  const w = world(
    oidcConfig(),
    authzConfig(),
    telemetryConfig(),
    toolConfig(),
    server('s', references),
    remote('r', references),
    virtual({
      incomingAuth: { ...oidc, authzConfigRef: { name: 'policies' } },
      telemetryConfigRef: { name: 'otel' },
      config: { aggregation: { tools: [{ workload: 's', toolConfigRef: { name: 'readonly' } }] } },
    }),
  ).ready()
  const all = [
    ['MCPOIDCConfig', 'login'],
    ['MCPAuthzConfig', 'policies'],
    ['MCPTelemetryConfig', 'otel'],
    ['MCPToolConfig', 'readonly'],
  ] as const
  for (const [kind, name] of all) t.equal(statusOf(w, kind, name).referenceCount, 3, kind)
})

t.test(
  'configHash: changes with the spec and every Secret that it names; an invalid object keeps its last hash',
  async (t) => {
    const w = world(auth.bearer).settle()
    const hash = () => statusOf(w, 'MCPExternalAuthConfig', 'bearer').configHash
    const first = hash()
    t.match(first, /^[0-9a-f]{64}$/)
    w.apply(secret('tokens', { bearer: 'rotated', api: 'a-value', client: 'c-value' })).settle()
    const second = hash()
    t.not(second, first, 'the Secret was written')
    t.notMatch(JSON.stringify(w.get('MCPExternalAuthConfig', 'bearer')['status']), /rotated/)
    w.remove('Secret', 'tokens').settle()
    t.match(valid(w, 'MCPExternalAuthConfig', 'bearer'), {
      status: 'False',
      message: /Secret tokens, key bearer/,
    })
    t.equal(hash(), second)
  },
)

t.test('rotation: a changed Secret rolls the pods of every consumer', async (t) => {
  const w = world(
    auth.bearer,
    oidcConfig({ clientId: 'c', clientSecretRef: { name: 'oidc', key: 's' } }),
    secret('oidc', { s: '1' }),
    entry('e', own('bearer')),
    remote('crm', own('bearer')),
    entry('h', {
      headerForward: {
        addHeadersFromSecret: [{ headerName: 'X', valueSecretRef: { name: 'headers', key: 'x' } }],
      },
    }),
    secret('headers', { x: '1' }),
    server('files', { secrets: [{ name: 'own', key: 'K' }] }),
    secret('own', { K: '1' }),
    virtual({
      incomingAuth: oidc,
      sessionStorage: { provider: 'redis', address: 'r:1', passwordRef: { name: 'redis', key: 'password' } },
    }),
  ).ready()
  const rolls = (what: string, name: string, data: Record<string, string>, deployment: string) => {
    const before = podOf(w, deployment)
    w.apply(secret(name, data)).ready()
    t.ok(podOf(w, deployment) !== before, what)
  }
  rolls('credential of a backend', 'tokens', { bearer: '2', api: 'a-value', client: 'c-value' }, 'vmcp-door')
  rolls(
    'credential of a proxy',
    'tokens',
    { bearer: '3', api: 'a-value', client: 'c-value' },
    'mcp-crm-remote-proxy',
  )
  rolls('client secret of introspection', 'oidc', { s: '2' }, 'vmcp-door')
  rolls('header of an entry', 'headers', { x: '2' }, 'vmcp-door')
  rolls('password of the session store', 'redis', { password: '2', user: 'u' }, 'vmcp-door')
  const before = JSON.stringify(w.get('StatefulSet', 'mcp-files-server')['spec'])
  w.apply(secret('own', { K: '2' })).ready()
  t.ok(
    JSON.stringify(w.get('StatefulSet', 'mcp-files-server')['spec']) !== before,
    'secret of the server itself',
  )
})

t.test('secrets: no response contains a value from a Secret', async (t) => {
  const { cases } = await import('../../../hooks/cases.ts')
  const { makeHooks } = await import('../../../../hooks/index.ts')
  const { testSettings } = await import('../../../hooks/world.ts')
  const hooks = makeHooks(testSettings)
  const values = ['b-value', 'a-value', 'c-value', 'o-value', 'r-value', 'h'.repeat(32)]
  const hidden = values.flatMap((value) => [value, Buffer.from(value).toString('base64').slice(0, -3)])
  for (const [key, scenario] of Object.entries(cases)) {
    const response = JSON.stringify(hooks.byKind(key.split('/')[0] ?? '')?.sync(scenario()))
    for (const value of hidden) t.notOk(response.includes(value), `${key}: ${value.slice(0, 8)}`)
  }
})

t.test('validity: each kind sets its condition to True or False with a reason', async (t) => {
  const w = world(
    oidcConfig({ caBundleRef: { configMapRef: { name: 'nowhere' } } }),
    authzConfig({ policies: ['permit('] }),
    telemetryConfig({ sensitiveHeaders: [{ name: 'a-b', secretKeyRef: { name: 'otel', key: 'gone' } }] }),
    resource('MCPToolConfig', 'readonly', { toolsOverride: { a: { name: 'b' }, b: { description: 'x' } } }),
  ).settle()
  t.match(valid(w, 'MCPOIDCConfig', 'login'), {
    status: 'False',
    reason: 'CABundleRefNotFound',
    message: /ConfigMap nowhere/,
  })
  t.match(valid(w, 'MCPAuthzConfig', 'policies'), {
    status: 'False',
    reason: 'ConfigInvalid',
    message: /policies\[0\]/,
  })
  t.match(valid(w, 'MCPTelemetryConfig', 'otel'), {
    status: 'False',
    reason: 'SecretNotFound',
    message: /Secret otel, key gone/,
  })
  t.match(valid(w, 'MCPToolConfig', 'readonly'), { status: 'False', reason: 'ValidationFailed' })
  w.apply(oidcConfig(), authzConfig(), telemetryConfig(), toolConfig()).settle()
  t.match(valid(w, 'MCPOIDCConfig', 'login'), {
    status: 'True',
    reason: 'ConfigValid',
    message: 'Spec validation passed',
  })
  t.match(valid(w, 'MCPToolConfig', 'readonly'), { status: 'True', reason: 'ValidationSucceeded' })
})
