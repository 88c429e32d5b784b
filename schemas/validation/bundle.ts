/** The generated bundle of all definitions, and functions to navigate it. */
import { isFields } from './fields.ts'
import { bundle } from '../generated/bundle.js'
import type { Schema } from '../schema.ts'

export { bundle }

const prefix = '#/$defs/'.length

/** Returns the definition called `name`. Throws for an unknown name, which is a programming error. */
export function definition(name: string): Schema {
  const schema = bundle.defs[name]
  if (!schema) throw new Error(`unknown schema definition ${name}`)
  return schema
}

/**
 * Cache of resolved references, keyed by the schema that contains the `$ref`. Contains only schemas from the bundle.
 */
const followed = new WeakMap<Schema, Schema>()

/**
 * Follows references. Annotations next to a `$ref` (default, x-expects) take precedence over annotations in the
 * definition.
 */
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
    const { $ref, ...siblings } = current
    const next = definition($ref.slice(prefix))
    current = Object.keys(siblings).length === 0 ? next : { ...next, ...siblings }
  }
  return current
}

/**
 * Returns the schema of one field or list item under a resolved schema, or undefined when it is free-form or unknown.
 */
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

/**
 * Returns a function that reports whether a schema, or any schema that it references, satisfies the predicate. Results
 * are cached, because schemas never change.
 */
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
