/**
 * Fills in schema defaults the way the Kubernetes API server does: only inside objects that are there, a default that
 * is an object is filled in turn, and null counts as absent unless the field is nullable.
 */
import { isFields } from './fields.ts'
import { eachChild, resolved } from './bundle.ts'
import type { Schema } from '../schema.ts'

/** A deep copy of a JSON value with the defaults filled in. */
export function filled(schema: Schema, value: unknown): unknown {
  const copy = structuredClone(value)
  fill(schema, copy)
  return copy
}

function fill(reference: Schema, value: unknown): void {
  const schema = resolved(reference)
  if (isFields(value) && schema.properties) {
    for (const [name, child] of Object.entries(schema.properties)) fillField(value, name, child)
  }
  eachChild(schema, value, (item, itemSchema) => fill(itemSchema, item))
}

function fillField(object: Record<string, unknown>, name: string, reference: Schema): void {
  const current = Object.hasOwn(object, name) ? object[name] : undefined
  if (current !== undefined && current !== null) return
  const schema = resolved(reference)
  if (schema.default === undefined || (current === null && schema.nullable)) return
  object[name] = structuredClone(schema.default)
}
