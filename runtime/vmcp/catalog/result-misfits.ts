/**
 * Checks structured results against their tool's output schema. Only modified results are checked. Unmodified results
 * from backends are trusted.
 */
import { fieldsOf, isFields } from '../../../schemas/index.ts'
import { usableSchema } from '../../../schemas/workflow/index.ts'
import { JsonObject } from '../../mcp/index.ts'
import type { MatchSchemas } from '../model/catalog/pinning.ts'

/** Output schemas as JSON, keyed by tool definition. Undefined if the tool has no supported schema. */
const schemas = new WeakMap<Buffer, { readonly text: string | undefined }>()

/** Returns one line for each mismatch. Returns no lines if the tool has no supported output schema. */
export async function findResultMismatches(
  definition: Buffer,
  structured: Buffer | undefined,
  match: MatchSchemas,
): Promise<readonly string[]> {
  const schema = resultSchema(definition)
  if (schema === undefined) return []
  return structured ? match(schema, structured) : ['structuredContent is missing']
}

/**
 * Returns the JSON text of a list that contains only the output schema. Returns undefined if the tool has no supported
 * schema.
 */
export function resultSchema(definition: Buffer): string | undefined {
  const known = schemas.get(definition) ?? { text: schemaText(definition) }
  schemas.set(definition, known)
  return known.text
}

function schemaText(definition: Buffer): string | undefined {
  const given = new JsonObject(definition).value('outputSchema')
  if (!isFields(given)) return undefined
  const { $id: _, ...schema } = fieldsOf(given)
  return usableSchema(schema) ? JSON.stringify([schema]) : undefined
}
