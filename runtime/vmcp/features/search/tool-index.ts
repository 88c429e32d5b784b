/**
 * A set of tools that is prepared for searching. The set consists of the listed tools, their token counts for a client,
 * and the keyword index. Vectors are added as soon as they are available.
 *
 * An index is built in slices, so a long list does not delay other requests.
 * Source: docs/reference/specification/virtual-server.md#endpoints, "Endpoints" (find_tool, call_tool).
 */
import { setImmediate } from 'node:timers/promises'
import { serverTools } from '../../../../schemas/index.ts'
import { JsonError, JsonObject, scanElements } from '../../../mcp/index.ts'
import { isForModels } from '../../model/catalog/tool-ui.ts'
import type { Vectors } from './embedder.ts'
import { KeywordIndex } from './keywords.ts'
import type { VisibleTools } from './visible-tools.ts'

export interface IndexedTool {
  readonly name: string
  /** The tool object as listed. */
  readonly json: Buffer
  /** Text for which a vector is created. */
  readonly text: string
  /** Approximate number of tokens in the tool object. */
  readonly tokens: number
}

export interface ToolIndex {
  readonly tools: readonly IndexedTool[]
  readonly names: ReadonlySet<string>
  /** Total number of tokens in all tools. */
  readonly tokens: number
  readonly keywords: KeywordIndex
  /** Vectors for the tools, in the same order as the tools. */
  vectors: Vectors | undefined
  /** The pending creation of the vectors. */
  embedding: { readonly since: number; readonly done: Promise<Vectors | undefined> } | undefined
}

/** Milliseconds after which the build yields to other work. */
const sliceMs = 2
const maxTextChars = 8_000
const maxParameters = 200
const maxParameterDepth = 3
const bytesPerToken = 4

/** Builds an index. Omits tools with a name in `hidden`, because clients cannot call these tools. */
export async function buildIndex(
  { pages }: VisibleTools,
  hidden: ReadonlySet<string> = new Set(),
): Promise<ToolIndex> {
  const keywords = new KeywordIndex()
  const tools: IndexedTool[] = []
  const names = new Set<string>()
  const turn = makeTurn()
  try {
    for (const page of pages) {
      const list = new JsonObject(page).raw('tools')
      await turn()
      for (const json of list ? scanElements(list) : []) {
        await turn()
        const tool = readTool(json)
        if (tool && !names.has(tool.name) && !hidden.has(tool.name)) {
          const { name, parameters } = tool
          const description =
            name === serverTools.executeToolScript ? beginning(tool.description) : tool.description
          keywords.add(tools.length, { name, description: `${tool.title} ${description}`, parameters })
          names.add(name)
          const text = `name: ${name} description: ${description}`
          tools.push({ name, json, text, tokens: Math.floor(json.length / bytesPerToken) })
        }
      }
    }
    await turn()
    keywords.finish()
  } catch (error) {
    keywords.close()
    throw error
  }
  const tokens = tools.reduce((sum, tool) => sum + tool.tokens, 0)
  return { tools, names, tokens, keywords, vectors: undefined, embedding: undefined }
}

/** Returns a function that yields to other work at the end of a slice, and otherwise costs almost nothing. */
function makeTurn(): () => Promise<void> | undefined {
  let began = performance.now()
  return () =>
    performance.now() - began < sliceMs
      ? undefined
      : setImmediate().then(() => {
          began = performance.now()
        })
}

/**
 * Returns the first paragraph. The script tool's description lists all other tools after this paragraph, and would
 * otherwise match every search.
 */
function beginning(description: string): string {
  return description.split('\n\n', 1)[0] ?? ''
}

interface ReadTool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly parameters: readonly string[]
}

/** Reads a tool. Returns undefined for tools without a readable name. */
function readTool(json: Buffer): ReadTool | undefined {
  if (json[0] !== 0x7b) return undefined
  try {
    const tool = new JsonObject(json)
    const name = tool.text('name')
    if (name === undefined || !isForModels(tool)) return undefined
    return {
      name,
      title: tool.text('title') ?? '',
      description: (tool.text('description') ?? '').slice(0, maxTextChars),
      parameters: [...parameterNames(tool.value('inputSchema'))].slice(0, maxParameters),
    }
  } catch (error) {
    if (error instanceof JsonError) return undefined
    throw error
  }
}

/** Yields the names of a schema's properties, including those in nested objects and lists. */
function* parameterNames(schema: unknown, depth = 0): Iterable<string> {
  if (typeof schema !== 'object' || schema === null || depth > maxParameterDepth) return
  const { properties, items } = schema as { readonly properties?: unknown; readonly items?: unknown }
  if (typeof properties === 'object' && properties !== null) {
    for (const [name, inner] of Object.entries(properties)) {
      yield name
      yield* parameterNames(inner, depth + 1)
    }
  }
  yield* parameterNames(items, depth + 1)
}
