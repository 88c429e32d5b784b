/** Checks that a masked result still matches its tool's output schema. */
import { JsonObject, readMembers, workOn } from '../../../mcp/index.ts'
import type { MatchSchemas } from '../../model/catalog/pinning.ts'
import type { CatalogEntry } from '../../model/catalog/entry.ts'
import { findResultMismatches, resultSchema } from '../../catalog/result-misfits.ts'

/**
 * True if the structured content is unchanged or the tool has no output schema. Rejects with the same errors as
 * `match`.
 */
export async function fitsOutput(
  { json, mirrored }: CatalogEntry,
  before: Buffer,
  masked: Buffer,
  match: MatchSchemas,
): Promise<boolean> {
  // Only tools have output schemas.
  if (!mirrored || resultSchema(json) === undefined) return true
  await Promise.all([workOn(before, readMembers(before)), workOn(masked, readMembers(masked))])
  const value = new JsonObject(masked).raw('structuredContent')
  const original = new JsonObject(before).raw('structuredContent')
  if (!value || !original || value.equals(original)) return true
  return (await findResultMismatches(json, value, match)).length === 0
}
