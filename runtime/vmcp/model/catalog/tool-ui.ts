/**
 * The user interface of a tool (MCP Apps): the page that clients render, and whether models and apps may use the tool.
 * Source: MCP Apps, "Tool metadata".
 */
import { listOf } from '../../../../schemas/index.ts'
import { indexIn, type JsonObject, type TurnWork } from '../../../mcp/index.ts'

export interface ToolUi {
  /** Address of the page as clients see it. Undefined if the tool has no page. */
  readonly page: string | undefined
  /** False for tools that only apps use. */
  readonly isForModel: boolean
  /** False for tools that only models use. */
  readonly isForApp: boolean
}

const signs = ['"ui', '"openai', '\\u']

/** Members of a tool's `_meta` that contain the page's address, in addition to `ui.resourceUri`. */
export const otherPageMembers = ['ui/resourceUri', 'openai/outputTemplate'] as const

/**
 * True if JSON may contain members or addresses of MCP Apps. An escaped character may hide a name, so JSON with `\u` is
 * always examined.
 */
export function mayContainUi(json: Buffer): boolean {
  return signs.some((sign) => json.includes(sign))
}

/** Like `mayContainUi`, for large JSON. */
export function* mayContainUiInTurns(json: Buffer): TurnWork<boolean> {
  for (const sign of signs) if ((yield* indexIn(json, sign, 0)) !== -1) return true
  return false
}

/** Reads a tool's user interface. Returns undefined if the tool has neither a page nor a visibility. */
export function readToolUi(tool: JsonObject): ToolUi | undefined {
  const meta = tool.object('_meta')
  const ui = meta?.object('ui')
  const page = ui?.text('resourceUri') ?? otherPageMembers.map((name) => meta?.text(name)).find(Boolean)
  const visibility = ui?.raw('visibility') && listOf(ui.value('visibility'))
  if (page === undefined && visibility === undefined) return undefined
  return {
    page,
    isForModel: visibility?.includes('model') ?? true,
    isForApp: visibility?.includes('app') ?? true,
  }
}

/** Returns the tools that models may use. `tools` are definitions as in lists. */
export function toolsForModels(tools: readonly JsonObject[]): readonly JsonObject[] {
  return tools.filter((tool) => isForModels(tool))
}

export function isForModels(tool: JsonObject): boolean {
  return !mayContainUi(tool.bytes) || readToolUi(tool)?.isForModel !== false
}
