/**
 * Caches which arguments tools mirror in headers (`Mcp-Param-*`). The information comes from the tool lists that the
 * proxy forwards.
 *
 * The number of tools is limited. A tool with an invalid annotation is treated as having no annotations.
 * Source: MCP 2026-07-28, streamable HTTP, "Request Metadata".
 */
import type { IncomingHttpHeaders } from 'node:http'
import { JsonObject } from './json/object.ts'
import { readMembers, visitElementsInTurns } from './json/read.ts'
import { type TurnWork, workOn } from './json/turns.ts'
import {
  argumentHeaders,
  mismatchedHeader,
  type MirroredArgument,
  mirroredArguments,
} from './mirrored-headers.ts'

const maxTools = 10_000
/** Maximum size of a tool definition. A larger tool is treated as having no annotations. */
const maxToolBytes = 256 * 1024
const maxCursorBytes = 64 * 1024

export class MirroredTools {
  readonly #byName = new Map<string, readonly MirroredArgument[]>()

  /**
   * Reads one page of tools from the raw result of `tools/list`. Returns the cursor of the next page. Never rejects.
   */
  async readPage(result: Buffer): Promise<string | undefined> {
    try {
      return await workOn(result, this.#readPage(result))
    } catch {
      // The page has a duplicate member. Ignore the page, because the client might reject it.
      return undefined
    }
  }

  *#readPage(result: Buffer): TurnWork<string | undefined> {
    yield* readMembers(result)
    const page = new JsonObject(result)
    const tools = page.raw('tools')
    if (tools?.[0] === 0x5b) yield* visitElementsInTurns(tools, (from, to) => this.#readTool(tools, from, to))
    const cursor = page.raw('nextCursor')
    return cursor && cursor.length <= maxCursorBytes ? page.text('nextCursor') : undefined
  }

  *#readTool(tools: Buffer, from: number, to: number): TurnWork<void> {
    if (to - from > maxToolBytes) return
    const tool: unknown = JSON.parse(tools.toString('utf8', from, to))
    this.#addTool(tool)
    yield
  }

  #addTool(tool: unknown): void {
    if (typeof tool !== 'object' || tool === null || !('name' in tool) || typeof tool.name !== 'string')
      return
    const mirrored = annotationsOf('inputSchema' in tool ? tool.inputSchema : undefined)
    if (mirrored.length === 0) this.#byName.delete(tool.name)
    else if (this.#byName.size < maxTools || this.#byName.has(tool.name))
      this.#byName.set(tool.name, mirrored)
  }

  /**
   * Returns the first header of a call that is missing or does not match the call's arguments. Returns undefined for an
   * unknown tool.
   */
  mismatch(params: JsonObject, headers: IncomingHttpHeaders): string | undefined {
    const name = params.text('name')
    const mirrored = name === undefined ? undefined : this.#byName.get(name)
    return mirrored && mismatchedHeader(mirrored, params, headers)
  }

  /** Returns the header lines (name, value, …) for a call with the given params. */
  headersFor(params: JsonObject): readonly string[] {
    const name = params.text('name')
    const mirrored = name === undefined ? undefined : this.#byName.get(name)
    if (mirrored === undefined) return []
    return Object.entries(argumentHeaders(mirrored, params)).flat()
  }
}

function annotationsOf(schema: unknown): readonly MirroredArgument[] {
  try {
    return mirroredArguments(schema)
  } catch {
    return []
  }
}
