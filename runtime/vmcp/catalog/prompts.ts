/**
 * Determines which prompts clients see, and under which names.
 * Source: docs/reference/specification/virtual-server.md#aggregation, config.aggregation.
 */
import { type Aggregation, prefixedName } from '../../../schemas/index.ts'
import { JsonObject } from '../../mcp/index.ts'
import type { Listing } from './listing.ts'
import { prefixFormat } from './tools.ts'
import {
  type CatalogNotice,
  type CatalogItem,
  holdsName,
  type Refused,
  type RefusedEntry,
} from '../model/catalog/entries.ts'
import type { CatalogEntry } from '../model/catalog/entry.ts'

export interface ResolvedPrompts {
  readonly entries: ReadonlyMap<string, CatalogEntry>
  readonly refused: ReadonlyMap<string, RefusedEntry>
}

/**
 * Resolves prompts. With `priority`, prompts from backends in the priority list keep their names, and the first backend
 * in the list wins a conflict. All other prompts get a prefix. If two prompts still have the same name, both are left
 * out.
 */
export function resolvePrompts(
  listings: readonly Listing[],
  aggregation: Aggregation,
  problems: CatalogNotice[],
): ResolvedPrompts {
  const priority = aggregation.conflictResolution === 'priority'
  const order = priority ? (aggregation.conflictResolutionConfig.priorityOrder ?? []) : []
  const format = priority ? '{workload}_' : prefixFormat(aggregation)
  const ranked = [...listings].sort((a, b) => rank(order, a.backend) - rank(order, b.backend))
  const unprefixed = new Map<string, Claim>()
  const prefixed = new Map<string, Claim[]>()
  for (const { backend, prompts } of ranked) {
    for (const item of prompts) {
      const { key } = item
      if (!holdsName(item.refused)) continue
      if (order.includes(backend)) {
        const known = unprefixed.get(key)
        if (!known) unprefixed.set(key, claimOf(item, backend, key))
        else
          problems.push({
            kind: 'shadowed',
            subject: key,
            message: `prompt ${key} from ${backend} is left out: ${known.backend} has priority`,
          })
        continue
      }
      const name = prefixedName(format, backend, key)
      prefixed.set(name, [...(prefixed.get(name) ?? []), claimOf(item, backend, name)])
    }
  }
  const claims = new Map(unprefixed)
  for (const [name, claimants] of prefixed) {
    const [only] = claimants
    if (claimants.length === 1 && only && !unprefixed.has(name)) claims.set(name, only)
    else {
      claims.delete(name)
      const backends = [...claimants, ...(unprefixed.has(name) ? [unprefixed.get(name)] : [])]
        .map((entry) => entry?.backend)
        .join(', ')
      problems.push({
        kind: 'conflict',
        subject: name,
        message: `prompt ${name} is not offered, because several backends use this name: ${backends}`,
      })
    }
  }
  const entries = new Map<string, CatalogEntry>()
  const refused = new Map<string, RefusedEntry>()
  for (const [name, { entry, reason }] of claims) {
    if (reason === undefined) entries.set(name, entry)
    else refused.set(name, { key: name, backend: entry.backend, original: entry.original, refused: reason })
  }
  for (const { backend, prompts } of ranked) {
    for (const { key, refused: reason } of prompts) {
      if (reason === undefined || holdsName(reason)) continue
      const name = order.includes(backend) ? key : prefixedName(format, backend, key)
      if (!entries.has(name) && !refused.has(name))
        refused.set(name, { key: name, backend, original: key, refused: reason })
    }
  }
  return { entries, refused }
}

interface Claim {
  readonly backend: string
  readonly entry: CatalogEntry
  readonly reason: Refused | undefined
}

function claimOf({ key, json, check, refused }: CatalogItem, backend: string, name: string): Claim {
  const entry = {
    key: name,
    backend,
    original: key,
    json: renamePrompt(json, key, name),
    ...(check ? { check } : {}),
  }
  return { backend, entry, reason: refused }
}

function rank(order: readonly string[], backend: string): number {
  const at = order.indexOf(backend)
  return at < 0 ? order.length : at
}

function renamePrompt(json: Buffer, from: string, to: string): Buffer {
  return from === to ? json : new JsonObject(json).with({ name: JSON.stringify(to) })
}
