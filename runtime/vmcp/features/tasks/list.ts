/**
 * Adds `execution.taskSupport` to listed tools. Session clients may then call every tool as a task, because Gatehouse
 * itself runs the calls as tasks if a backend does not support tasks.
 * Source: MCP 2025-11-25, tasks, "Tool-Level Negotiation".
 */
import { arrayEnd, arrayStart, comma, JsonObject, scanElements } from '../../../mcp/index.ts'

export function withTaskSupport(result: Buffer): Buffer {
  const page = new JsonObject(result)
  const tools = page.raw('tools')
  if (!tools) return result
  const items = [...scanElements(tools)].flatMap((item, i) => {
    const shown = withSupport(item)
    return i === 0 ? [shown] : [comma, shown]
  })
  return page.with({ tools: Buffer.concat([arrayStart, ...items, arrayEnd]) })
}

function withSupport(item: Buffer): Buffer {
  const tool = new JsonObject(item)
  return tool.raw('execution') ? item : tool.with({ execution: '{"taskSupport":"optional"}' })
}
