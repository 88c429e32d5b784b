/**
 * Selects the instructions for a client. The selection contains the instructions of backends with at least one item
 * that the client is allowed to see. A backend that responds too late is left out, so clients can still open sessions.
 */
import { isFields } from '../../../schemas/index.ts'
import { withTimeout } from '../../net/index.ts'
import type { Gate } from '../../policy/index.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { instructionsOf } from '../catalog/instructions.ts'
import { originsOfPage } from '../catalog/pages.ts'
import type { ItemKind } from '../model/catalog/entries.ts'
import type { Core } from '../call/core.ts'
import type { OperationClient } from '../model/session.ts'

const maxWaitMs = 2_000

const lists: readonly { readonly kind: ItemKind; readonly method: string; readonly key: string }[] = [
  { kind: 'tools', method: 'tools/list', key: 'name' },
  { kind: 'prompts', method: 'prompts/list', key: 'name' },
  { kind: 'resources', method: 'resources/list', key: 'uri' },
  { kind: 'templates', method: 'resources/templates/list', key: 'uriTemplate' },
]

/** Returns the instructions for a client. Never rejects. Waits at most two seconds for backends. */
export async function instructionsFor(
  client: OperationClient,
  core: Core,
  gate: Gate | undefined,
): Promise<string | undefined> {
  const catalog = await withTimeout(maxWaitMs, core.viewAvailable(client), () => core.peek(client))
  return instructionsIn(catalog, client, core, gate)
}

/**
 * Returns the instructions in a catalog. Returns no instructions if the policies cannot be evaluated. Never rejects.
 */
export async function instructionsIn(
  catalog: Catalog,
  client: OperationClient,
  core: Core,
  gate: Gate | undefined,
): Promise<string | undefined> {
  const isOnly = core.parts.onlyBackend !== undefined
  const { listings } = catalog
  if (!gate || listings.every(({ server }) => server.instructions === undefined))
    return instructionsOf(listings, { isOnly })
  const visible = await visibleBackends(client, catalog, core, gate).catch(() => new Set<string>())
  const permitted = listings.filter(({ backend }) => visible.has(backend))
  return instructionsOf(permitted, { isOnly })
}

/** Returns the backends with at least one item that the client is allowed to see on the first page of a list. */
async function visibleBackends(
  client: OperationClient,
  catalog: Catalog,
  core: Core,
  gate: Gate,
): Promise<ReadonlySet<string>> {
  const backends = new Set<string>()
  for (const { kind, method, key } of lists) {
    const page = core.firstPage(catalog, kind, client)
    const originOf = originsOfPage(page)
    const filtered = await gate.filter(client.caller, method, page, originOf ? { originOf } : {})
    const result: unknown = JSON.parse(filtered.toString())
    const items = Object.values(isFields(result) ? result : {}).find((value) => Array.isArray(value)) ?? []
    for (const item of items) {
      const name = isFields(item) ? item[key] : undefined
      const backend = typeof name === 'string' ? originOf?.(name)?.backend : undefined
      if (backend) backends.add(backend)
    }
  }
  return backends
}
