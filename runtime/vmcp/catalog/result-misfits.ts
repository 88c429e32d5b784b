/** Whether a structured result is what its tool says that its results are. Backends are believed: asked only about changed ones. */
import { fieldsOf, isFields } from '../../../schemas/index.ts'
import { usableSchema } from '../../../schemas/workflow/index.ts'
import { JsonObject } from '../../mcp/index.ts'
import type { MatchSchemas } from '../model/catalog/pinning.ts'

/** JSON of schemas as matching takes them, by definitions of tools; undefined: there is none that can be checked. */
const schemas = new WeakMap<Buffer, { readonly text: string | undefined }>()

/** One line for each difference; none where the tool's definition says nothing, or what it says cannot be checked. */
export async function resultMisfits(
  definition: Buffer,
  structured: Buffer | undefined,
  match: MatchSchemas,
): Promise<readonly string[]> {
  const schema = resultSchema(definition)
  if (schema === undefined) return []
  return structured ? match(schema, structured) : ['structuredContent is missing']
}

/** JSON of the schema of results, in a list; undefined when there is none that can be checked. */
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
