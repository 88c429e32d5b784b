/**
 * Runs the whole loop with real parts: API server, Metacontroller with the least rights from the manifests, hooks
 * server over TLS with the certificate of the job. Only pods are missing: no container runs here.
 */
import { request } from 'node:https'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Command } from 'commander'
import t, { type Test } from 'tap'
import { addCertificatesCommand } from '../../../hooks/certificates/command.ts'
import { kinds } from '../../../schemas/index.ts'
import { startHooksProcess, writeCertificate } from '../../helpers/hooks/process.ts'
import { type KubeApiserver, startKubeApiserver } from '../../helpers/kube/apiserver.ts'
import { manifestsFolder } from '../../helpers/hooks/manifests.ts'
import { metacontrollerMissing, startMetacontroller } from '../../helpers/kube/metacontroller.ts'
import { compositeControllerCrd, otherMetacontrollerCrds } from '../../helpers/kube/metacontroller-crd.ts'

const namespace = 'gatehouse-system'
const examples =
  'authz cloud-sts composite-tools embedded-auth-server header-injection oidc optimizer redis-sessions remote-entry rest-service token-exchange tool-locks'.split(
    ' ',
  )

/** Objects that the comments of the examples ask their reader to create. */
const secrets = [
  { namespace: 'embedded-auth-server', name: 'front-door-keys', keys: ['signing.pem', 'hmac'] },
  { namespace: 'embedded-auth-server', name: 'front-door-clients', keys: ['company', 'github'] },
  { namespace: 'header-injection', name: 'search-api', keys: ['api-key'] },
  { namespace: 'redis-sessions', name: 'sessions-redis', keys: ['password'] },
  { namespace: 'remote-entry', name: 'partner-token', keys: ['token'] },
  { namespace: 'rest-service', name: 'orders-token', keys: ['token'] },
  { namespace: 'token-exchange', name: 'tickets-exchange', keys: ['client-secret'] },
] as const

interface Obj {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly uid: string
    readonly generation: number
    readonly resourceVersion: string
    readonly ownerReferences?: readonly { readonly uid: string; readonly controller?: boolean }[]
  }
  readonly status?: {
    readonly observedGeneration?: number
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
  readonly spec: Record<string, unknown>
}

const label = ({ kind, metadata }: Obj): string => `${metadata.namespace}/${kind}/${metadata.name}`

function list(kube: KubeApiserver, resources: string): readonly Obj[] {
  const { items }: { items: Obj[] } = kube.get([resources, '-A'])
  return items
}

const parents = (kube: KubeApiserver) => list(kube, kinds.map(({ plural }) => plural).join(','))
const childResources =
  'deployments,statefulsets,services,configmaps,serviceaccounts,roles,rolebindings,poddisruptionbudgets,horizontalpodautoscalers'

function conditionOf(object: Obj, type: string): string | undefined {
  return object.status?.conditions?.find((one) => one.type === type)?.status
}

/** Polls until `found` returns true, because the work of Metacontroller is visible only in the API. */
async function until(what: string, found: () => boolean): Promise<void> {
  for (let count = 0; count < 240; count += 1) {
    if (found()) return
    await pause(250)
  }
  throw new Error(`waited in vain: ${what}`)
}

/** A Secret with the bearer token that the hooks require. */
const token = { name: 'hooks-token', key: 'token', value: 'a-token-of-this-test' } as const

/** Makes Metacontroller connect to this machine instead of the Service, and present the token. */
function redirect(kube: KubeApiserver, port: number): void {
  const {
    items,
  }: {
    items: { metadata: { name: string }; spec: { hooks: Record<string, { webhook: { url: string } }> } }[]
  } = kube.get(['compositecontrollers'])
  for (const { metadata, spec } of items) {
    const hooks = Object.entries(spec.hooks).map(([name, { webhook }]) => {
      const { pathname, search } = new URL(webhook.url)
      const url = `https://localhost:${port}${pathname}${search}`
      const secretRef = { name: token.name, namespace, key: token.key }
      return [name, { webhook: { url, authorization: { type: 'Bearer', secretRef } } }]
    })
    const patch = JSON.stringify({ spec: { hooks: Object.fromEntries(hooks) } })
    kube.must(['patch', 'compositecontroller', metadata.name, '--type=merge', '-p', patch])
  }
}

