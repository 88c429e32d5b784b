/** Facts from the catalog about the target of a policy decision. */
import { GatehouseError } from '../../../schemas/index.ts'
import { type AccessRequest, type Facts, hintsIn, type Origin } from '../../policy/index.ts'
import type { Catalog } from './catalog.ts'
import { unavailableError } from '../model/unavailable.ts'
import type { RefusedEntry, ToolEntry } from '../model/catalog/entries.ts'
import { JsonObject } from '../../mcp/index.ts'
import { mayContainUi } from '../model/catalog/tool-ui.ts'
import { backendUri } from './names/ui-addresses.ts'
import type { CatalogEntry } from '../model/catalog/entry.ts'

export function ifAdvertised(entry: ToolEntry | undefined): ToolEntry | undefined {
  return entry?.advertised ? entry : undefined
}

/**
 * Returns a function that finds the subject of a decision in a catalog. `linked` is the backend of a URI that no list
 * contains.
 */
export function makeEntryFinder(
  action: AccessRequest['action'],
  id: string,
  linked?: string,
): (catalog: Catalog) => CatalogEntry | undefined {
  if (action === 'call_tool') return (catalog) => ifAdvertised(catalog.tools.get(id))
  if (action === 'get_prompt') return (catalog) => catalog.prompts.get(id)
  // Completions and lists refer to the template itself.
  return (catalog) => catalog.templates.get(id) ?? catalog.findResource(id, linked)
}

/** Returns facts about a withheld item. Policies decide first whether the caller may find out that the item exists. */
export function refusedFacts(
  catalog: Catalog,
  action: AccessRequest['action'],
  id: string,
  linked?: string,
): Facts | undefined {
  if (action === 'read_resource') {
    const found = catalog.refusedTemplates.get(id) ?? catalog.resourceAt(id, linked)
    if (!found || !('refused' in found)) return undefined
    const template = 'matches' in found ? { template: found.original } : {}
    const original = backendUri(found, id)
    return { hints: {}, origin: { backend: found.backend, original, ...template } }
  }
  const refused = (action === 'call_tool' ? catalog.refusedTools : catalog.refusedPrompts).get(id)
  return refused && { hints: {}, origin: { backend: refused.backend, original: refused.original } }
}

export function factsIn(entry: CatalogEntry | ToolEntry, id: string): Facts {
  const { backend } = entry
  const isTemplate = 'matches' in entry
  return {
    hints: 'annotations' in entry ? hintsIn(entry.annotations, metaOf(entry)) : {},
    origin: isTemplate
      ? { backend, original: backendUri(entry, id), template: entry.original }
      : { backend, original: entry.original },
  }
}

/** Returns a tool's `_meta` if policies may read it. */
function metaOf({ json }: ToolEntry): unknown {
  return mayContainUi(json) ? new JsonObject(json).value('_meta') : undefined
}

/** Throws BACKEND_UNAVAILABLE if the name no longer refers to the target that the policies permitted. */
export function requireDecidedTarget(decided: Origin, { backend, original }: CatalogEntry): void {
  if (decided.backend === backend && (decided.template ?? decided.original) === original) return
  throw new GatehouseError('BACKEND_UNAVAILABLE', {
    detail: 'the target of the requested name changed during the request; try again',
  })
}

/**
 * Returns the current catalog entry of a tool that was looked up earlier. Throws INVALID_PARAMS if the tool no longer
 * exists, and BACKEND_UNAVAILABLE if the tool's backend cannot be listed.
 */
export function findCurrentTool({ listings }: Catalog, listedTool: ToolEntry): ToolEntry | RefusedEntry {
  const listing = listings.find(({ backend }) => backend === listedTool.backend)
  if (!listing) throw unavailableError([listedTool.backend])
  const item = listing.tools.find(({ key }) => key === listedTool.original)
  if (!item) {
    const detail = `tool ${JSON.stringify(listedTool.original)} is no longer offered`
    throw new GatehouseError('INVALID_PARAMS', { detail })
  }
  if (item.refused) return { ...listedTool, refused: item.refused }
  const { check: _, ...rest } = listedTool
  return { ...rest, mirrored: item.mirrored, ...(item.check ? { check: item.check } : {}) }
}
