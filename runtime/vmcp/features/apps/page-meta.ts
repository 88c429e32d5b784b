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

/** The narrowed `_meta` of a page or resource. */
export interface NarrowedMeta {
  readonly json: Buffer
  /** Names of the lists from which origins or permissions were removed. */
  readonly affected: readonly string[]
}

/** Narrows the `_meta` of a page or resource. Returns undefined if nothing changes. */
export function narrowedMeta(item: JsonObject, limits: PageLimits): NarrowedMeta | undefined {
  const meta = item.object('_meta')
  if (!meta) return undefined
  const affected: string[] = []
  const ui = meta.object('ui')
  const changes: Record<string, Buffer | undefined> = ui ? { ui: narrowed(ui, limits, affected) } : {}
  if (meta.raw('openai/widgetDomain')) changes['openai/widgetDomain'] = undefined
  if (meta.raw('openai/widgetCSP'))
    changes['openai/widgetCSP'] = narrowedCsp(meta, 'openai/widgetCSP', widgetCspMembers, limits, affected)
  return Object.keys(changes).length > 0 ? { json: meta.with(changes), affected } : undefined
}

function narrowed(ui: JsonObject, limits: PageLimits, affected: string[]): Buffer {
  const changes: Record<string, Buffer | undefined> = { domain: undefined }
  if (ui.raw('csp')) changes['csp'] = narrowedCsp(ui, 'csp', cspMembers, limits, affected)
  if (ui.raw('permissions')) changes['permissions'] = narrowedPermissions(ui, limits, affected)
  return ui.with(changes)
}

/** Returns a policy with the usable origins of its lists. Returns undefined if the policy is not an object. */
function narrowedCsp(
  object: JsonObject,
  name: string,
  members: readonly string[],
  { allowedOrigins }: PageLimits,
  affected: string[],
): Buffer | undefined {
  const csp = object.object(name)
  if (!csp) {
    affected.push(name)
    return undefined
  }
  const kept = members.flatMap((member) => {
    const raw = csp.raw(member)
    if (raw === undefined) return []
    const origins = raw.length > maxListBytes ? undefined : csp.value(member)
    const usable = listOf(origins)
      .filter(
        (origin): origin is string =>
          typeof origin === 'string' &&
          origin.length <= maxOriginLength &&
          plainOrigin.test(origin) &&
          (allowedOrigins === undefined || isCovered(origin.toLowerCase(), allowedOrigins)),
      )
      .slice(0, maxOrigins)
    if (!Array.isArray(origins) || usable.length < origins.length) affected.push(member)
    return [[member, usable] as const]
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
  ui: JsonObject,
  { allowedPermissions }: PageLimits,
  affected: string[],
): Buffer | undefined {
  const permissions = ui.object('permissions')
  if (permissions && !allowedPermissions) return permissions.bytes
  const removed = (permissions?.names() ?? []).filter((name) => !allowedPermissions?.includes(name))
  if (!permissions || removed.length > 0) affected.push('permissions')
  if (!permissions) return undefined
  return permissions.with(Object.fromEntries(removed.map((name) => [name, undefined])))
}
