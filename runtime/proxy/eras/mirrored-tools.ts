/**
 * Which arguments of which tools want a header of their own (`Mcp-Param-*`), learnt from the tool lists that pass by.
 *
 * Bounded; a tool with a broken annotation is treated as one without.
 * Source: MCP 2026-07-28, streamable HTTP, "Request Metadata".
 */
import type { IncomingHttpHeaders } from 'node:http'
import {
  argumentHeaders,
  disagreeingArgument,
  JsonObject,
  type MirroredArgument,
  mirroredArguments,
} from '../../mcp/index.ts'

const maxTools = 10_000

export class MirroredTools {
  readonly #byName = new Map<string, readonly MirroredArgument[]>()

  /** Reloads one page: the raw result of `tools/list`. Returns the cursor of the next one. */
  learn(result: Buffer): string | undefined {
    let page: JsonObject
    try {
      page = new JsonObject(result)
    } catch {
      // A member twice: the client may check it; nothing is learnt from it.
      return undefined
    }
    const tools = page.value('tools')
    for (const tool of Array.isArray(tools) ? (tools as readonly unknown[]) : []) this.#take(tool)
    return page.text('nextCursor')
  }

  #take(tool: unknown): void {
    if (typeof tool !== 'object' || tool === null || !('name' in tool) || typeof tool.name !== 'string')
      return
    const mirrored = annotations('inputSchema' in tool ? tool.inputSchema : undefined)
    if (mirrored.length === 0) this.#byName.delete(tool.name)
    else if (this.#byName.size < maxTools || this.#byName.has(tool.name))
      this.#byName.set(tool.name, mirrored)
  }

  /** The header of a call that is missing or says something else than its arguments, as far as the tool is known. */
  disagreement(params: JsonObject, headers: IncomingHttpHeaders): string | undefined {
    const name = params.text('name')
    const mirrored = name === undefined ? undefined : this.#byName.get(name)
    return mirrored && disagreeingArgument(mirrored, params, headers)
  }

  /** Header lines (name, value, …) for a call with these params. */
  headersFor(params: JsonObject): readonly string[] {
    const name = params.text('name')
    const mirrored = name === undefined ? undefined : this.#byName.get(name)
    if (mirrored === undefined) return []
    return Object.entries(argumentHeaders(mirrored, params)).flat()
  }
}

function annotations(schema: unknown): readonly MirroredArgument[] {
  try {
    return mirroredArguments(schema)
  } catch {
    return []
  }
}
