/**
 * Every field of the CRDs that names another object is asked for: what `customize` forgets, a sync takes for missing for ever.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { makeHooks } from '../../../hooks/index.ts'
import { allKindHooks } from '../../../hooks/registry.ts'
import { pluralOf } from '../../../hooks/sync/rules.ts'
import { resource, testSettings } from '../../hooks/world.ts'

interface Schema {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema
  readonly items?: Schema
}
interface Crd {
  readonly spec: {
    readonly names: { readonly kind: string }
    readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[]
  }
}
/** A field that names an object, and a spec that has nothing else. */
interface Named {
  readonly path: string
  readonly field: string
  readonly spec: unknown
}

const hooks = makeHooks(testSettings)
const crds = join(import.meta.dirname, '../../../manifests/crds')
const wanted = 'wanted'

/** The resource that a field names; of ours by what the kinds say of themselves. */
const resources: ReadonlyMap<string, string> = new Map([
  ...['configMap', 'configMapRef'].map((field) => [field, 'configmaps'] as const),
  ...allKindHooks().flatMap(({ kind, referenceFields = [] }) =>
    referenceFields.map((field) => [field, pluralOf(kind)] as const),
  ),
])

function resourceOf(field: string): string | undefined {
  return /^secrets$|[sS]ecret(Key)?Refs?$|[sS]ecretName$|^passwordRef$|^initialAccessTokenRef$/.test(field)
    ? 'secrets'
    : resources.get(field)
}

/** What looks like a reference, and no sync reads. */
const unread: Readonly<Record<string, string>> = {
  backendRef: 'a backend may be in no manifest at all',
  imagePullSecrets: 'the kubelet reads them',
  caBundleRef: 'of a decision point: mounted, and the pod reads it',
}

function namedIn(
  schema: Schema | undefined,
  path: readonly string[],
  wrap: (value: unknown) => unknown,
): Named[] {
  if (!schema) return []
  const { properties = {}, items, additionalProperties } = schema
  const field = path.findLast((member) => !/^[[{]/.test(member)) ?? ''
  const here = { path: path.join('.'), field }
  return [
    ...(properties['name']?.type === 'string' && /(Refs?|^configMap|[sS]ecrets)$/.test(field)
      ? [{ ...here, spec: wrap({ name: wanted, key: 'key' }) }]
      : []),
    ...(schema.type === 'string' && /[sS]ecretName$/.test(field) ? [{ ...here, spec: wrap(wanted) }] : []),
    ...namedIn(items, [...path, '[]'], (value) => wrap([value])),
    ...namedIn(additionalProperties, [...path, '{}'], (value) => wrap({ any: value })),
    ...Object.entries(properties).flatMap(([member, inner]) =>
      namedIn(inner, [...path, member], (value) => wrap({ [member]: value })),
    ),
  ]
}

/** Whether the rules of the object select the wanted one. */
function isAsked(kind: string, spec: unknown, plural: string): boolean {
  const parent = resource(kind, 'one', spec)
  const { relatedResources = [] } = hooks.byKind(kind)?.customize({ controller: {}, parent }) ?? {}
  return relatedResources.some(
    (rule) => rule.resource === plural && (rule.names === undefined || rule.names.includes(wanted)),
  )
}

for (const file of readdirSync(crds)) {
  const { spec } = parse(readFileSync(join(crds, file), 'utf8')) as Crd
  const { kind } = spec.names
  const fields = namedIn(
    spec.versions[0]?.schema.openAPIV3Schema.properties?.['spec'],
    ['spec'],
    (value) => value,
  )
  t.test(`${kind}: ${fields.length} fields name an object, and customize asks for each`, async (t) => {
    for (const { path, field, spec } of fields) {
      const plural = resourceOf(field)
      if (plural !== 'secrets')
        t.notOk(isAsked(kind, spec, 'secrets'), `${path}: no Secret of that name reaches the hooks`)
      if (Object.hasOwn(unread, field)) continue
      if (plural === undefined) t.fail(`${path}: what does it name?`)
      else t.ok(isAsked(kind, spec, plural), `${path}: ${plural}`)
    }
  })
}
