/**
 * Checks references within a JSON Schema: they must resolve and terminate. A reference that leads back to itself for
 * the same value would recurse forever.
 * Source: JSON Schema 2020-12, core, "Schema References" and "Guarding Against Infinite Recursion".
 */
import { pointedSchema } from '../json/accepted-types.ts'
import { type Fields, fieldsOf, isFields } from '../validation/fields.ts'
import { schemasAppliedInPlace, schemasIn } from './schema-parts.ts'

const maxDepth = 100
/** Maximum number of chained schemas for the same value, which a compiler follows recursively. */
const maxInPlace = 100
const referenceKeywords = ['$ref', '$dynamicRef'] as const

/**
 * Returns the error in a schema's references. Returns undefined when all references terminate and resolve to a part of
 * the schema.
 */
export function referenceError(root: Fields): string | undefined {
  const search = new Search(root)
  for (const schema of schemasIn(root)) {
    const lost = search.lost(schema)
    if (lost !== undefined) return `the reference ${shown(lost)} must point to a part of the same schema`
  }
  for (const schema of schemasIn(root)) {
    const endless = search.endless(schema)
    if (endless !== undefined)
      return `the reference ${shown(endless)} leads back to itself endlessly, or leads through more than ${maxInPlace} schemas`
  }
  return undefined
}

function shown(reference: string): string {
  return JSON.stringify(reference.slice(0, 80))
}

class Search {
  readonly #root: Fields
  /** Schemas on the path from the first schema to the current schema. */
  readonly #open = new Set<unknown>()
  readonly #ended = new Set<unknown>()

  constructor(root: Fields) {
    this.#root = root
  }

  lost(schema: Fields): string | undefined {
    return referencesIn(schema).find((reference) => targetOf(this.#root, reference) === undefined)
  }

  /** Returns the reference that closes a cycle of schemas for the same value. */
  endless(schema: unknown): string | undefined {
    if (!isFields(schema) || this.#ended.has(schema)) return undefined
    this.#open.add(schema)
    for (const reference of referencesIn(schema)) {
      const target = targetOf(this.#root, reference)
      const found = this.#open.has(target) || this.#open.size > maxInPlace ? reference : this.endless(target)
      if (found !== undefined) return found
    }
    for (const inner of schemasAppliedInPlace(schema)) {
      const found = this.endless(inner)
      if (found !== undefined) return found
    }
    this.#open.delete(schema)
    this.#ended.add(schema)
    return undefined
  }
}

function referencesIn(schema: Fields): string[] {
  return referenceKeywords.map((keyword) => schema[keyword]).filter((value) => typeof value === 'string')
}

/** Resolves a JSON pointer or an anchor name. */
function targetOf(root: Fields, reference: string): unknown {
  if (reference === '#' || reference.startsWith('#/')) return pointedSchema(root, reference)
  return reference.startsWith('#') ? anchor(root, reference.slice(1), 0) : undefined
}

function anchor(part: unknown, name: string, depth: number): unknown {
  if (depth > maxDepth || typeof part !== 'object' || part === null) return undefined
  const { $anchor, $dynamicAnchor } = fieldsOf(part)
  if ($anchor === name || $dynamicAnchor === name) return part
  for (const inner of Object.values(part)) {
    const found = anchor(inner, name, depth + 1)
    if (found !== undefined) return found
  }
  return undefined
}
