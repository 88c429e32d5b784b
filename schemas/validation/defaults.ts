/**
 * Applies schema defaults as the Kubernetes API server does: only inside existing objects, and recursively in default
 * objects. Null is treated as absent unless the field is nullable.
 */
import { childSchema, leadsTo, resolved } from './bundle.ts'
import type { Schema } from '../schema.ts'

/** Returns a deep copy of a JSON value with defaults applied. */
export function filled(schema: Schema, value: unknown): unknown {
  return copied(value, schema)
}

const leadsToDefaults = leadsTo((schema) => defaultsOf(schema).length > 0)

/** An undefined `reference` means that the schema of the value is unknown. */
function copied(value: unknown, reference: Schema | undefined): unknown {
  if (typeof value !== 'object' || value === null) return value
  const schema = reference && leadsToDefaults(reference) ? resolved(reference) : undefined
  if (Array.isArray(value)) return value.map((item: unknown) => copied(item, schema?.items))
  const copy: Record<string, unknown> = {}
  for (const [key, member] of Object.entries(value))
    put(copy, key, copied(member, schema && childSchema(schema, key)))
  if (schema) for (const [name, child] of defaultsOf(schema)) fillField(copy, name, child)
  return copy
}

/** Sets a member with any name, including `__proto__`. */
function put(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value
  else Object.defineProperty(object, name, { value, configurable: true, enumerable: true, writable: true })
}

type Defaults = readonly (readonly [string, Schema])[]

const known = new WeakMap<Schema, Defaults>()

/** Returns the fields of a resolved schema that have a default, in order. */
function defaultsOf(schema: Schema): Defaults {
  let defaults = known.get(schema)
  if (!defaults) {
    defaults = Object.entries(schema.properties ?? {}).filter(
      ([, child]) => resolved(child).default !== undefined,
    )
    known.set(schema, defaults)
  }
  return defaults
}

function fillField(object: Record<string, unknown>, name: string, reference: Schema): void {
  const current = Object.hasOwn(object, name) ? object[name] : undefined
  if (current !== undefined && current !== null) return
  const schema = resolved(reference)
  if (current === null && schema.nullable) return
  object[name] = copied(schema.default, reference)
}
