/**
 * Resolves the names that apps use, and shows tools to the clients that render apps.
 *
 * An app calls the tools of its own server under their original names, and hosts may read its page under its original
 * address. These links replace both with the names in the catalog, before any check. Policies, webhooks, limits and
 * the audit log therefore see the names that they see for every other call.
 * Source: MCP Apps; docs/guides/apps.md.
 */
import { GatehouseError } from '../../../../schemas/index.ts'
import { emptyObject, JsonObject, readMembers, scanElements, workOn } from '../../../mcp/index.ts'
import type { Observer } from '../../../observe/index.ts'
import type { Catalog } from '../../catalog/catalog.ts'
import { isUiAddress } from '../../catalog/names/ui-addresses.ts'
import { joinedItems } from '../../catalog/pages.ts'
import { holdsName, type ToolEntry } from '../../model/catalog/entries.ts'
import { otherPageMembers } from '../../model/catalog/tool-ui.ts'
import { rendersApps } from '../../model/client.ts'
import { type Link, type Operation, type Perform, withParams } from '../../model/operation.ts'
import type { Outcome } from '../../model/outcome.ts'
import type { OperationClient } from '../../model/session.ts'
import { unavailableError } from '../../model/unavailable.ts'
import type { AppListings } from './listing.ts'

export interface AppNameParts {
  readonly listings: Pick<AppListings, 'reads' | 'ownerOf' | 'backends'>
  readonly listOriginalNames: boolean
  /** Returns the cached catalog. */
  readonly peek: (client: OperationClient) => Catalog
  readonly view: (client: OperationClient) => Promise<Catalog>
  /** True for Gatehouse's own tools, which the catalog does not contain. */
  readonly isOwnTool: (name: string) => boolean
  readonly observer: Pick<Observer, 'attributeTo'>
  /** Returns false if policies forbid the request. Undefined if no policies are configured. */
  readonly permits?: (operation: Operation, method: string, params: JsonObject) => Promise<boolean>
}

/** Maximum number of tools in the error for an ambiguous name. */
const maxNamed = 10
/** Maximum number of variants that are cached for one list page. */
const maxVariants = 16

export interface AppNameLinks {
  /** For `tools/list`. */
  readonly appLists: Link
  /** For methods whose params name a resource. */
  readonly appPages: Link
  /** For tool calls of clients that declare MCP Apps. */
  readonly appCalls: Link
}

export function resolveAppNames(parts: AppNameParts): AppNameLinks {
  const pages = new AppPages(parts)
  return { appLists: (operation, next) => pages.list(operation, next), appPages, appCalls }

  async function appPages(operation: Operation, next: Perform): Promise<Outcome> {
    const { client, params } = operation
    const uri = params.text('uri')
    if (uri === undefined || !isUiAddress(uri)) return next(operation)
    if (parts.listings.ownerOf(uri) !== undefined) return next(operation)
    const catalog = await parts.view(client)
    const address = catalog.resourceAt(uri) ? undefined : catalog.apps.addressOf(uri)
    if (address === undefined) return next(operation)
    return next(withParams(operation, new JsonObject(params.with({ uri: JSON.stringify(address) }))))
  }

  function appCalls(operation: Operation, next: Perform): Promise<Outcome> {
    return rendersApps(operation.client) ? renamedCall(operation, next) : next(operation)
  }

  async function renamedCall(operation: Operation, next: Perform): Promise<Outcome> {
    const { client, params } = operation
    const name = params.text('name')
    if (name === undefined || parts.isOwnTool(name)) return next(operation)
    const known = parts.peek(client).tools.get(name)
    const tool = known?.advertised ? known : await resolved(operation, name)
    if (!tool) return next(operation)
    if (tool.key !== name) parts.observer.attributeTo(tool.key, params.raw('arguments') ?? emptyObject.bytes)
    const renamed =
      tool.key === name
        ? operation
        : withParams(operation, new JsonObject(params.with({ name: JSON.stringify(tool.key) })))
    return next(tool.ui || tool.key !== name ? { ...renamed, isAppCall: true } : renamed)
  }

  /**
   * Returns the tool for a name. Rejects with INVALID_PARAMS if several backends have this tool, and with
   * BACKEND_UNAVAILABLE if the app's own backend is down. No backend may receive another backend's calls.
   */
  async function resolved(operation: Operation, name: string): Promise<ResolvedTool | undefined> {
    const { client } = operation
    const { tools, aliases, apps, refusedTools, listings } = await parts.view(client)
    const known = tools.get(aliases.nameByAlias.get(name) ?? name)
    if (known?.advertised || refusedTools.has(name)) return known
    const usable = apps.toolsNamed(name)
    if (usable.length === 0) return undefined
    const { reads, backends } = parts.listings
    const last = reads.latest(client)
    if (last !== undefined && backends?.has(last) && !listings.some(({ backend }) => backend === last))
      throw unavailableError([last])
    // A withheld tool keeps its name. The call is then refused when the target is resolved.
    const withheld = [...refusedTools.values()].filter(
      ({ original, refused }) => original === name && holdsName(refused),
    )
    const candidates: readonly ResolvedTool[] = [...usable, ...withheld]
    if (candidates.length === 1) return candidates[0]
    const latest = reads.latest(
      client,
      candidates.map(({ backend }) => backend),
    )
    const own = candidates.find(({ backend }) => backend === latest)
    if (own) return own
    throw await ambiguous(operation, name, usable)
  }

  async function ambiguous(
    operation: Operation,
    name: string,
    candidates: readonly ToolEntry[],
  ): Promise<GatehouseError> {
    const usable: string[] = []
    for (const { key } of candidates.slice(0, maxNamed)) {
      const params = new JsonObject(Buffer.from(JSON.stringify({ name: key })))
      if ((await parts.permits?.(operation, 'tools/call', params)) !== false) usable.push(key)
    }
    const detail =
      usable.length === 0
        ? `tool ${JSON.stringify(name)} not found`
        : `tool ${JSON.stringify(name)} is ambiguous; use one of these names: ${usable.join(', ')}`
    return new GatehouseError('INVALID_PARAMS', { detail })
  }
}

