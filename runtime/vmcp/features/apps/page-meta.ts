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
  /** Allowed origins. Undefined if every plain origin is allowed. */
  readonly allowedOrigins: readonly string[] | undefined
  /** Allowed permissions. Undefined if every permission is allowed. */
  readonly allowedPermissions: readonly string[] | undefined
}

const cspMembers = ['connectDomains', 'resourceDomains', 'frameDomains', 'baseUriDomains'] as const
const plainOrigin = /^(https?|wss?):\/\/(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?$/i
const maxOrigins = 100

/** Returns the `_meta` of a page or resource with a narrowed `ui` member. Returns undefined if nothing changes. */
export function narrowedMeta(item: JsonObject, limits: PageLimits): Buffer | undefined {
  const meta = item.object('_meta')
  const ui = meta?.object('ui')
  if (!meta || !ui) return undefined
  return meta.with({ ui: narrowed(ui, limits) })
}

function narrowed(ui: JsonObject, limits: PageLimits): Buffer {
  const changes: Record<string, Buffer | undefined> = { domain: undefined }
  const csp = ui.object('csp')
  if (ui.raw('csp')) changes['csp'] = csp && narrowedCsp(csp, limits)
  if (ui.raw('permissions')) changes['permissions'] = narrowedPermissions(ui.object('permissions'), limits)
  return ui.with(changes)
}

function narrowedCsp(csp: JsonObject, { allowedOrigins }: PageLimits): Buffer {
  const kept = cspMembers.flatMap((member) => {
    if (csp.raw(member) === undefined) return []
    const origins = listOf(csp.value(member)).filter(
      (origin): origin is string =>
        typeof origin === 'string' &&
        plainOrigin.test(origin) &&
        (allowedOrigins === undefined || allowedOrigins.some((allowed) => covers(allowed, origin))),
    )
    return [[member, origins.slice(0, maxOrigins)] as const]
  })
  return Buffer.from(JSON.stringify(Object.fromEntries(kept)))
}

/** True if an allowed origin equals or, with a wildcard, contains another origin. */
function covers(allowed: string, origin: string): boolean {
  const [ours, theirs] = [allowed.toLowerCase(), origin.toLowerCase()]
  if (ours === theirs) return true
  const [scheme = '', host = ''] = ours.split('://')
  if (!host.startsWith('*.')) return false
  const [otherScheme, otherHost = ''] = theirs.split('://')
  return otherScheme === scheme && otherHost.endsWith(host.slice(1))
}

function narrowedPermissions(
  permissions: JsonObject | undefined,
  { allowedPermissions }: PageLimits,
): Buffer | undefined {
  if (!permissions || !allowedPermissions) return permissions?.bytes
  const removed = permissions.names().filter((name) => !allowedPermissions.includes(name))
  return permissions.with(Object.fromEntries(removed.map((name) => [name, undefined])))
}
