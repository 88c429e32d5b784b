/**
 * Upgrade from this version to a later one with a new and a renamed field, and rollback, on a real API server with the
 * commands of docs/guides/upgrades.md. The hooks of both versions answer the API server's admission calls and the sync
 * calls that Metacontroller would make.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { issueCertificate } from '../../../hooks/certificates/issue.ts'
import { objectsIn } from '../../helpers/hooks/manifests.ts'
import { type HooksProcess, startHooksProcess, writeCertificate } from '../../helpers/hooks/process.ts'
import { type KubeApiserver, kubeMissing, startKubeApiserver } from '../../helpers/kube/apiserver.ts'
import { makeNextVersion, thisVersion, type Version } from '../../helpers/kube/next-version.ts'
import { untyped } from '../../helpers/untyped.ts'

const hour = 3_600_000
const namespace = 'team'
const apiVersion = 'gatehouse.dev/v1beta1'

t.setTimeout(400_000)

function manifest(kind: string, name: string, spec: object) {
  return { apiVersion, kind, metadata: { name, namespace }, spec }
}

function virtualServer(name: string, config: object) {
  return manifest('VirtualMCPServer', name, {
    groupRef: { name: 'tools' },
    incomingAuth: { type: 'anonymous' },
    config,
  })
}

interface Release {
  readonly version: Version
  readonly hooks: HooksProcess
  readonly ca: string
}

async function startRelease(t: Test, version: Version): Promise<Release> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-release-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const pair = await issueCertificate({ names: ['localhost'], lifetimeMs: 24 * hour, now: new Date() })
  writeCertificate(folder, pair)
  const build = { program: version.hooksProgram, version: version.version }
  return { version, hooks: await startHooksProcess(t, folder, [], [], build), ca: pair.ca }
}

/** Installs a version's definitions as the guide says, and its webhook with this machine's address. */
async function install(kube: KubeApiserver, { version, hooks, ca }: Release): Promise<void> {
  kube.must(['apply', '--server-side', '--force-conflicts', '-f', join(version.manifests, 'crds')])
  kube.must(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=60s'])
  const [configuration] = objectsIn(readFileSync(join(version.manifests, 'base/admission.yaml'), 'utf8'))
  const caBundle = Buffer.from(ca).toString('base64')
  const clientConfig = { url: `https://localhost:${hooks.port}/validate`, caBundle }
  const webhooks = untyped(configuration?.['webhooks']).map((webhook: object) => ({
    ...webhook,
    clientConfig,
  }))
  kube.must(['apply', '-f', '-'], JSON.stringify({ ...configuration, webhooks }))
  await untilReviewedBy(kube, version)
}

/** Waits until the API server uses these definitions and this webhook. It applies both after a delay. */
async function untilReviewedBy(kube: KubeApiserver, version: Version): Promise<void> {
  const isLater = version !== thisVersion
  const probe = JSON.stringify(virtualServer('probe', { name: 'Probe' }))
  const later = JSON.stringify(virtualServer('probe', { serverName: 'Probe' }))
  const create = ['create', '--dry-run=server', '--validate=strict', '-f', '-']
  for (;;) {
    const { code, stderr } = kube.kubectl(create, probe)
    const isKnown = kube.kubectl(create, later).code === 0
    if (code === 0 && stderr.includes('deprecated') === isLater && isKnown === isLater) return
    await pause(200)
  }
}

function post({ hooks, ca }: Release, path: string, body: object): Promise<ReturnType<typeof JSON.parse>> {
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', ca, headers: { 'content-type': 'application/json' } }
    const call = request(`https://localhost:${hooks.port}${path}`, options, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.on('end', () => {
        if (response.statusCode === 200) resolve(JSON.parse(text))
        else reject(new Error(`${response.statusCode} ${text}`))
      })
    })
    call.on('error', reject)
    call.end(JSON.stringify(body))
  })
}