/** The tool for a name. The tool may be withheld. */
type ResolvedTool = Pick<ToolEntry, 'key' | 'backend' | 'ui'>

interface ListedTool {
  readonly json: Buffer
  readonly entry: ToolEntry | undefined
}

/** Prepares pages of `tools/list`. */
class AppPages {
  readonly #parts: AppNameParts
  readonly #prepared = new WeakMap<
    Buffer,
    { readonly catalog: Catalog; readonly variants: Map<string, Buffer> }
  >()

  constructor(parts: AppNameParts) {
    this.#parts = parts
  }

  async list(operation: Operation, next: Perform): Promise<Outcome> {
    const outcome = await next(operation)
    const { client } = operation
    const catalog = this.#parts.peek(client)
    if (outcome.kind !== 'result' || !catalog.apps.hasApps) return outcome
    const isRendered = rendersApps(client)
    if (!isRendered && !catalog.apps.hasAppOnlyTools) return outcome
    const { result } = outcome
    await workOn(result, readMembers(result))
    const tools = toolsOf(result, catalog)
    const denied = isRendered ? await this.#deniedPages(operation, tools) : new Set<string>()
    return { ...outcome, result: this.#page(result, catalog, tools, { isRendered, denied }) }
  }

  /** Returns the pages that the caller may not read. */
  async #deniedPages(operation: Operation, tools: readonly ListedTool[]): Promise<ReadonlySet<string>> {
    const { permits } = this.#parts
    const denied = new Set<string>()
    if (!permits) return denied
    for (const page of new Set(tools.flatMap(({ entry }) => entry?.ui?.page ?? []))) {
      const params = new JsonObject(Buffer.from(JSON.stringify({ uri: page })))
      if (!(await permits(operation, 'resources/read', params))) denied.add(page)
    }
    return denied
  }

  #page(
    result: Buffer,
    catalog: Catalog,
    tools: readonly ListedTool[],
    { isRendered, denied }: { readonly isRendered: boolean; readonly denied: ReadonlySet<string> },
  ): Buffer {
    const known = this.#prepared.get(result)
    const variants = known?.catalog === catalog ? known.variants : new Map<string, Buffer>()
    const variant = JSON.stringify([isRendered, ...denied])
    const page = variants.get(variant)
    if (page) return page
    const items = isRendered
      ? tools.flatMap((tool) => this.#shown(tool, catalog, denied))
      : tools.flatMap(({ json, entry }) => (entry?.ui?.isForModel === false ? [] : [json]))
    const list = joinedItems(items, { before: '[', between: ',', after: ']' })
    const made = new JsonObject(result).with({ tools: list })
    if (variants.size >= maxVariants) variants.clear()
    variants.set(variant, made)
    this.#prepared.set(result, { catalog, variants })
    return made
  }

  /** Returns a tool, and a second definition under the original name for apps. */
  #shown({ json, entry }: ListedTool, catalog: Catalog, denied: ReadonlySet<string>): readonly Buffer[] {
    if (!entry) return [json]
    const page = entry.ui?.page
    const shown = page !== undefined && denied.has(page) ? withoutPage(new JsonObject(json)) : json
    const { original, key } = entry
    const isListedTwice =
      this.#parts.listOriginalNames &&
      original !== key &&
      catalog.apps.toolsNamed(original).length === 1 &&
      catalog.apps.toolsNamed(original)[0] === entry &&
      !catalog.tools.has(original) &&
      !catalog.refusedTools.has(original) &&
      !catalog.aliases.nameByAlias.has(original) &&
      !this.#parts.isOwnTool(original)
    return isListedTwice ? [shown, forApps(new JsonObject(shown), original)] : [shown]
  }
}

function toolsOf(result: Buffer, catalog: Catalog): readonly ListedTool[] {
  const list = new JsonObject(result).raw('tools')
  return (list ? scanElements(list) : []).map((json) => {
    const name = new JsonObject(json).text('name')
    const entry = name === undefined ? undefined : catalog.tools.get(name)
    return { json, entry: entry?.advertised ? entry : undefined }
  })
}

/** Returns a tool without the address of its page. The visibility stays. */
function withoutPage(tool: JsonObject): Buffer {
  const meta = tool.object('_meta')
  const ui = meta?.object('ui')
  if (!meta) return tool.bytes
  return tool.with({
    _meta: meta.with({
      ...(ui && { ui: ui.with({ resourceUri: undefined }) }),
      ...Object.fromEntries(otherPageMembers.map((member) => [member, undefined])),
    }),
  })
}

/** Returns a tool under another name that hosts show to apps only. */
function forApps(tool: JsonObject, name: string): Buffer {
  const meta = tool.object('_meta')
  const ui = meta?.object('ui')
  const visibility = '["app"]'
  const shown = ui ? ui.with({ visibility }) : `{"visibility":${visibility}}`
  return tool.with({
    name: JSON.stringify(name),
    _meta: meta ? meta.with({ ui: shown }) : `{"ui":${shown.toString()}}`,
  })
}
