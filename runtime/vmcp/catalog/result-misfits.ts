/**
 * Checks structured results against their tool's output schema. Called only for modified results; unmodified results
 * from backends are trusted.
 */
import { fieldsOf, isFields } from '../../../schemas/index.ts'
import { usableSchema } from '../../../schemas/workflow/index.ts'
import { JsonObject } from '../../mcp/index.ts'
import type { MatchSchemas } from '../model/catalog/pinning.ts'

/** Schemas as JSON, by tool definition; undefined if there is no supported schema. */
const schemas = new WeakMap<Buffer, { readonly text: string | undefined }>()

/** Returns one line per mismatch; no lines if the tool has no supported output schema. */
export async function findResultMismatches(
  definition: Buffer,
  structured: Buffer | undefined,
  match: MatchSchemas,
): Promise<readonly string[]> {
  const schema = resultSchema(definition)
  if (schema === undefined) return []
  return structured ? match(schema, structured) : ['structuredContent is missing']
}

/** Returns a list containing the output schema as JSON; undefined if there is no supported schema. */
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
