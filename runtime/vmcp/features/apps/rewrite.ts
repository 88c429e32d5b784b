/**
 * Rewrites the addresses of pages in definitions and results. All other bytes stay as they are, and HTML is never
 * changed. An address from a backend always becomes an address of the same backend, so no backend can refer to another
 * backend's pages.
 */
import { arrayEnd, arrayStart, type Changes, comma, JsonObject, scanElements } from '../../../mcp/index.ts'
import { isUiAddress } from '../../catalog/names/ui-addresses.ts'
import { otherPageMembers } from '../../model/catalog/tool-ui.ts'
import { narrowedMeta, type PageLimits } from './page-meta.ts'

export interface RewriteRules extends PageLimits {
  /** Returns the address that clients see, for a URI that the backend uses. */
  readonly addressOf: (uri: string) => string
}

/**
 * Returns an object with rewritten page addresses in its `_meta`. Removes other addresses than `ui://` addresses, because
 * clients could resolve them outside the backend.
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
  const changes: Changes = {
    ...(address !== uri && { [member]: JSON.stringify(address) }),
    ...(meta && { _meta: meta }),
  }
  return Object.keys(changes).length === 0 ? item.bytes : item.with(changes)
}

/** Returns a result of a tool call, a prompt or a resource read with rewritten addresses. */
export function withResultAddresses(method: string, bytes: Buffer, rules: RewriteRules): Buffer {
  const result = new JsonObject(withPageAddress(new JsonObject(bytes), rules))
  if (method === 'resources/read')
    return mapMember(result, 'contents', (item) => withResourceAddress(item, 'uri', rules))
  if (method === 'prompts/get')
    return mapMember(result, 'messages', (message) =>
      mapMember(message, 'content', (item) => block(item, rules)),
    )
  return mapMember(result, 'content', (item) => block(item, rules))
}

/** Returns a content block. A link and an embedded resource contain an address. */
function block(item: JsonObject, rules: RewriteRules): Buffer {
  const type = item.text('type')
  if (type === 'resource_link') return withResourceAddress(item, 'uri', rules)
  const resource = type === 'resource' ? item.object('resource') : undefined
  return resource ? item.with({ resource: withResourceAddress(resource, 'uri', rules) }) : item.bytes
}

/** Changes a member that is an object or a list of objects. Other values stay as they are. */
function mapMember(object: JsonObject, member: string, change: (item: JsonObject) => Buffer): Buffer {
  const raw = object.raw(member)
  if (raw?.[0] === 0x7b) return replaced(object, member, raw, change(new JsonObject(raw)))
  if (raw?.[0] !== 0x5b) return object.bytes
  const items = scanElements(raw)
  const changed = items.map((item) => (item[0] === 0x7b ? change(new JsonObject(item)) : item))
  if (changed.every((item, i) => item === items[i])) return object.bytes
  const parts = changed.flatMap((item, i) => (i === 0 ? [item] : [comma, item]))
  return object.with({ [member]: Buffer.concat([arrayStart, ...parts, arrayEnd]) })
}

function replaced(object: JsonObject, member: string, before: Buffer, after: Buffer): Buffer {
  return after === before ? object.bytes : object.with({ [member]: after })
}
