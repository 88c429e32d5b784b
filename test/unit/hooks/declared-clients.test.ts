/** Declared clients of an embedded authorization server: mounted secrets, restarts, resources, missing upstreams. */
import t from 'tap'
import {
  auth,
  authzConfig,
  embedded,
  entry,
  oidcConfig,
  policy,
  remote,
  resource,
  secret,
  server,
  virtual,
  world,
} from '../../hooks/resources.ts'
import { ecKey, platforms } from '../../helpers/hooks/client-cases.ts'
import { validateResource } from '../../../hooks/index.ts'
import type { Stored, World } from '../../hooks/world.ts'
import { condition, fileOf } from './kinds/proxies/proxy-response.ts'

const client = (clientId: string, ...names: string[]) => ({
  clientId,
  clientSecretRefs: names.map((name) => ({ name, key: 'secret' })),
  scopes: ['tools:read'],
})
const keyed = (clientId: string) => ({ clientId, jwks: { keys: [ecKey] }, scopes: ['tools:read'] })
const jobSecret = (name: string, value = 'a') => secret(name, { secret: value.repeat(32), more: 'x' })

const oidcFor = (url: string) => ({ oidcConfigRef: { name: 'login', audience: url, resourceUrl: url } })
const authServer = (more: object): Stored =>
  resource('MCPExternalAuthConfig', 'server', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: embedded(more),
  })

/** The three kinds that can host the server, with their manifests and the names of their children. */
const hosts = [
  {
    kind: 'MCPServer',
    name: 'files',
    conditionType: 'AuthServerRefValidated',
    reason: 'AuthServerRefInvalidConfig',
    map: 'mcp-files-proxy-config',
    deployment: 'mcp-files-proxy',
    objects: (more: object) => [
      authServer(more),
      server('files', {
        ...oidcFor('https://files.example.com'),
        authServerRef: { kind: 'MCPExternalAuthConfig', name: 'server' },
      }),
    ],
  },
  {
    kind: 'MCPRemoteProxy',
    name: 'crm',
    conditionType: 'ExternalAuthConfigValidated',
    reason: 'InvalidConfig',
    map: 'mcp-crm-remote-proxy-config',
    deployment: 'mcp-crm-remote-proxy',
    objects: (more: object) => [
      authServer(more),
      remote('crm', { ...oidcFor('https://crm.example.com'), externalAuthConfigRef: { name: 'server' } }),
    ],
  },
  {
    kind: 'VirtualMCPServer',
    name: 'door',
    conditionType: 'AuthServerConfigValidated',
    reason: 'AuthServerConfigInvalid',
    map: 'door-vmcp-config',
    deployment: 'vmcp-door',
    objects: (more: object) => [
      virtual({
        incomingAuth: { type: 'oidc', ...oidcFor('https://door.example.com') },
        authServerConfig: embedded(more),
      }),
    ],
  },
] as const

interface PodSpec {
  readonly volumes: readonly { readonly name: string; readonly secret?: object }[]
  readonly containers: readonly { readonly volumeMounts: readonly { readonly mountPath: string }[] }[]
}

const templateOf = (w: World, deployment: string) =>
  (w.get('Deployment', deployment)['spec'] as { template: { spec: PodSpec } }).template

const clientsIn = (w: World, map: string) =>
  fileOf(w, map, 'authserver-config.yaml')['clients'] as readonly {
    clientId: string
    clientSecretFiles?: string[]
  }[]

const folder = '/etc/gatehouse/authserver/clients'

