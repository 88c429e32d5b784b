import { JsonObject, scanElements } from '../../mcp/index.ts'
import { innerOperation, type Operation, type Perform } from './operation.ts'

/** Maximum number of pages. The limit stops the read of a list that would never end. */
const maxPages = 1_000

/**
 * Returns all tools that `perform` lists for an operation's client, as raw tool objects in their original order.
 * Rejects with the error from the list request.
 */
export async function listTools(operation: Operation, perform: Perform): Promise<readonly JsonObject[]> {
  const tools: JsonObject[] = []
  let cursor: string | undefined
  for (let page = 0; page < maxPages; page++) {
    const params = new JsonObject(Buffer.from(JSON.stringify({ cursor })))
    const outcome = await perform(innerOperation(operation, 'tools/list', params))
    if (outcome.kind !== 'result') return tools
    const result = new JsonObject(outcome.result)
    const items = result.raw('tools')
    if (items) tools.push(...scanElements(items).map((item) => new JsonObject(item)))
    cursor = result.text('nextCursor')
    if (cursor === undefined) return tools
  }
  return tools
}
