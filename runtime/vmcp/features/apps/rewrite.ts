/**
 * Rewrites the addresses of pages in definitions and results. All other bytes stay unchanged, and HTML is never
 * changed. An address from a backend always becomes an address of the same backend, so no backend can refer to another
 * backend's pages.
 */
import type { Changes, JsonObject } from '../../../mcp/index.ts'
import { isUiAddress } from '../../catalog/names/ui-addresses.ts'
import type { ResultChanges } from '../../catalog/result-resources.ts'
import { otherPageMembers } from '../../model/catalog/tool-ui.ts'
import { narrowedMeta, type PageLimits } from './page-meta.ts'

export interface RewriteRules extends PageLimits {
  /** Returns the address that clients see, for a URI that the backend uses. */
  readonly addressOf: (uri: string) => string
  /** Receives the backend's URI of a page, and the lists from which origins or permissions were removed. */
  readonly onNarrowed: (uri: string, affected: readonly string[]) => void
}

/**
 * Returns an object with rewritten page addresses in its `_meta`. Removes addresses that do not begin with `ui://`,
 * because clients could resolve them outside the backend.
 */
export function withPageAddress(object: JsonObject, rules: RewriteRules): Buffer {
  const meta = object.object('_meta')
  if (!meta) return object.bytes
  const ui = meta.object('ui')
  const changes: Record<string, Buffer | string | undefined> = {}
  if (ui?.raw('resourceUri')) changes['ui'] = ui.with({ resourceUri: pageAddress(ui, 'resourceUri', rules) })
  for (const member of otherPageMembers)
    if (meta.raw(member)) changes[member] = pageAddress(meta, member, rules)
  return Object.keys(changes).length === 0 ? object.bytes : object.with({ _meta: meta.with(changes) })
}

function pageAddress(object: JsonObject, member: string, { addressOf }: RewriteRules): string | undefined {
  const uri = object.text(member)
  return uri !== undefined && isUiAddress(uri) ? JSON.stringify(addressOf(uri)) : undefined
}

/** Returns a resource, template or content with its address rewritten and its permissions narrowed. */
export function withResourceAddress(
  item: JsonObject,
  member: 'uri' | 'uriTemplate',
  rules: RewriteRules,
): Buffer {
  const uri = item.text(member)
  if (uri === undefined) return item.bytes
  const address = rules.addressOf(uri)
  const meta = narrowedMeta(item, rules)
  if (meta && meta.affected.length > 0 && isUiAddress(uri)) rules.onNarrowed(uri, meta.affected)
  const changes: Changes = {
    ...(address !== uri && { [member]: JSON.stringify(address) }),
    ...(meta && { _meta: meta.json }),
  }
  return Object.keys(changes).length === 0 ? item.bytes : item.with(changes)
}

/** The changes for results of one backend. */
export function resultChanges(rules: RewriteRules): ResultChanges {
  return {
    result: (object) => withPageAddress(object, rules),
    resource: (item) => withResourceAddress(item, 'uri', rules),
  }
}