for (const { kind, name, conditionType, reason, map, deployment, objects } of hosts) {
  const hosting = (more: object, ...others: Stored[]) =>
    world(oidcConfig(), jobSecret('job-a'), jobSecret('job-b'), ...objects(more), ...others).ready()

  t.test(`${kind}: the path of a client's secret depends only on its Secret`, async (t) => {
    const w = hosting({ clients: [client('a', 'job-a'), client('b', 'job-b', 'job-a')] })
    t.match(clientsIn(w, map), [
      { clientId: 'a', clientSecretFiles: [`${folder}/job-a/secret`] },
      { clientId: 'b', clientSecretFiles: [`${folder}/job-b/secret`, `${folder}/job-a/secret`] },
    ])
    const { spec } = templateOf(w, deployment)
    const volumes = spec.volumes.filter((volume) => volume.name.startsWith('authserver-client-'))
    t.strictSame(
      volumes.map((volume) => volume.secret),
      ['job-a', 'job-b'].map((secretName) => ({
        secretName,
        items: [{ key: 'secret', path: 'secret' }],
        defaultMode: 0o440,
      })),
    )
    t.ok(spec.containers[0]?.volumeMounts.some(({ mountPath }) => mountPath === `${folder}/job-b`))
    // A running server may read the new list while the old volumes are still mounted.
    const after = hosting({ clients: [client('b', 'job-b')] })
    t.match(clientsIn(after, map), [{ clientId: 'b', clientSecretFiles: [`${folder}/job-b/secret`] }])
  })

  t.test(
    `${kind}: a rotated client secret keeps the pods, a rotated signing key replaces them`,
    async (t) => {
      const w = hosting({ clients: [client('a', 'job-a')] })
      const before = structuredClone(templateOf(w, deployment))
      w.apply(jobSecret('job-a', 'b')).settle()
      t.strictSame(templateOf(w, deployment), before)
      w.apply(secret('keys', { now: 'new', before: 'pem', hmac: 'h'.repeat(32), 'ca.crt': 'pem' })).settle()
      t.notSame(templateOf(w, deployment), before)
    },
  )

  t.test(`${kind}: a missing Secret sets the condition and keeps the children`, async (t) => {
    const w = hosting({ clients: [client('a', 'job-a')] })
    const before = structuredClone(w.get('Deployment', deployment)['spec'])
    w.remove('Secret', 'job-a').settle()
    t.match(condition(w, kind, name, conditionType), {
      status: 'False',
      message: /Not found: Secret job-a, key secret$/,
    })
    t.strictSame(w.get('Deployment', deployment)['spec'], before)
    w.apply(secret('job-a', { other: 'x' })).settle()
    t.match(condition(w, kind, name, conditionType), { status: 'False' }, 'the key is missing')
    w.apply(jobSecret('job-a')).ready()
    t.match(condition(w, kind, name, conditionType), { status: 'True' })
  })

  t.test(`${kind}: a client cannot have a resource that the server does not serve`, async (t) => {
    const resources = [`https://${name}.example.com`]
    const good = hosting({ clients: [{ ...keyed('agent'), resources }] })
    t.match(condition(good, kind, name, conditionType), { status: 'True' })
    t.match(clientsIn(good, map), [{ resources }])
    if (kind === 'VirtualMCPServer') return // Admission rejects it.
    const bad = hosting({
      clients: [{ ...keyed('agent'), resources: [...resources, 'https://other.example.com'] }],
    })
    t.match(condition(bad, kind, name, conditionType), {
      status: 'False',
      reason,
      message: `clients[0].resources[1]: must be https://${name}.example.com, the resourceUrl of oidcConfigRef; this server issues no other tokens`,
    })
  })

  t.test(`${kind}: a server without upstreams issues tokens to its clients`, async (t) => {
    const w = hosting({ clients: [keyed('agent')], upstreamProviders: [] })
    t.match(condition(w, kind, name, conditionType), { status: 'True' })
    t.match(fileOf(w, map, 'authserver-config.yaml'), { upstreamProviders: [], clients: [{}] })
  })

  t.test(`${kind}: a server without clients has no settings for them`, async (t) => {
    const w = hosting({})
    t.notOk('clients' in fileOf(w, map, 'authserver-config.yaml'))
    t.notMatch(JSON.stringify(templateOf(w, deployment)), 'authserver-client')
  })
}

t.test(
  'VirtualMCPServer: the resource that depends on the cluster is checked by reconciliation',
  async (t) => {
    const service = 'http://vmcp-door.team.svc.cluster.local:4483/mcp'
    const door = (resource: string) =>
      world(
        oidcConfig(),
        virtual({
          incomingAuth: { type: 'oidc', oidcConfigRef: { name: 'login', audience: service } },
          authServerConfig: embedded({ clients: [{ ...keyed('agent'), resources: [resource] }] }),
        }),
      ).ready()
    t.match(condition(door(service), 'VirtualMCPServer', 'door', 'AuthServerConfigValidated'), {
      status: 'True',
    })
    const foreign = condition(
      door('https://a.example.com'),
      'VirtualMCPServer',
      'door',
      'AuthServerConfigValidated',
    )
    t.match(foreign, {
      status: 'False',
      message: /^clients\[0\]\.resources\[0\]: must be http:\/\/vmcp-door\./,
    })
  },
)