t.setTimeout(240_000)

for (const strategy of ['dynamic-apply', 'server-side-apply'] as const) {
  const title = `with a real Metacontroller, ${strategy}`
  await t.test(title, { skip: metacontrollerMissing() }, (t) => scenario(t, strategy))
}

async function scenario(t: Test, strategy: string): Promise<void> {
  t.setTimeout(240_000)
  const kube = await startKubeApiserver(t)
  const crds = { apiVersion: 'v1', kind: 'List', items: [compositeControllerCrd, ...otherMetacontrollerCrds] }
  kube.must(['apply', '-f', '-'], JSON.stringify(crds))
  kube.must(['apply', '--server-side', '-f', join(manifestsFolder, 'crds')])
  kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
  kube.must(['apply', '-k', join(manifestsFolder, 'overlays/private-metacontroller')])
  // No server answers the webhook here. It has its own test.
  kube.must(['delete', 'validatingwebhookconfiguration', 'gatehouse-hooks'])

  const program = new Command().exitOverride()
  addCertificatesCommand(program)
  const controllers: string[] = kube
    .get(['compositecontrollers'])
    .items.map((one: { metadata: { name: string } }) => one.metadata.name)
  const targets = ['--composite-controller', ...controllers, '--dns-name', 'localhost']
  const where = ['--namespace', namespace, '--service', 'gatehouse-hooks', '--secret', 'gatehouse-hooks-tls']
  const config = kube.configOf('gatehouse-certificates', namespace)
  await program.parseAsync(['certificates', 'issue', ...where, ...targets, '--kubeconfig', config], {
    from: 'user',
  })
  const { data }: { data: Record<string, string> } = kube.get([
    'secret',
    'gatehouse-hooks-tls',
    '-n',
    namespace,
  ])
  const text = (key: string) => Buffer.from(data[key] ?? '', 'base64').toString('utf8')
  const folder = t.testdir({ token: `${token.value}\n` })
  writeCertificate(folder, { certificate: text('tls.crt'), key: text('tls.key') })
  const hooks = await startHooksProcess(t, folder, [], ['--token-file', join(folder, 'token')])
  const literal = `--from-literal=${token.key}=${token.value}`
  kube.must(['create', 'secret', 'generic', token.name, '-n', namespace, literal])
  redirect(kube, hooks.port)

  for (const example of examples) {
    kube.must(['create', 'namespace', example])
    kube.must(['apply', '-n', example, '-k', join(manifestsFolder, 'examples', example)])
  }
  const metacontroller = startMetacontroller(
    t,
    kube.configOf('gatehouse-metacontroller', namespace),
    '--target-label-selector=gatehouse.dev/instance=default',
    `--apply-strategy=${strategy}`,
  )

  await t.test('every object of every example is reconciled', async (t) => {
    const pending = () =>
      parents(kube).filter(({ metadata, status }) => status?.observedGeneration !== metadata.generation)
    await until('observedGeneration', () => pending().length === 0).catch(() => {})
    t.strictSame(pending().map(label), [])
    t.notMatch(metacontroller.log(), /forbidden/i, 'the rights are sufficient')
    const events: { items: { reason: string; message: string }[] } = kube.get(['events', '-A'])
    t.strictSame(
      events.items.filter(({ reason }) => reason === 'SyncError').map(({ message }) => message),
      [],
    )
  })

  await t.test('children exist and are owned by their parents', async (t) => {
    const uids = new Map(parents(kube).map((parent) => [parent.metadata.uid, parent]))
    const kinds = ['MCPServer', 'MCPRemoteProxy', 'VirtualMCPServer', 'EmbeddingServer']
    const ownedNow = () =>
      list(kube, childResources).filter(
        ({ metadata }) =>
          examples.includes(metadata.namespace) && metadata.ownerReferences?.some(({ uid }) => uids.has(uid)),
      )
    const childless = () => {
      const owners = new Set(
        ownedNow().map(({ metadata }) => uids.get(metadata.ownerReferences?.[0]?.uid ?? '')?.kind),
      )
      return kinds.filter((kind) => !owners.has(kind))
    }
    // The status of a parent may be written before its children are.
    await until('children of each kind', () => childless().length === 0).catch(() => {})
    t.strictSame(childless(), [], 'each kind has children', { log: metacontroller.log().slice(-4_000) })
    for (const { metadata } of ownedNow()) t.equal(metadata.ownerReferences?.[0]?.controller, true)
  })

  await t.test('a second sync changes nothing: no child and no status is written again', async (t) => {
    const versions = () =>
      Object.fromEntries(
        [...parents(kube), ...list(kube, childResources)].map((one) => [
          label(one),
          one.metadata.resourceVersion,
        ]),
      )
    // Statuses depend on each other, so they settle after a few rounds.
    let before = versions()
    await until('the end of all writes', () => {
      const now = versions()
      const same = JSON.stringify(now) === JSON.stringify(before)
      before = now
      return same
    })
    const calls = async () => {
      const page = await fetchMetrics(hooks.port, text('ca.crt'))
      return [...page.matchAll(/requests_total\{[^}]*hook="sync"[^}]*\} (\d+)/g)].reduce(
        (sum, [, n]) => sum + Number(n),
        0,
      )
    }
    const start = await calls()
    // A label on the parent passes every filter and does not change the response of the hooks.
    for (const { plural } of kinds) kube.kubectl(['label', plural, '--all', '-A', 'example.com/look=again'])
    for (let now = start; now < start + parents(kube).length; now = await calls()) await pause(250)
    const after = versions()
    const touched = Object.keys(after).filter((key) => after[key] !== before[key])
    const ours = new Set<string>(kinds.map(({ kind }) => kind))
    t.strictSame(
      touched.filter((key) => !ours.has(key.split('/')[1] ?? '')),
      [],
      'no child was written',
    )
    const generations = parents(kube).filter(
      ({ metadata, status }) => status?.observedGeneration !== metadata.generation,
    )
    t.strictSame(generations.map(label), [])
  })

  await t.test('new Secrets trigger a sync, also behind another object', async (t) => {
    for (const { namespace, name, keys } of secrets) {
      const values = keys.map((key) => `--from-literal=${key}=0123456789012345678901234567890123456789`)
      kube.must(['create', 'secret', 'generic', name, '-n', namespace, ...values])
    }
    const invalid = () =>
      list(kube, 'mcpexternalauthconfigs').filter((one) => conditionOf(one, 'Valid') !== 'True')
    await until('valid configurations', () => invalid().length === 0)
    for (const name of ['everyone', 'support', 'research', 'remote', 'front-door']) {
      const there = () => list(kube, 'deployments').some(({ metadata }) => metadata.name === `vmcp-${name}`)
      await until(`the Deployment of ${name}`, there)
      t.pass(name)
    }
    t.notMatch(metacontroller.log(), '0123456789012345', 'no value of a Secret is logged')
  })

  await t.test('readiness of children sets the phase of parents, and syncs dependents', async (t) => {
    const counts = {
      replicas: 1,
      readyReplicas: 1,
      availableReplicas: 1,
      updatedReplicas: 1,
      observedGeneration: 1,
    }
    const patch = ['--subresource=status', '--type=merge', '-p', JSON.stringify({ status: counts })]
    const becomeReady = (...object: string[]) => kube.must(['patch', ...object, '-n', 'optimizer', ...patch])
    const phase = (...object: string[]): string => kube.get([...object, '-n', 'optimizer']).status.phase
    becomeReady('statefulset', 'embedding-tool-search')
    const deployment = ['deployment', 'vmcp-catalogue']
    await until(
      'the waiting server',
      () => kube.kubectl(['get', ...deployment, '-n', 'optimizer']).code === 0,
    )
    t.equal(phase('embeddingserver', 'tool-search'), 'Ready')
    becomeReady('statefulset', 'mcp-everything-server')
    becomeReady('deployment', 'mcp-everything-proxy')
    becomeReady(...deployment)
    await until('phase Ready', () => phase('virtualmcpserver', 'catalogue') === 'Ready')
    const { url }: { url: string } = kube.get(['virtualmcpserver', 'catalogue', '-n', 'optimizer']).status
    t.match(url, /^http:\/\/vmcp-catalogue\.optimizer\.svc.*\/mcp$/)
  })

  await t.test('a virtual server’s account may write only its own report', async (t) => {
    const as = ['-n', 'oidc', '--as', 'system:serviceaccount:oidc:engineering-vmcp']
    const may = (...args: string[]) => kube.kubectl(['auth', 'can-i', ...args, ...as]).code === 0
    t.ok(may('patch', 'configmaps/engineering-vmcp-status'))
    t.notOk(may('patch', 'configmaps/engineering-vmcp-config'), 'not its configuration')
    t.notOk(may('get', 'secrets'))
    t.notOk(may('list', 'mcpservers.gatehouse.dev'))
    t.notOk(may('patch', 'virtualmcpservers.gatehouse.dev/engineering', '--subresource=status'))
  })

  await t.test('a change of the spec is applied to the child', async (t) => {
    const patch = JSON.stringify({ spec: { replicas: 5 } })
    kube.must(['patch', 'virtualmcpserver', 'everyone', '-n', 'redis-sessions', '--type=merge', '-p', patch])
    const replicas = () =>
      list(kube, 'deployments').some(
        ({ metadata, spec }) => metadata.namespace === 'redis-sessions' && spec['replicas'] === 5,
      )
    await until('five replicas', replicas)
    t.pass('five replicas')
  })

  await t.test('removing the replica count keeps the current count', async (t) => {
    const server = ['virtualmcpserver', 'everyone', '-n', 'redis-sessions']
    const replicas = () => kube.get(['deployment', 'vmcp-everyone', '-n', 'redis-sessions']).spec.replicas
    kube.must(['patch', ...server, '--type=json', '-p', '[{"op":"remove","path":"/spec/replicas"}]'])
    const { generation } = kube.get(server).metadata
    await until('a sync', () => kube.get(server).status.observedGeneration === generation)
    t.equal(replicas(), 5)
    kube.must(['scale', 'deployment/vmcp-everyone', '-n', 'redis-sessions', '--replicas=3'])
    kube.must(['label', ...server, 'example.com/look=once-more', '--overwrite'])
    await until('the autoscaler’s count in the status', () => kube.get(server).status.replicas === 3)
    t.equal(replicas(), 3, "the autoscaler's count stays")
  })

  await t.test('an autoscaler is created and deleted, and the count is not reset', async (t) => {
    const at = ['-n', 'redis-sessions']
    const patch = (spec: object) => {
      const text = JSON.stringify({ spec })
      kube.must(['patch', 'virtualmcpserver', 'everyone', ...at, '--type=merge', '-p', text])
    }
    const has = (resource: string) => kube.kubectl(['get', resource, 'vmcp-everyone', ...at]).code === 0
    const replicas = () => kube.get(['deployment', 'vmcp-everyone', ...at]).spec.replicas
    t.ok(has('pdb'), 'there are several pods')
    patch({ autoscaling: { minReplicas: 2, maxReplicas: 6, targetSessions: 100 } })
    await until('the autoscaler', () => has('hpa'))
    kube.must(['scale', 'deployment/vmcp-everyone', ...at, '--replicas=4'])
    await until('its count', () => kube.get(['virtualmcpserver', 'everyone', ...at]).status.replicas === 4)
    t.equal(replicas(), 4)
    patch({ autoscaling: null })
    await until('no autoscaler', () => !has('hpa'))
    t.equal(replicas(), 4)
    patch({ replicas: 1 })
    await until('no budget for one pod', () => !has('pdb'))
    t.equal(replicas(), 1)
  })

  await t.test('a rotated Secret rolls the pods, also behind another object', async (t) => {
    for (const [namespace, deployment, secret, key] of [
      ['redis-sessions', 'vmcp-everyone', 'sessions-redis', 'password'],
      ['header-injection', 'vmcp-research', 'search-api', 'api-key'],
    ] as const) {
      const stamp = (): string =>
        kube.get(['deployment', deployment, '-n', namespace]).spec.template.metadata.annotations[
          'gatehouse.dev/runconfig-checksum'
        ]
      const before = stamp()
      const data = { [key]: Buffer.from(`rotated-${namespace}`).toString('base64') }
      kube.must(['patch', 'secret', secret, '-n', namespace, '--type=merge', '-p', JSON.stringify({ data })])
      await until(`another stamp on ${deployment}`, () => stamp() !== before)
      t.notMatch(stamp(), /rotated/)
    }
  })

  await t.test('another owner’s object with a child’s name is kept, and reported', async (t) => {
    const untrusted = {
      kind: 'Service',
      apiVersion: 'v1',
      metadata: { name: 'vmcp-late' },
      spec: { ports: [{ port: 1 }] },
    }
    kube.must(['apply', '-n', 'oidc', '-f', '-'], JSON.stringify(untrusted))
    const late = {
      apiVersion: 'gatehouse.dev/v1beta1',
      kind: 'VirtualMCPServer',
      metadata: { name: 'late' },
      spec: { groupRef: { name: 'engineering' }, incomingAuth: { type: 'anonymous' } },
    }
    kube.must(['apply', '-n', 'oidc', '-f', '-'], JSON.stringify(late))
    const status = () => kube.get(['virtualmcpserver', 'late', '-n', 'oidc']).status
    await until('the condition', () => JSON.stringify(status() ?? {}).includes('ChildConflict'))
    t.match(status().message, /Service vmcp-late exists/)
    t.strictSame(kube.get(['service', 'vmcp-late', '-n', 'oidc']).spec.ports[0].port, 1, 'as it was')
  })

  await t.test('another client’s change of a child is reverted', async (t) => {
    const service = list(kube, 'services').find(({ metadata }) => metadata.namespace === 'redis-sessions')
    const at = ['service', service?.metadata.name ?? '', '-n', 'redis-sessions']
    const affinity = String(service?.spec['sessionAffinity'])
    const other = affinity === 'None' ? 'ClientIP' : 'None'
    kube.must(['patch', ...at, '--type=merge', '-p', JSON.stringify({ spec: { sessionAffinity: other } })])
    await until('the affinity as before', () => kube.get(at).spec.sessionAffinity === affinity)
    t.pass(affinity)
  })

  await t.test('a broken reference keeps the running children, and is reported', async (t) => {
    const deployment = ['deployment', 'vmcp-everyone', '-n', 'redis-sessions']
    const before: Obj = kube.get(deployment)
    kube.must(['delete', 'secret', 'sessions-redis', '-n', 'redis-sessions'])
    const server = ['virtualmcpserver', 'everyone', '-n', 'redis-sessions']
    await until('phase Failed', () => kube.get(server).status.phase === 'Failed')
    const after: Obj = kube.get(deployment)
    t.equal(after.metadata.uid, before.metadata.uid, 'the same Deployment')
    t.strictSame(after.spec, before.spec, 'as it was')
    t.match(JSON.stringify(kube.get(server).status.conditions), 'sessions-redis')
  })
}

function fetchMetrics(port: number, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request({ host: 'localhost', port, path: '/metrics', ca }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk
      })
      response.on('end', () => resolve(body))
    })
    call.on('error', reject).end()
  })
}
