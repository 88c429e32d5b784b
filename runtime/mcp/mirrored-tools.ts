/**
 * Which arguments of which tools want a header of their own (`Mcp-Param-*`), learnt from the tool lists that pass by.
 *
 * Bounded; a tool with a broken annotation is treated as one without.
 * Source: MCP 2026-07-28, streamable HTTP, "Request Metadata".
 */
import type { IncomingHttpHeaders } from 'node:http'
import { JsonObject } from './json/object.ts'
import { readMembers, visitElementsInTurns } from './json/read.ts'
import { type TurnWork, workOn } from './json/turns.ts'
import {
  argumentHeaders,
  disagreeingArgument,
  type MirroredArgument,
  mirroredArguments,
} from './mirrored-headers.ts'

const maxTools = 10_000
/** A larger tool is treated as one without annotations. */
const maxToolBytes = 256 * 1024
const maxCursorBytes = 64 * 1024

export class MirroredTools {
  readonly #byName = new Map<string, readonly MirroredArgument[]>()

  /** Reloads one page: the raw result of `tools/list`. Returns the cursor of the next one. Never rejects. */
  async learn(result: Buffer): Promise<string | undefined> {
    try {
      return await workOn(result, this.#learn(result))
    } catch {
      // A member twice: the client may check it; nothing is learnt from it.
      return undefined
    }
  }

  *#learn(result: Buffer): TurnWork<string | undefined> {
    yield* readMembers(result)
    const page = new JsonObject(result)
    const tools = page.raw('tools')
    if (tools?.[0] === 0x5b) yield* visitElementsInTurns(tools, (from, to) => this.#read(tools, from, to))
    const cursor = page.raw('nextCursor')
    return cursor && cursor.length <= maxCursorBytes ? page.text('nextCursor') : undefined
  }

  *#read(tools: Buffer, from: number, to: number): TurnWork<void> {
    if (to - from > maxToolBytes) return
    const tool: unknown = JSON.parse(tools.toString('utf8', from, to))
    this.#take(tool)
    yield
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