t.test('VirtualMCPServer: a client with keys is added without a restart', async (t) => {
  const door = (...clients: object[]) =>
    virtual({
      incomingAuth: { type: 'oidc', ...oidcFor('https://door.example.com') },
      authServerConfig: embedded({ clients }),
    })
  const w = world(oidcConfig(), door(keyed('agent'))).ready()
  const before = structuredClone(templateOf(w, 'vmcp-door'))
  w.apply(door(keyed('agent'), keyed('second'))).ready()
  t.match(clientsIn(w, 'door-vmcp-config'), [{ clientId: 'agent' }, { clientId: 'second' }])
  t.strictSame(templateOf(w, 'vmcp-door'), before)
})

t.test('proxies without upstreams add no credential, and report a strategy that needs one', async (t) => {
  const proxy = (...others: [Stored?]) =>
    world(
      oidcConfig(),
      authServer({ clients: [keyed('agent')], upstreamProviders: [] }),
      server('files', {
        ...oidcFor('https://files.example.com'),
        authServerRef: { kind: 'MCPExternalAuthConfig', name: 'server' },
        ...(others[0] && { externalAuthConfigRef: { name: others[0].metadata.name } }),
      }),
      ...others.filter((object) => object !== undefined),
    ).ready()
  t.notOk('outgoingAuth' in fileOf(proxy(), 'mcp-files-proxy-config'))
  t.match(fileOf(proxy(auth.bearer), 'mcp-files-proxy-config'), { outgoingAuth: { type: 'bearer_token' } })
  const exchange = resource('MCPExternalAuthConfig', 'own', {
    type: 'tokenExchange',
    tokenExchange: { tokenUrl: 'https://login.example.com/token', audience: 'backend' },
  })
  const exchanged = fileOf(proxy(exchange), 'mcp-files-proxy-config')['outgoingAuth']
  t.notMatch(JSON.stringify(exchanged), 'subjectProviderName', "the caller's own token is exchanged")
  const reported = (config: Stored) =>
    condition(proxy(config), 'MCPServer', 'files', 'ExternalAuthConfigValidated')
  const named =
    'The embedded authorization server has no upstream provider corp; its list upstreamProviders is empty'
  t.match(reported(auth.inject), { status: 'False', reason: 'SubjectProviderUnknown', message: named })
  const noIdToken =
    'requires an ID token from an upstream provider, but the embedded authorization server has no upstreams'
  t.match(reported(auth.xaa), { reason: 'SubjectProviderUnknown', message: `Type xaa ${noIdToken}` })
  t.match(reported(auth.exchange), {
    reason: 'SubjectProviderUnknown',
    message: `Type tokenExchange with subjectTokenType id_token ${noIdToken}`,
  })
  const exchangeOf = resource('MCPExternalAuthConfig', 'own', {
    type: 'tokenExchange',
    tokenExchange: {
      tokenUrl: 'https://login.example.com/token',
      audience: 'backend',
      subjectProviderName: 'corp',
    },
  })
  t.match(reported(exchangeOf), { reason: 'SubjectProviderUnknown', message: named })
})

t.test('policies cannot read the claims of an upstream that does not exist', async (t) => {
  const door = (more: object) =>
    world(
      oidcConfig(),
      authzConfig({ primary_upstream_provider: 'corp' }),
      entry('search'),
      virtual({
        incomingAuth: {
          type: 'oidc',
          ...oidcFor('https://door.example.com'),
          authzConfigRef: { name: 'policies' },
        },
        authServerConfig: embedded({ clients: [keyed('agent')], upstreamProviders: [], ...more }),
      }),
    ).ready()
  t.match(condition(door({}), 'VirtualMCPServer', 'door', 'AuthServerConfigValidated'), {
    status: 'False',
    reason: 'AuthzUpstreamUnknown',
    message: 'primaryUpstreamProvider corp is unknown, because the list upstreamProviders is empty',
  })
  const own = virtual({
    incomingAuth: {
      type: 'oidc',
      ...oidcFor('https://door.example.com'),
      authzConfig: { type: 'inline', inline: { policies: [policy] } },
    },
    authServerConfig: embedded({ clients: [keyed('agent')], upstreamProviders: [] }),
  })
  const file = fileOf(world(oidcConfig(), own).ready(), 'door-vmcp-config', 'config.yaml')
  t.notMatch(JSON.stringify(file), 'primaryUpstreamProvider', 'policies read the claims of the caller')
})

