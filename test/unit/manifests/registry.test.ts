/** Objects derived from the hooks' registry: controllers, admission and permissions match it exactly. */
import t from 'tap'
import { allowDelete, defaultSettings, makeHooks } from '../../../hooks/index.ts'
import { apiGroup, apiVersion, kinds } from '../../../schemas/index.ts'
import { kustomized, type Obj } from '../../helpers/hooks/manifests.ts'
import { untyped } from '../../helpers/untyped.ts'

const registry = [...makeHooks(defaultSettings)]
const objects = kustomized('overlays/private-metacontroller')
const named = (kind: string, name: string) => {
  const found = objects.find((object) => object.kind === kind && object.metadata.name === name)
  if (!found) throw new Error(`no ${kind} ${name}`)
  return found
}
const controllers = objects.filter(({ kind }) => kind === 'CompositeController')

interface Hook {
  readonly version: string
  readonly webhook: { url: string; timeout: string; responseUnMarshallMode: string; caBundle?: unknown }
}

interface ControllerSpec {
  readonly parentResource: Record<string, unknown>
  readonly childResources?: { apiVersion: string; resource: string; updateStrategy: { method: string } }[]
  readonly generateSelector: boolean
  readonly resyncPeriodSeconds: number
  readonly hooks: Record<string, Hook>
}

await t.test('CompositeControllers: one for each kind with hooks', async (t) => {
  t.strictSame(
    controllers.map(({ metadata }) => metadata.name).toSorted(),
    registry.map(({ plural }) => `${plural}.${apiGroup}`).toSorted(),
  )
})

for (const entry of registry) {
  await t.test(
    `CompositeController of ${entry.kind}: calls its hooks in v2, over TLS, by version`,
    async (t) => {
      const object = named('CompositeController', `${entry.plural}.${apiGroup}`)
      const spec: ControllerSpec = untyped(object['spec'])
      t.strictSame(spec.parentResource, { apiVersion, resource: entry.plural, ignoreStatusChanges: true })
      t.equal(spec.generateSelector, true)
      t.equal(spec.resyncPeriodSeconds, 300)
      t.equal(object.metadata.labels?.['gatehouse.dev/instance'], 'default')
      t.strictSame(Object.keys(spec.hooks).toSorted(), ['customize', 'sync'], 'no finalizer')
      for (const [name, { version, webhook }] of Object.entries(spec.hooks)) {
        const url = new URL(webhook.url)
        t.equal(version, 'v2')
        t.equal(url.protocol, 'https:')
        t.equal(url.hostname, 'gatehouse-hooks.gatehouse-system.svc')
        t.equal(url.pathname, `/hooks/${entry.plural}/${name}`)
        t.match(url.searchParams.get('rev'), /^\d+\.\d+\.\d+/)
        t.equal(webhook.responseUnMarshallMode, 'strict')
        t.match(webhook.timeout, /^\d+s$/)
        t.notOk(
          'caBundle' in webhook,
          'filled in by the certificate job, kept when manifests are applied again',
        )
      }
    },
  )

  await t.test(`CompositeController of ${entry.kind}: manages exactly its child kinds`, async (t) => {
    const spec: ControllerSpec = untyped(named('CompositeController', `${entry.plural}.${apiGroup}`)['spec'])
    const always = entry.childKinds.filter((child) => child.integration === undefined)
    const wanted = always.map((child) => `${child.apiVersion} ${child.resource} ${child.updateStrategy}`)
    const there = (spec.childResources ?? []).map(
      (child) => `${child.apiVersion} ${child.resource} ${child.updateStrategy.method}`,
    )
    t.strictSame(there.toSorted(), wanted.toSorted())
    for (const child of spec.childResources ?? []) {
      t.equal(
        child.updateStrategy.method,
        child.resource === 'secrets' ? 'OnDelete' : 'InPlace',
        child.resource,
      )
    }
  })
}

interface Webhook {
  readonly name: string
  readonly rules: { apiGroups: string[]; apiVersions: string[]; resources: string[]; operations: string[] }[]
  readonly clientConfig: { service: Record<string, unknown>; caBundle?: string }
  readonly matchConditions: { name: string; expression: string }[]
  readonly [member: string]: unknown
}

const webhooks: Webhook[] = untyped(named('ValidatingWebhookConfiguration', 'gatehouse-hooks')['webhooks'])

await t.test('admission: reviews creation and updates of every kind, and nothing else', async (t) => {
  const [validate] = webhooks
  t.match(validate?.rules, [
    { apiGroups: [apiGroup], apiVersions: ['v1beta1'], operations: ['CREATE', 'UPDATE'] },
  ])
  t.strictSame(
    validate?.rules[0]?.resources,
    kinds.map(({ plural }) => plural),
  )
  t.notMatch(JSON.stringify(webhooks.map(({ rules }) => rules)), '/status')
})

await t.test('admission: reviews deletion of the kinds that count references', async (t) => {
  // A group counts its members instead.
  const guarded = kinds.filter(
    ({ kind, columns }) =>
      kind === 'MCPGroup' || columns.some(({ jsonPath }) => jsonPath.includes('referenceCount')),
  )
  t.ok(guarded.some(({ kind }) => kind === 'MCPExternalAuthConfig'))
  t.strictSame(
    webhooks[1]?.rules[0]?.resources,
    guarded.map(({ plural }) => plural),
  )
  t.strictSame(webhooks[1]?.rules[0]?.operations, ['DELETE'])
  t.match(
    JSON.stringify(webhooks[1]?.matchConditions),
    allowDelete,
    'the override works without a hooks server',
  )
})

