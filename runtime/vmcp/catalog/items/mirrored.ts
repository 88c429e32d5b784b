/** A tool with the arguments that are mirrored in headers. */
import { JsonObject, mirroredArguments } from '../../../mcp/index.ts'
import type { CatalogItem, ToolItem } from '../../model/catalog/entries.ts'

/**
 * Returns the tool. If the tool's arguments are mirrored incorrectly, returns the reason why clients cannot call the
 * tool.
 */
export function callableTool(item: CatalogItem): ToolItem | string {
  if (!item.json.includes('x-mcp-header')) return { ...item, mirrored: [] }
  try {
    return { ...item, mirrored: mirroredArguments(new JsonObject(item.json).value('inputSchema')) }
  } catch (error) {
    return error instanceof Error ? error.message : 'x-mcp-header'
  }
}
