/** Whether a result that was masked is still what its tool promises. */
import { JsonObject, readMembers, workOn } from '../../../mcp/index.ts'
import type { MatchSchemas } from '../../model/catalog/pinning.ts'
import type { CatalogEntry } from '../../model/catalog/entry.ts'
import { resultMisfits, resultSchema } from '../../catalog/result-misfits.ts'

/** True when nothing of the structured content was masked, or the tool says nothing of it. Rejects as `match` does. */
export async function fitsOutput(
  { json, mirrored }: CatalogEntry,
  before: Buffer,
  masked: Buffer,
  match: MatchSchemas,
): Promise<boolean> {
  // Of tools alone.
  if (!mirrored || resultSchema(json) === undefined) return true
  await Promise.all([workOn(before, readMembers(before)), workOn(masked, readMembers(masked))])
  const value = new JsonObject(masked).raw('structuredContent')
  const original = new JsonObject(before).raw('structuredContent')
  if (!value || !original || value.equals(original)) return true
  return (await resultMisfits(json, value, match)).length === 0
}
