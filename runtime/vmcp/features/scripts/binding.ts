/**
 * Determines the names that a script uses to call tools.
 *
 * A tool becomes a function with the tool's name. Characters that are illegal in an identifier are replaced by `_`.
 * Names that the language defines are never overridden. A name that two tools share is not bound, but `call_tool` can
 * call all tools.
 * Source: docs/reference/specification/virtual-server.md#endpoints, "Endpoints" (execute_tool_script).
 */
import { keywordTable, reserved } from '../../../expr/starlark/index.ts'
import type { JsonObject } from '../../../mcp/index.ts'
import { isTaken } from './globals.ts'
import type { ToolBinding, ScriptTool } from './messages.ts'

/** A tool that a script may call. */
export interface CallableTool extends ScriptTool {
  readonly description: string
  readonly required: ReadonlySet<string>
  /** Name of the tool's function. Undefined if only `call_tool` can call the tool. */
  readonly fn: string | undefined
}

export interface ToolSet {
  readonly tools: readonly CallableTool[]
  readonly binding: ToolBinding
}

export function functionName(tool: string): string {
  const cleaned = tool.replaceAll(/[^a-zA-Z0-9_]/g, '_')
  if (cleaned === '') return '_'
  return /^[0-9]/.test(cleaned) ? `_${cleaned}` : cleaned
}

function isFree(name: string): boolean {
  return !isTaken(name) && !keywordTable.has(name) && !Object.hasOwn(reserved, name)
}

/** Binds tools to names. `listed` contains the raw tool objects that the caller sees. Omits the tool named `hidden`. */
export function bindTools(listed: readonly JsonObject[], hidden: string): ToolSet {
  const read = listed.map(readTool).filter(({ name }) => name !== hidden && name !== '')
  const claims = Map.groupBy(read.keys(), (i) => functionName(read[i]?.name ?? ''))
  const tools = read.map((tool): CallableTool => {
    const fn = functionName(tool.name)
    return { ...tool, fn: isFree(fn) && claims.get(fn)?.length === 1 ? fn : undefined }
  })
  const ambiguous = [...claims]
    .filter(([fn, indices]) => indices.length > 1 && isFree(fn))
    .map(([fn, indices]) => [fn, indices.map((i) => read[i]?.name ?? '')] as const)
  return {
    tools,
    binding: {
      tools: tools.map(({ name, parameters }) => ({ name, parameters })),
      functions: tools.flatMap(({ fn }, i) => (fn === undefined ? [] : [[fn, i] as const])),
      ambiguous,
    },
  }
}

function readTool(tool: JsonObject): Omit<CallableTool, 'fn'> {
  const schema = tool.object('inputSchema')
  const required: unknown = schema?.value('required')
  return {
    name: tool.text('name') ?? '',
    description: tool.text('description') ?? '',
    parameters: schema?.object('properties')?.names() ?? [],
    required: new Set(Array.isArray(required) ? required.filter((name) => typeof name === 'string') : []),
  }
}