const childResources =
  'deployments,services,configmaps,serviceaccounts,roles,rolebindings,poddisruptionbudgets'

/** Groups objects by kind and name, as in a sync request. */
function grouped(objects: readonly Child[]): Record<string, Record<string, Child>> {
  const groups: Record<string, Record<string, Child>> = {}
  for (const object of objects) {
    const group = (groups[`${object.kind}.${object.apiVersion}`] ??= {})
    group[`${namespace}/${object.metadata.name}`] = object
  }
  return groups
}

interface Child {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly ownerReferences?: readonly { readonly uid: string }[] }
}

/** Syncs one object as Metacontroller does, and applies its children and its status. Returns the children. */
async function syncOne(kube: KubeApiserver, release: Release, plural: string, name: string) {
  const list = (resources: string): Child[] => kube.get([resources, '-n', namespace]).items
  const parent = kube.get([plural, name, '-n', namespace])
  const { relatedResources } = await post(release, `/hooks/${plural}/customize`, { parent })
  const related = relatedResources.flatMap(({ resource, names }: { resource: string; names?: string[] }) =>
    list(resource).filter(({ metadata }) => names?.includes(metadata.name) ?? true),
  )
  const own = list(childResources).filter(({ metadata }) =>
    metadata.ownerReferences?.some(({ uid }) => uid === parent.metadata.uid),
  )
  const body = { parent, related: grouped(related), children: grouped(own), finalizing: false }
  const answer: { children: Child[]; status: object } = await post(release, `/hooks/${plural}/sync`, body)
  const { uid } = parent.metadata
  const ownerReferences = [{ apiVersion, kind: parent.kind, name, uid, controller: true }]
  const items = answer.children.map((child) => ({
    ...child,
    metadata: { ...child.metadata, namespace, ownerReferences },
  }))
  const children = JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
  if (items.length > 0) kube.must(['apply', '--server-side', '--force-conflicts', '-f', '-'], children)
  const patch = ['--subresource=status', '--type=merge', '-p', JSON.stringify({ status: answer.status })]
  kube.must(['patch', plural, name, '-n', namespace, ...patch])
  return answer.children
}

interface Synced {
  readonly image: string
  /** The file that the pod reads. */
  readonly file: Record<string, unknown>
  /** Kind and name of each child. */
  readonly children: readonly string[]
}

/** Syncs the group, the backends, the group with its new members, and one virtual server. */
async function sync(kube: KubeApiserver, release: Release, name: string): Promise<Synced> {
  for (const [plural, object] of [
    ['mcpgroups', 'tools'],
    ['mcpserverentries', 'notes'],
    ['mcpopenapiservers', 'orders'],
    ['mcpgroups', 'tools'],
  ] as const)
    await syncOne(kube, release, plural, object)
  const children = await syncOne(kube, release, 'virtualmcpservers', name)
  const deployment = kube.get(['deployment', `vmcp-${name}`, '-n', namespace])
  const config = kube.get(['configmap', `${name}-vmcp-config`, '-n', namespace])
  return {
    image: deployment.spec.template.spec.containers[0].image,
    file: untyped(objectsIn(config.data['config.yaml'])[0]),
    children: children.map(({ kind, metadata }) => `${kind} ${metadata.name}`),
  }
}

