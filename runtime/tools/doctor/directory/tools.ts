/** Reads the tools and app pages that a directory reviews. */
import { isFields } from '../../../../schemas/index.ts'
import type { JsonRecord } from '../../../oauth/index.ts'
import { askMcp } from '../../../toolkit/mcp-client/mcp.ts'
import { type RemoteFacts, text } from '../remote/facts.ts'
import type { ListedTool, ReviewedTools } from './model.ts'

/** Directories review far fewer tools, so the limits only protect the doctor. */
const maxPages = 50
const maxTools = 2_000

/** Reads all pages of `tools/list`. */
export async function readTools(facts: RemoteFacts): Promise<ReviewedTools> {
  const tools: ListedTool[] = []
  let cursor: string | undefined
  for (let page = 0; page < maxPages; page++) {
    const got = await ask(facts, 'tools/list', cursor === undefined ? {} : { cursor })
    const listed = got?.['tools']
    if (!Array.isArray(listed)) return { tools, gap: `page ${page + 1} could not be read` }
    for (const tool of listed)
      if (isFields(tool) && typeof tool['name'] === 'string') tools.push(toolIn(tool))
    cursor = text(got, 'nextCursor')
    if (cursor === undefined) return { tools, gap: undefined }
    if (tools.length >= maxTools) return { tools, gap: `only the first ${tools.length} tools were read` }
  }
  return { tools, gap: `only the first ${maxPages} pages were read` }
}

/** Reads an app page. Returns the `_meta` member of its contents, or undefined if the page cannot be read. */
export async function readPage(facts: RemoteFacts, uri: string): Promise<JsonRecord | undefined> {
  const result = await ask(facts, 'resources/read', { uri })
  const contents = result?.['contents']
  const first: unknown = Array.isArray(contents) ? contents[0] : undefined
  return isFields(first) ? fields(first['_meta']) : undefined
}

async function ask(
  { target, peers, token, session }: RemoteFacts,
  method: string,
  params: JsonRecord,
): Promise<JsonRecord | undefined> {
  const era = session === undefined ? 'stateless' : 'session'
  const { id, version } = session ?? {}
  const got = await askMcp(peers, target, { method, params, era, session: id, version, token })
  return 'result' in got ? got.result : undefined
}

function toolIn(tool: JsonRecord): ListedTool {
  const annotations = fields(tool['annotations'])
  const meta = fields(tool['_meta'])
  return {
    name: String(tool['name']),
    title: text(tool, 'title') ?? text(annotations, 'title'),
    description: text(tool, 'description'),
    annotations,
    inputSchema: fields(tool['inputSchema']),
    pageUri:
      text(fields(meta['ui']), 'resourceUri') ??
      text(meta, 'ui/resourceUri') ??
      text(meta, 'openai/outputTemplate'),
  }
}

export function fields(value: unknown): JsonRecord {
  return isFields(value) ? value : {}
}
