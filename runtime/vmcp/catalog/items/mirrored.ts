/** A tool with the arguments that are mirrored in headers. */
import { JsonObject, mirroredArguments } from '../../../mcp/index.ts'
import type { CatalogItem, ToolItem } from '../../model/catalog/entries.ts'

/** A text says why the tool cannot be called: it marks its arguments wrongly. */
export function callableTool(item: CatalogItem): ToolItem | string {
  if (!item.json.includes('x-mcp-header')) return { ...item, mirrored: [] }
  try {
    return { ...item, mirrored: mirroredArguments(new JsonObject(item.json).value('inputSchema')) }
  } catch (error) {
    return error instanceof Error ? error.message : 'x-mcp-header'
  }
}