await t.test('upgrade and rollback', { skip: kubeMissing() }, async (t) => {
  const next = makeNextVersion(t)
  const kube = await startKubeApiserver(t)
  kube.must(['create', 'namespace', namespace])
  const specOf = (name: string) => kube.get(['virtualmcpserver', name, '-n', namespace]).spec
  const apply = (object: object) => kube.kubectl(['apply', '-f', '-'], JSON.stringify(object))
  const [older, newer] = [await startRelease(t, thisVersion), await startRelease(t, next)]
  const entry = { remoteUrl: 'https://notes.example.com/mcp', transport: 'streamable-http' }

  const paths = { '/orders': { get: { operationId: 'listOrders', responses: {} } } }
  const text = JSON.stringify({ openapi: '3.1.0', info: { title: 'Orders', version: '1' }, paths })
  kube.must(['create', 'configmap', 'orders', '-n', namespace, `--from-literal=openapi.json=${text}`])

  await install(kube, older)
  for (const object of [
    manifest('MCPGroup', 'tools', {}),
    manifest('MCPServerEntry', 'notes', { ...entry, groupRef: { name: 'tools' } }),
    manifest('MCPOpenAPIServer', 'orders', {
      baseUrl: 'https://orders.example.com',
      document: { configMapRef: { name: 'orders', key: 'openapi.json' } },
      groupRef: { name: 'tools' },
    }),
    virtualServer('stored', { name: 'Tools of the team' }),
  ])
    t.match(apply(object), { code: 0, stderr: '' })
  const before = { spec: specOf('stored'), synced: await sync(kube, older, 'stored') }
  t.match(before.synced, { image: /:0\.1\.0$/, file: { name: 'Tools of the team' } })
  t.match(JSON.stringify(before.synced.file), 'https://notes.example.com/mcp', 'the backend is in the file')
  t.match(JSON.stringify(before.synced.file), '/etc/gatehouse/openapi/orders/openapi.json')
  const serviceStatus = () => kube.get(['mcpopenapiserver', 'orders', '-n', namespace]).status
  t.match(serviceStatus(), { phase: 'Ready', toolCount: 1 })

  await install(kube, newer)
  await t.test('the later version reads stored objects, and creates the same children', async (t) => {
    t.same(specOf('stored'), before.spec)
    const after = await sync(kube, newer, 'stored')
    t.match(after.image, /:0\.2\.0$/)
    t.same(after.children, before.synced.children)
    t.same(after.file, before.synced.file)
    t.match(serviceStatus(), { phase: 'Ready', toolCount: 1 })
  })

  await t.test('the later version accepts the old name with a warning', async (t) => {
    const { code, stderr } = kube.kubectl(
      ['create', '--dry-run=server', '-f', '-'],
      JSON.stringify(virtualServer('another', { name: 'Another' })),
    )
    t.equal(code, 0)
    t.match(stderr, 'config.name is deprecated; set config.serverName')
  })

  await t.test('the later version stores and applies the new fields', async (t) => {
    for (const name of ['fresh', 'written']) {
      const config = { serverName: 'New name', displayName: 'Team', audit: { enabled: true } }
      t.match(apply(virtualServer(name, config)), { code: 0, stderr: '' })
      t.match((await sync(kube, newer, name)).file, { name: 'New name', displayName: 'Team' })
    }
  })

  await install(kube, older)
  await t.test('after a rollback, objects lack the new fields and keep all others', async (t) => {
    t.same(specOf('stored'), before.spec)
    t.same(Object.keys(specOf('fresh').config), ['audit'])
  })

  await t.test('after a rollback, the older hooks create the same children as before', async (t) => {
    t.same(await sync(kube, older, 'stored'), before.synced)
  })

  await t.test('after a rollback, the older hooks use the default of a renamed field', async (t) => {
    const { file, image } = await sync(kube, older, 'written')
    t.match(image, /:0\.1\.0$/)
    t.equal(file['name'], 'written')
    t.notOk('displayName' in file)
  })

  await t.test(
    'after a rollback, a manifest with a new field is rejected, and the error names the field',
    async (t) => {
      const { code, stderr } = apply(virtualServer('fresh', { serverName: 'New name' }))
      t.not(code, 0)
      t.match(stderr, 'unknown field "spec.config.serverName"')
    },
  )

  await install(kube, newer)
  await t.test('a second upgrade finds the new fields of objects that no one has written', async (t) => {
    t.match(specOf('fresh').config, { serverName: 'New name', displayName: 'Team' })
    t.notOk('serverName' in specOf('written').config, 'the sync after the rollback wrote its status')
  })
})
