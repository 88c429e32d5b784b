/**
 * Teams that share a cluster: a team's objects never affect another team's namespace. Checks every golden case, so that
 * new kinds and children are covered.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { makeHooks } from '../../hooks/index.ts'
import { testSettings } from '../hooks/world.ts'

interface Named {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
}
interface Child extends Named {
  readonly rules?: readonly {
    readonly resources: readonly string[]
    readonly resourceNames?: readonly string[]
  }[]
}
interface Request extends Record<string, unknown> {
  readonly parent: Named
  readonly related: Readonly<Record<string, Readonly<Record<string, Named>>>>
}

const root = resolve(import.meta.dirname, '../hooks')
const hooks = makeHooks(testSettings)

function* goldenCases() {
  for (const hook of hooks) {
    const folder = join(root, hook.kind.toLowerCase())
    if (!existsSync(folder)) continue
    for (const name of readdirSync(folder)) {
      const text = readFileSync(join(folder, name, 'request.json'), 'utf8')
      yield { hook, name: `${hook.kind}/${name}`, request: JSON.parse(text) as Request }
    }
  }
}

/** Returns the related objects of a request as if they belonged to another team. */
function foreign(related: Request['related'], namespace: string): Request['related'] {
  return Object.fromEntries(
    Object.entries(related).map(([kind, objects]) => [
      kind,
      Object.fromEntries(
        Object.values(objects).map((object) => [
          `${namespace}/${object.metadata.name}`,
          { ...object, metadata: { ...object.metadata, namespace } },
        ]),
      ),
    ]),
  )
}

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

await t.test('children: all are in the namespace of their owner, and none is cluster-scoped', async (t) => {
  const allowed = new Set(
    'ConfigMap Deployment HorizontalPodAutoscaler HTTPRoute Ingress NetworkPolicy PodDisruptionBudget Role RoleBinding Secret Service ServiceAccount StatefulSet'.split(
      ' ',
    ),
  )
  let count = 0
  for (const { hook, name, request } of goldenCases()) {
    for (const child of hook.sync(request).children as readonly Child[]) {
      count++
      const { kind, metadata } = child
      if (metadata.namespace !== request.parent.metadata.namespace || !allowed.has(kind))
        t.fail(`${name}: ${kind} ${metadata.namespace}/${metadata.name}`)
    }
  }
  t.ok(count > 300, `${count} children`)
})

await t.test('permissions of pods: by name, and for two kinds of objects only', async (t) => {
  const allowed = new Set(['configmaps', 'pods', 'pods/attach'])
  let count = 0
  for (const { hook, name, request } of goldenCases()) {
    for (const { kind, rules = [] } of hook.sync(request).children as readonly Child[]) {
      if (kind !== 'Role') continue
      for (const { resources, resourceNames = [] } of rules) {
        count++
        t.ok(resourceNames.length > 0, `${name}: ${resources.join()} are named`)
        t.ok(
          resources.every((one) => allowed.has(one)),
          `${name}: ${resources.join()}`,
        )
      }
    }
  }
  t.ok(count >= 20, `${count} rules`)
})

await t.test('references: objects of another namespace are never requested and have no effect', async (t) => {
  let related = 0
  let rules = 0
  for (const { hook, name, request } of goldenCases()) {
    const { namespace } = request.parent.metadata
    const { relatedResources } = hook.customize({ controller: {}, parent: request.parent })
    rules += relatedResources.length
    for (const rule of relatedResources)
      if (rule.labelSelector === undefined && rule.namespace !== namespace)
        t.fail(`${name} asks for ${rule.resource} of ${rule.namespace}`)
    const others = foreign(request.related, 'other')
    related += Object.values(others).flatMap((objects) => Object.keys(objects)).length
    const both = Object.fromEntries(
      Object.entries(request.related).map(([kind, objects]) => [kind, { ...objects, ...others[kind] }]),
    )
    t.strictSame(
      plain(hook.sync({ ...request, related: both })),
      plain(hook.sync(request)),
      `${name}: next to the team’s objects`,
    )
    const none = Object.fromEntries(Object.keys(request.related).map((kind) => [kind, {}]))
    t.strictSame(
      plain(hook.sync({ ...request, related: others })),
      plain(hook.sync({ ...request, related: none })),
      `${name}: instead of the team’s objects`,
    )
  }
  t.ok(related > 300, `${related} related objects`)
  t.ok(rules > 300, `${rules} rules`)
})
