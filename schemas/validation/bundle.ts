/** The generated bundle of all definitions, and how to find a way through it. */
import { isFields } from './fields.ts'
import { bundle } from '../generated/bundle.js'
import type { Schema } from '../schema.ts'

export { bundle }

const prefix = '#/$defs/'.length

/** The definition called `name`; throws when there is none, which is an error of this program. */
export function definition(name: string): Schema {
  const schema = bundle.defs[name]
  if (!schema) throw new Error(`no schema definition is called ${name}`)
  return schema
}

/** Schema with a `$ref` -> what it comes to; filled as schemas are met, and there are only those of the bundle. */
const followed = new WeakMap<Schema, Schema>()

/** Follows references. Annotations beside a `$ref` (default, x-expects) win over those of the definition. */
export function resolved(schema: Schema): Schema {
  if (schema.$ref === undefined) return schema
  let target = followed.get(schema)
  if (!target) {
    target = follow(schema)
    followed.set(schema, target)
  }
  return target
}

function follow(schema: Schema): Schema {
  let current = schema
  while (current.$ref !== undefined) {
    const { $ref, ...beside } = current
    const next = definition($ref.slice(prefix))
    current = Object.keys(beside).length === 0 ? next : { ...next, ...beside }
  }
  return current
}

/** The schema of one field or list item below a resolved schema; undefined when it is free-form or not known. */
export function childSchema(schema: Schema, key: string | number): Schema | undefined {
  if (typeof key === 'number') return schema.items
  if (schema.properties && Object.hasOwn(schema.properties, key)) return schema.properties[key]
  return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
}

/** Calls `visit` for each child of `value` that has a schema. */
export function eachChild(
  schema: Schema,
  value: unknown,
  visit: (child: unknown, childSchema: Schema, key: string | number) => void,
): void {
  if (Array.isArray(value)) {
    const { items } = schema
    if (items) for (const [index, item] of value.entries()) visit(item, items, index)
    return
  }
  if (!isFields(value)) return
  for (const key of Object.keys(value)) {
    const child = childSchema(schema, key)
    if (child) visit(value[key], child, key)
  }
}

/** Tells of a schema whether it, or any schema that it leads to, is of a sort. Found out once for each: they never change. */
export function leadsTo(isOfSort: (schema: Schema) => boolean): (reference: Schema) => boolean {
  const known = new WeakMap<Schema, boolean>()
  return (reference) => {
    let leads = known.get(reference)
    if (leads === undefined) {
      leads = reached(reference).some(isOfSort)
      known.set(reference, leads)
    }
    return leads
  }
}

function reached(reference: Schema): readonly Schema[] {
  const found = new Set([resolved(reference)])
  for (const { properties, additionalProperties, items } of found) {
    const children = [...Object.values(properties ?? {}), ...(items ? [items] : [])]
    if (typeof additionalProperties === 'object') children.push(additionalProperties)
    for (const child of children) found.add(resolved(child))
  }
  return [...found]
}
