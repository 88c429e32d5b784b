/** Whether a structured result is what its tool says that its results are. Backends are believed: asked only about changed ones. */
import { fieldsOf, isFields } from '../../../schemas/index.ts'
import { usableSchema } from '../../../schemas/workflow/index.ts'
import { JsonObject } from '../../mcp/index.ts'
import type { MatchSchemas } from '../catalog/pinning/parts.ts'
import type { ToolEntry } from '../catalog/types.ts'
import type { OperationClient } from './operation.ts'

/** JSON of schemas as matching takes them, by definitions of tools; undefined: there is none that can be checked. */
const schemas = new WeakMap<Buffer, { readonly text: string | undefined }>()

/** One line for each difference; none where the tool says nothing, or what it says cannot be checked. */
export async function resultMisfits(
  { json, sessionJson = json }: ToolEntry,
  era: OperationClient['era'],
  structured: Buffer | undefined,
  match: MatchSchemas,
): Promise<readonly string[]> {
  const definition = era === 'session' ? sessionJson : json
  const known = schemas.get(definition) ?? { text: schemaText(definition) }
  schemas.set(definition, known)
  if (known.text === undefined) return []
  return structured ? match(known.text, structured) : ['structuredContent is missing']
}

function schemaText(definition: Buffer): string | undefined {
  const given = new JsonObject(definition).value('outputSchema')
  if (!isFields(given)) return undefined
  const { $id: _, ...schema } = fieldsOf(given)
  return usableSchema(schema) ? JSON.stringify([schema]) : undefined
}
