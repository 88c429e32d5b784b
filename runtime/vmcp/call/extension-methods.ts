/**
 * Routes the methods of extensions that Gatehouse does not implement (`extensions.custom`). A route is always
 * configured, never inferred from the name of a method, and policies decide on the item that the route selects.
 * Source: docs/guides/extensions.md.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { JsonObject } from '../../mcp/index.ts'
import type { Facts } from '../../policy/index.ts'
import { backendUri } from '../catalog/names/ui-addresses.ts'
import type { CatalogEntry } from '../model/catalog/entry.ts'
import type { ExtensionSet } from '../model/extensions.ts'
import type { Operation, Target } from '../model/operation.ts'
import { requireText } from './params.ts'

type Access = Pick<Operation, 'method' | 'params'>

/** The request on which policies decide. */
export interface DecidedAccess extends Access {
  /** Facts about the target. Undefined if the catalog contains the target. */
  readonly facts?: Facts
}

/**
 * Returns the request on which policies decide. For a routed method, this is the read of the resource or the call of
 * the tool that the params name. For a method with a fixed backend, it is the call of a tool with the method's name.
 * Throws INVALID_PARAMS if the params do not name an item.
 */
export function accessOf({ method, params }: Access, extensions: ExtensionSet): DecidedAccess {
  const route = extensions.routeOf(method)
  if (!route) return { method, params }
  if (route.by === 'backend') {
    const facts = { hints: {}, origin: { backend: route.backend, original: method } }
    return { ...accessTo('tools/call', 'name', method), facts }
  }
  const id = requireText(params, route.param)
  return route.by === 'uri' ? accessTo('resources/read', 'uri', id) : accessTo('tools/call', 'name', id)
}

function accessTo(method: string, member: string, id: string): Access {
  return { method, params: new JsonObject(Buffer.from(JSON.stringify({ [member]: id }))) }
}

/** Finds catalog entries. Each function rejects if the entry does not exist or is withheld. */
export interface EntryFinder {
  readonly tool: (name: string) => Promise<CatalogEntry>
  readonly resource: (uri: string) => Promise<CatalogEntry>
}

/** Returns the target of a routed method. Rejects with METHOD_NOT_FOUND if the method has no route. */
export async function extensionTarget(
  { method, params }: Operation,
  extensions: ExtensionSet,
  find: EntryFinder,
): Promise<Target> {
  const route = extensions.routeOf(method)
  if (!route) throw new GatehouseError('METHOD_NOT_FOUND')
  if (route.by === 'backend') {
    const entry = { key: method, backend: route.backend, original: method, json: Buffer.from('{}') }
    return { entry, changes: {}, isExtension: true }
  }
  const id = requireText(params, route.param)
  const entry = route.by === 'uri' ? await find.resource(id) : await find.tool(id)
  const original = route.by === 'uri' ? backendUri(entry, id) : entry.original
  return { entry, changes: { [route.param]: JSON.stringify(original) }, isExtension: true }
}
