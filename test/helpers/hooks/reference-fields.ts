/** Lists the fields of the CRDs that name another object. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { kindOfField } from '../../../hooks/kinds/referrers.ts'
import { objectKindOf } from '../../../hooks/references/secret-names.ts'
import { pluralOf } from '../../../hooks/sync/rules.ts'

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
/** A field that names an object, and a spec with only this field. */
export interface Named {
  readonly path: string
  readonly field: string
  readonly spec: unknown
}

const crds = join(import.meta.dirname, '../../../manifests/crds')
/** The referenced name in the `spec` of each field. */
export const wantedName = 'wanted'

/** Returns the resource that a field refers to. */
export function resourceOf(field: string): string | undefined {
  const own = kindOfField.get(field)
  if (own !== undefined) return pluralOf(own)
  const kind = objectKindOf(field)
  return kind && `${kind.toLowerCase()}s`
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
    ...(properties['name']?.type === 'string' &&
    /(Refs?|^configMap|[sS]ecrets|^permissionProfile)$/.test(field)
      ? [{ ...here, spec: wrap({ type: 'configmap', name: wantedName, key: 'key' }) }]
      : []),
    ...(schema.type === 'string' && /[sS]ecretName$/.test(field)
      ? [{ ...here, spec: wrap(wantedName) }]
      : []),
    ...namedIn(items, [...path, '[]'], (value) => wrap([value])),
    ...namedIn(additionalProperties, [...path, '{}'], (value) => wrap({ any: value })),
    ...Object.entries(properties).flatMap(([member, inner]) =>
      namedIn(inner, [...path, member], (value) => wrap({ [member]: value })),
    ),
  ]
}

/** Every kind with its fields. */
export function referenceFields(): readonly { readonly kind: string; readonly fields: readonly Named[] }[] {
  return readdirSync(crds).map((file) => {
    const { spec } = parse(readFileSync(join(crds, file), 'utf8')) as Crd
    const { properties } = spec.versions[0]?.schema.openAPIV3Schema ?? {}
    return { kind: spec.names.kind, fields: namedIn(properties?.['spec'], ['spec'], (value) => value) }
  })
}
