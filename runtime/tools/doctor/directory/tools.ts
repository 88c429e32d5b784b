/** Reads the tools and app pages that a directory reviews. */
import { isFields } from '../../../../schemas/index.ts'
import type { JsonRecord } from '../../../oauth/index.ts'
import { askMcp } from '../../../toolkit/mcp-client/mcp.ts'
import { type RemoteFacts, text } from '../remote/facts.ts'
import type { ListedTool, ReviewedTools } from './model.ts'

/** Directories review far fewer tools, so the limits only protect the doctor. */
const maxPages = 50
const maxItems = 2_000

/** Reads all pages of `tools/list`. */
export async function readTools(facts: RemoteFacts): Promise<ReviewedTools> {
  const { items, gap } = await readList(facts, 'tools')
  return { tools: items.filter(({ name }) => typeof name === 'string').map(toolIn), gap }
}

/** Returns the `_meta` members of the listed resources by address. */
export async function readListedPages(facts: RemoteFacts): Promise<ReadonlyMap<string, JsonRecord>> {
  const { items } = await readList(facts, 'resources')
  return new Map(items.map(({ uri, _meta }) => [String(uri), fields(_meta)]))
}

/** Reads an app page. Returns the `_meta` member of its contents, or undefined if the page cannot be read. */
export async function readPage(facts: RemoteFacts, uri: string): Promise<JsonRecord | undefined> {
  const result = await ask(facts, 'resources/read', { uri })
  const contents = result?.['contents']
  const first: unknown = Array.isArray(contents) ? contents[0] : undefined
  return isFields(first) ? fields(first['_meta']) : undefined
}

/** Reads all pages of a list. `gap` explains why the list is incomplete. */
async function readList(
  facts: RemoteFacts,
  kind: 'tools' | 'resources',
): Promise<{ readonly items: readonly JsonRecord[]; readonly gap: string | undefined }> {
  const items: JsonRecord[] = []
  let cursor: string | undefined
  for (let page = 0; page < maxPages; page++) {
    const got = await ask(facts, `${kind}/list`, cursor === undefined ? {} : { cursor })
    const listed = got?.[kind]
    if (!Array.isArray(listed)) return { items, gap: `page ${page + 1} could not be read` }
    items.push(...listed.filter(isFields))
    cursor = text(got, 'nextCursor')
    if (cursor === undefined) return { items, gap: undefined }
    if (items.length >= maxItems) return { items, gap: `only the first ${items.length} ${kind} were read` }
  }
  return { items, gap: `only the first ${maxPages} pages were read` }
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
