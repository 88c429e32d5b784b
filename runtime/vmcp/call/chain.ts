/**
 * The one order in which an operation meets everything between the edges and the core:
 *
 *     aliases of lists → observe → surfaces of the features → aliases of calls → webhooks → authorize → rate limit →
 *     tools of the features → core
 *
 * A feature (tool search, scripts) is seen from two sides. Its surface stands outside of the guards, because what it
 * shows is made of what the caller may use. Its tools stand behind them, so that calling one costs a token and can be
 * forbidden. Workflows are no feature in this sense: they are tools of the catalog, checked and counted like any other.
 *
 * Source: ARCHITECTURE.md, "A tool call"; docs/specification/virtual-server.md#endpoints, "Endpoints" (find_tool, call_tool, execute_tool_script).
 */
import { JsonObject, scanElements } from '../../mcp/index.ts'
import { innerOperation, type Middleware, type Operation, type Perform } from '../model/operation.ts'
import { once } from '../model/once.ts'
import { type AliasParts, resolveAliases, showAliases } from './index.ts'

/** A tool of the gateway itself. */
export interface OwnTool {
  readonly name: string
  /** `inside` goes through everything that stands inside of the feature's surface, guards included. */
  run(operation: Operation, inside: Perform): ReturnType<Perform>
}

/** Something that changes how clients see the tools. */
export interface Feature {
  readonly surface: Middleware
  /** Called by their own names, behind the guards; being switched on permits them, a policy can still forbid them. */
  readonly tools: readonly OwnTool[]
  /** What an operator should know: names and states only. */
  readonly problems?: () => readonly string[]
  close(): Promise<void>
}

export interface PipelineParts {
  /** Names that are too long for clients; undefined: there are no aliases. */
  readonly aliases?: AliasParts
  readonly observe: readonly Middleware[]
  /** The features in force, outermost first; another list after a reload. */
  readonly features: () => readonly Feature[]
  readonly guards: readonly Middleware[]
  readonly core: Perform
}

/** The way of an operation through all of it. */
export function makePipeline({ aliases, observe, features, guards, core }: PipelineParts): Perform {
  const resolve = aliases ? [resolveAliases(aliases)] : []
  const outermost = aliases ? [showAliases(aliases), ...observe] : observe
  let known: { readonly features: readonly Feature[]; readonly perform: Perform } | undefined

  /** What stands inside of the surface of the feature before `from`. */
  function inside(present: readonly Feature[], from: number): Perform {
    const inner = present.slice(from)
    const ways = new Map(
      inner.flatMap(({ tools }, i) =>
        tools.map((tool) => [tool.name, { tool, way: once(() => inside(present, from + i + 1)) }] as const),
      ),
    )
    const own: Middleware = (operation, next) => {
      const name = operation.method === 'tools/call' ? operation.params.text('name') : undefined
      const found = name === undefined ? undefined : ways.get(name)
      return found ? found.tool.run(operation, found.way()) : next(operation)
    }
    const surfaces = inner.map(({ surface }) => surface)
    return compose([...surfaces, ...resolve, ...guards, ...(ways.size > 0 ? [own] : [])], core)
  }

  return function perform(operation) {
    const present = features()
    if (known?.features !== present) {
      known = { features: present, perform: compose(outermost, inside(present, 0)) }
    }
    return known.perform(operation)
  }
}

/** The middlewares around a core, outermost first. */
function compose(middlewares: readonly Middleware[], core: Perform): Perform {
  return middlewares.reduceRight<Perform>(
    (next, middleware) => (operation) => middleware(operation, next),
    core,
  )
}

/** Pages are not asked for without end. */
const maxPages = 1_000

/**
 * All tools that `perform` lists for the client of an operation: the raw tool objects, in order. Rejects with what the
 * list is refused with.
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
