/**
 * Problems and warnings are reported on the resource that they concern.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { makeHooks, validateResource } from '../../../../hooks/index.ts'
import { eventObject } from '../../../../hooks/server/events.ts'
import {
  auth,
  configMap,
  embedded,
  entry,
  group,
  oidcConfig,
  remote,
  resource,
  secret,
  secrets,
  server,
  virtual,
  world,
} from '../../../hooks/resources.ts'
import { type Condition, testSettings, World } from '../../../hooks/world.ts'

const condition = (w: World, kind: string, name: string, type: string) =>
  (w.get(kind, name)['status'] as { conditions: Condition[] }).conditions.find((item) => item.type === type)
const ofDoor = (w: World, type: string) => condition(w, 'VirtualMCPServer', 'door', type)
const template = (w: World) => JSON.stringify((w.get('Deployment', 'vmcp-door')['spec'] as object) ?? {})
const violationsOf = (manifest: object) =>
  validateResource(manifest).violations.map(({ path, message }) => `${path}: ${message}`)

t.test('replicas of an authorization server that do not share state are reported', async (t) => {
  const served = (more: object, replicas = 2) =>
    virtual({
      replicas,
      incomingAuth: {
        type: 'oidc',
        oidcConfigRef: {
          name: 'login',
          audience: 'https://door.example.com',
          resourceUrl: 'https://door.example.com',
        },
      },
      authServerConfig: embedded(more),
    })
  const acl = { aclUserConfig: { passwordSecretRef: { name: 'redis', key: 'password' } } }
  const redis = { storage: { type: 'redis', redis: { addr: 'redis.example.com:6379', ...acl } } }
  const of = (manifest: ReturnType<typeof virtual>) =>
    ofDoor(world(oidcConfig(), manifest).settle(), 'AuthServerReplicasWarning')
  t.match(of(served({})), { status: 'True', reason: 'MemoryStorageWithReplicas', message: /redis/ })
  t.match(of(served({ ...redis, signingKeySecretRefs: undefined })), {
    reason: 'EphemeralKeysWithReplicas',
    message: /set signingKeySecretRefs$/,
  })
  t.equal(of(served(redis)), undefined)
  t.equal(of(served({}, 1)), undefined)
  const warned = validateResource(served({})).warnings
  t.ok(warned.some((text) => /replicas do not share clients/.test(text)))

  const login = { name: 'login', audience: 'https://crm.example.com', resourceUrl: 'https://crm.example.com' }
  const proxy = remote('crm', {
    replicas: 2,
    oidcConfigRef: login,
    authServerRef: { kind: 'MCPExternalAuthConfig', name: 'server' },
  })
  const w = world(oidcConfig(), auth.server, proxy).settle()
  t.match(condition(w, 'MCPRemoteProxy', 'crm', 'AuthServerReplicasWarning'), { status: 'True' })
})

t.test('the address of a session store requires a port', async (t) => {
  for (const address of ['redis.example.com', 'redis://redis.example.com:6379', 'redis:', ':6379']) {
    for (const manifest of [
      virtual({ sessionStorage: { provider: 'redis', address } }),
      server('files', { sessionStorage: { provider: 'redis', address } }),
      virtual({ config: { sessionStorage: { provider: 'redis', address } } }),
    ]) {
      t.match(violationsOf(manifest), [/sessionStorage\.address.*host:port/], `${manifest.kind} ${address}`)
    }
  }
  for (const address of ['redis:6379', 'redis.team.svc:6379', '[::1]:6379'])
    t.strictSame(violationsOf(virtual({ sessionStorage: { provider: 'redis', address } })), [], address)
})

t.test('an optional CA bundle may be absent, and is used once it exists', async (t) => {
  const optional = { configMapRef: { name: 'anchors', optional: true } }
  const oidc = { type: 'oidc', oidcConfigRef: { name: 'login', audience: 'https://door.example.com/mcp' } }
  const w = world(
    oidcConfig({ caBundleRef: optional }),
    entry('search', { caBundleRef: optional }),
    virtual({ incomingAuth: oidc }),
  ).ready()
  const absent = { status: 'True', reason: 'CABundleRefAbsent' }
  t.match(condition(w, 'MCPOIDCConfig', 'login', 'Valid'), { status: 'True' })
  t.match(condition(w, 'MCPOIDCConfig', 'login', 'CABundleRefValidated'), absent)
  t.match(condition(w, 'MCPServerEntry', 'search', 'CABundleRefValidated'), absent)
  t.notMatch(template(w), /anchors/, 'pods start without it')
  w.apply(configMap('anchors', { 'ca.crt': 'pem' })).ready()
  t.match(condition(w, 'MCPOIDCConfig', 'login', 'CABundleRefValidated'), { reason: 'CABundleRefValid' })
  t.match(template(w), /"name":"anchors"/)
  const file = (w.get('ConfigMap', 'door-vmcp-config')['data'] as Record<string, string>)['config.yaml']
  t.match(file, /\/config\/certs\/anchors\/ca\.crt/)
  t.match(file, /ca-bundles\/search\/ca\.crt/)
})

t.test(
  'the Secret of the default session store is watched, reported when it is missing, and rolls the pods when it changes',
  async (t) => {
    const settings = {
      ...testSettings,
      defaultRedis: { address: 'redis.example.com:6379', secretName: 'store', secretKey: 'pw' },
    }
    const parents = [virtual(), server('files'), remote('crm')]
    for (const parent of parents) {
      const { kind, metadata } = parent
      const names = (object: object) =>
        makeHooks(settings)
          .byKind(kind)
          ?.customize({ controller: {}, parent: object })
          .relatedResources.find(({ resource }) => resource === 'secrets')?.names ?? []
      t.ok(names(parent).includes('store'), kind)
      const own = { ...(parent['spec'] as object), sessionStorage: { provider: 'memory' } }
      t.notOk(names({ ...parent, spec: own }).includes('store'), `${kind} with its own store`)
      const w = new World(settings).apply(group, ...secrets, parent).settle()
      const status = () => w.get(kind, metadata.name)['status'] as { message: string }
      t.match(status().message, /default session store: not found: Secret store, key pw/)
      w.apply(secret('store', { pw: 'one' })).settle()
      const pods = () => JSON.stringify(w.list('Deployment').map((object) => object['spec']))
      const before = pods()
      t.match(before, /"name":"store"/)
      w.apply(secret('store', { pw: 'two' })).settle()
      t.not(pods(), before, `the pods of ${kind} are rolled`)
    }
  },
)

t.test('two members with the same name are reported on the virtual server', async (t) => {
  const w = world(server('same'), entry('same'), virtual()).ready()
  t.match(ofDoor(w, 'MemberNamesUnique'), {
    status: 'False',
    reason: 'DuplicateMemberName',
    message: /called same;/,
  })
  w.remove('MCPServerEntry', 'same').settle()
  t.equal(ofDoor(w, 'MemberNamesUnique'), undefined)
})

t.test('a custom service account without the permission to report is reported', async (t) => {
  const own = virtual({ serviceAccount: 'mine' })
  const { warnings } = validateResource(own)
  t.ok(
    warnings.some((text) => /get and patch on ConfigMap door-vmcp-status/.test(text) && text.length <= 120),
  )
  const w = world(entry('a'), own).settle()
  t.equal(ofDoor(w, 'BackendHealthReported'), undefined, 'before a pod exists that could report')
  w.ready()
  t.match(ofDoor(w, 'BackendHealthReported'), {
    status: 'False',
    message: /grant ServiceAccount mine get and patch on ConfigMap door-vmcp-status/,
  })
  w.setData('door-vmcp-status', { 'one.json': '{}' }).settle()
  t.equal(ofDoor(w, 'BackendHealthReported'), undefined)
  t.equal(ofDoor(world(entry('a'), virtual()).ready(), 'BackendHealthReported'), undefined)
})

t.test('admission rejects what is too large for a child object', async (t) => {
  const policy = `permit(principal, action, resource) when { resource.name == "${'x'.repeat(60_000)}" };`
  const inline = { type: 'inline', inline: { policies: [policy, policy, policy, policy, policy] } }
  const manifests = [
    virtual({ incomingAuth: { type: 'anonymous', authzConfig: inline } }),
    server('files', { authzConfig: inline }),
    remote('crm', { authzConfig: inline }),
    virtual({
      podTemplateSpec: {
        spec: { containers: [{ name: 'vmcp', env: [{ name: 'A', value: 'x'.repeat(250_000) }] }] },
      },
    }),
  ]
  for (const manifest of manifests) {
    t.ok(
      violationsOf(manifest).some((text) => /at least \d+ bytes; the maximum is 245760/.test(text)),
      manifest.kind,
    )
  }
  const fits = { type: 'inline', inline: { policies: [policy, policy] } }
  t.strictSame(violationsOf(virtual({ incomingAuth: { type: 'anonymous', authzConfig: fits } })), [])
})

t.test('the deletion of a group with members is reviewed', async (t) => {
  const [webhooks] = parseAllDocuments(readFileSync('manifests/base/admission.yaml', 'utf8')).map(
    (document) => document.toJS() as { webhooks: { name: string; rules: { resources: string[] }[] }[] },
  )
  const deletion = webhooks?.webhooks.find(({ name }) => name === 'delete.gatehouse.dev')
  t.ok(deletion?.rules[0]?.resources.includes('mcpgroups'))
})

t.test(
  'a problem that requires an operator causes a Warning Event, which stays the same while the state does',
  async (t) => {
    const eventsOf = (w: World, kind: string, name: string) => {
      const request = w.request(kind, name)
      const hook = w.hooks.byKind(kind)
      return (
        hook?.events(request, hook.sync(request)).map((event) => eventObject(event, () => new Date(0))) ?? []
      )
    }
    const wrong = resource('MCPAuthzConfig', 'policies', {
      type: 'cedarv1',
      config: { policies: ['permit('] },
    })
    const needy = server('files', { secrets: [{ name: 'absent', key: 'k' }] })
    const map = { type: 'configMap', configMap: { name: 'gone', key: 'k' } }
    const w = world(
      wrong,
      needy,
      virtual({ incomingAuth: { type: 'anonymous', authzConfig: map } }),
      remote('crm'),
    ).settle()
    t.match(eventsOf(w, 'MCPAuthzConfig', 'policies'), [
      { type: 'Warning', reason: 'ConfigInvalid', message: /policies\[0\]/ },
    ])
    t.match(eventsOf(w, 'MCPServer', 'files'), [
      { reason: 'SecretNotFound', message: /Secret absent, key k/ },
    ])
    t.match(eventsOf(w, 'VirtualMCPServer', 'door'), [{ reason: 'AuthzConfigMapNotFound', message: /gone/ }])
    t.strictSame(eventsOf(w, 'MCPRemoteProxy', 'crm'), [], 'starting pods cause no Event')
    const [first] = eventsOf(w, 'MCPServer', 'files')
    t.equal(
      eventsOf(w, 'MCPServer', 'files')[0]?.metadata.name,
      first?.metadata.name,
      'the same name, so one Event',
    )
    w.apply(server('files', { secrets: [{ name: 'other', key: 'k' }] })).settle()
    t.not(eventsOf(w, 'MCPServer', 'files')[0]?.metadata.name, first?.metadata.name)
    w.apply(secret('other', { k: 'v' })).ready()
    t.strictSame(eventsOf(w, 'MCPServer', 'files'), [])
  },
)