await t.test('admission: fails closed, quickly, without side effects, at the hooks Service', async (t) => {
  const service = named('Service', 'gatehouse-hooks')
  const { ports }: { ports: { port: number }[] } = untyped(service['spec'])
  for (const webhook of webhooks) {
    t.match(webhook, {
      failurePolicy: 'Fail',
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
      timeoutSeconds: 5,
      clientConfig: {
        service: {
          name: 'gatehouse-hooks',
          namespace: 'gatehouse-system',
          path: '/validate',
          port: ports[0]?.port,
        },
      },
    })
    t.ok(webhook.name.split('.').length >= 3, 'at least three parts')
    t.notOk(webhook.clientConfig.caBundle)
  }
})

interface Rule {
  readonly apiGroups: string[]
  readonly resources: string[]
  readonly verbs: string[]
  readonly resourceNames?: string[]
}

/** Returns `group/resource` -> sorted verbs; every rule must have exactly one group. */
function grants(role: Obj): Record<string, string> {
  const found = new Map<string, Set<string>>()
  const rules: Rule[] = untyped(role['rules'])
  for (const { apiGroups, resources, verbs } of rules) {
    for (const group of apiGroups) {
      for (const resource of resources) {
        const key = `${group}/${resource}`
        found.set(key, new Set([...(found.get(key) ?? []), ...verbs]))
      }
    }
  }
  return Object.fromEntries([...found].map(([key, verbs]) => [key, [...verbs].toSorted().join(' ')]))
}

const read = ['get', 'list', 'watch']
const own = [...read, 'create', 'delete', 'patch', 'update']

await t.test(
  'permissions of Metacontroller: exactly the child, related and parent kinds of the registry',
  async (t) => {
    const wanted: Record<string, string[]> = {
      'metacontroller.k8s.io/compositecontrollers': own,
      'metacontroller.k8s.io/controllerrevisions': own,
      'metacontroller.k8s.io/decoratorcontrollers': own,
      'apiextensions.k8s.io/customresourcedefinitions': read,
      '/namespaces': read,
      // Permissions of the proxies of stdio servers, each for one pod.
      '/pods': ['get'],
      '/pods/attach': ['create', 'get'],
      '/events': ['create', 'patch'],
    }
    const add = (version: string, resource: string, verbs: string[]) => {
      const key = `${version.includes('/') ? version.split('/')[0] : ''}/${resource}`
      wanted[key] = [...new Set([...(wanted[key] ?? []), ...verbs])]
    }
    for (const entry of registry) {
      add(apiVersion, entry.plural, [...read, 'update'])
      add(apiVersion, `${entry.plural}/status`, ['get', 'update'])
      add(apiVersion, `${entry.plural}/finalizers`, ['update'])
      for (const child of entry.childKinds) add(child.apiVersion, child.resource, own)
      for (const related of entry.relatedKinds) add(related.apiVersion, related.resource, read)
    }
    const expected = Object.entries(wanted).map(([key, verbs]) => [key, verbs.toSorted().join(' ')])
    t.strictSame(grants(named('ClusterRole', 'gatehouse-metacontroller')), Object.fromEntries(expected))
  },
)

await t.test(
  'permissions of Metacontroller: Secrets are read-only, unless a kind creates them',
  async (t) => {
    const creates = registry.some(({ childKinds }) =>
      childKinds.some(({ resource }) => resource === 'secrets'),
    )
    const verbs = grants(named('ClusterRole', 'gatehouse-metacontroller'))['/secrets']
    t.equal(verbs, creates ? own.toSorted().join(' ') : read.join(' '))
  },
)

await t.test('permissions of the hooks server: may only create Events', async (t) => {
  t.strictSame(grants(named('ClusterRole', 'gatehouse-hooks')), { '/events': 'create' })
})

await t.test(
  'permissions of the certificate job: by name only, and exactly the objects in its arguments',
  async (t) => {
    const rules: Rule[] = ['Role', 'ClusterRole'].flatMap((kind) =>
      untyped(named(kind, 'gatehouse-certificates')['rules']),
    )
    for (const rule of rules) t.ok(rule.resourceNames?.length, 'limited to names')
    t.notMatch(JSON.stringify(rules), /create|delete|list|watch/)
    const names = Object.fromEntries(rules.map((rule) => [rule.resources.join(), rule.resourceNames]))
    t.strictSame(names, {
      secrets: ['gatehouse-hooks-tls'],
      validatingwebhookconfigurations: ['gatehouse-hooks'],
      compositecontrollers: controllers.map(({ metadata }) => metadata.name),
    })
    for (const kind of ['Job', 'CronJob']) {
      const job = objects.find((object) => object.kind === kind)
      for (const name of Object.values(names).flat())
        t.match(JSON.stringify(job), `${name ?? ''}"`, `${kind}: ${name}`)
    }
  },
)

await t.test(
  'permissions of users: view reads, edit changes, and both are added to the built-in roles',
  async (t) => {
    const plurals = kinds.map(({ plural }) => `${apiGroup}/${plural}`)
    const view = grants(named('ClusterRole', 'gatehouse-view'))
    t.strictSame(Object.keys(view).toSorted(), plurals.toSorted())
    t.ok(Object.values(view).every((verbs) => verbs === read.join(' ')))
    const edit = grants(named('ClusterRole', 'gatehouse-edit'))
    t.ok(Object.values(edit).every((verbs) => verbs === 'create delete deletecollection patch update'))
    t.match(named('ClusterRole', 'gatehouse-edit').metadata.labels, {
      'rbac.authorization.k8s.io/aggregate-to-edit': 'true',
      'rbac.authorization.k8s.io/aggregate-to-admin': 'true',
    })
  },
)
