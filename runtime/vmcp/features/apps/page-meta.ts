/**
 * Narrows what a page of MCP Apps may do. `_meta.ui` declares the origins and permissions that the page needs; clients
 * build a Content Security Policy from it. An origin that is not a plain origin could add directives to that policy, so
 * it is removed. The domain is removed too, because clients derive it from the server's address, and a backend's domain
 * does not match the address of the virtual server.
 * Source: MCP Apps, "UI resource metadata".
 */
import { listOf } from '../../../../schemas/index.ts'
import type { JsonObject } from '../../../mcp/index.ts'

export interface PageLimits {
  /** Allowed origins, in lowercase. Undefined if every plain origin is allowed. */
  readonly allowedOrigins: ReadonlySet<string> | undefined
  /** Allowed permissions. Undefined if every permission is allowed. */
  readonly allowedPermissions: readonly string[] | undefined
}

const cspMembers = ['connectDomains', 'resourceDomains', 'frameDomains', 'baseUriDomains'] as const
/** Names of the same lists in the form that ChatGPT reads. */
const widgetCspMembers = ['connect_domains', 'resource_domains', 'frame_domains', 'redirect_domains'] as const
const plainOrigin = /^(https?|wss?):\/\/(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?$/i
const maxOrigins = 100
const maxOriginLength = 300
/** Longer lists are removed, because reading them would delay other requests. */
const maxListBytes = 64 * 1024

/** Returns the `_meta` of a page or resource with narrowed members. Returns undefined if nothing changes. */
export function narrowedMeta(item: JsonObject, limits: PageLimits): Buffer | undefined {
  const meta = item.object('_meta')
  if (!meta) return undefined
  const ui = meta.object('ui')
  const changes: Record<string, Buffer | undefined> = ui ? { ui: narrowed(ui, limits) } : {}
  if (meta.raw('openai/widgetDomain')) changes['openai/widgetDomain'] = undefined
  if (meta.raw('openai/widgetCSP')) {
    const csp = meta.object('openai/widgetCSP')
    changes['openai/widgetCSP'] = csp && narrowedCsp(csp, widgetCspMembers, limits)
  }
  return Object.keys(changes).length > 0 ? meta.with(changes) : undefined
}

function narrowed(ui: JsonObject, limits: PageLimits): Buffer {
  const changes: Record<string, Buffer | undefined> = { domain: undefined }
  const csp = ui.object('csp')
  if (ui.raw('csp')) changes['csp'] = csp && narrowedCsp(csp, cspMembers, limits)
  if (ui.raw('permissions')) changes['permissions'] = narrowedPermissions(ui.object('permissions'), limits)
  return ui.with(changes)
}

function narrowedCsp(csp: JsonObject, members: readonly string[], { allowedOrigins }: PageLimits): Buffer {
  const kept = members.flatMap((member) => {
    const raw = csp.raw(member)
    if (raw === undefined) return []
    const origins = raw.length > maxListBytes ? [] : listOf(csp.value(member))
    const usable = origins.filter(
      (origin): origin is string =>
        typeof origin === 'string' &&
        origin.length <= maxOriginLength &&
        plainOrigin.test(origin) &&
        (allowedOrigins === undefined || isCovered(origin.toLowerCase(), allowedOrigins)),
    )
    return [[member, usable.slice(0, maxOrigins)] as const]
  })
  return Buffer.from(JSON.stringify(Object.fromEntries(kept)))
}

/** True if the allowed origins contain an origin, or a wildcard for one of its parent domains. */
function isCovered(origin: string, allowed: ReadonlySet<string>): boolean {
  if (allowed.has(origin)) return true
  const [scheme = '', host = ''] = origin.split('://')
  for (let dot = host.indexOf('.'); dot !== -1; dot = host.indexOf('.', dot + 1))
    if (allowed.has(`${scheme}://*${host.slice(dot)}`)) return true
  return false
}

function narrowedPermissions(
  permissions: JsonObject | undefined,
  { allowedPermissions }: PageLimits,
): Buffer | undefined {
  if (!permissions || !allowedPermissions) return permissions?.bytes
  const removed = permissions.names().filter((name) => !allowedPermissions.includes(name))
  return permissions.with(Object.fromEntries(removed.map((name) => [name, undefined])))
}