/** Returns a host's objects with additional fields in the host's own spec. */
const hostObjects = (host: (typeof hosts)[number], more: object, spec: object): Stored[] =>
  host
    .objects(more)
    .map((object) =>
      object.kind === host.kind ? { ...object, spec: { ...(object['spec'] as object), ...spec } } : object,
    )
const redisStore = {
  storage: {
    type: 'redis',
    redis: {
      addr: 'redis.example.com:6379',
      aclUserConfig: { passwordSecretRef: { name: 'redis', key: 'password' } },
    },
  },
}
const counts = [
  { spec: {}, rejected: false },
  { spec: { replicas: 1 }, rejected: false },
  { spec: { replicas: 2 }, rejected: true },
  { spec: { autoscaling: { minReplicas: 1, maxReplicas: 3 } }, rejected: true },
]

for (const host of hosts) {
  t.test(`${host.kind}: memory storage with declared clients allows only one replica`, async (t) => {
    const clients = { clients: [keyed('agent')] }
    for (const { spec, rejected } of counts) {
      const w = world(oidcConfig(), ...hostObjects(host, clients, spec)).ready()
      const found = condition(w, host.kind, host.name, host.conditionType)
      t.match(
        found,
        rejected
          ? { status: 'False', reason: host.reason, message: /only one replica.*set storage to type redis$/ }
          : { status: 'True' },
        JSON.stringify(spec),
      )
      t.equal(
        w.find('Deployment', host.deployment) === undefined,
        rejected,
        'a rejected server starts no pod',
      )
    }
    const shared = world(oidcConfig(), ...hostObjects(host, { ...clients, ...redisStore }, { replicas: 2 }))
    t.match(condition(shared.ready(), host.kind, host.name, host.conditionType), { status: 'True' })
    const people = world(oidcConfig(), ...hostObjects(host, {}, { replicas: 2 })).ready()
    t.match(
      condition(people, host.kind, host.name, 'AuthServerReplicasWarning'),
      { reason: 'MemoryStorageWithReplicas' },
      'without declared clients, it is a warning',
    )
  })

  t.test(`${host.kind}: replicas set by another controller are reported`, async (t) => {
    const w = world(oidcConfig(), ...hostObjects(host, { clients: [keyed('agent')] }, {})).ready()
    t.equal(condition(w, host.kind, host.name, 'AuthServerReplicasWarning'), undefined)
    const deployment = w.get('Deployment', host.deployment)
    w.apply({ ...deployment, spec: { ...(deployment['spec'] as object), replicas: 3 } })
    t.match(condition(w.settle(), host.kind, host.name, 'AuthServerReplicasWarning'), {
      status: 'True',
      reason: 'MemoryStorageWithReplicas',
      message: /each replica accepts the same assertion; set storage to type redis$/,
    })
    t.match(condition(w, host.kind, host.name, host.conditionType), { status: 'True' })
  })
}

t.test('the single proxy of a stdio server may have declared clients with memory storage', async (t) => {
  const [files] = hosts
  const objects = hostObjects(files, { clients: [keyed('agent')] }, { transport: 'stdio', replicas: 2 })
  const w = world(oidcConfig(), ...objects).ready()
  t.match(condition(w, 'MCPServer', 'files', 'AuthServerRefValidated'), { status: 'True' })
  t.equal(condition(w, 'MCPServer', 'files', 'AuthServerReplicasWarning'), undefined)
})

t.test('admission rejects replicas of a virtual server for machines in memory', async (t) => {
  const [, , door] = hosts
  for (const settings of [{ clients: [keyed('agent')] }, platforms]) {
    const [manifest] = hostObjects(door, settings, { replicas: 2 })
    t.match(validateResource(manifest).violations, [
      {
        path: 'spec.authServerConfig',
        message: /only one replica with clients, inboundGrants.jwtBearer or inboundGrants.spiffeClientAuth/,
      },
    ])
    const [shared] = hostObjects(door, { ...settings, ...redisStore }, { replicas: 2 })
    t.same(validateResource(shared).violations, [])
  }
})
